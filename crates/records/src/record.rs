//! What is known about one finished game.
//!
//! Plain data: a [`Record`] can hold nonsense (an illegal action, a sum of two); [`crate::check`] tells.

use std::fmt;

use tengen_games::{Action, ActionBlock, Fingerprint, Game, OpeningRule, Outcome, Roles, Seat, Spec, State};

use crate::ids::{ModelId, RecordId, RunId};
use crate::player::Player;

/// Most entries of [`SearchBlock::net_policy_top`].
pub const NET_POLICY_TOP_MAX: usize = 8;

/// What a game was played for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Data for the window.
    SelfPlay,
    /// A game of a gate's match or of a rating match.
    Match,
}

impl Kind {
    /// The stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::SelfPlay => "self-play",
            Kind::Match => "match",
        }
    }

    /// The kind with this stable name.
    pub fn parse(name: &str) -> Option<Kind> {
        [Kind::SelfPlay, Kind::Match]
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }
}

/// Numeric precision of the network that was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Precision {
    /// 32-bit floating point.
    Fp32,
    /// 16-bit floating point.
    Fp16,
    /// 8-bit integer.
    Int8,
}

impl Precision {
    /// The stable name, which network files use too.
    pub const fn as_str(self) -> &'static str {
        match self {
            Precision::Fp32 => "fp32",
            Precision::Fp16 => "fp16",
            Precision::Int8 => "int8",
        }
    }

    /// The precision with this stable name.
    pub fn parse(name: &str) -> Option<Precision> {
        [Precision::Fp32, Precision::Fp16, Precision::Int8]
            .into_iter()
            .find(|precision| precision.as_str() == name)
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Index into [`Record::models`]; in a rating game into [`Record::players`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelIndex(pub u8);

impl ModelIndex {
    /// The index as an index into slices.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One finished game.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The game's name.
    pub id: RecordId,
    /// The run it belongs to.
    pub run_id: RunId,
    /// Canonical game id, for example `caro5?size=9`.
    pub game_id: String,
    /// The rules it was played by.
    pub rules_fingerprint: Fingerprint,
    /// What it was played for.
    pub kind: Kind,
    /// The models of its lease, in the lease's order.
    pub models: Vec<ModelId>,
    /// The players of its lease; only rating games have them.
    pub players: Option<[Player; 2]>,
    /// The model, in a rating game the player, in seat 0 and in seat 1.
    pub seat_models: [ModelIndex; 2],
    /// Revision of the run's settings.
    pub settings_revision: u32,
    /// Seed of the game's random choices: [`crate::game_seed`] of its lease.
    pub seed: u64,
    /// Plies given or drawn at random before play: replayed, never trained on.
    pub opening: Vec<Action>,
    /// The plies that were played, in order.
    pub plies: Vec<PlyRecord>,
    /// How it ended.
    pub outcome: Outcome,
    /// Who took which part.
    pub roles: Roles,
    /// When it ended, milliseconds since the Unix epoch, UTC.
    pub created_unix_ms: i64,
    /// How long it took, milliseconds.
    pub duration_ms: u32,
    /// Pair of the match it belongs to; 0 in self-play.
    pub match_pair: u32,
}

/// One action that was played.
#[derive(Clone, Debug, PartialEq)]
pub struct PlyRecord {
    /// Who acted.
    pub seat: Seat,
    /// What was played.
    pub action: Action,
    /// The model, in a rating game the player, that chose it.
    pub model: ModelIndex,
    /// The search that chose it; `None` when nothing was searched.
    pub search: Option<SearchBlock>,
}

/// What the search at one ply found. Never filled from anything but search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchBlock {
    /// The policy that is trained: probabilities over legal actions that sum to 1, ascending by action. May be empty
    /// where the weight is 0.
    pub policy_target: Vec<(Action, f32)>,
    /// Root visits, each at least 1, ascending by action.
    pub visits: Vec<(Action, u32)>,
    /// Weight of the position in training, `0..=16`; 0 keeps it out of the window.
    pub weight: f32,
    /// Win, draw, loss at the root after the search, from the acting seat's view; sums to 1.
    pub root_wdl: [f32; 3],
    /// The same as the network alone saw it.
    pub net_wdl: [f32; 3],
    /// The largest priors of the network before noise, at most [`NET_POLICY_TOP_MAX`], in any order.
    pub net_policy_top: Vec<(Action, f32)>,
    /// Kullback-Leibler divergence of the policy target from the prior, nats.
    pub prior_kl: f32,
    /// Root visits at the end of the search, the root's own evaluation and reused ones included.
    pub visits_total: u32,
    /// Root visits that came from an earlier ply's tree.
    pub visits_reused: u32,
    /// Temperature the action was drawn with; 0 means the best was taken.
    pub temperature: f32,
    /// Precision of the network.
    pub precision: Precision,
    /// Index of the symmetry the root was evaluated under.
    pub symmetry: u16,
}

impl PlyRecord {
    /// Whether the ply is a position: it has a policy target of weight above 0.
    pub fn is_position(&self) -> bool {
        self.search.as_ref().is_some_and(|search| search.weight > 0.0)
    }
}

impl Record {
    /// The network behind an index of a ply or a seat; `None` where there is none.
    pub fn network(&self, index: ModelIndex) -> Option<ModelId> {
        match &self.players {
            None => self.models.get(index.index()).copied(),
            Some(players) => players.get(index.index())?.network().copied(),
        }
    }

    /// Number of positions: plies with a policy target of weight above 0.
    pub fn positions(&self) -> u32 {
        self.plies.iter().filter(|ply| ply.is_position()).count() as u32
    }

    /// Every action from the start of the game: opening plies, then played ones.
    pub fn actions(&self) -> impl Iterator<Item = Action> + '_ {
        self.opening
            .iter()
            .copied()
            .chain(self.plies.iter().map(|ply| ply.action))
    }

    /// The decisions of the opening protocol joined by `/`, for example `take-black` or `offer/take-white`; `None` for
    /// games that have no protocol, and for a game that took no decision.
    ///
    /// Follows the record only as far as it is legal.
    pub fn opening_path<G: Game>(&self, game: &G) -> Option<String> {
        let mut state = game.start();
        let mut path = DecisionPath::new(game.spec());
        for action in self.actions() {
            path.note(game, &state, action);
            if !path.is_open() || state.apply(action).is_err() {
                break;
            }
        }
        path.finish()
    }
}

