//! The window of newest positions, and minibatches from it.
//!
//! Both ends of the window's way use this crate. The coordinator keeps encoded games for mirrors to read: in its memory
//! ([`MemoryWindow`]) or in Redis ([`RedisWriter`], read by [`RedisReader`]). The learner holds a [`Window`]: the same games
//! in a compact form, from which it [draws](Window::draw) positions and [fills](Sampler::fill) batches. One law decides
//! what all of them keep ([`Trim`]).
//!
//! **This crate checks no record** (the coordinator did, once, before it stored the game), and apart from `redis_store`
//! it does no IO: games are pushed into it, generators are arguments. It is the only place that names `redis`.

mod batch;
mod limit;
mod log;
mod memory;
mod mirror;
mod redis_store;
mod sampler;
mod split;
mod stored;
#[cfg(test)]
mod test_games;
pub mod testing;
mod trim;
mod window;

pub use batch::Batch;
pub use limit::StepLimit;
pub use log::{LoggedGame, WindowLog};
pub use memory::{Closed, MemorySource, MemoryWindow};
pub use mirror::{Chunk, Cursor, WindowSource};
pub use redis_store::{OptionsError, RedisFault, RedisOptions, RedisReader, RedisWriter, Standing, VERSION_MIN};
pub use sampler::{Augmentation, SampleError, Sampler};
pub use split::{Part, Split, SplitError};
pub use stored::{Position, StoredGame};
pub use trim::{Fill, PushError, Trim};
pub use window::{Draw, Window, WindowGame};
