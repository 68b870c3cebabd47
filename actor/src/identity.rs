//! Who the actor is: a UUID that lives as long as its data folder.

use std::io;
use std::path::{Path, PathBuf};

use tengen_service::files::{WriteError, write_atomic};
use uuid::Uuid;

/// The identity cannot be read or kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IdentityError {
    /// The file cannot be read.
    #[error("failed to read {path}: {source}", path = path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{path} holds {text:?}, which is not a UUID: delete the file for a new identity", path = path.display())]
    Parse { path: PathBuf, text: String },
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// The identity kept in `folder`, made at the first start.
pub(crate) fn load_or_create(folder: &Path) -> Result<Uuid, IdentityError> {
    let path = folder.join("actor-id");
    match std::fs::read_to_string(&path) {
        Ok(text) => Uuid::try_parse(text.trim()).map_err(|_| IdentityError::Parse { path, text }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let id = Uuid::new_v4();
            write_atomic(&path, format!("{id}\n").as_bytes())?;
            Ok(id)
        }
        Err(source) => Err(IdentityError::Read { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_keeps_its_identity_over_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let first = load_or_create(folder.path()).unwrap();
        assert_eq!(load_or_create(folder.path()).unwrap(), first);
    }

    #[test]
    fn a_damaged_identity_is_refused_and_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        write_atomic(&folder.path().join("actor-id"), b"nobody").unwrap();
        let error = load_or_create(folder.path()).unwrap_err();
        assert!(error.to_string().contains("nobody"), "{error}");
    }
}
