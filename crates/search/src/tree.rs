//! The search of one game: [`Tree`] with its two halves, and moving on to the next position.
//!
//! How a child is selected is in `select`, what a finished search says in `stats`.

use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{Action, Game, IllegalAction, State};

use crate::arena::{Arena, Kind, Node, NodeId};
use crate::noise::dirichlet;
use crate::select::select;
use crate::settings::{SIMULATIONS_MAX, Settings};
use crate::value::{ValueFor, Wdl};

/// What an evaluator says of one position.
#[derive(Clone, Copy, Debug)]
pub struct Evaluation<'a> {
    /// Policy logits `[A]` over the whole action space; actions that are not playable are masked here and may hold anything.
    pub policy_logits: &'a [f32],
    /// Logits of win, draw and loss of the seat that acts in the position.
    pub wdl_logits: [f32; 3],
}

/// An evaluation that cannot be used. The leaf stays outstanding.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EvaluationError {
    /// The policy belongs to another action space.
    #[error("{got} policy logits for a game of {expected} actions")]
    PolicyLength {
        /// Logits given.
        got: usize,
        /// Size of the game's action space.
        expected: usize,
    },
    /// A playable action's logit is infinite or not a number.
    #[error("the policy logit of action {action} is {logit}")]
    PolicyNotFinite {
        /// The first such action.
        action: Action,
        /// Its logit.
        logit: f32,
    },
    /// A value logit is infinite or not a number.
    #[error("the logits of win, draw and loss are {0:?}")]
    WdlNotFinite([f32; 3]),
}

/// Whether a search explores more widely at its root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootNoise {
    /// Priors as the network gives them: matches and analysis.
    None,
    /// Dirichlet noise mixed into the priors by the settings' fraction: self-play.
    Dirichlet,
}

/// Names an outstanding leaf of one tree. Never given twice by the same tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeafId(u64);

/// A position that waits for its evaluation.
#[derive(Clone, Debug)]
pub struct Leaf<G: Game> {
    /// What to hand to [`Tree::apply`].
    pub id: LeafId,
    /// The position to evaluate.
    pub state: G::State,
}

/// The way to a leaf and what is needed to expand it.
#[derive(Clone, Debug)]
struct Walk {
    leaf: u64,
    /// From the root to the leaf, both included.
    path: Vec<NodeId>,
    /// The actions that the leaf's player chooses among.
    playable: Vec<Action>,
}

/// Memory for drawing the noise of a root.
#[derive(Clone, Debug, Default)]
struct Scratch {
    playable: Vec<Action>,
    variates: Vec<f64>,
}

/// Where a walk ended.
enum End<S> {
    /// At a position to evaluate.
    Leaf(S),
    /// At a finished game.
    Terminal,
    /// At a leaf that is already being evaluated: this tree has nothing else to offer until an evaluation arrives.
    Collision,
}

/// The search tree of one game, rooted at its present position.
#[derive(Clone, Debug)]
pub struct Tree<G: Game> {
    pub(crate) game: G,
    state: G::State,
    pub(crate) settings: Settings,
    pub(crate) arena: Arena,
    /// Memory for the next [`Tree::advance`].
    spare_arena: Arena,
    /// Noise per root edge; empty without noise. Priors never contain it.
    pub(crate) noise: Vec<f32>,
    scratch: Scratch,
    outstanding: Vec<Walk>,
    /// Memory for the next walks.
    spare_walks: Vec<Walk>,
    leaves_given: u64,
    simulations: u32,
    pub(crate) visits_reused: u32,
    visits_terminal: u32,
}

impl<G: Game> Tree<G> {
    /// A tree with nothing but its root.
    pub fn new(game: G, root: G::State, settings: Settings) -> Tree<G> {
        let mut arena = Arena::default();
        arena.reset(Node::at(&root));
        Tree {
            game,
            state: root,
            settings,
            arena,
            spare_arena: Arena::default(),
            noise: Vec::new(),
            scratch: Scratch::default(),
            outstanding: Vec::new(),
            spare_walks: Vec::new(),
            leaves_given: 0,
            simulations: 0,
            visits_reused: 0,
            visits_terminal: 0,
        }
    }

