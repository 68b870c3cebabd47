//! The state machine of a run: iterations, candidates, the gate, and who gets which work.
//!
//! One value, [`Control`], owns the state; [`Control::step`] takes one [`Event`] and returns [`Effect`]s as data for
//! the caller to carry out. **This crate does no IO, knows no game, no network and no clock**: models, leases and
//! actors are opaque ids, openings are numbers of pairs, time is an argument in milliseconds, and whatever is random
//! (the id of a lease) comes in with the event.

mod control;
mod elo;
mod event;
mod gate;
mod ids;
mod lease;
mod log;
pub mod rating;
mod rules;
mod schedule;
mod snapshot;

pub use control::Control;
pub use elo::{Elo, elo_of};
pub use event::{Effect, Event};
pub use gate::{Candidate, Gate};
pub use ids::{ActorId, GateId, LeaseId, ModelId};
pub use lease::{Lease, LeaseEnd, LeaseRules, Work};
pub use log::{Decision, FixedRule, GameScore, Leg, LogEntry, RuleError, Standing, Tally};
pub use rules::{GateRule, Rules, RulesError};
pub use schedule::{Row, Schedule, ScheduleError};
pub use snapshot::{CandidateDue, Snapshot};
