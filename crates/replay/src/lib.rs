//! The window of newest positions, and minibatches from it.
//!
//! Both ends of the window's way use this crate. The coordinator holds a [`WindowLog`]: encoded games that it streams to
//! mirrors. The learner holds a [`Window`]: the same games in a compact form, from which it [draws](Window::draw)
//! positions and [fills](Sampler::fill) batches. One law decides what both keep ([`Trim`]).
//!
//! **This crate checks no record** (the coordinator did, once, before it stored the game) and does no IO: games are
//! pushed into it, generators are arguments.

mod batch;
mod limit;
mod log;
mod sampler;
mod split;
mod stored;
#[cfg(test)]
mod test_games;
mod trim;
mod window;

pub use batch::Batch;
pub use limit::StepLimit;
pub use log::{LoggedGame, WindowLog};
pub use sampler::{Augmentation, SampleError, Sampler};
pub use split::{Part, Split, SplitError};
pub use stored::{Position, StoredGame};
pub use trim::{Fill, PushError, Trim};
pub use window::{Draw, Window, WindowGame};
