//! Folding the write-ahead log into the database file, and keeping the log short.
//!
//! A thread of its own does the bulk of the work, so that commits do not wait for it. It cannot shorten the log while
//! commits come without a pause: it always leaves the ones that came meanwhile, and the log only begins anew once all of
//! it is folded in. So when the log grows beyond its limit, the writer itself folds in the rest between two
//! transactions and has the log begin anew; for readers that still need it, it waits a bounded time.
//!
//! **A reader that stays in one transaction** (a person's own SQLite client) keeps the log from beginning anew for as long
//! as it stays. The writer then tries again ever more rarely and says so.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::{BUSY_TIMEOUT, FILE_NAME, StoreError};

/// Pages of new log after which the thread folds in: 4 MiB.
const NUDGE_PAGES: u32 = 1_024;
/// Pages of log at which the writer has it begin anew: 16 MiB, a few seconds of the fastest intake measured.
const LOG_PAGES_MAX: u32 = 4_096;
/// A log this many times too long is worth a warning.
const WARN_TIMES: u32 = 8;
/// How long the writer waits for readers of the log.
const READERS_WAIT: Duration = Duration::from_millis(20);
/// How long it waits for readers and for the thread once the log is half as long again.
const LONG_WAIT: Duration = Duration::from_millis(250);
/// What a log that had grown is cut back to when it begins anew, bytes.
const LOG_BYTES_KEPT: u64 = 32 << 20;

/// The thread, and what the writer knows of the log.
#[derive(Debug)]
pub struct Checkpointer {
    nudges: SyncSender<()>,
    thread: JoinHandle<()>,
    /// Pages in the log as of the last commit.
    pages: Arc<AtomicU32>,
    at_work: Arc<AtWork>,
    nudge_at: u32,
    restart_at: u32,
    /// Whether the thread was asked to fold in what it can before the log begins anew.
    restart_prepared: bool,
    warn_at: u32,
}

/// Whether the thread has something to do: two cannot fold in at once, and the one that comes second is turned away.
#[derive(Debug, Default)]
struct AtWork {
    busy: Mutex<bool>,
    ended: Condvar,
}

impl AtWork {
    /// Takes the thread for one piece of work; false when it has one.
    fn begin(&self) -> bool {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        !std::mem::replace(&mut *busy, true)
    }

    fn end(&self) {
        *self.busy.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.ended.notify_all();
    }

    /// Waits for the thread to end its work, at most so long; whether it did.
    fn wait(&self, at_most: Duration) -> bool {
        let busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.ended.wait_timeout_while(busy, at_most, |busy| *busy);
        !*waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Folds the whole log in, so that the database file alone is complete.
pub fn fold_all(connection: &Connection) -> Result<(), StoreError> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

impl Checkpointer {
    /// Starts the thread for the database in `folder`, whose writer is `connection`: commits of that one leave the log
    /// alone from now on.
    pub fn start(folder: &Path, connection: &mut Connection) -> Result<Checkpointer, StoreError> {
        let pages = Arc::new(AtomicU32::new(0));
        let told = Arc::clone(&pages);
        connection.pragma_update(None, "journal_size_limit", LOG_BYTES_KEPT)?;
        // This takes the place of automatic checkpoints, too.
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, log_pages: i32| {
            told.store(log_pages.unsigned_abs(), Ordering::Relaxed);
            Ok(())
        }))?;
        let path = folder.join(FILE_NAME);
        // There is never more than one: see `AtWork`.
        let (nudges, waiting) = sync_channel(1);
        let at_work = Arc::new(AtWork::default());
        let working = Arc::clone(&at_work);
        let thread = std::thread::Builder::new()
            .name("checkpoint".to_owned())
            .spawn(move || fold(&path, &waiting, &working))
            .map_err(StoreError::Thread)?;
        Ok(Checkpointer {
            nudges,
            thread,
            pages,
            at_work,
            nudge_at: NUDGE_PAGES,
            restart_at: LOG_PAGES_MAX,
            restart_prepared: false,
            warn_at: LOG_PAGES_MAX * WARN_TIMES,
        })
    }

    /// To be called after every commit, outside of a transaction: wakes the thread now and then, and bounds the log.
    pub fn after_commit(&mut self, connection: &Connection) -> Result<(), StoreError> {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages + NUDGE_PAGES < self.nudge_at {
            // It has begun anew.
            (self.nudge_at, self.restart_at) = (NUDGE_PAGES, LOG_PAGES_MAX);
        }
        if pages >= self.restart_at {
            return self.restart(connection, pages);
        }
        if pages >= self.nudge_at && self.nudge() {
            self.nudge_at = pages + NUDGE_PAGES;
        }
        Ok(())
    }

    /// Sets the thread to work; false when it is at work.
    fn nudge(&self) -> bool {
        self.at_work.begin() && self.nudges.try_send(()).is_ok()
    }

