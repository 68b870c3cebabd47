//! One game in flight: its position, its trees, its generator, and what has been played so far.
//!
//! A flight knows nothing of batches and files: it names leaves, and somebody brings their evaluations.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{Action, Game, IllegalAction, Outcome, State};
use tengen_records::{ModelIndex, PlyRecord};
use tengen_search::{Evaluation, EvaluationError, Leaf, RootNoise, Settings, Tree};

use crate::ledger;

/// Who chooses for a seat.
pub(crate) enum Mind<G: Game> {
    /// A search with one model's evaluations. The tree belongs to that model alone.
    Search {
        /// The model, as an index into the flight's own list.
        model: ModelIndex,
        /// Its tree, rooted where the game stands.
        tree: Box<Tree<G>>,
        /// Root visits of each search.
        simulations: u32,
    },
    /// Plays any playable action with equal probability.
    Random,
}

impl<G: Game> Mind<G> {
    /// A search by `model` from `state`.
    pub(crate) fn search(game: &G, state: &G::State, model: ModelIndex, settings: &Settings) -> Mind<G> {
        let tree = Box::new(Tree::new(game.clone(), state.clone(), *settings));
        Mind::Search {
            model,
            tree,
            simulations: settings.simulations,
        }
    }
}

/// How actions are drawn from searches.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Temper {
    /// Self-play: noise at the root, `temperature` in the first `turns` turns of the game, the best action after.
    Explore {
        /// The temperature.
        temperature: f32,
        /// How many turns.
        turns: u32,
    },
    /// Matches and duels: no noise, the first `sampled_plies` plies at temperature 1, the best action after.
    Compete {
        /// How many plies.
        sampled_plies: u32,
    },
}

