//! The driver of many games: self-play, matches and duels.
//!
//! One [`Driver`] plays many games on **one thread**: every tick it gathers leaves from all of them, evaluates one batch
//! a model, and gives the answers back. A game's choices depend on its own seed alone, never on which games share its
//! batches, so any split over drivers, threads and machines plays the same games. How an actor's drivers and their
//! networks are divided over its devices, and how a new network comes to them, is [`feeding`]'s subject.
//!
//! Deliberately absent: threads of self-play, sockets and files (the actor has them), rules (`tengen-games`), the search
//! itself (`tengen-search`) and checks of finished records (`tengen-records`).

pub mod audit;
mod baseline;
mod cache;
pub mod driver;
pub mod duel;
pub mod evaluator;
pub mod feeding;
mod flight;
mod leases;
mod ledger;
pub mod model;
pub mod offline;
pub mod order;
mod pool;
pub mod reproduce;
pub mod seed;
mod shelf;
pub mod symmetry;
mod trace;
pub mod wire;

pub use cache::EvaluationCache;
pub use driver::{Counters, Driver, DriverError, DriverOptions, PlayError, StartError, Unfinished};
pub use evaluator::{EvaluateError, Evaluator, SessionEvaluator};
pub use model::{ModelBytes, VariantError, check_variant};
pub use order::{GameOrder, Lease, LeaseError, MatchGame, Order, Plan};
pub use trace::SearchTrace;
