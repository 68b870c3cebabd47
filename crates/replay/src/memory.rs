//! The window in this process's memory: a log that is appended to, and a bell for the mirrors that wait for more.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use tokio::sync::watch;

use crate::log::WindowLog;
use crate::mirror::{Chunk, Cursor, WindowSource};
use crate::trim::{Fill, PushError};

/// A window that is shared between the one who appends and those who read.
#[derive(Debug)]
pub struct MemoryWindow {
    log: RwLock<WindowLog>,
    newest: watch::Sender<u64>,
}

impl MemoryWindow {
    /// Shares this log.
    pub fn new(log: WindowLog) -> MemoryWindow {
        let newest = watch::Sender::new(log.last_sequence().unwrap_or_default());
        MemoryWindow {
            log: RwLock::new(log),
            newest,
        }
    }

    /// Appends committed games (sequence, positions, record) in commit order and wakes the mirrors.
    ///
    /// # Errors
    /// The first refusal, when games do not follow the ones before them. They are left out; the others are taken.
    pub fn append(&self, games: impl IntoIterator<Item = (u64, u32, Arc<[u8]>)>) -> Result<(), PushError> {
        let mut refused = Ok(());
        let mut log = self.log.write().unwrap_or_else(PoisonError::into_inner);
        for (sequence, positions, record) in games {
            refused = refused.and(log.push(sequence, positions, record));
        }
        let newest = log.last_sequence().unwrap_or_default();
        drop(log);
        self.newest.send_replace(newest);
        refused
    }

    /// Has the window begin anew with this log, which has another epoch, and wakes the mirrors.
    pub fn replace(&self, log: WindowLog) {
        let newest = log.last_sequence().unwrap_or_default();
        *self.log.write().unwrap_or_else(PoisonError::into_inner) = log;
        self.newest.send_replace(newest);
    }

    /// How full it is.
    pub fn fill(&self) -> Fill {
        self.read().fill()
    }

    /// Its epoch.
    pub fn epoch(&self) -> u64 {
        self.read().epoch()
    }

    /// A mirror's way to read it, in chunks of at most `bytes_max` bytes unless a single record is larger.
    pub fn source(self: &Arc<MemoryWindow>, bytes_max: usize) -> MemorySource {
        MemorySource {
            window: Arc::downgrade(self),
            bell: self.newest.subscribe(),
            bytes_max,
            told: 0,
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, WindowLog> {
        self.log.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The window is gone: its process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the window is gone")]
pub struct Closed;

/// Reads a [`MemoryWindow`].
#[derive(Debug)]
pub struct MemorySource {
    window: std::sync::Weak<MemoryWindow>,
    bell: watch::Receiver<u64>,
    bytes_max: usize,
    /// Epoch whose end was reached and told.
    told: u64,
}

impl WindowSource for MemorySource {
    type Error = Closed;

    async fn next(&mut self, cursor: Cursor) -> Result<Chunk, Closed> {
        loop {
            // Games appended from here on ring again.
            self.bell.mark_unchanged();
            let page = self.window.upgrade().ok_or(Closed)?.read().page(cursor, self.bytes_max);
            // A mirror that begins anew is also told anew where the end is.
            let ends = page.caught_up && (self.told != page.epoch || cursor.epoch != page.epoch);
            if page.caught_up {
                self.told = page.epoch;
            }
            if ends || !page.games.is_empty() {
                return Ok(page);
            }
            self.bell.changed().await.map_err(|_| Closed)?;
        }
    }
}
