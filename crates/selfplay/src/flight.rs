//! One game in flight: its position, its trees, its generator, and what has been played so far.
//!
//! A flight knows nothing of batches and files: it names leaves, and somebody brings their evaluations.

use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{Action, Game, IllegalAction, Outcome, Seat, State};
use tengen_records::{ModelIndex, NetworkPlay, Player, PlyRecord, Precision, SearchBlock};
use tengen_search::{Evaluation, EvaluationError, Leaf, RootNoise, Settings, Tree};

use crate::symmetry::symmetry_of;
use crate::trace::{SearchTrace, Tracer};
use crate::{baseline, ledger};

/// A model as a flight knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Engine {
    /// Its place in the flight's own list.
    pub(crate) index: ModelIndex,
    /// What it computes in, for the record.
    pub(crate) precision: Precision,
}

/// Who chooses for a seat.
pub(crate) enum Mind<G: Game> {
    /// A search with one model's evaluations. The tree belongs to that model alone.
    Search {
        /// The model.
        model: Engine,
        /// Its tree, rooted where the game stands.
        tree: Box<Tree<G>>,
        /// Root visits of each search.
        simulations: u32,
    },
    /// Plays any playable action with equal probability.
    Random,
    /// Looks one ply ahead.
    OnePly,
    /// Plays games to their ends at random before each action.
    Rollout {
        /// How many.
        simulations: u32,
    },
}

/// A person was asked to play by himself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is a person: nobody here can play for one")]
pub struct PersonError(pub String);

impl<G: Game> Mind<G> {
    /// The mind of a player from `state`. `model` says which its network is; `settings` hold everything of the search that
    /// the player leaves open.
    pub(crate) fn of<N>(
        player: &Player<N>,
        game: &G,
        state: &G::State,
        settings: &Settings,
        model: impl FnOnce(&N) -> Engine,
    ) -> Result<Mind<G>, PersonError> {
        Ok(match player {
            Player::Random => Mind::Random,
            Player::OnePly => Mind::OnePly,
            Player::Rollout { simulations } => Mind::Rollout {
                simulations: *simulations,
            },
            Player::Network { network, play } => {
                let simulations = match play {
                    NetworkPlay::AsOrdered => settings.simulations,
                    // A search of one visit is the network's own evaluation and nothing else.
                    NetworkPlay::Policy => 1,
                    NetworkPlay::Visits(visits) => *visits,
                };
                let settings = Settings {
                    simulations,
                    ..*settings
                };
                Mind::search(game, state, model(network), &settings)
            }
            Player::Human(name) => return Err(PersonError(name.as_str().to_owned())),
        })
    }

    /// A search by `model` from `state`.
    pub(crate) fn search(game: &G, state: &G::State, model: Engine, settings: &Settings) -> Mind<G> {
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
    /// A player has nothing to play although the game goes on.
    #[error("the player of turn {turn} found no action to play")]
    NoChoice {
        /// The turn.
        turn: u32,
    },
}

/// What searches took, beside evaluations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effort {
    /// Simulations made.
    pub(crate) simulations: u64,
    /// Those of them that ended in a finished game.
    pub(crate) terminal: u64,
    /// Root visits that came with the tree and were not made again.
    pub(crate) reused: u64,
}

/// Where a flight stands after a step.
pub(crate) enum Step {
    /// [`Flight::leaves`] wait for evaluations; or there are none, and others should have their turn before a player that
    /// thinks long goes on.
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
    /// Whom the plies of each seat are recorded as.
    names: [ModelIndex; 2],
    temper: Temper,
    searching: bool,
    /// What is played at each ply whatever is chosen; past its end the choices are played.
    script: Vec<Action>,
    plies: Vec<PlyRecord>,
    leaves: Vec<Leaf<G>>,
    /// How many of them have been applied.
    leaves_answered: usize,
    /// The leaves after those, once all of them have been applied.
    leaves_next: Vec<Leaf<G>>,
    scratch: Vec<Action>,
    tracer: Option<Tracer>,
    effort: Effort,
}

impl<G: Game> Flight<G> {
    /// A game that goes on from `state`. `minds` holds one mind for both seats, or seat 0's and seat 1's;
    /// `names` what the record calls them.
    pub(crate) fn new(
        state: G::State,
        rng: Xoshiro256PlusPlus,
        minds: Vec<Mind<G>>,
        names: [ModelIndex; 2],
        temper: Temper,
    ) -> Self {
        debug_assert!((1..=2).contains(&minds.len()), "{} minds", minds.len());
        Flight {
            state,
            rng,
            minds,
            names,
            temper,
            searching: false,
            script: Vec::new(),
            plies: Vec::new(),
            leaves: Vec::new(),
            leaves_answered: 0,
            leaves_next: Vec::new(),
            scratch: Vec::new(),
            tracer: None,
            effort: Effort::default(),
        }
    }

    /// The same game, which keeps every search of this seat.
    pub(crate) fn traced(self, seat: Seat) -> Self {
        Flight {
            tracer: Some(Tracer::new(seat)),
            ..self
        }
    }

    /// The same game, in which these actions are played one after the other whatever is chosen: a finished game again, with
    /// what its players would have chosen at every ply.
    pub(crate) fn following(self, script: Vec<Action>) -> Self {
        Flight { script, ..self }
    }

