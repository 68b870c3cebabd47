//! Networks: what is known about each file in `models/`.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};
use tengen_records::ModelId;

use super::StoreError;
use super::leases::model_id;

/// Where a network stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelState {
    /// Published, waiting for its gate.
    Candidate,
    /// In its gate.
    Gating,
    /// Self-play uses it.
    Champion,
    /// Was a champion.
    FormerChampion,
    /// Failed its gate.
    Rejected,
    /// A newer candidate took its place: before its gate was decided, or after it passed as one of several in a row.
    Superseded,
    /// Passed its gate while the champion was pinned.
    Held,
}

impl ModelState {
    const ALL: [ModelState; 7] = [
        ModelState::Candidate,
        ModelState::Gating,
        ModelState::Champion,
        ModelState::FormerChampion,
        ModelState::Rejected,
        ModelState::Superseded,
        ModelState::Held,
    ];

    /// The stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            ModelState::Candidate => "candidate",
            ModelState::Gating => "gating",
            ModelState::Champion => "champion",
            ModelState::FormerChampion => "former-champion",
            ModelState::Rejected => "rejected",
            ModelState::Superseded => "superseded",
            ModelState::Held => "held",
        }
    }
}

/// A network.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRow {
    /// Order of publication, from 1; 0 before it is stored.
    pub number: i64,
    /// Hash of the file.
    pub id: ModelId,
    /// Iterations that had ended when it was cut.
    pub iteration: u32,
    /// Generation, when it is or was champion.
    pub generation: Option<u32>,
    /// Learner step it was cut at.
    pub step: u64,
    /// Its parent.
    pub parent: Option<ModelId>,
    /// Where it stands.
    pub state: ModelState,
    /// When it was published.
    pub created_ms: i64,
    /// Size of the file.
    pub size_bytes: u64,
    /// SHA-256 of the file.
    pub sha256: Vec<u8>,
    /// The file's properties as JSON.
    pub metadata_json: String,
    /// The gate's verdict; empty while undecided.
    pub verdict: String,
    /// Settings revision in force when it was published.
    pub settings_revision: u32,
    /// Its file within `models/`.
    pub file_name: String,
    /// When retention removed its file; none while it lies in `models/`.
    pub removed_ms: Option<i64>,
    /// Its probes, as an encoded `tengen.v1.Model` with nothing else; empty in listings.
    pub probes: Vec<u8>,
}

const COLUMNS: &str = "number, model, iteration, generation, step, parent, state, created_ms, size_bytes, sha256, \
                       metadata_json, verdict, settings_revision, file_name, removed_ms";

/// Stores a network.
pub fn insert(connection: &Connection, model: &ModelRow) -> Result<(), StoreError> {
    let sql = "INSERT INTO models (model, iteration, generation, step, parent, state, created_ms, size_bytes, sha256, \
               metadata_json, verdict, settings_revision, file_name, probes) \
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    connection.execute(
        sql,
        params![
            model.id.0,
            model.iteration,
            model.generation,
            model.step,
            model.parent.map(|parent| parent.0),
            model.state.as_str(),
            model.created_ms,
            model.size_bytes,
            model.sha256,
            model.metadata_json,
            model.verdict,
            model.settings_revision,
            model.file_name,
            model.probes
        ],
    )?;
    Ok(())
}

/// Moves a network to another state.
pub fn set_state(connection: &Connection, id: ModelId, state: ModelState) -> Result<(), StoreError> {
    connection.execute(
        "UPDATE models SET state = ?2 WHERE model = ?1",
        params![id.0, state.as_str()],
    )?;
    Ok(())
}

/// Notes the sentence of a gate.
pub fn set_verdict(connection: &Connection, id: ModelId, verdict: &str) -> Result<(), StoreError> {
    connection.execute(
        "UPDATE models SET verdict = ?2 WHERE model = ?1",
        params![id.0, verdict],
    )?;
    Ok(())
}

