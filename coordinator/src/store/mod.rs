//! The database of record: one SQLite file that holds everything the run must not forget.
//!
//! Plain functions on a connection, grouped by table; whoever calls them owns the transaction. One connection writes
//! (the owner of the run); readers have their own. **Nothing here decides anything.**

pub mod actors;
pub mod audits;
pub mod checkpoint;
pub mod game_list;
pub mod games;
mod gate_rules;
pub mod gates;
pub mod leases;
pub mod models;
pub mod progress;
pub mod ratings;
pub mod readers;
pub mod retention;
mod schema;
pub mod settings;
pub mod snapshot;
pub mod steering;
pub mod tokens;
pub mod trail;
pub mod variants;
pub mod window_fence;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::types::FromSqlError;

pub use readers::Readers;
pub use schema::{BACKUPS, VERSION, backup_path, expect_current, version};

/// Name of the database file within the data folder.
pub const FILE_NAME: &str = "tengen.db";

/// How long a connection waits for another before it gives up. Only a person's own SQLite client can make us wait.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The database could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite refused.
    #[error("the database failed: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// Written by a later build.
    #[error(
        "{path} has schema version {found}, this build knows up to {known}: use the build that wrote it, or go back to a backup of yours or to a copy in \
         backups/ (docs/data.md)", path = path.display()
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// Written by an earlier build and not brought up to date since.
    #[error(
        "{path} has schema version {found} and this build reads version {wanted}: start the coordinator on it once, which \
         migrates it and keeps a copy, or use the build that wrote it",
        path = path.display()
    )]
    TooOld {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// Ours.
        wanted: u32,
    },
    /// A row does not hold what it should.
    #[error("the database holds an impossible {what}: {detail}")]
    Corrupt {
        /// Which value.
        what: &'static str,
        /// What is wrong with it.
        detail: String,
    },
    /// A copy could not be made.
    #[error("failed to copy the database to {path}: {reason}; nothing was changed", path = path.display())]
    Copy {
        /// The copy.
        path: PathBuf,
        /// What went wrong.
        reason: String,
    },
    /// A thread could not be started.
    #[error("failed to start a thread of the database: {0}")]
    Thread(#[source] std::io::Error),
    /// The durable mode could not be switched on.
    #[error("{path} is in journal mode {mode:?} instead of \"wal\": does its file system lack shared memory?", path = path.display())]
    JournalMode {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        mode: String,
    },
}

impl From<FromSqlError> for StoreError {
    fn from(error: FromSqlError) -> StoreError {
        StoreError::Sqlite(error.into())
    }
}

impl StoreError {
    /// Whether the disk had no room for it.
    pub(crate) fn is_disk_full(&self) -> bool {
        match self {
            StoreError::Sqlite(error) => error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull),
            _ => false,
        }
    }

    pub(crate) fn corrupt(what: &'static str, detail: impl ToString) -> StoreError {
        StoreError::Corrupt {
            what,
            detail: detail.to_string(),
        }
    }
}

/// Opens (or creates) the database in `folder` for writing and brings its schema up to date.
pub fn open_writer(folder: &Path) -> Result<Connection, StoreError> {
    let path = folder.join(FILE_NAME);
    let mut connection = Connection::open(&path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(StoreError::JournalMode { path, mode });
    }
    // FULL: a commit is on the disk when it returns, also in WAL mode. What was acknowledged survives power loss.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    schema::migrate(&mut connection, folder, &path)?;
    Ok(connection)
}

/// A fixed-size id from a blob column.
pub(crate) fn array<const N: usize>(what: &'static str, bytes: &[u8]) -> Result<[u8; N], StoreError> {
    bytes
        .try_into()
        .map_err(|_| StoreError::corrupt(what, format!("{} bytes instead of {N}", bytes.len())))
}
