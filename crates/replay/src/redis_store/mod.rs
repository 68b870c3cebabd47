//! The window in Redis: the coordinator writes it, learners read it.
//!
//! The games are a stream, one entry a game, whose id is the commit sequence. A hash beside it, the *pointer*, says which
//! stream is the window, what it holds, and which coordinator may write:
//!
//! | key | content |
//! |---|---|
//! | `{run}:window` | hash: `epoch`, `capacity`, `fence`, `last` (newest sequence taken in), `held` (positions of all kept games), `games`, `total` (positions of the run up to `last`), `garbage` (epoch of a stream that is to be removed) |
//! | `{run}:window:<epoch>` | stream: entry `<sequence>-0` with `r` (record), `p` (its positions), `t` (positions of the run up to it) |
//!
//! Everything that writes is one function (`window.lua`), so each step happens wholly or not at all. **The truth lies
//! elsewhere**: whatever is in Redis can be rebuilt from the coordinator's database, and a writer that finds the window
//! missing or different says so and rebuilds it under a new epoch. Nothing here retries; callers do.

mod connect;
mod error;
mod keys;
mod options;
mod reader;
mod writer;

pub use connect::VERSION_MIN;
pub use error::RedisFault;
pub use options::{OptionsError, RedisOptions};
pub use reader::RedisReader;
pub use writer::{RedisWriter, Standing};
