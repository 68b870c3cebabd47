//! One process per data folder: an advisory lock that dies with its holder.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::files;

/// The folder could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else holds it.
    #[error("{path} is in use by process {holder}: stop it, or use another folder", path = path.display())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// Process id as the holder wrote it.
        holder: String,
    },
    /// The lock file could not be made.
    #[error("failed to lock {path}: {source}", path = path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Holds a folder until dropped.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

/// Takes `folder` (created when missing) for the part named `part`, for example `coordinator`.
pub fn lock_folder(folder: &Path, part: &str) -> Result<FolderLock, LockError> {
    let path = folder.join(format!("{part}.lock"));
    let io = |source| LockError::Io {
        path: path.clone(),
        source,
    };
    files::create_folder(folder).map_err(io)?;
    let mut file = OpenOptions::new()
        .create(true)
        .read(true)
        .write(true)
        .truncate(false)
        .open(&path)
        .map_err(io)?;
    if !take(&file).map_err(io)? {
        let mut holder = String::new();
        file.read_to_string(&mut holder).map_err(io)?;
        return Err(LockError::Held {
            path,
            holder: holder.trim().to_owned(),
        });
    }
    file.set_len(0).map_err(io)?;
    file.rewind().map_err(io)?;
    writeln!(file, "{}", std::process::id()).map_err(io)?;
    Ok(FolderLock { _file: file })
}

/// Takes the lock; false when somebody else has it for good. Whoever only looks ([`is_held`]) shares it for an instant:
/// that is waited out.
fn take(file: &File) -> io::Result<bool> {
    const LOOKS_MAX: u32 = 10_000;
    for _ in 0..LOOKS_MAX {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {}
        }
        match file.try_lock_shared() {
            Ok(()) => file.unlock()?,
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => return Ok(false),
        }
        std::thread::yield_now();
    }
    Ok(false)
}

/// Whether somebody holds `folder` for the part named `part` now. Makes nothing.
pub fn is_held(folder: &Path, part: &str) -> Result<bool, LockError> {
    let path = folder.join(format!("{part}.lock"));
    let tried = match File::open(&path) {
        Ok(file) => file.try_lock_shared(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(TryLockError::Error(error)),
    };
    match tried {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(source)) => Err(LockError::Io { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_held_by_one_and_free_after() {
        let folder = tempfile::tempdir().unwrap();
        let held = lock_folder(folder.path(), "coordinator").unwrap();
        let refused = lock_folder(folder.path(), "coordinator").unwrap_err();
        assert!(
            refused.to_string().contains(&std::process::id().to_string()),
            "{refused}"
        );
        assert!(is_held(folder.path(), "coordinator").unwrap());
        assert!(!is_held(folder.path(), "learner").unwrap());
        drop(held);
        assert!(!is_held(folder.path(), "coordinator").unwrap());
        lock_folder(folder.path(), "coordinator").unwrap();
    }

    #[test]
    fn a_look_never_keeps_anybody_from_taking_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        drop(lock_folder(folder.path(), "coordinator").unwrap());
        std::thread::scope(|scope| {
            let looking = scope.spawn(|| (0..20_000).for_each(|_| _ = is_held(folder.path(), "coordinator").unwrap()));
            while !looking.is_finished() {
                lock_folder(folder.path(), "coordinator").unwrap();
            }
        });
    }
}
