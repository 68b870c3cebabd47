//! Tests of the search through its public interface, on toy games and on real ones.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod black_hole;
mod drive;
mod forced;
mod golden;
mod laws;
mod refusals;
mod runs_of_actions;
mod script;
mod solver;
mod swap2;
mod tactics;
mod thicket;
mod toy;
