//! What the coordinator knows about a game before it sees the record: its own lease.

use tengen_games::{Action, Fingerprint};

use crate::ids::{LeaseId, ModelId, RunId};
use crate::player::Player;
use crate::record::{Kind, ModelIndex};

/// What a record must agree with: the run and the lease the game was played under.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// The run.
    pub run_id: RunId,
    /// Canonical id of the run's game; the game given to [`crate::check`] is this one.
    pub game_id: String,
    /// The run's rules.
    pub rules_fingerprint: Fingerprint,
    /// The lease.
    pub lease: LeaseId,
    /// The lease's models in its order.
    pub models: Vec<ModelId>,
    /// The lease's players, if it is for rating games.
    pub players: Option<[Player; 2]>,
    /// Settings revision of the lease.
    pub settings_revision: u32,
    /// Seed of the lease.
    pub lease_seed: u64,
    /// The work the lease orders.
    pub work: Work,
    /// Which ends the run allows beside those of the rules.
    pub endings: Endings,
}

/// The games a lease orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Data for the window; the lease's first model plays both seats.
    SelfPlay {
        /// Every game index is below this. An overrun lease has further indexes, so this is a bound on what is
        /// believed, not the number of games ordered.
        index_end: u32,
        /// Longest random opening, plies.
        random_plies_max: u32,
    },
    /// Games of a match between the lease's two models or players; a game's index in this list is its index in the lease.
    Match(Vec<MatchGame>),
}

impl Work {
    /// What the games are for.
    pub const fn kind(&self) -> Kind {
        match self {
            Work::SelfPlay { .. } => Kind::SelfPlay,
            Work::Match(_) => Kind::Match,
        }
    }
}

/// One ordered game of a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchGame {
    /// Pair within the match.
    pub pair: u32,
    /// The opening, exactly.
    pub opening: Vec<Action>,
    /// The model or player in seat 0 (0 or 1); the other one takes seat 1.
    pub seat0_model: ModelIndex,
}

impl MatchGame {
    /// The model or player in seat 0 and in seat 1.
    pub const fn seat_models(&self) -> [ModelIndex; 2] {
        [self.seat0_model, ModelIndex(1u8.saturating_sub(self.seat0_model.0))]
    }
}

/// Ends that come from the run's settings, not from the rules. By default there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Endings {
    /// Whether the acting seat may give up.
    pub resignation: bool,
    /// Plies, opening included, after which a game is broken off as a draw.
    pub move_limit_plies: Option<u32>,
}
