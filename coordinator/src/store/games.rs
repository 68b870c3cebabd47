//! Games: stored, in conflict, or refused.

use std::collections::BTreeMap;
use std::fmt;

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

/// A stored game whose bytes are not the ones that were stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedGame {
    /// Commit sequence.
    pub sequence: u64,
    /// Its lease, in hexadecimal digits.
    pub lease: String,
    /// Its index within the lease.
    pub game_index: u32,
}

impl fmt::Display for DamagedGame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "game {} (lease {}, index {})",
            self.sequence, self.lease, self.game_index
        )
    }
}

/// Whether a record's bytes are the ones whose hash was noted when they were stored. A missing hash is no proof.
pub fn is_sound(record: &[u8], hash: Option<&[u8]>) -> bool {
    hash == Some(blake3::hash(record).as_bytes())
}

const WITH_HASH: &str = "games LEFT JOIN game_ids USING (lease, game_index)";

/// Games that the window may hold.
const OF_WINDOW: &str = "kind = 'self-play' AND purged_ms IS NULL";

/// Hands the newest self-play games that together hold at least `capacity` positions to `take`, oldest first. Purged games
/// are left out, and damaged ones, which are returned. The newest game's total is `positions_committed`, whatever was left
/// out: totals never go back.
pub fn for_window(
    connection: &Connection,
    capacity: u64,
    positions_committed: u64,
    mut take: impl FnMut(WindowRow),
) -> Result<Vec<DamagedGame>, StoreError> {
    let begin = window_begin(connection, capacity)?;
    let mut positions_total = positions_committed
        .checked_sub(begin.positions)
        .ok_or_else(|| StoreError::corrupt("count of positions", positions_committed))?;
    visit_window(connection, begin.before, |row| {
        positions_total += u64::from(row.positions);
        take(WindowRow { positions_total, ..row });
        Visit::GoOn
    })?;
    Ok(begin.damaged)
}

/// Where the window begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowBegin {
    /// The commit sequence before its oldest game; 0 when all games together do not fill it.
    pub before: u64,
    /// Positions of its games.
    pub positions: u64,
    /// Damaged games from there on.
    pub damaged: Vec<DamagedGame>,
}

