//! `tengen-coordinator init`: the first tokens of a run, one file for each role.
//!
//! It needs the data folder for itself, but no run in it: a run that is made later keeps the tokens. Further tokens are made
//! over the wire, by whoever has the admin's.

use std::path::{Path, PathBuf};

use tengen_service::files::{self, WriteError};
use tengen_service::lock::{LockError, lock_folder};

use crate::access::{NewToken, NoRandomness, Role, reveal};
use crate::clock::unix_ms;
use crate::run::admin::describe;
use crate::store::tokens::{self, TokenRow};
use crate::store::trail::{self, Entry};
use crate::store::{StoreError, open_writer};

/// The first tokens could not be made.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// A coordinator is running on the folder, or another start.
    #[error("{0}; while a coordinator runs, tokens are made with `tengen token create`")]
    Lock(#[from] LockError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file is there already.
    #[error(
        "{path} is there already, and tokens are never overwritten: give another --tokens folder, or move the old file away; \
         the tokens in the old files stay good until they are revoked",
        path = path.display()
    )]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The system gives no random bits.
    #[error(transparent)]
    Random(#[from] NoRandomness),
}

/// Makes a token for every role, writes each to a file of its own in `folder`, readable to its owner alone, and stores their
/// hashes in the database in `data`. All of it or nothing. Returns the files. Blocks.
pub fn init(data: &Path, folder: &Path) -> Result<Vec<PathBuf>, InitError> {
    let path = |role: Role| folder.join(format!("{role}.token"));
    if let Some(path) = Role::ALL.map(path).into_iter().find(|path| path.exists()) {
        return Err(InitError::Exists { path });
    }
    let _lock = lock_folder(data, "coordinator")?;
    let mut connection = open_writer(data)?;
    let transaction = connection.transaction().map_err(StoreError::from)?;
    let mut written = Vec::new();
    let made = Role::ALL.into_iter().try_for_each(|role| {
        let token = NewToken::draw()?;
        let created_ms = unix_ms();
        let row = TokenRow {
            id: token.id.clone(),
            role,
            name: "init".to_owned(),
            hash: token.hash,
            created_ms,
            created_by: "coordinator".to_owned(),
            expires_ms: None,
            revoked_ms: None,
        };
        tokens::insert(&transaction, &row)?;
        let entry = Entry {
            who: "local",
            action: "create-token",
            detail: &describe(&row),
            ..Entry::default()
        };
        trail::append(&transaction, &entry, created_ms)?;
        files::write_private(&path(role), format!("{}\n", reveal(&token)).as_bytes())?;
        written.push(path(role));
        Ok(())
    });
    let stored = made.and_then(|()| Ok(transaction.commit().map_err(StoreError::from)?));
    if stored.is_err() {
        // A token that is not stored is worth nothing: its file would only mislead.
        for path in &written {
            if let Err(error) = std::fs::remove_file(path) {
                tracing::warn!(%error, path = %path.display(), "the file of a token that was not stored stays behind");
            }
        }
    }
    stored.map(|()| written)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::store::FILE_NAME;

    #[test]
    fn every_role_gets_a_private_file_and_only_hashes_are_stored() {
        let data = tempfile::tempdir().unwrap();
        let folder = tempfile::tempdir().unwrap();
        assert!(!tokens::exist(data.path()).unwrap());
        let files = init(data.path(), &folder.path().join("tokens")).unwrap();
        assert!(tokens::exist(data.path()).unwrap());
        assert_eq!(files.len(), Role::ALL.len());
        let connection = open_writer(data.path()).unwrap();
        let rows = tokens::all(&connection).unwrap();
        drop(connection);
        let database = std::fs::read(data.path().join(FILE_NAME)).unwrap();
        for (file, role) in files.iter().zip(Role::ALL) {
            assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
            let text = std::fs::read_to_string(file).unwrap();
            let secret = text.trim().rsplit('_').next().unwrap();
            assert_eq!(secret.len(), 64);
            let found = |needle: &[u8]| database.windows(needle.len()).any(|window| window == needle);
            assert!(!found(secret.as_bytes()), "the secret of {role} is in the database");
            let row = rows.iter().find(|row| row.role == role).unwrap();
            assert!(text.starts_with(&format!("tengen_{}_", row.id)));
            assert!(found(&row.hash.0), "the hash of {role} is not in the database");
        }
    }

    #[test]
    fn a_file_that_is_there_is_kept_and_nothing_is_made() {
        let data = tempfile::tempdir().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let there = folder.path().join("learner.token");
        files::write_private(&there, b"mine").unwrap();
        let refused = init(data.path(), folder.path()).unwrap_err();
        assert!(refused.to_string().contains("never overwritten"), "{refused}");
        assert_eq!(std::fs::read(&there).unwrap(), b"mine");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(!tokens::exist(data.path()).unwrap());
    }
}