    /// Has the log begin anew, if readers let it: first the thread folds in the bulk, then the writer the little that came
    /// meanwhile.
    fn restart(&mut self, connection: &Connection, pages: u32) -> Result<(), StoreError> {
        if !self.restart_prepared {
            self.restart_prepared = self.nudge();
        }
        let is_long = pages >= LOG_PAGES_MAX / 2 * 3;
        let idle = self.at_work.wait(if is_long { LONG_WAIT } else { Duration::ZERO });
        if !self.restart_prepared || !idle {
            // Again after the next commit.
            return Ok(());
        }
        self.restart_prepared = false;
        connection.busy_timeout(if is_long { LONG_WAIT } else { READERS_WAIT })?;
        // Not TRUNCATE: writing over the old log is cheaper than making the file grow again.
        let busy = connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get::<_, bool>(0));
        connection.busy_timeout(BUSY_TIMEOUT)?;
        if !busy? {
            self.pages.store(0, Ordering::Relaxed);
            (self.nudge_at, self.restart_at) = (NUDGE_PAGES, LOG_PAGES_MAX);
            self.warn_at = LOG_PAGES_MAX * WARN_TIMES;
            return Ok(());
        }
        self.restart_at = pages + pages / 4;
        if pages >= self.warn_at {
            self.warn_at = pages.saturating_mul(2);
            tracing::warn!(
                pages,
                "the write-ahead log grows because a reader stays in one transaction: end the SQLite client that does"
            );
        }
        Ok(())
    }

    /// Ends the thread. Blocks while it folds in.
    pub fn stop(self) {
        drop(self.nudges);
        if self.thread.join().is_err() {
            tracing::error!("the checkpoint thread panicked; the log is folded in at the end instead");
        }
    }
}

fn fold(path: &Path, nudges: &Receiver<()>, at_work: &AtWork) {
    while nudges.recv().is_ok() {
        let folded = fold_once(path);
        at_work.end();
        if let Err(error) = folded {
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
    use std::sync::atomic::AtomicBool;

    use super::super::{Readers, open_writer};
    use super::*;

    fn log_bytes(folder: &Path) -> u64 {
        std::fs::metadata(folder.join(format!("{FILE_NAME}-wal"))).map_or(0, |metadata| metadata.len())
    }

    fn commit(writer: &Connection, bytes: usize) {
        let sql = "INSERT INTO audit (at_ms, who, action, detail) VALUES (0, 'test', 'test', ?1)";
        writer.execute(sql, ["x".repeat(bytes)]).unwrap();
    }

    #[test]
    fn the_log_is_folded_in_without_the_writer() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = open_writer(folder.path()).unwrap();
        let mut checkpointer = Checkpointer::start(folder.path(), &mut writer).unwrap();
        let size = || std::fs::metadata(folder.path().join(FILE_NAME)).unwrap().len();
        let before = size();
        commit(&writer, 6 << 20);
        checkpointer.after_commit(&writer).unwrap();
        checkpointer.stop();
        assert!(size() > before + (6 << 20), "{} bytes, {before} before", size());
    }

    #[test]
    fn commits_without_a_pause_beside_readers_keep_the_log_short() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = open_writer(folder.path()).unwrap();
        let mut checkpointer = Checkpointer::start(folder.path(), &mut writer).unwrap();
        let (readers, done) = (Readers::new(folder.path()), AtomicBool::new(false));
        let mut longest = 0;
        std::thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        let count = readers.with(|connection| {
                            let sql = "SELECT sum(length(detail)) IS NULL FROM audit \
                                       WHERE id > (SELECT max(id) FROM audit) - 50";
                            Ok::<i64, StoreError>(connection.query_row(sql, [], |row| row.get(0))?)
                        });
                        count.unwrap();
                    }
                });
            }
            // Four times what the log may hold, in commits of a few games each.
            for _ in 0..2_048 {
                commit(&writer, 64 << 10);
                checkpointer.after_commit(&writer).unwrap();
                longest = longest.max(log_bytes(folder.path()));
            }
            done.store(true, Ordering::Relaxed);
        });
        checkpointer.stop();
        assert!(longest > 4 << 20, "{longest} bytes: nothing was written");
        assert!(longest < LOG_BYTES_KEPT, "the log grew to {longest} bytes");
    }

    #[test]
    fn a_reader_that_stays_is_not_waited_for_and_the_log_is_cut_back_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = open_writer(folder.path()).unwrap();
        let mut checkpointer = Checkpointer::start(folder.path(), &mut writer).unwrap();
        let reader = Connection::open(folder.path().join(FILE_NAME)).unwrap();
        commit(&writer, 1 << 10);
        let stays = reader.unchecked_transaction().unwrap();
        let _: i64 = stays
            .query_row("SELECT count(*) FROM audit", [], |row| row.get(0))
            .unwrap();
        for _ in 0..64 {
            commit(&writer, 1 << 20);
            checkpointer.after_commit(&writer).unwrap();
        }
        assert!(log_bytes(folder.path()) > 64 << 20, "the reader still needs the log");
        drop(stays);
        for _ in 0..64 {
            commit(&writer, 1 << 20);
            checkpointer.after_commit(&writer).unwrap();
        }
        let bytes = log_bytes(folder.path());
        assert!(bytes <= LOG_BYTES_KEPT, "{bytes} bytes");
        checkpointer.stop();
    }
}