/// Makes a network champion if `previous` still is: false, and nothing changed, when it is not.
pub fn promote(
    connection: &Connection,
    id: ModelId,
    generation: u32,
    previous: ModelId,
    reason: &str,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let sql = "UPDATE models SET state = 'former-champion' WHERE model = ?1 AND state = 'champion'";
    if connection.execute(sql, [previous.0])? != 1 {
        return Ok(false);
    }
    let sql = "UPDATE models SET state = 'champion', generation = ?2, verdict = ?3 WHERE model = ?1";
    connection.execute(sql, params![id.0, generation, reason])?;
    let sql = "INSERT INTO promotions VALUES (?1, ?2, ?3, ?4, ?5)";
    connection.execute(sql, params![generation, id.0, previous.0, reason, now_ms])?;
    Ok(true)
}

/// A change of the champion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromotionRow {
    /// The generation that began.
    pub generation: u32,
    /// The champion from then on.
    pub model: ModelId,
    /// The one before.
    pub previous: ModelId,
    /// Why, in a sentence.
    pub reason: String,
    /// When.
    pub at_ms: i64,
}

/// The newest `limit` promotions to generations above `after` and up to `to`, ascending.
pub fn promotions_between(
    connection: &Connection,
    after: u32,
    to: u32,
    limit: u32,
) -> Result<Vec<PromotionRow>, StoreError> {
    let sql = "SELECT generation, model, previous, reason, at_ms FROM promotions \
               WHERE generation > ?1 AND generation <= ?2 ORDER BY generation DESC LIMIT ?3";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([after, to, limit])?;
    let mut promotions = Vec::new();
    while let Some(row) = rows.next()? {
        let (model, previous): (Vec<u8>, Vec<u8>) = (row.get(1)?, row.get(2)?);
        promotions.push(PromotionRow {
            generation: row.get(0)?,
            model: model_id("promoted model", &model)?,
            previous: model_id("previous champion", &previous)?,
            reason: row.get(3)?,
            at_ms: row.get(4)?,
        });
    }
    promotions.reverse();
    Ok(promotions)
}

/// Makes an earlier champion champion again if `previous` is champion: false, and nothing changed, when it is not.
pub fn roll_back(connection: &Connection, id: ModelId, previous: ModelId, reason: &str) -> Result<bool, StoreError> {
    let sql = "UPDATE models SET state = 'former-champion' WHERE model = ?1 AND state = 'champion'";
    if connection.execute(sql, [previous.0])? != 1 {
        return Ok(false);
    }
    let sql = "UPDATE models SET state = 'champion', verdict = ?2 WHERE model = ?1 AND generation IS NOT NULL";
    Ok(connection.execute(sql, params![id.0, reason])? == 1)
}

/// The newest generation there was.
pub fn newest_generation(connection: &Connection) -> Result<u32, StoreError> {
    let sql = "SELECT coalesce(max(generation), 0) FROM models";
    Ok(connection.query_row(sql, [], |row| row.get(0))?)
}

/// One network with its probes.
pub fn get(connection: &Connection, id: ModelId) -> Result<Option<ModelRow>, StoreError> {
    one(connection, "model = ?1", params![id.0])
}

/// The champion.
pub fn champion(connection: &Connection) -> Result<Option<ModelRow>, StoreError> {
    one(connection, "state = 'champion'", params![])
}

/// The network published last.
pub fn latest(connection: &Connection) -> Result<Option<ModelRow>, StoreError> {
    one(connection, "number = (SELECT max(number) FROM models)", params![])
}

/// The champion of a generation.
pub fn of_generation(connection: &Connection, generation: u32) -> Result<Option<ModelRow>, StoreError> {
    one(connection, "generation = ?1", params![generation])
}

/// The candidates that wait for their gate, oldest first, without probes.
pub fn waiting(connection: &Connection) -> Result<Vec<ModelRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS}, x'' FROM models WHERE state = 'candidate' ORDER BY number");
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([], columns)?;
    rows.map(|row| parse(row?)).collect()
}

