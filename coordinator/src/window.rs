//! The window as this process serves it: the newest games in memory, and a bell for those who wait for more.

use std::collections::BTreeSet;
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
    /// Games that were found damaged when it was built last, and left out.
    damaged: RwLock<BTreeSet<u64>>,
}

impl SharedWindow {
    /// Rebuilds the window from the stored games.
    pub(crate) fn rebuild(connection: &Connection, progress: &Progress) -> Result<SharedWindow, StoreError> {
        let (log, damaged) = build(connection, progress, capacity(progress)?)?;
        let newest = watch::Sender::new(log.last_sequence().unwrap_or_default());
        Ok(SharedWindow {
            log: RwLock::new(log),
            newest,
            damaged: RwLock::new(damaged),
        })
    }

    /// Builds the window again from the stored games, under the epoch that `progress` names, and wakes the mirrors.
    pub(crate) fn renew(&self, connection: &Connection, progress: &Progress) -> Result<(), StoreError> {
        let (log, damaged) = build(connection, progress, capacity(progress)?)?;
        *self.damaged.write().unwrap_or_else(PoisonError::into_inner) = damaged;
        let newest = log.last_sequence().unwrap_or_default();
        *self.log.write().unwrap_or_else(PoisonError::into_inner) = log;
        self.newest.send_replace(newest);
        Ok(())
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

    /// Commit sequences of games that were found damaged when the window was built, and left out.
    pub(crate) fn damaged(&self) -> BTreeSet<u64> {
        self.damaged.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How full the window is.
    pub(crate) fn fill(&self) -> Fill {
        self.read().fill()
    }

    /// The epoch, and the next games after a commit sequence, at most so many bytes of them. A sequence of another epoch
    /// means nothing in this one: then they are the first games.
    pub(crate) fn chunk(&self, epoch: u64, after_sequence: u64, bytes_max: usize) -> (u64, Vec<LoggedGame>) {
        let log = self.read();
        let after = if epoch == log.epoch() { after_sequence } else { 0 };
        (log.epoch(), log.chunk(after, bytes_max))
    }

    /// Rings whenever games were appended.
    pub(crate) fn bell(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    fn read(&self) -> RwLockReadGuard<'_, WindowLog> {
        self.log.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn capacity(progress: &Progress) -> Result<NonZeroU64, StoreError> {
    NonZeroU64::new(progress.window_capacity)
        .ok_or_else(|| StoreError::corrupt("window capacity", progress.window_capacity))
}

/// The newest games that count, from the database.
fn build(
    connection: &Connection,
    progress: &Progress,
    capacity: NonZeroU64,
) -> Result<(WindowLog, BTreeSet<u64>), StoreError> {
    let mut log: Option<WindowLog> = None;
    let mut refused = None;
    let damaged = games::for_window(connection, capacity.get(), progress.positions, |row| {
        let before = row.positions_total - u64::from(row.positions);
        let log = log.get_or_insert_with(|| WindowLog::new(progress.window_epoch, capacity, before));
        if let Err(error) = log.push(row.sequence, row.positions, row.record.into()) {
            refused.get_or_insert(error);
        }
    })?;
    if let Some(error) = refused {
        return Err(StoreError::corrupt("commit sequence", error));
    }
    for game in &damaged {
        tracing::error!(%game, "a stored game is damaged and left out of the window; see `tengen db check`");
    }
    let log = log.unwrap_or_else(|| WindowLog::new(progress.window_epoch, capacity, progress.positions));
    Ok((log, damaged.into_iter().map(|game| game.sequence).collect()))
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
