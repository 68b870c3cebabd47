//! Folding the write-ahead log into the database file, on a thread of its own: a commit never waits for it.

use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::{BUSY_TIMEOUT, FILE_NAME, StoreError};

/// Changed rows after which the log is folded in: some megabytes of records.
const ROWS: u64 = 1_000;

/// The thread, and what the writer tells it.
#[derive(Debug)]
pub struct Checkpointer {
    nudges: SyncSender<()>,
    thread: JoinHandle<()>,
    folded_at_rows: u64,
}

/// Leaves checkpoints to the [`Checkpointer`]: commits of this connection make none.
pub fn leave_to_thread(connection: &Connection) -> Result<(), StoreError> {
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(())
}

/// Folds the whole log in, so that the database file alone is complete.
pub fn fold_all(connection: &Connection) -> Result<(), StoreError> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

impl Checkpointer {
    /// Starts the thread for the database in `folder`.
    pub fn start(folder: &Path) -> io::Result<Checkpointer> {
        let path = folder.join(FILE_NAME);
        // One nudge may wait: a second one while the thread is at work asks for nothing more.
        let (nudges, waiting) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("checkpoint".to_owned())
            .spawn(move || fold(&path, &waiting))?;
        Ok(Checkpointer {
            nudges,
            thread,
            folded_at_rows: 0,
        })
    }

    /// Tells how many rows the writer has changed so far; wakes the thread now and then.
    pub fn note(&mut self, rows: u64) {
        if rows.saturating_sub(self.folded_at_rows) >= ROWS {
            self.folded_at_rows = rows;
            // A full queue means that it is about to fold in anyway.
            let _full = self.nudges.try_send(());
        }
    }

    /// Ends the thread. Blocks while it folds in.
    pub fn stop(self) {
        drop(self.nudges);
        if self.thread.join().is_err() {
            tracing::error!("the checkpoint thread panicked; the log is folded in at the end instead");
        }
    }
}

fn fold(path: &Path, nudges: &Receiver<()>) {
    while nudges.recv().is_ok() {
        if let Err(error) = fold_once(path) {
            tracing::warn!(%error, "the write-ahead log could not be folded in; it grows until the next try");
        }
    }
}

/// Passive: takes what nobody needs any more and makes no writer wait.
fn fold_once(path: &Path) -> Result<(), StoreError> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::open_writer;
    use super::*;

    #[test]
    fn the_log_is_folded_in_without_the_writer() {
        let folder = tempfile::tempdir().unwrap();
        let writer = open_writer(folder.path()).unwrap();
        leave_to_thread(&writer).unwrap();
        let mut checkpointer = Checkpointer::start(folder.path()).unwrap();
        let size = || std::fs::metadata(folder.path().join(FILE_NAME)).unwrap().len();
        let before = size();
        let big = "x".repeat(1 << 20);
        writer
            .execute("INSERT INTO audit VALUES (1, 0, 'test', 'test', ?1)", [big])
            .unwrap();
        checkpointer.note(ROWS - 1);
        checkpointer.note(ROWS);
        checkpointer.stop();
        assert!(size() > before + (1 << 20), "{} bytes, {before} before", size());
    }
}