/// The `limit` newest champions of generations before `generation` whose files are there, newest first. Generation 0 is
/// left out: to beat the random network says nothing.
pub fn earlier_champions(connection: &Connection, generation: u32, limit: u32) -> Result<Vec<ModelId>, StoreError> {
    let sql = "SELECT model FROM models WHERE state = 'former-champion' AND generation > 0 AND generation < ?1 \
               AND removed_ms IS NULL ORDER BY generation DESC LIMIT ?2";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([generation, limit])?;
    let mut earlier = Vec::new();
    while let Some(row) = rows.next()? {
        earlier.push(model_id("model id", row.get_ref(0)?.as_bytes()?)?);
    }
    Ok(earlier)
}

/// Up to two networks whose id begins with these hexadecimal digits: two mean that the digits are ambiguous.
pub fn by_prefix(connection: &Connection, digits: &str) -> Result<Vec<ModelRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS}, probes FROM models WHERE lower(hex(model)) LIKE ?1 || '%' LIMIT 2");
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([digits.to_ascii_lowercase()], columns)?;
    rows.map(|row| parse(row?)).collect()
}

/// Up to `limit` networks below publication number `before`, newest first, without probes.
pub fn list(connection: &Connection, before: i64, limit: u32) -> Result<Vec<ModelRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS}, x'' FROM models WHERE number < ?1 ORDER BY number DESC LIMIT ?2");
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map(params![before, limit], columns)?;
    rows.map(|row| parse(row?)).collect()
}

/// The champion, the `former` newest former champions and generation 0, whose files are there.
pub fn newest_champions(connection: &Connection, former: u32) -> Result<Vec<ModelId>, StoreError> {
    let sql = "SELECT model FROM models WHERE removed_ms IS NULL AND (state = 'champion' OR generation = 0 OR model IN \
               (SELECT model FROM models WHERE state = 'former-champion' ORDER BY generation DESC LIMIT ?1)) \
               ORDER BY number";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([former])?;
    let mut champions = Vec::new();
    while let Some(row) = rows.next()? {
        champions.push(model_id("model id", row.get_ref(0)?.as_blob()?)?);
    }
    Ok(champions)
}

/// Every network that is or was champion, with its generation.
pub fn generations(connection: &Connection) -> Result<BTreeMap<ModelId, u32>, StoreError> {
    let sql = "SELECT model, generation FROM models WHERE generation IS NOT NULL";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut generations = BTreeMap::new();
    while let Some(row) = rows.next()? {
        generations.insert(model_id("model id", row.get_ref(0)?.as_blob()?)?, row.get(1)?);
    }
    Ok(generations)
}

fn one(connection: &Connection, which: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Option<ModelRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS}, probes FROM models WHERE {which}");
    connection
        .query_row(&sql, values, columns)
        .optional()?
        .map(parse)
        .transpose()
}

struct Columns {
    model: ModelRow,
    id: Vec<u8>,
    parent: Option<Vec<u8>>,
    state: String,
}

fn columns(row: &rusqlite::Row) -> rusqlite::Result<Columns> {
    let model = ModelRow {
        number: row.get(0)?,
        id: ModelId([0; 32]),
        iteration: row.get(2)?,
        generation: row.get(3)?,
        step: row.get(4)?,
        parent: None,
        state: ModelState::Candidate,
        created_ms: row.get(7)?,
        size_bytes: row.get(8)?,
        sha256: row.get(9)?,
        metadata_json: row.get(10)?,
        verdict: row.get(11)?,
        settings_revision: row.get(12)?,
        file_name: row.get(13)?,
        removed_ms: row.get(14)?,
        probes: row.get(15)?,
    };
    Ok(Columns {
        model,
        id: row.get(1)?,
        parent: row.get(5)?,
        state: row.get(6)?,
    })
}

fn parse(columns: Columns) -> Result<ModelRow, StoreError> {
    let state = ModelState::ALL
        .into_iter()
        .find(|state| state.as_str() == columns.state);
    Ok(ModelRow {
        id: model_id("model id", &columns.id)?,
        parent: columns
            .parent
            .map(|parent| model_id("parent id", &parent))
            .transpose()?,
        state: state.ok_or_else(|| StoreError::corrupt("model state", &columns.state))?,
        ..columns.model
    })
}
