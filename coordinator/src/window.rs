//! The run's window as the rest of the process knows it: in memory, or in Redis by way of the feed.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tengen_replay::{Fill, MemorySource, MemoryWindow, WindowLog};

use crate::feed::Feed;
use crate::store::games::DamagedGame;
use crate::store::progress::Progress;
use crate::store::{StoreError, games};

/// Where the window is.
#[derive(Clone, Debug)]
pub(crate) enum RunWindow {
    /// Here, for mirrors to stream.
    Memory(Arc<InMemory>),
    /// In Redis, for mirrors to read there.
    Redis(Arc<Feed>),
}

/// The window in memory.
#[derive(Debug)]
pub(crate) struct InMemory {
    window: Arc<MemoryWindow>,
    /// Games that were found damaged when it was built last, and left out.
    damaged: Mutex<BTreeSet<u64>>,
}

impl InMemory {
    /// A mirror's way to read it.
    pub(crate) fn source(&self, bytes_max: usize) -> MemorySource {
        self.window.source(bytes_max)
    }
}

/// How the window stands, for the status.
#[derive(Clone, Debug)]
pub(crate) struct WindowStanding {
    /// `memory` or `redis`.
    pub(crate) store: &'static str,
    pub(crate) fill: Fill,
    /// Stored self-play games that are not in the window yet.
    pub(crate) lag_games: u64,
    /// Stored games that were found damaged when it was built last, and left out.
    pub(crate) damaged_games: u64,
    /// Why it lags, in a sentence; empty when nothing is wrong.
    pub(crate) trouble: String,
}

impl RunWindow {
    /// Rebuilds the window in memory from the stored games.
    pub(crate) fn in_memory(connection: &Connection, progress: &Progress) -> Result<RunWindow, StoreError> {
        let (log, damaged) = build(connection, progress)?;
        Ok(RunWindow::Memory(Arc::new(InMemory {
            window: Arc::new(MemoryWindow::new(log)),
            damaged: Mutex::new(damaged),
        })))
    }

    /// Has the window begin anew from the stored games, under the epoch that `progress` names. `games` are among the stored
    /// ones and new to the window.
    pub(crate) fn renew(
        &self,
        connection: &Connection,
        progress: &Progress,
        games: Vec<CommittedGame>,
    ) -> Result<(), StoreError> {
        match self {
            RunWindow::Memory(memory) => {
                let (log, damaged) = build(connection, progress)?;
                memory.window.replace(log);
                *memory.damaged.lock().unwrap_or_else(PoisonError::into_inner) = damaged;
            }
            RunWindow::Redis(feed) => {
                self.append(games);
                feed.renew();
            }
        }
        Ok(())
    }

    /// Takes games that are committed, in commit order.
    pub(crate) fn append(&self, games: Vec<CommittedGame>) {
        if games.is_empty() {
            // Most commits bring none; nobody is to be woken for them.
            return;
        }
        match self {
            RunWindow::Memory(memory) => {
                let games = games
                    .into_iter()
                    .map(|game| (game.sequence, game.positions, game.record.into()));
                if let Err(error) = memory.window.append(games) {
                    tracing::error!(%error, "a committed game was not taken into the window");
                }
            }
            RunWindow::Redis(feed) => {
                if let Some(newest) = games.last() {
                    feed.announce(newest.sequence, games.len() as u64);
                }
            }
        }
    }

    /// How it stands.
    pub(crate) fn standing(&self) -> WindowStanding {
        match self {
            RunWindow::Memory(memory) => WindowStanding {
                store: "memory",
                fill: memory.window.fill(),
                lag_games: 0,
                damaged_games: self.damaged().len() as u64,
                trouble: String::new(),
            },
            RunWindow::Redis(feed) => feed.standing(),
        }
    }

    /// Commit sequences of stored games that were found damaged when the window was built, and left out.
    pub(crate) fn damaged(&self) -> BTreeSet<u64> {
        match self {
            RunWindow::Memory(memory) => memory.damaged.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            RunWindow::Redis(feed) => feed.damaged(),
        }
    }
}

/// The run's capacity, which is above 0.
pub(crate) fn capacity(progress: &Progress) -> Result<NonZeroU64, StoreError> {
    NonZeroU64::new(progress.window_capacity)
        .ok_or_else(|| StoreError::corrupt("window capacity", progress.window_capacity))
}

/// The newest games that count, from the database.
fn build(connection: &Connection, progress: &Progress) -> Result<(WindowLog, BTreeSet<u64>), StoreError> {
    let capacity = capacity(progress)?;
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
    let damaged = left_out(&damaged);
    let log = log.unwrap_or_else(|| WindowLog::new(progress.window_epoch, capacity, progress.positions));
    Ok((log, damaged))
}

/// Says which damaged games a window is built without; returns their commit sequences.
pub(crate) fn left_out(damaged: &[DamagedGame]) -> BTreeSet<u64> {
    for game in damaged {
        tracing::error!(%game, "a stored game is damaged and left out of the window; see `tengen db check`");
    }
    damaged.iter().map(|game| game.sequence).collect()
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
