//! The tables, as a list of migrations: a released one is never changed, only followed by another.
//!
//! Before an older database is changed a copy of it is kept in [`BACKUPS`]: the way back to the build that wrote it.
//! Nothing here removes such a copy.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::{StoreError, snapshot};

/// The schema version this build writes.
pub const VERSION: u32 = MIGRATIONS.len() as u32;

/// Folder within the data folder that keeps the copies made before migrations.
pub const BACKUPS: &str = "backups";

const MIGRATIONS: [&str; 11] = [
    include_str!("schema_1.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
    include_str!("schema_5.sql"),
    include_str!("schema_6.sql"),
    include_str!("schema_7.sql"),
    include_str!("schema_8.sql"),
    include_str!("schema_9.sql"),
    include_str!("schema_10.sql"),
    include_str!("schema_11.sql"),
];

/// The schema version of a database, 0 when it is empty.
///
/// # Errors
/// When a later build wrote it.
pub fn version(connection: &Connection, path: &Path) -> Result<u32, StoreError> {
    let found: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > VERSION {
        return Err(StoreError::TooNew {
            path: path.to_path_buf(),
            found,
            known: VERSION,
        });
    }
    Ok(found)
}

/// Refuses a database of any schema but this build's, for those who only read it.
pub fn expect_current(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    match version(connection, path)? {
        VERSION => Ok(()),
        found => Err(StoreError::TooOld {
            path: path.to_path_buf(),
            found,
            wanted: VERSION,
        }),
    }
}

/// The copy that is kept of a database of version `found` before it is changed.
pub fn backup_path(folder: &Path, found: u32) -> PathBuf {
    folder.join(BACKUPS).join(format!("schema-{found}.db"))
}

/// Brings the database at `folder`/`path` to [`VERSION`], each step in its own transaction. An older database is copied
/// first; when it cannot be, nothing is changed.
pub(super) fn migrate(connection: &mut Connection, folder: &Path, path: &Path) -> Result<(), StoreError> {
    let found = version(connection, path)?;
    if found == VERSION {
        return Ok(());
    }
    if found > 0 {
        let copy = backup_path(folder, found);
        snapshot::copy(connection, &copy, |_| {})?;
        tracing::info!(from = found, to = VERSION, backup = %copy.display(), "migrating the database");
    }
    // A step that makes a table anew drops one that others refer to; the references are checked before its commit.
    connection.pragma_update(None, "foreign_keys", false)?;
    for (step, sql) in MIGRATIONS.iter().enumerate().skip(found as usize) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(sql)?;
        check_references(&transaction)?;
        transaction.pragma_update(None, "user_version", step as u32 + 1)?;
        transaction.commit()?;
    }
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(())
}

fn check_references(connection: &Connection) -> Result<(), StoreError> {
    let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
    let mut rows = statement.query([])?;
    match rows.next()? {
        None => Ok(()),
        Some(row) => Err(StoreError::corrupt("reference", row.get::<_, String>(0)?)),
    }
}

#[cfg(test)]
mod tests {
    use tengen_records::ModelId;

    use super::super::{FILE_NAME, open_writer, variants};
    use super::*;

    #[test]
    fn a_fresh_database_is_at_the_newest_version_and_opens_again() {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let connection = open_writer(folder.path()).unwrap();
            let version: u32 = connection
                .pragma_query_value(None, "user_version", |row| row.get(0))
                .unwrap();
            assert_eq!(version, VERSION);
            let synchronous: u32 = connection
                .pragma_query_value(None, "synchronous", |row| row.get(0))
                .unwrap();
            assert_eq!(synchronous, 2);
        }
        assert!(!folder.path().join(BACKUPS).exists(), "there was nothing to lose");
    }

    #[test]
    fn a_later_schema_is_refused_with_the_way_out_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let raw = Connection::open(folder.path().join(FILE_NAME)).unwrap();
        raw.pragma_update(None, "user_version", VERSION + 1).unwrap();
        let refused = open_writer(folder.path()).unwrap_err().to_string();
        assert!(
            refused.contains("use the build that wrote it") && refused.contains("backups/"),
            "{refused}"
        );
        let left: u32 = raw.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(left, VERSION + 1);
    }

    #[test]
    fn a_file_that_was_published_before_answers_were_kept_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let old = Connection::open(folder.path().join(FILE_NAME)).unwrap();
        old.pragma_update(None, "foreign_keys", false).unwrap();
        for sql in &MIGRATIONS[..10] {
            old.execute_batch(sql).unwrap();
        }
        old.execute_batch(
            "INSERT INTO settings (revision, toml, created_ms) VALUES (1, '', 0);
             INSERT INTO models (model, iteration, step, state, created_ms, size_bytes, sha256, metadata_json, verdict,
                 settings_revision, file_name, probes)
                 VALUES (zeroblob(32), 1, 9, 'champion', 0, 1, x'', '', '', 1, 'a.onnx', x'');
             INSERT INTO model_variants VALUES (zeroblob(32), 'int8', zeroblob(32), 1, x'', 'b.onnx', 1, 0.0, 1.0, 0.0);",
        )
        .unwrap();
        old.pragma_update(None, "user_version", 10).unwrap();
        drop(old);
        let migrated = open_writer(folder.path()).unwrap();
        let kept = variants::with_answers(&migrated, ModelId([0; 32])).unwrap();
        assert_eq!((kept.len(), kept[0].file_name.as_str()), (1, "b.onnx"));
        assert!(kept[0].answers.is_empty());
    }

    #[test]
    fn an_older_database_that_cannot_be_copied_is_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let raw = Connection::open(folder.path().join(FILE_NAME)).unwrap();
        raw.execute_batch(MIGRATIONS[0]).unwrap();
        raw.pragma_update(None, "user_version", 1).unwrap();
        // A file in the place of the folder of copies.
        tengen_service::files::write_atomic(&folder.path().join(BACKUPS), b"in the way").unwrap();
        let refused = open_writer(folder.path()).unwrap_err().to_string();
        assert!(refused.contains("backups/schema-1.db"), "{refused}");
        assert_eq!(version(&raw, folder.path()).unwrap(), 1);
    }
}
