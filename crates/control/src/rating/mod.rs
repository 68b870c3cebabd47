//! Ratings: how strong every player is, from all games they played with each other.
//!
//! The model is Bradley and Terry's (1952; Zermelo 1929): player i beats player j with probability
//! `1 / (1 + 10^((elo_j - elo_i) / 400))`. A draw counts as half a win of each side (Elo 1978). Every pairing that has
//! games gets [`VIRTUAL_DRAWS`] further draw as a prior, so that a player who won or lost everything keeps a finite
//! rating (Ford 1957 says when one exists without). One player is fixed at 0. The fit is the maximum of the concave log
//! likelihood of both, found by Newton's method; intervals are `±1.96` standard deviations of the inverse of the observed
//! information there, prior included. `docs/ratings.md` writes the formulas out.
//!
//! A player whom no chain of games joins to the fixed one has no rating, and is said to have none. **Nobody is named
//! here**: players are opaque ids.

mod desk;
mod fit;
mod flow;
mod plan;
mod results;

pub(crate) use desk::{Desk, RatingMatch};
pub use desk::{RATING_SHARE_MAX, RatingRules, RatingState};
pub use fit::{Fit, Rating};
pub use plan::{Plan, most_telling};
pub use results::{Counts, Pair, Results};

/// A player: a number that the caller gives and keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlayerId(pub u32);

/// Draws that every pairing with games is given beside them: the prior.
pub const VIRTUAL_DRAWS: f64 = 1.0;

/// The score to expect of a player rated `lead` points above the other one, in [0, 1].
pub fn expected_score(lead: f64) -> f64 {
    fit::chance(lead / ELO_PER_NAT)
}

/// Elo points of one unit of natural log odds.
pub const ELO_PER_NAT: f64 = 400.0 / std::f64::consts::LN_10;
