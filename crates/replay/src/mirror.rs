//! What a mirror and the store it reads from agree on: cursors, chunks, and one trait that every store's reading side
//! implements.
//!
//! How often to try again after an error is not decided here: that is the process's own policy.

use std::future::Future;
use std::num::NonZeroU64;

use crate::log::LoggedGame;

/// How far a mirror has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Epoch the mirror's games belong to; 0 before the first one.
    pub epoch: u64,
    /// Commit sequence of the newest game it has; 0 for none, because sequences begin at 1.
    pub after_sequence: u64,
}

/// Some games of the window in commit order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Epoch of the window. When it is not the cursor's, these games are the beginning of a new window.
    pub epoch: u64,
    /// Positions that the window of this epoch holds at most.
    pub capacity: NonZeroU64,
    /// The games; none when the chunk only says that the mirror has caught up.
    pub games: Vec<LoggedGame>,
    /// Whether these games are all there were when they were read.
    pub caught_up: bool,
}

/// The reading side of a window's store.
pub trait WindowSource: Send {
    /// Why nothing could be read; the next call may succeed.
    type Error: std::error::Error + Send + 'static;

    /// The next games after `cursor`: at once while there are some or the mirror has not been told that it has caught
    /// up, otherwise when there are new ones. May be dropped at any point and called again with the same cursor.
    fn next(&mut self, cursor: Cursor) -> impl Future<Output = Result<Chunk, Self::Error>> + Send;
}