    /// Simulations of this search that ended in a finished game, which needs no evaluation.
    pub fn visits_terminal(&self) -> u32 {
        self.visits_terminal
    }

    /// The game.
    pub fn game(&self) -> &G {
        &self.game
    }

    /// The present position.
    pub fn root(&self) -> &G::State {
        &self.state
    }

    /// The constants this tree is searched with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Starts a search of the present position that ends when the root has `simulations` visits (at most
    /// [`SIMULATIONS_MAX`]), reused ones included. Root noise is drawn anew, also on a reused tree. Leaves still
    /// outstanding are given up.
    pub fn begin(&mut self, simulations: u32, noise: RootNoise, rng: &mut Xoshiro256PlusPlus) {
        self.give_up_outstanding();
        self.simulations = simulations.min(SIMULATIONS_MAX);
        self.visits_reused = self.arena.node(NodeId::ROOT).visits;
        self.visits_terminal = 0;
        self.noise.clear();
        if noise == RootNoise::Dirichlet {
            let Scratch { playable, variates } = &mut self.scratch;
            self.state.playable(playable);
            let alpha = match self.settings.dirichlet_alpha {
                0.0 => 10.0 / playable.len() as f64,
                alpha => f64::from(alpha),
            };
            dirichlet(alpha, playable.len(), rng, variates, &mut self.noise);
        }
    }

    /// Appends up to `leaves_max` positions to `out`, each to be answered through [`Tree::apply`].
    ///
    /// Simulations that end in a finished game are backed up at once and return nothing. Until a leaf is answered, the
    /// nodes on its way carry a virtual loss, so that the next walk goes elsewhere; a walk that still reaches an
    /// outstanding leaf ends the call. Without outstanding leaves, the call gives at least one leaf or ends the search.
    pub fn gather(&mut self, leaves_max: usize, out: &mut Vec<Leaf<G>>) {
        let mut given = 0;
        while given < leaves_max && self.simulations_started() < self.simulations {
            let mut walk = self.spare_walks.pop().unwrap_or_else(|| self.new_walk());
            match self.walk(&mut walk.path) {
                End::Leaf(state) => {
                    self.leaves_given += 1;
                    walk.leaf = self.leaves_given;
                    state.playable(&mut walk.playable);
                    self.arena.start(&walk.path);
                    out.push(Leaf {
                        id: LeafId(walk.leaf),
                        state,
                    });
                    self.outstanding.push(walk);
                    given += 1;
                }
                End::Terminal => {
                    let leaf = walk.path.last().copied().unwrap_or(NodeId::ROOT);
                    let value = self.arena.node(leaf).own();
                    self.arena.back_up(&walk.path, value);
                    self.visits_terminal += 1;
                    self.spare_walks.push(walk);
                }
                End::Collision => {
                    self.spare_walks.push(walk);
                    return;
                }
            }
        }
    }

    /// Takes the evaluation of an outstanding leaf: masks what is not playable, expands the leaf and backs its value up.
    ///
    /// A leaf that is no longer outstanding (answered before, or given up by [`Tree::begin`] or [`Tree::advance`]) is
    /// ignored, so late evaluations do no harm.
    ///
    /// # Errors
    /// When the policy has the wrong length or a needed logit is not finite. The tree is unchanged.
    pub fn apply(&mut self, leaf: LeafId, evaluation: &Evaluation<'_>) -> Result<(), EvaluationError> {
        let Some(index) = self.outstanding.iter().position(|walk| walk.leaf == leaf.0) else {
            return Ok(());
        };
        check(evaluation, self.game.spec().actions.len())?;
        let walk = &self.outstanding[index];
        let node = walk.path.last().copied().unwrap_or(NodeId::ROOT);
        let wdl = Wdl::from_logits(evaluation.wdl_logits);
        self.arena
            .expand(node, wdl, &walk.playable, evaluation.policy_logits)
            .map_err(|(action, logit)| EvaluationError::PolicyNotFinite { action, logit })?;
        let walk = self.outstanding.swap_remove(index);
        let value = ValueFor::predicted(self.arena.node(node).seat, wdl);
        self.arena.finish(&walk.path, value);
        self.spare_walks.push(walk);
        Ok(())
    }

