//! One process per data folder: an advisory lock that dies with its holder.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use fs4::fs_std::FileExt;

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
    std::fs::create_dir_all(folder).map_err(io)?;
    let mut file = OpenOptions::new()
        .create(true)
        .read(true)
        .write(true)
        .truncate(false)
        .open(&path)
        .map_err(io)?;
    if !file.try_lock_exclusive().map_err(io)? {
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
        drop(held);
        lock_folder(folder.path(), "coordinator").unwrap();
    }
}
