//! What retention asks of the tables: how far back the window reaches, which games and networks may go, and how they go.
//!
//! Ids (`game_ids`), gate logs, leases and the rows of networks are never deleted here.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, params};
use tengen_records::{Kind, ModelId};

use super::leases::{self, model_id};
use super::{StoreError, gates, variants};

/// The commit sequence from which on the newest self-play games hold `capacity` positions, damaged ones not counted; 0
/// when all games together do not.
pub fn window_floor(connection: &Connection, capacity: u64, damaged: &BTreeSet<u64>) -> Result<u64, StoreError> {
    let sql =
        "SELECT sequence, positions FROM games WHERE kind = 'self-play' AND purged_ms IS NULL ORDER BY sequence DESC";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut positions = 0;
    while let Some(row) = rows.next()? {
        let sequence = row.get(0)?;
        if !damaged.contains(&sequence) {
            positions += row.get::<_, u64>(1)?;
        }
        if positions >= capacity {
            return Ok(sequence);
        }
    }
    Ok(0)
}

/// The commit sequence of the `games`-th newest self-play game; 0 when there are fewer.
pub fn games_floor(connection: &Connection, games: u64) -> Result<u64, StoreError> {
    let sql = "SELECT sequence FROM games WHERE kind = 'self-play' ORDER BY sequence DESC LIMIT 1 OFFSET ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([games.saturating_sub(1)])?;
    Ok(rows.next()?.map(|row| row.get(0)).transpose()?.unwrap_or(0))
}

/// Games that one step removed or looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Games removed.
    pub games: u64,
    /// Their positions.
    pub positions: u64,
    /// The newest game looked at; none when there was none left below the floor.
    pub newest: Option<u64>,
}

/// Removes up to `limit` self-play games below `floor`, the oldest first.
pub fn remove_self_play(connection: &Connection, floor: u64, limit: u32) -> Result<Removed, StoreError> {
    let sql =
        "SELECT sequence, positions FROM games WHERE kind = 'self-play' AND sequence < ?1 ORDER BY sequence LIMIT ?2";
    let rows: Vec<(u64, u64)> = connection
        .prepare_cached(sql)?
        .query_map(params![floor, limit], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    remove(connection, Kind::SelfPlay, &rows)?;
    Ok(Removed {
        games: rows.len() as u64,
        positions: rows.iter().map(|row| row.1).sum(),
        newest: rows.last().map(|row| row.0),
    })
}

/// Looks at up to `limit` match games after sequence `after` and below `floor`, and removes those whose gate was decided
/// against its candidate, and those of rating matches: their results stay counted. Games of an open gate and of a promotion
/// stay.
pub fn remove_matches(connection: &Connection, after: u64, floor: u64, limit: u32) -> Result<Removed, StoreError> {
    let sql = "SELECT games.sequence, coalesce(gates.state = 'rejected', 1) FROM games JOIN leases USING (lease) \
               LEFT JOIN gates USING (gate) WHERE games.kind = 'match' AND games.sequence > ?1 AND games.sequence < ?2 \
               ORDER BY games.sequence LIMIT ?3";
    let rows: Vec<(u64, bool)> = connection
        .prepare_cached(sql)?
        .query_map(params![after, floor, limit], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let removable: Vec<(u64, u64)> = rows.iter().filter(|row| row.1).map(|row| (row.0, 0)).collect();
    remove(connection, Kind::Match, &removable)?;
    Ok(Removed {
        games: removable.len() as u64,
        positions: 0,
        newest: rows.last().map(|row| row.0),
    })
}

/// Deletes games and counts them as removed.
fn remove(connection: &Connection, kind: Kind, rows: &[(u64, u64)]) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut delete = connection.prepare_cached("DELETE FROM games WHERE sequence = ?1")?;
    for (sequence, _) in rows {
        delete.execute([sequence])?;
    }
    let positions: u64 = rows.iter().map(|row| row.1).sum();
    let sql = "INSERT INTO removed_games VALUES (?1, ?2, ?3) ON CONFLICT (kind) DO UPDATE \
               SET games = games + ?2, positions = positions + ?3";
    connection
        .prepare_cached(sql)?
        .execute(params![kind.as_str(), rows.len() as u64, positions])?;
    Ok(())
}

/// A network whose file is there, as retention looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldModel {
    /// Order of publication.
    pub number: i64,
    /// The network.
    pub id: ModelId,
    /// Generation, when it is or was champion.
    pub generation: Option<u32>,
    /// Whether its gate is still to come or open, it is champion, or a learner would begin from it: the newest.
    pub in_use: bool,
    /// Its file within `models/`.
    pub file_name: String,
    /// Its files in reduced precisions, each by its hash and its name within `models/`.
    pub variants: Vec<(ModelId, String)>,
}

impl HeldModel {
    /// All of its files, its own first.
    pub fn files(&self) -> impl Iterator<Item = (ModelId, &str)> {
        let variants = self.variants.iter().map(|(id, name)| (*id, name.as_str()));
        std::iter::once((self.id, self.file_name.as_str())).chain(variants)
    }
}

/// Every network whose file is there, in order of publication.
pub fn held_models(connection: &Connection) -> Result<Vec<HeldModel>, StoreError> {
    let sql = "SELECT number, model, generation, state IN ('champion', 'candidate', 'gating') OR \
               number = (SELECT max(number) FROM models), file_name FROM models \
               WHERE removed_ms IS NULL ORDER BY number";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut models = Vec::new();
    while let Some(row) = rows.next()? {
        let id = model_id("model id", row.get_ref(1)?.as_bytes()?)?;
        let variants = variants::of(connection, id)?;
        models.push(HeldModel {
            number: row.get(0)?,
            id,
            generation: row.get(2)?,
            in_use: row.get(3)?,
            file_name: row.get(4)?,
            variants: variants.into_iter().map(|row| (row.file, row.file_name)).collect(),
        });
    }
    Ok(models)
}

/// For each promoted network the champion it met in its gate.
pub fn promoted_against(connection: &Connection) -> Result<BTreeMap<ModelId, ModelId>, StoreError> {
    let mut statement =
        connection.prepare_cached("SELECT candidate, champion FROM gates WHERE state = 'promoted' ORDER BY gate")?;
    let mut rows = statement.query([])?;
    let mut met = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let candidate = model_id("candidate id", row.get_ref(0)?.as_bytes()?)?;
        met.insert(candidate, model_id("champion id", row.get_ref(1)?.as_bytes()?)?);
    }
    Ok(met)
}

/// The networks that leases in progress and the open gate name.
pub fn models_at_work(connection: &Connection) -> Result<BTreeSet<ModelId>, StoreError> {
    let mut named: BTreeSet<ModelId> = leases::active(connection)?
        .into_iter()
        .flat_map(|lease| lease.order.models)
        .collect();
    if let Some(gate) = gates::open(connection)? {
        named.extend([gate.candidate, gate.champion]);
        named.extend(gate.pool.iter().map(|played| ModelId(played.opponent().0)));
    }
    Ok(named)
}

/// Notes that the files of a network are to be removed.
pub fn set_removed(connection: &Connection, id: ModelId, now_ms: i64) -> Result<(), StoreError> {
    let sql = "UPDATE models SET removed_ms = ?2 WHERE model = ?1";
    connection.execute(sql, params![id.0, now_ms])?;
    Ok(())
}

/// Files of networks that are noted as removed: a crash may have left them behind.
pub fn removed_files(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT file_name FROM models WHERE removed_ms IS NOT NULL UNION ALL SELECT model_variants.file_name \
               FROM model_variants JOIN models USING (model) WHERE removed_ms IS NOT NULL";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
