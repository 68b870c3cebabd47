//! The one way to write a file that must be whole after any crash: temp, fsync, rename, fsync of the folder.
//!
//! Nothing else in the house may write a file in place.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What the name of a file begins with while it is written.
const TEMPORARY: &str = ".writing-";

/// A file could not be written durably.
#[derive(Debug, thiserror::Error)]
#[error("failed to write {path}: {source}", path = path.display())]
pub struct WriteError {
    /// Where it should have gone.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

impl WriteError {
    /// Whether there is no room: then the same write may pass later.
    pub fn is_out_of_room(&self) -> bool {
        is_out_of_room(&self.source)
    }
}

/// Whether this says that the disk, or what somebody may use of it, is full: then the same may work later.
pub fn is_out_of_room(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Writes `bytes` to `path` so that after a crash the file is either as it was before or whole, and durable once this
/// returns. The folder is created when it is missing.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    write_atomic_with(path, |file| file.write_all(bytes))
}

/// Like [`write_atomic`], for content that is produced by a function writing into the temporary file.
pub fn write_atomic_with(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), WriteError> {
    let wrapped = |source| WriteError {
        path: path.to_path_buf(),
        source,
    };
    let folder = folder_of(path);
    create_folder(folder).map_err(wrapped)?;
    // A temporary file is private by default; what it becomes is as readable as any file of its owner.
    let readable = std::fs::Permissions::from_mode(0o644);
    let temporary = tempfile::Builder::new()
        .prefix(TEMPORARY)
        .permissions(readable)
        .tempfile_in(folder);
    let mut temporary = temporary.map_err(wrapped)?;
    fill(temporary.as_file_mut()).map_err(wrapped)?;
    temporary.as_file().sync_all().map_err(wrapped)?;
    temporary.persist(path).map_err(|error| wrapped(error.error))?;
    sync_folder(folder).map_err(wrapped)
}

/// Makes a folder and those above it where they are missing, each durable under its name once this returns: what is
/// written into it later cannot be lost with the folder itself.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    let above = match folder.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        _ => Path::new("."),
    };
    create_folder(above)?;
    match std::fs::create_dir(folder) {
        // Another process of ours was quicker; its name is made durable here all the same.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
        made => made?,
    }
    sync_folder(above)
}

/// Writes `bytes` durably to a file that is not there yet and that nobody but its owner may read. A file that is there is
/// never touched.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let wrapped = |source| WriteError {
        path: path.to_path_buf(),
        source,
    };
    let folder = folder_of(path);
    create_folder(folder).map_err(wrapped)?;
    let private = std::fs::Permissions::from_mode(0o600);
    let temporary = tempfile::Builder::new()
        .prefix(TEMPORARY)
        .permissions(private)
        .tempfile_in(folder);
    let mut temporary = temporary.map_err(wrapped)?;
    temporary.as_file_mut().write_all(bytes).map_err(wrapped)?;
    temporary.as_file().sync_all().map_err(wrapped)?;
    temporary
        .persist_noclobber(path)
        .map_err(|error| wrapped(error.error))?;
    sync_folder(folder).map_err(wrapped)
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Removes what an earlier process left half written in this folder, which nobody else may be writing to. A folder that is
/// not there has nothing of the kind.
pub fn remove_half_written(folder: &Path) -> io::Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes()) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Makes the folder's own entries durable (a rename or a removal is one).
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/file");
        write_atomic(&path, b"old").unwrap();
        write_atomic(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_private_file_is_its_owners_alone_and_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        write_private(&path, b"old").unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let refused = write_private(&path, b"new").unwrap_err();
        assert_eq!(refused.source.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_dead_process_left_half_written_goes_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        remove_half_written(&folder.path().join("absent")).unwrap();
        write_atomic(&folder.path().join("file"), b"whole").unwrap();
        let half = folder.path().join(format!("{TEMPORARY}x1"));
        File::create(&half).unwrap().write_all(b"ha").unwrap();
        remove_half_written(folder.path()).unwrap();
        assert!(!half.exists());
        assert_eq!(std::fs::read(folder.path().join("file")).unwrap(), b"whole");
    }

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write_atomic(&path, b"old").unwrap();
        let failed = write_atomic_with(&path, |file| {
            file.write_all(b"ne")?;
            Err(io::Error::other("no space"))
        });
        assert!(failed.unwrap_err().to_string().contains("no space"));
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
