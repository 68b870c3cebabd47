//! Whole-system tests: real processes on loopback ports, watched through their public interfaces.
//!
//! This crate holds what the tests share; the tests themselves are in `tests/`. Nothing here ends on a clock: waits are
//! for events, and budgets are in games.

pub mod api_docs;
pub mod attack;
pub mod cluster;
pub mod coordinator;
pub mod faults;
pub mod guarded;
pub mod http2;
pub mod ledger;
pub mod optimal;
pub mod part;
pub mod proxy;
pub mod terminal;
pub mod unwell;
