//! Audits of games: counts by actor, and the games that failed.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};
use tengen_records::{ModelId, RecordId};

use super::StoreError;

/// Failed games that are kept; older ones make room.
pub const FAILURE_ROWS_MAX: i64 = 10_000;

/// Under this name, which no actor has, missed games are counted.
pub const NOBODY: &str = "";

/// What audits found of one actor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditCount {
    /// Games audited.
    pub audited: u64,
    /// Those that failed.
    pub failed: u64,
    /// Games that were drawn and not audited.
    pub missed: u64,
    /// Failed games that no longer count against the actor, because it was resumed since.
    pub forgiven: u64,
}

/// A game that failed.
#[derive(Clone, Debug)]
pub struct AuditFailure<'a> {
    /// The game.
    pub game: RecordId,
    /// Who sent it.
    pub actor: &'a str,
    /// The first network it names.
    pub model: ModelId,
    /// Positions evaluated.
    pub positions: u32,
    /// Greatest difference of a probability among them; 1 when there is nothing to compare.
    pub difference: f32,
    /// What is wrong, in a sentence.
    pub detail: &'a str,
}

/// Every actor's counts.
pub fn counts(connection: &Connection) -> Result<BTreeMap<String, AuditCount>, StoreError> {
    let mut statement = connection.prepare("SELECT actor, audited, failed, missed, forgiven FROM audits")?;
    let rows = statement.query_map([], |row| {
        let count = AuditCount {
            audited: row.get(1)?,
            failed: row.get(2)?,
            missed: row.get(3)?,
            forgiven: row.get(4)?,
        };
        Ok((row.get(0)?, count))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Writes an actor's counts.
pub fn set_count(connection: &Connection, actor: &str, count: AuditCount) -> Result<(), StoreError> {
    let sql = "INSERT INTO audits VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (actor) DO UPDATE \
               SET audited = ?2, failed = ?3, missed = ?4, forgiven = ?5";
    connection.prepare_cached(sql)?.execute(params![
        actor,
        count.audited,
        count.failed,
        count.missed,
        count.forgiven
    ])?;
    Ok(())
}

/// Notes a game that failed.
pub fn insert_failure(connection: &Connection, failure: &AuditFailure, now_ms: i64) -> Result<(), StoreError> {
    let sql = "INSERT INTO audit_failures (lease, game_index, actor, model, positions, difference, detail, at_ms) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    connection.execute(
        sql,
        params![
            failure.game.lease.to_bytes(),
            failure.game.index,
            failure.actor,
            failure.model.0,
            failure.positions,
            failure.difference,
            failure.detail,
            now_ms
        ],
    )?;
    let trim = "DELETE FROM audit_failures WHERE id <= (SELECT max(id) FROM audit_failures) - ?1";
    connection.execute(trim, [FAILURE_ROWS_MAX])?;
    Ok(())
}
