//! The actor: takes leases from the coordinator, plays their games, and sends the records until each has a verdict.
//!
//! One async event loop ([`run`]) owns leases, outbox and link; games are played on named threads (`selfplay-N`), each
//! with its own driver, and on a CPU with its own sessions; those that feed one GPU share them. The threads take games from one shared queue and hand finished records to the
//! thread of the [`spool`], which makes them durable and hands the oldest to the event loop to be sent.
//!
//! Deliberately absent: rules and search (below, in `tengen-selfplay`), and any decision about the run (the
//! coordinator's).

mod actor;
mod folder;
mod handshake;
mod identity;
mod leases;
mod link;
mod meters;
mod models;
mod options;
mod outbox;
mod pace;
mod queue;
mod rates;
pub mod spool;
mod work;
mod worker;

pub use actor::run;
pub use meters::{METRICS, serve_metrics};
pub use options::{Clock, Options};
