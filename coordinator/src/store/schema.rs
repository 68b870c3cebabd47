//! The tables, as a list of migrations: a released one is never changed, only followed by another.

use std::path::Path;

use rusqlite::Connection;

use super::StoreError;

/// The schema version this build writes.
pub const VERSION: u32 = MIGRATIONS.len() as u32;

const MIGRATIONS: [&str; 2] = [include_str!("schema_1.sql"), include_str!("schema_3.sql")];

/// Brings the database to [`VERSION`], each step in its own transaction.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let found: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > VERSION {
        return Err(StoreError::TooNew {
            path: path.to_path_buf(),
            found,
            known: VERSION,
        });
    }
    for (step, sql) in MIGRATIONS.iter().enumerate().skip(found as usize) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "user_version", step as u32 + 1)?;
        transaction.commit()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{FILE_NAME, open_writer};
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
    }

    #[test]
    fn a_later_schema_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let raw = Connection::open(folder.path().join(FILE_NAME)).unwrap();
        raw.pragma_update(None, "user_version", VERSION + 1).unwrap();
        drop(raw);
        let refused = open_writer(folder.path()).unwrap_err().to_string();
        assert!(refused.contains("use the build that wrote it"), "{refused}");
    }
}
