//! The actor: takes leases from the coordinator, plays their games, and sends the records until each has a verdict.
//!
//! One async event loop ([`run`]) owns leases, outbox and link; games are played on named threads (`selfplay-N`), each
//! with its own driver and sessions. The threads take games from one shared queue and hand finished records over a
//! bounded channel: when the outbox is full, play pauses.
//!
//! Deliberately absent: rules and search (below, in `tengen-selfplay`), any decision about the run (the coordinator's),
//! and a spool on disk: records that have no verdict live in memory only.

mod actor;
mod handshake;
mod identity;
mod leases;
mod link;
mod models;
mod options;
mod outbox;
mod queue;
mod rates;
mod work;
mod worker;

pub use actor::run;
pub use options::Options;
