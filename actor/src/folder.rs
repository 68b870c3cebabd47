//! The actor's data folder: held by one process at a time, alone or as the first free one of several.

use std::path::{Path, PathBuf};

use tengen_service::lock::{FolderLock, LockError, lock_folder};

/// What the lock is held for.
const PART: &str = "actor";
/// Folders in a shared one: more actors than any machine runs.
const FOLDERS_MAX: u32 = 1_024;

/// No folder could be taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    /// One that was tried.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// All of them are in use.
    #[error("{path} holds {FOLDERS_MAX} folders and actors use them all: give this one another --data", path = path.display())]
    Full {
        /// The shared folder.
        path: PathBuf,
    },
}

/// Holds `folder` itself.
pub(crate) fn take(folder: &Path) -> Result<FolderLock, FolderError> {
    Ok(lock_folder(folder, PART)?)
}

/// Holds the first folder in `shared` that no other actor holds: those of ended actors come before new ones, so games
/// that one of them left in its spool are sent.
pub(crate) fn take_first_free(shared: &Path) -> Result<(PathBuf, FolderLock), FolderError> {
    for index in 0..FOLDERS_MAX {
        let folder = shared.join(format!("{PART}-{index}"));
        match lock_folder(&folder, PART) {
            Ok(lock) => return Ok((folder, lock)),
            Err(LockError::Held { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(FolderError::Full {
        path: shared.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actors_share_a_folder_and_the_next_takes_over_what_one_left() {
        let shared = tempfile::tempdir().unwrap();
        let (first, held_first) = take_first_free(shared.path()).unwrap();
        let (second, _held_second) = take_first_free(shared.path()).unwrap();
        assert_ne!(first, second);
        assert!(matches!(take(&second), Err(FolderError::Lock(LockError::Held { .. }))));
        drop(held_first);
        assert_eq!(take_first_free(shared.path()).unwrap().0, first);
    }
}