/// A choice that the rules refuse, or an evaluation that the tree refuses: a fault of ours, never of the game.
#[derive(Debug, thiserror::Error)]
pub enum FlightError {
    /// An action was refused.
    #[error(transparent)]
    Illegal(#[from] IllegalAction),
    /// An evaluation was refused.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
    /// A finished search has nothing to play.
    #[error("a finished search of turn {turn} has no action to play")]
    NoChoice {
        /// The turn.
        turn: u32,
    },
}

/// Where a flight stands after a step.
pub(crate) enum Step {
    /// [`Flight::leaves`] wait for evaluations.
    Waiting,
    /// The game is over.
    Over(Outcome),
}

/// A game being played.
pub(crate) struct Flight<G: Game> {
    state: G::State,
    rng: Xoshiro256PlusPlus,
    /// One mind for both seats, or one each.
    minds: Vec<Mind<G>>,
    temper: Temper,
    searching: bool,
    plies: Vec<PlyRecord>,
    leaves: Vec<Leaf<G>>,
    scratch: Vec<Action>,
}

impl<G: Game> Flight<G> {
    /// A game that goes on from `state`. `minds` holds one mind for both seats, or seat 0's and seat 1's.
    pub(crate) fn new(state: G::State, rng: Xoshiro256PlusPlus, minds: Vec<Mind<G>>, temper: Temper) -> Self {
        debug_assert!((1..=2).contains(&minds.len()), "{} minds", minds.len());
        Flight {
            state,
            rng,
            minds,
            temper,
            searching: false,
            plies: Vec::new(),
            leaves: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Plays on until leaves need evaluations or the game is over. At most `leaves_max` leaves wait at a time.
    pub(crate) fn step(&mut self, leaves_max: usize) -> Result<Step, FlightError> {
        loop {
            if let Some(outcome) = self.state.outcome() {
                return Ok(Step::Over(outcome));
            }
            let acting = self.acting();
            match &mut self.minds[acting] {
                Mind::Random => self.play_random()?,
                Mind::Search { tree, simulations, .. } => {
                    if !self.searching {
                        tree.begin(*simulations, noise(self.temper), &mut self.rng);
                        self.searching = true;
                    }
                    tree.gather(leaves_max, &mut self.leaves);
                    if !self.leaves.is_empty() {
                        return Ok(Step::Waiting);
                    }
                    if tree.done() {
                        self.play_searched()?;
                    }
                }
            }
        }
    }

    /// The positions that wait for evaluations, all of one model.
    pub(crate) fn leaves(&self) -> &[Leaf<G>] {
        &self.leaves
    }

    /// The model that the waiting leaves are for; `None` when none wait.
    pub(crate) fn model(&self) -> Option<ModelIndex> {
        match &self.minds[self.acting()] {
            Mind::Search { model, .. } if !self.leaves.is_empty() => Some(*model),
            _ => None,
        }
    }

    /// Backs up the evaluation of waiting leaf number `leaf`.
    pub(crate) fn apply(&mut self, leaf: usize, evaluation: &Evaluation<'_>) -> Result<(), FlightError> {
        let acting = self.acting();
        if let Mind::Search { tree, .. } = &mut self.minds[acting] {
            tree.apply(self.leaves[leaf].id, evaluation)?;
        }
        Ok(())
    }

    /// Says that every waiting leaf has been applied.
    pub(crate) fn leaves_applied(&mut self) {
        self.leaves.clear();
    }

    /// The position now.
    pub(crate) fn state(&self) -> &G::State {
        &self.state
    }

    /// The plies played so far, opening not included.
    pub(crate) fn plies(&self) -> &[PlyRecord] {
        &self.plies
    }

    /// The plies played, when the game is over.
    pub(crate) fn into_plies(self) -> Vec<PlyRecord> {
        self.plies
    }

    /// Index of the mind whose turn it is.
    fn acting(&self) -> usize {
        self.state.seat().index().min(self.minds.len() - 1)
    }

    fn play_random(&mut self) -> Result<(), FlightError> {
        let mut playable = std::mem::take(&mut self.scratch);
        self.state.playable(&mut playable);
        let action = playable[self.rng.random_range(0..playable.len())];
        self.scratch = playable;
        self.play(PlyRecord {
            seat: self.state.seat(),
            action,
            model: ModelIndex(0),
            search: None,
        })
    }

    fn play_searched(&mut self) -> Result<(), FlightError> {
        let temperature = self.temperature();
        let acting = self.acting();
        let Mind::Search { model, tree, .. } = &self.minds[acting] else {
            return Ok(());
        };
        let chosen = tree.choose(temperature, &mut self.rng);
        let action = chosen.ok_or(FlightError::NoChoice {
            turn: self.state.turn(),
        })?;
        let search = ledger::search_block(&tree.root_stats(), self.temper.weight(), temperature);
        let ply = PlyRecord {
            seat: self.state.seat(),
            action,
            model: *model,
            search: Some(search),
        };
        self.searching = false;
        self.play(ply)
    }

    fn play(&mut self, ply: PlyRecord) -> Result<(), FlightError> {
        self.state.apply(ply.action)?;
        for mind in &mut self.minds {
            if let Mind::Search { tree, .. } = mind {
                tree.advance(ply.action)?;
            }
        }
        self.plies.push(ply);
        Ok(())
    }

    fn temperature(&self) -> f32 {
        match self.temper {
            Temper::Explore { temperature, turns } if self.state.turn() < turns => temperature,
            Temper::Compete { sampled_plies } if (self.plies.len() as u32) < sampled_plies => 1.0,
            Temper::Explore { .. } | Temper::Compete { .. } => 0.0,
        }
    }
}

impl Temper {
    /// Weight of the positions in training: games that explore teach, games that compete only count.
    fn weight(self) -> f32 {
        match self {
            Temper::Explore { .. } => 1.0,
            Temper::Compete { .. } => 0.0,
        }
    }
}

fn noise(temper: Temper) -> RootNoise {
    match temper {
        Temper::Explore { .. } => RootNoise::Dirichlet,
        Temper::Compete { .. } => RootNoise::None,
    }
}
