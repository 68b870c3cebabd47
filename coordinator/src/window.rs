//! The window as this process serves it: the newest games in memory, and a bell for those who wait for more.

use std::num::NonZeroU64;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use rusqlite::Connection;
use tengen_replay::{Fill, LoggedGame, WindowLog};
use tokio::sync::watch;

use crate::store::progress::Progress;
use crate::store::{StoreError, games};

/// The shared window.
#[derive(Debug)]
pub(crate) struct SharedWindow {
    log: RwLock<WindowLog>,
    newest: watch::Sender<u64>,
}

impl SharedWindow {
    /// Rebuilds the window from the stored games.
    pub(crate) fn rebuild(connection: &Connection, progress: &Progress) -> Result<SharedWindow, StoreError> {
        let capacity = NonZeroU64::new(progress.window_capacity)
            .ok_or_else(|| StoreError::corrupt("window capacity", progress.window_capacity))?;
        let mut log: Option<WindowLog> = None;
        let mut refused = None;
        games::for_window(connection, capacity.get(), |row| {
            let before = row.positions_total - u64::from(row.positions);
            let log = log.get_or_insert_with(|| WindowLog::new(progress.window_epoch, capacity, before));
            if let Err(error) = log.push(row.sequence, row.positions, row.record.into()) {
                refused.get_or_insert(error);
            }
        })?;
        if let Some(error) = refused {
            return Err(StoreError::corrupt("commit sequence", error));
        }
        let log = log.unwrap_or_else(|| WindowLog::new(progress.window_epoch, capacity, progress.positions));
        let newest = watch::Sender::new(log.last_sequence().unwrap_or_default());
        Ok(SharedWindow {
            log: RwLock::new(log),
            newest,
        })
    }

    /// Appends games that are committed, in commit order, and wakes the mirrors.
    pub(crate) fn append(&self, games: Vec<CommittedGame>) {
        let Some(newest) = games.last().map(|game| game.sequence) else {
            return;
        };
        let mut log = self.log.write().unwrap_or_else(PoisonError::into_inner);
        for game in games {
            if let Err(error) = log.push(game.sequence, game.positions, game.record.into()) {
                tracing::error!(%error, "a committed game was not taken into the window");
            }
        }
        drop(log);
        self.newest.send_replace(newest);
    }

    /// How full the window is.
    pub(crate) fn fill(&self) -> Fill {
        self.read().fill()
    }

    /// Its epoch.
    pub(crate) fn epoch(&self) -> u64 {
        self.read().epoch()
    }

    /// The next games after a commit sequence, at most so many bytes of them.
    pub(crate) fn chunk(&self, after_sequence: u64, bytes_max: usize) -> Vec<LoggedGame> {
        self.read().chunk(after_sequence, bytes_max)
    }

    /// Rings whenever games were appended.
    pub(crate) fn bell(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    fn read(&self) -> RwLockReadGuard<'_, WindowLog> {
        self.log.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A self-play game on its way into the window.
#[derive(Debug)]
pub(crate) struct CommittedGame {
    /// Commit sequence.
    pub(crate) sequence: u64,
    /// Trainable positions.
    pub(crate) positions: u32,
    /// The record's bytes.
    pub(crate) record: Vec<u8>,
}
