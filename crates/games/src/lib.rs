//! The rules of every game, as pure values.
//!
//! A [`Game`] is a rules family with its parameters fixed; its [`State`] knows who acts, what is legal, how the
//! position looks to a network and when the game is over. Everything that follows from the rules (sizes, network
//! shape, records, drawing) follows from the game's [`Spec`].
//!
//! **This crate does no IO, knows no clock, no thread and no global randomness**: time is never asked for, and
//! random generators are arguments.

pub mod conformance;
pub mod fingerprint;
pub mod openings;
pub mod page;
pub mod registry;

pub mod amazons;
pub mod ataxx;
pub mod black_hole;
pub mod caro;
pub mod caro5;
pub mod caro5_gomocup;
pub mod connect_four;
pub mod go;
pub mod gomoku_freestyle;
pub mod gomoku_standard;
pub mod hex;
pub mod mnk;
pub mod renju;
pub mod tic_tac_toe;
pub mod xiangqi;

pub mod fen;
pub mod fouls;
pub mod line;
pub mod notation;
pub mod params;
pub mod staged;
pub mod stone_planes;
pub mod stones;
pub mod swap2;
pub mod symmetry;
pub mod threats;

mod draw;
mod five;
mod game;
mod hash;
mod opening_stones;
mod perft;
mod random;
mod spec;

pub use fingerprint::{Fingerprint, feature_fingerprint, rules_fingerprint};
pub use game::{Action, Game, IllegalAction, Moves, Outcome, ParsePositionError, Reason, Roles, Seat, State};
pub use openings::{Opening, draw_openings, random_opening};
pub use params::ParseGameError;
pub use perft::{perft, perft_from, perft_moves, perft_within};
pub use registry::{AnyGame, GameVisitor};
pub use spec::{ActionBlock, ActionLayout, OpeningRule, Plane, Spec, Symmetry, triangle_cells};
