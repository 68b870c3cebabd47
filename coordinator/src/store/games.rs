//! Games: stored, in conflict, or refused.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};
use tengen_games::Outcome;
use tengen_records::{Kind, RecordId};

use super::StoreError;

/// Refused records that are kept; older ones make room.
pub const QUARANTINE_ROWS_MAX: i64 = 1_000;
/// Conflicting records that are kept; older ones make room.
pub const CONFLICT_ROWS_MAX: i64 = 1_000;
/// Bytes of a refused or conflicting record that are kept: whole games but for the largest boards.
pub const SET_ASIDE_BYTES_MAX: usize = 64 * 1024;

/// A game about to be stored.
#[derive(Clone, Debug)]
pub struct NewGame<'a> {
    /// Its identity.
    pub id: RecordId,
    /// What it was played for.
    pub kind: Kind,
    /// Who sent it.
    pub actor: &'a str,
    /// Trainable positions.
    pub positions: u32,
    /// Trainable positions stored in the run, these included.
    pub positions_total: u64,
    /// Plies, opening included.
    pub plies: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// Its path through the opening protocol.
    pub opening_path: Option<&'a str>,
    /// When it ended, by the actor's clock.
    pub created_ms: i64,
    /// When it is stored.
    pub stored_ms: i64,
    /// Hash of its bytes.
    pub hash: [u8; 32],
    /// Its bytes.
    pub record: &'a [u8],
}

/// Hash of the bytes stored under this id, if any ever were.
pub fn stored_hash(connection: &Connection, id: RecordId) -> Result<Option<Vec<u8>>, StoreError> {
    let sql = "SELECT hash FROM game_ids WHERE lease = ?1 AND game_index = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement
        .query_row(params![id.lease.to_bytes(), id.index], |row| row.get(0))
        .optional()?)
}

/// The bytes of a stored game.
pub fn record(connection: &Connection, id: RecordId) -> Result<Option<Vec<u8>>, StoreError> {
    let sql = "SELECT record FROM games JOIN game_ids USING (sequence) \
               WHERE game_ids.lease = ?1 AND game_ids.game_index = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement
        .query_row(params![id.lease.to_bytes(), id.index], |row| row.get(0))
        .optional()?)
}

/// Stores a game whose id is new; returns its commit sequence.
pub fn insert(connection: &Connection, game: &NewGame) -> Result<u64, StoreError> {
    let lease = game.id.lease.to_bytes();
    let sql = "INSERT INTO games (lease, game_index, kind, actor, positions, positions_total, plies, winner, reason, \
               opening_path, created_ms, stored_ms, record) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let sequence = connection.prepare_cached(sql)?.insert(params![
        lease,
        game.id.index,
        game.kind.as_str(),
        game.actor,
        game.positions,
        game.positions_total,
        game.plies,
        game.outcome.winner.map(|seat| seat.index() as u32),
        game.outcome.reason.as_str(),
        game.opening_path,
        game.created_ms,
        game.stored_ms,
        game.record
    ])?;
    connection
        .prepare_cached("INSERT INTO game_ids VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![lease, game.id.index, game.hash, sequence])?;
    if let (Kind::SelfPlay, Some(path)) = (game.kind, game.opening_path) {
        let sql = "INSERT INTO opening_paths VALUES (?1, 1) ON CONFLICT (path) DO UPDATE SET games = games + 1";
        connection.prepare_cached(sql)?.execute([path])?;
    }
    Ok(sequence as u64)
}

/// Sets aside (the beginning of) a record whose id was stored with other bytes.
pub fn insert_conflict(
    connection: &Connection,
    id: RecordId,
    actor: &str,
    record: &[u8],
    now_ms: i64,
) -> Result<(), StoreError> {
    let record = &record[..record.len().min(SET_ASIDE_BYTES_MAX)];
    let sql = "INSERT INTO conflicts (lease, game_index, actor, at_ms, record) VALUES (?1, ?2, ?3, ?4, ?5)";
    connection.execute(sql, params![id.lease.to_bytes(), id.index, actor, now_ms, record])?;
    let trim = "DELETE FROM conflicts WHERE id <= (SELECT max(id) FROM conflicts) - ?1";
    connection.execute(trim, [CONFLICT_ROWS_MAX])?;
    Ok(())
}

/// Counts a refused record and keeps (the beginning of) its bytes.
pub fn quarantine(
    connection: &Connection,
    actor: &str,
    code: &str,
    detail: &str,
    record: &[u8],
    now_ms: i64,
) -> Result<(), StoreError> {
    let kept = &record[..record.len().min(SET_ASIDE_BYTES_MAX)];
    let sql = "INSERT INTO quarantine (actor, code, detail, at_ms, record) VALUES (?1, ?2, ?3, ?4, ?5)";
    connection.execute(sql, params![actor, code, detail, now_ms, kept])?;
    let trim = "DELETE FROM quarantine WHERE id <= (SELECT max(id) FROM quarantine) - ?1";
    connection.execute(trim, [QUARANTINE_ROWS_MAX])?;
    let count = "INSERT INTO rejections VALUES (?1, ?2, 1) ON CONFLICT DO UPDATE SET records = records + 1";
    connection.execute(count, [actor, code])?;
    Ok(())
}

/// Refused records by reason code.
pub fn rejections(connection: &Connection) -> Result<BTreeMap<String, u64>, StoreError> {
    counts(connection, "SELECT code, sum(records) FROM rejections GROUP BY code")
}

/// Self-play games by path through the opening protocol.
pub fn opening_paths(connection: &Connection) -> Result<BTreeMap<String, u64>, StoreError> {
    counts(connection, "SELECT path, games FROM opening_paths")
}

fn counts(connection: &Connection, sql: &str) -> Result<BTreeMap<String, u64>, StoreError> {
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A stored self-play game, for the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowRow {
    /// Commit sequence.
    pub sequence: u64,
    /// Trainable positions.
    pub positions: u32,
    /// Trainable positions stored up to and including this game.
    pub positions_total: u64,
    /// The record's bytes.
    pub record: Vec<u8>,
}

/// Hands the newest self-play games that together hold at least `capacity` positions to `take`, oldest first.
pub fn for_window(connection: &Connection, capacity: u64, mut take: impl FnMut(WindowRow)) -> Result<(), StoreError> {
    let sql = "SELECT sequence, positions FROM games WHERE kind = 'self-play' ORDER BY sequence DESC";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    let (mut from, mut positions) = (i64::MAX, 0);
    while positions < capacity {
        let Some(row) = rows.next()? else { break };
        from = row.get(0)?;
        positions += row.get::<_, u64>(1)?;
    }
    let sql = "SELECT sequence, positions, positions_total, record FROM games \
               WHERE kind = 'self-play' AND sequence >= ?1 ORDER BY sequence";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([from])?;
    while let Some(row) = rows.next()? {
        take(WindowRow {
            sequence: row.get(0)?,
            positions: row.get(1)?,
            positions_total: row.get(2)?,
            record: row.get(3)?,
        });
    }
    Ok(())
}
