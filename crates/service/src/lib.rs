//! What every process of the house needs and none of them should write twice: the configuration of the run and of each
//! process, logging, shutdown, back-off, what a process takes of its machine, metrics, the words of reports, durable file writes, the lock of a data
//! folder, the way to the coordinator and the health probe.
//!
//! **This crate knows no game, no record and no service of ours**: it is the kit, not the work.

pub mod args;
pub mod backoff;
pub mod channel;
pub mod credentials;
pub mod files;
mod gpu;
pub mod health;
pub mod host;
pub mod lock;
pub mod metrics;
pub mod process_config;
pub mod reports;
pub mod run_config;
pub mod shutdown;
pub mod telemetry;
pub mod testing;
pub mod tls;
pub mod usage;
mod waits;

/// The version of this build, as every process reports it. A static and no constant: its text lies in a program once and is
/// not spread over the code, so that a test makes a program of another build of this one.
pub static BUILD: &str = env!("CARGO_PKG_VERSION");
