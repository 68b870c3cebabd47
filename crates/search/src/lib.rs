//! Monte Carlo tree search as two pure halves: [`Tree::gather`] walks to leaves and returns the positions to
//! evaluate, [`Tree::apply`] takes an evaluation and backs it up. Between the two the caller batches over as many
//! trees as it likes, on any backend, with any threading.
//!
//! ```text
//! tree.begin(simulations, noise, rng)
//! while !tree.done() {
//!     tree.gather(leaves_max, &mut leaves);          // walks, adds virtual losses
//!     for leaf in leaves.drain(..) {
//!         tree.apply(leaf.id, &evaluate(leaf.state))?;  // expands, backs up
//!     }
//! }
//! let action = tree.choose(temperature, rng);
//! tree.advance(action)?;                             // keeps the subtree
//! ```
//!
//! The selection rule is PUCT as AlphaZero published it, with first-play-urgency reduction, Dirichlet noise at the root,
//! virtual losses and tree reuse. Values always belong to a seat: they are negated **iff the acting seat changes**
//! between parent and child, because openings and staged moves contain runs of actions by one seat.
//!
//! A tree keeps its memory from search to search: once it has held the largest ones of its game, it takes no more, from
//! [`Tree::begin`] to [`Tree::advance`] (games whose positions take some apart). [`Tree::root_stats`] does.
//!
//! **This crate evaluates nothing, does no IO and knows no clock, no thread and no global randomness.** It names
//! no particular game and no inference backend.

mod arena;
mod dump;
mod noise;
mod select;
mod settings;
mod stats;
mod tree;
mod value;

pub use dump::NodeStats;
pub use settings::{SIMULATIONS_MAX, Settings, SettingsError};
pub use stats::{ChildStats, RootStats, kl, policy_target};
pub use tree::{Evaluation, EvaluationError, Leaf, LeafId, RootNoise, Tree};
pub use value::Wdl;