/// Gathers the decisions of an opening protocol while a game is replayed.
pub(crate) struct DecisionPath {
    names: Option<Vec<String>>,
    open: bool,
}

impl DecisionPath {
    pub(crate) fn new(spec: &Spec) -> DecisionPath {
        let open = spec.opening != OpeningRule::None;
        DecisionPath {
            names: open.then(Vec::new),
            open,
        }
    }

    /// Whether decisions may still follow.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Notes `action`, about to be played in `state`.
    pub(crate) fn note<G: Game>(&mut self, game: &G, state: &G::State, action: Action) {
        // Once somebody holds the first colour the protocol is over: a later action without a cell is a pass or the
        // like, not a decision.
        self.open = self.open && state.roles().first_colour.is_none();
        if let (true, Some(names)) = (self.open && has_no_cell(game.spec(), action), self.names.as_mut()) {
            names.push(game.action_text(action));
        }
    }

    pub(crate) fn finish(self) -> Option<String> {
        self.names
            .filter(|names| !names.is_empty())
            .map(|names| names.join("/"))
    }
}

/// Whether `action` belongs to no place on the board.
fn has_no_cell(spec: &Spec, action: Action) -> bool {
    let mut end = 0;
    for &block in spec.actions.blocks() {
        end += block.len(spec.rows, spec.cols);
        if action.index() < end {
            return matches!(block, ActionBlock::Global { .. });
        }
    }
    false
}