    /// Whether the root has its visits and no leaf is outstanding.
    pub fn done(&self) -> bool {
        self.outstanding.is_empty() && self.simulations_started() >= self.simulations
    }

    /// Plays `action`. Its subtree is kept if the settings say so and the action was visited; leaves still outstanding
    /// are given up, and the next search begins with [`Tree::begin`].
    ///
    /// # Errors
    /// When the rules refuse the action. The tree is unchanged.
    pub fn advance(&mut self, action: Action) -> Result<(), IllegalAction> {
        self.state.apply(action)?;
        self.give_up_outstanding();
        let child = self
            .arena
            .child(NodeId::ROOT, action)
            .filter(|&child| self.arena.node(child).visits > 0);
        match child {
            Some(child) if self.settings.tree_reuse => self.arena.keep_below(child, &mut self.spare_arena),
            _ => self.arena.reset(Node::at(&self.state)),
        }
        self.noise.clear();
        self.simulations = 0;
        self.visits_reused = self.arena.node(NodeId::ROOT).visits;
        Ok(())
    }

    /// Root visits that are finished or under way.
    fn simulations_started(&self) -> u32 {
        self.arena.standing(NodeId::ROOT).started
    }

    /// A walk with room for the longest way: no further than the game goes, nor deeper than every simulation one ply.
    fn new_walk(&self) -> Walk {
        let plies_max = self.game.spec().plies_max.min(self.simulations as usize);
        Walk {
            leaf: 0,
            path: Vec::with_capacity(plies_max + 1),
            playable: Vec::new(),
        }
    }

    /// Follows the selection rule from the root to the first position that is not expanded, noting the way in `path`.
    fn walk(&mut self, path: &mut Vec<NodeId>) -> End<G::State> {
        path.clear();
        path.push(NodeId::ROOT);
        let mut state = self.state.clone();
        let mut id = NodeId::ROOT;
        loop {
            let node = self.arena.node(id);
            match node.kind {
                Kind::Terminal => return End::Terminal,
                Kind::Fresh if self.arena.outstanding(id) > 0 => return End::Collision,
                Kind::Fresh => return End::Leaf(state),
                Kind::Expanded => {}
            }
            let noise = if id == NodeId::ROOT { self.noise.as_slice() } else { &[] };
            let offset = select(&self.arena, id, &self.settings, noise)
                .expect("a position that is not over has a playable action (conformance suite of tengen-games)");
            let edge = &self.arena.edges(id)[offset];
            let child = edge.child();
            state
                .apply(edge.action)
                .expect("an action that playable() names is legal");
            id = child.unwrap_or_else(|| self.arena.add_child(id, offset, Node::at(&state)));
            path.push(id);
        }
    }

    /// Takes back the virtual losses of all outstanding leaves, as if they had never been gathered.
    fn give_up_outstanding(&mut self) {
        while let Some(walk) = self.outstanding.pop() {
            self.arena.give_up(&walk.path);
            self.spare_walks.push(walk);
        }
    }
}

/// Refuses what would poison the tree. The logits of the policy are looked at when they become priors.
fn check(evaluation: &Evaluation<'_>, actions: usize) -> Result<(), EvaluationError> {
    let got = evaluation.policy_logits.len();
    if got != actions {
        return Err(EvaluationError::PolicyLength { got, expected: actions });
    }
    if !evaluation.wdl_logits.iter().all(|logit| logit.is_finite()) {
        return Err(EvaluationError::WdlNotFinite(evaluation.wdl_logits));
    }
    Ok(())
}