/// Where the newest sound games begin that together hold at least `capacity` positions.
pub fn window_begin(connection: &Connection, capacity: u64) -> Result<WindowBegin, StoreError> {
    let sql = format!(
        "SELECT games.sequence, positions, record, hash, lease, game_index FROM {WITH_HASH} \
         WHERE {OF_WINDOW} ORDER BY games.sequence DESC"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([])?;
    let mut begin = WindowBegin {
        before: 0,
        positions: 0,
        damaged: Vec::new(),
    };
    while begin.positions < capacity {
        let Some(row) = rows.next()? else {
            return Ok(WindowBegin { before: 0, ..begin });
        };
        let sequence: u64 = row.get(0)?;
        begin.before = sequence - 1;
        let hash = row.get_ref(3)?.as_blob_or_null()?;
        if is_sound(row.get_ref(2)?.as_bytes()?, hash) {
            begin.positions += row.get::<_, u64>(1)?;
        } else {
            let game = damaged_game(sequence, row.get_ref(4)?.as_bytes()?, row.get(5)?);
            begin.damaged.push(game);
        }
    }
    Ok(begin)
}

/// The next sound games of the window after a commit sequence, at most so many and so many bytes of them, but at least one
/// if there is one.
pub fn window_page(
    connection: &Connection,
    after: u64,
    games_max: usize,
    bytes_max: usize,
) -> Result<Vec<WindowRow>, StoreError> {
    let (mut page, mut bytes) = (Vec::new(), 0);
    visit_window(connection, after, |row| {
        bytes += row.record.len();
        if bytes > bytes_max && !page.is_empty() {
            return Visit::Enough;
        }
        page.push(row);
        if page.len() < games_max {
            Visit::GoOn
        } else {
            Visit::Enough
        }
    })?;
    Ok(page)
}

enum Visit {
    GoOn,
    Enough,
}

/// Hands the sound games of the window after a commit sequence to `visit` in order, until it has enough.
fn visit_window(
    connection: &Connection,
    after: u64,
    mut visit: impl FnMut(WindowRow) -> Visit,
) -> Result<(), StoreError> {
    let sql = format!(
        "SELECT games.sequence, positions, positions_total, record, hash FROM {WITH_HASH} \
         WHERE {OF_WINDOW} AND games.sequence > ?1 ORDER BY games.sequence"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([after])?;
    while let Some(row) = rows.next()? {
        let record: Vec<u8> = row.get(3)?;
        if !is_sound(&record, row.get_ref(4)?.as_blob_or_null()?) {
            continue;
        }
        let visited = visit(WindowRow {
            sequence: row.get(0)?,
            positions: row.get(1)?,
            positions_total: row.get(2)?,
            record,
        });
        if matches!(visited, Visit::Enough) {
            break;
        }
    }
    Ok(())
}

/// The name of a damaged game.
pub fn damaged_game(sequence: u64, lease: &[u8], game_index: u32) -> DamagedGame {
    DamagedGame {
        sequence,
        lease: lease.iter().map(|byte| format!("{byte:02x}")).collect(),
        game_index,
    }
}

/// Flags an actor's self-play games stored at `since_ms` or later as purged; returns how many games and positions.
pub fn purge(connection: &Connection, actor: &str, since_ms: i64, now_ms: i64) -> Result<(u64, u64), StoreError> {
    const OF: &str = "actor = ?1 AND stored_ms >= ?2 AND kind = 'self-play' AND purged_ms IS NULL";
    let sql = format!("SELECT coalesce(sum(positions), 0) FROM games WHERE {OF}");
    let positions = connection.query_row(&sql, params![actor, since_ms], |row| row.get(0))?;
    let sql = format!("UPDATE games SET purged_ms = ?3 WHERE {OF}");
    let games = connection.execute(&sql, params![actor, since_ms, now_ms])?;
    Ok((games as u64, positions))
}

/// An actor's match games stored at `since_ms` or later.
pub fn match_games_since(connection: &Connection, actor: &str, since_ms: i64) -> Result<u64, StoreError> {
    let sql = "SELECT count(*) FROM games WHERE actor = ?1 AND stored_ms >= ?2 AND kind = 'match'";
    Ok(connection.query_row(sql, params![actor, since_ms], |row| row.get(0))?)
}

/// Number of games of the window after one commit sequence and up to another.
pub fn count_self_play(connection: &Connection, after: u64, up_to: u64) -> Result<u64, StoreError> {
    let sql = format!("SELECT count(*) FROM games WHERE {OF_WINDOW} AND sequence > ?1 AND sequence <= ?2");
    let mut statement = connection.prepare_cached(&sql)?;
    Ok(statement.query_row([after, up_to], |row| row.get(0))?)
}

/// Commit sequence of the newest self-play game; 0 when there is none.
pub fn newest_self_play(connection: &Connection) -> Result<u64, StoreError> {
    let sql = "SELECT coalesce(max(sequence), 0) FROM games WHERE kind = 'self-play'";
    Ok(connection.query_row(sql, [], |row| row.get(0))?)
}

/// Trainable positions stored up to and including the self-play game with this commit sequence, if it is there.
pub fn positions_up_to(connection: &Connection, sequence: u64) -> Result<Option<u64>, StoreError> {
    let sql = "SELECT positions_total FROM games WHERE sequence = ?1 AND kind = 'self-play'";
    Ok(connection.query_row(sql, [sequence], |row| row.get(0)).optional()?)
}
/// When the oldest of the newest `games` games of the window was stored; `None` when there are not so many.
pub fn window_oldest_ms(connection: &Connection, games: u64) -> Result<Option<i64>, StoreError> {
    let Some(newer) = games.checked_sub(1) else {
        return Ok(None);
    };
    let sql = "SELECT stored_ms FROM games WHERE kind = 'self-play' AND purged_ms IS NULL \
               ORDER BY sequence DESC LIMIT 1 OFFSET ?1";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row([newer], |row| row.get(0)).optional()?)
}
