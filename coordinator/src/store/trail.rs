//! The audit trail: who changed what, when, and what it was before. One row a change, written in the transaction of the
//! change. (Audits of *games* are another matter: `store::audits`.)

use rusqlite::{Connection, params};

use super::StoreError;

/// Who a row names when no person asked: the coordinator itself, by a rule it was given.
pub const COORDINATOR: &str = "coordinator";

/// A change, as the trail keeps it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Entry<'a> {
    /// Who made it.
    pub who: &'a str,
    /// What was done, for example `revoke-token`.
    pub action: &'a str,
    /// To what, and why.
    pub detail: &'a str,
    /// What it was before; empty where there is nothing to compare.
    pub old: &'a str,
    /// What it is now; empty where there is nothing to compare.
    pub new: &'a str,
}

/// Adds a change to the trail. The caller's transaction holds the change itself.
pub fn append(connection: &Connection, entry: &Entry, now_ms: i64) -> Result<(), StoreError> {
    let Entry {
        who,
        action,
        detail,
        old,
        new,
    } = entry;
    let sql = "INSERT INTO audit (at_ms, who, action, detail, old, new) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    connection.execute(sql, params![now_ms, who, action, detail, old, new])?;
    Ok(())
}

/// A row of the trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrailRow {
    /// Its number, increasing.
    pub id: i64,
    /// When.
    pub at_ms: i64,
    /// Who.
    pub who: String,
    /// What.
    pub action: String,
    /// To what, and why.
    pub detail: String,
    /// Before.
    pub old: String,
    /// After.
    pub new: String,
}

/// Up to `limit` rows before this number, newest first.
pub fn before(connection: &Connection, before: i64, limit: u32) -> Result<Vec<TrailRow>, StoreError> {
    let sql = "SELECT id, at_ms, who, action, detail, old, new FROM audit WHERE id < ?1 ORDER BY id DESC LIMIT ?2";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map(params![before, limit], |row| {
        Ok(TrailRow {
            id: row.get(0)?,
            at_ms: row.get(1)?,
            who: row.get(2)?,
            action: row.get(3)?,
            detail: row.get(4)?,
            old: row.get(5)?,
            new: row.get(6)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