    /// Plays on until leaves need evaluations or the game is over. At most `leaves_max` leaves wait at a time.
    pub(crate) fn step(&mut self, leaves_max: usize) -> Result<Step, FlightError> {
        if !self.leaves.is_empty() {
            return Ok(Step::Waiting);
        }
        loop {
            if let Some(outcome) = self.state.outcome() {
                return Ok(Step::Over(outcome));
            }
            let acting = self.acting();
            match &mut self.minds[acting] {
                Mind::Random => {
                    let action = baseline::random(&self.state, &mut self.rng, &mut self.scratch);
                    self.play_unsearched(action)?;
                }
                Mind::OnePly => {
                    let action = baseline::one_ply(&self.state, &mut self.rng);
                    self.play_unsearched(action)?;
                    return Ok(self.pause());
                }
                Mind::Rollout { simulations } => {
                    let action = baseline::rollout(&self.state, *simulations, &mut self.rng);
                    self.play_unsearched(action)?;
                    return Ok(self.pause());
                }
                Mind::Search { tree, simulations, .. } => {
                    if !self.searching {
                        tree.begin(*simulations, noise(self.temper), &mut self.rng);
                        self.searching = true;
                        if let Some(tracer) = &mut self.tracer {
                            tracer.begin();
                        }
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
            Mind::Search { model, .. } if !self.leaves.is_empty() => Some(model.index),
            _ => None,
        }
    }

    /// Index of the symmetry that waiting leaf number `leaf` is to be evaluated under.
    pub(crate) fn symmetry(&self, leaf: usize) -> u16 {
        match &self.minds[self.acting()] {
            Mind::Search { tree, .. } => symmetry_of(tree.game(), tree.settings(), &self.leaves[leaf].state),
            _ => 0,
        }
    }

    /// Backs up the evaluation of waiting leaf number `leaf`; each is to be answered once. The last of them makes the search go
    /// on, while its tree is at hand, to the at most `leaves_max` leaves that wait from the next round on.
    pub(crate) fn apply(
        &mut self,
        leaf: usize,
        evaluation: &Evaluation<'_>,
        leaves_max: usize,
    ) -> Result<(), FlightError> {
        let acting = self.acting();
        if let Mind::Search { tree, .. } = &mut self.minds[acting] {
            tree.apply(self.leaves[leaf].id, evaluation)?;
            self.leaves_answered += 1;
            if self.leaves_answered == self.leaves.len() {
                tree.gather(leaves_max, &mut self.leaves_next);
            }
        }
        Ok(())
    }

    /// Ends a round, in which every waiting leaf has been applied.
    pub(crate) fn end_round(&mut self) {
        self.leaves.clear();
        self.leaves_answered = 0;
        std::mem::swap(&mut self.leaves, &mut self.leaves_next);
    }

    /// The position now.
    pub(crate) fn state(&self) -> &G::State {
        &self.state
    }

    /// What its finished searches took since this was asked last.
    pub(crate) fn take_effort(&mut self) -> Effort {
        std::mem::take(&mut self.effort)
    }

    /// The plies played so far, opening not included.
    pub(crate) fn plies(&self) -> &[PlyRecord] {
        &self.plies
    }

    /// The searches that were kept, in the order of their plies.
    pub(crate) fn take_traces(&mut self) -> Vec<SearchTrace> {
        self.tracer.as_mut().map(Tracer::take).unwrap_or_default()
    }

    /// The plies played, when the game is over.
    pub(crate) fn into_plies(self) -> Vec<PlyRecord> {
        self.plies
    }

    /// Index of the mind whose turn it is.
    fn acting(&self) -> usize {
        self.state.seat().index().min(self.minds.len() - 1)
    }

    /// Where the flight stands after an action that took long to find.
    fn pause(&self) -> Step {
        self.state.outcome().map_or(Step::Waiting, Step::Over)
    }

    fn play_unsearched(&mut self, action: Option<Action>) -> Result<(), FlightError> {
        let turn = self.state.turn();
        self.play(action.ok_or(FlightError::NoChoice { turn })?, None)
    }

    fn play_searched(&mut self) -> Result<(), FlightError> {
        let temperature = self.temperature();
        let acting = self.acting();
        let Mind::Search { tree, model, .. } = &self.minds[acting] else {
            return Ok(());
        };
        let chosen = tree.choose(temperature, &mut self.rng);
        let action = chosen.ok_or(FlightError::NoChoice {
            turn: self.state.turn(),
        })?;
        let stats = tree.root_stats();
        self.effort.simulations += u64::from(stats.visits_total - stats.visits_reused);
        self.effort.terminal += u64::from(tree.visits_terminal());
        self.effort.reused += u64::from(stats.visits_reused);
        let search = ledger::search_block(&stats, self.temper.weight(), temperature, model.precision);
        // Also of a root that was evaluated as a leaf of an earlier ply's search: the symmetry is the position's.
        let symmetry = symmetry_of(tree.game(), tree.settings(), tree.root());
        if let Some(tracer) = &mut self.tracer {
            tracer.keep(self.plies.len(), self.state.seat(), action, temperature, tree, stats);
        }
        self.searching = false;
        self.play(action, Some(SearchBlock { symmetry, ..search }))
    }

    fn play(&mut self, action: Action, search: Option<SearchBlock>) -> Result<(), FlightError> {
        let seat = self.state.seat();
        let ply = PlyRecord {
            seat,
            action,
            model: self.names[seat.index()],
            search,
        };
        let played = self.script.get(self.plies.len()).copied().unwrap_or(action);
        self.state.apply(played)?;
        for mind in &mut self.minds {
            if let Mind::Search { tree, .. } = mind {
                tree.advance(played)?;
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
