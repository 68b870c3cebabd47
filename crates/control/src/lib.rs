//! The state machine of a run: iterations, candidates, the gate, and who gets which work.
//!
//! One value, [`Control`], owns the state; [`Control::step`] takes one [`Event`] and returns [`Effect`]s as data for
//! the caller to carry out. **This crate does no IO, knows no game, no network and no clock**: models, leases and
//! actors are opaque ids, openings are numbers of pairs, time is an argument in milliseconds, and whatever is random
//! (the id of a lease) comes in with the event.

mod control;
mod elo;
mod event;
mod fixed;
mod gate;
mod ids;
mod lease;
mod log;
mod match_rule;
pub mod rating;
mod rules;
mod schedule;
mod snapshot;
mod sprt;
mod steering;
mod words;

pub use control::Control;
pub use elo::{Elo, elo_of, elo_of_pairs};
pub use event::{Effect, Event};
pub use fixed::{FixedRule, MATCH_GAMES_MAX, Needed, RuleError};
pub use gate::{Candidate, Evidence, Gate, Match, MatchEvidence, MatchPlan, Openings, Outcome, PAIRS_BEFORE_SHARES};
pub use ids::{ActorId, GateId, LeaseId, ModelId};
pub use lease::{Lease, LeaseEnd, LeaseRules, Work};
pub use log::{Decision, GameScore, Leg, LogEntry, Standing, Tally};
pub use match_rule::MatchRule;
pub use rules::{ACTOR_SHARE_MIN, ACTORS_WITH_SHARES, GatePlay, GateRule, PoolRule, Queue, Rules, RulesError};
pub use schedule::{Row, Schedule, ScheduleError};
pub use snapshot::{CandidateDue, Snapshot};
pub use sprt::{SprtRule, Unit, log_likelihood_ratio};
pub use steering::{Activity, Order, OrderRefused, Seen, SeenGate, Steering, Then};
