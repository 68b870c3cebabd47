//! The learner: mirrors the window, trains the network within the samples-per-position limit, and publishes candidates.
//!
//! One thread trains ([`training`], on [`trainer::Trainer`]), one prepares batches ([`batches`]), and async tasks talk to
//! the coordinator ([`reporter`], [`mirror`], [`publish`], [`ancestry`]). They meet in [`signals::Signals`]; [`plan`]
//! decides what is next, as a pure function.
//!
//! **This is the only crate that names `tch`**; and it never writes to the run's data: games are read from the
//! coordinator's stream, networks go to the coordinator, and only checkpoints are files of its own.

pub mod ancestry;
pub mod average;
pub mod batches;
mod begin;
pub mod bench;
pub mod calibration;
pub mod checkpoint;
pub mod config;
pub mod device;
pub mod export;
pub mod fidelity;
#[cfg(test)]
mod fixture;
pub mod learn;
pub mod loss;
pub mod memory;
mod meters;
pub mod mirror;
pub mod network;
pub mod optimiser;
mod pace;
pub mod parameters;
pub mod plan;
pub mod publish;
pub mod reporter;
mod run;
pub mod setup;
pub mod signals;
pub mod source;
pub mod trainer;
pub mod training;
pub mod transfer;
pub mod variants;
mod wire;

pub use meters::METRICS;
pub use run::{Command, Options, run};
