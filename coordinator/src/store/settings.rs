//! The revisions of the settings, and the keys that were changed while the run went on.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, params};

use super::StoreError;

/// A revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsRow {
    /// Its number, from 1.
    pub revision: u32,
    /// The whole configuration.
    pub toml: String,
    /// When it was made.
    pub created_ms: i64,
    /// Who made it.
    pub who: String,
}

/// The newest revision's number and TOML.
pub fn newest(connection: &Connection) -> Result<Option<(u32, String)>, StoreError> {
    Ok(before(connection, u32::MAX, 1)?
        .pop()
        .map(|row| (row.revision, row.toml)))
}

/// The TOML of one revision.
pub fn toml(connection: &Connection, revision: u32) -> Result<Option<String>, StoreError> {
    let sql = "SELECT toml FROM settings WHERE revision = ?1";
    Ok(connection.query_row(sql, [revision], |row| row.get(0)).optional()?)
}

/// Up to `limit` revisions before this one, newest first.
pub fn before(connection: &Connection, before: u32, limit: u32) -> Result<Vec<SettingsRow>, StoreError> {
    let sql =
        "SELECT revision, toml, created_ms, who FROM settings WHERE revision < ?1 ORDER BY revision DESC LIMIT ?2";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([before, limit], |row| {
        Ok(SettingsRow {
            revision: row.get(0)?,
            toml: row.get(1)?,
            created_ms: row.get(2)?,
            who: row.get(3)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Adds a revision.
pub fn insert(connection: &Connection, row: &SettingsRow) -> Result<(), StoreError> {
    connection.execute(
        "INSERT INTO settings (revision, toml, created_ms, who) VALUES (?1, ?2, ?3, ?4)",
        params![row.revision, row.toml, row.created_ms, row.who],
    )?;
    Ok(())
}

/// Keys that were changed while the run went on and win over the run file.
pub fn live_keys(connection: &Connection) -> Result<BTreeSet<String>, StoreError> {
    let mut statement = connection.prepare("SELECT key FROM live_keys ORDER BY key")?;
    let keys = statement.query_map([], |row| row.get(0))?;
    Ok(keys.collect::<Result<_, _>>()?)
}

/// Notes that this revision changed a key while the run went on.
pub fn set_live(connection: &Connection, key: &str, revision: u32) -> Result<(), StoreError> {
    let sql = "INSERT OR REPLACE INTO live_keys VALUES (?1, ?2)";
    connection.execute(sql, params![key, revision])?;
    Ok(())
}

/// From now on the run file decides about a key.
pub fn forget_live(connection: &Connection, key: &str) -> Result<(), StoreError> {
    connection.execute("DELETE FROM live_keys WHERE key = ?1", [key])?;
    Ok(())
}
