//! Connections that only read, for the threads that answer requests.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags};

use super::{BUSY_TIMEOUT, FILE_NAME, StoreError};

/// Idle connections that are kept.
const IDLE_MAX: usize = 8;

/// A pool of read-only connections; clones share it.
#[derive(Clone, Debug)]
pub struct Readers {
    path: PathBuf,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    /// Readers of the database in `folder`, which exists already.
    pub fn new(folder: &Path) -> Readers {
        Readers {
            path: folder.join(FILE_NAME),
            idle: Arc::default(),
        }
    }

    /// Runs `read` on a connection. Blocks: call it from a thread that may.
    pub fn with<T, E: From<StoreError>>(&self, read: impl FnOnce(&Connection) -> Result<T, E>) -> Result<T, E> {
        let idle = self.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let result = read(&connection);
        let mut idle = self.lock();
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
        result
    }

    fn connect(&self) -> Result<Connection, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        Ok(connection)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        // A panicking reader leaves at worst one connection fewer in the pool.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
