//! Gates and their logs.

use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use tengen_control::{Candidate, FixedRule, GameScore, Gate, GateId, LeaseId, Leg, LogEntry, Standing, Tally};
use tengen_records::ModelId;

use super::leases::model_id;
use super::{StoreError, array};

/// Where a gate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateState {
    /// Being played.
    Open,
    /// The candidate became champion.
    Promoted,
    /// The champion stays.
    Rejected,
}

impl GateState {
    /// The stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            GateState::Open => "open",
            GateState::Promoted => "promoted",
            GateState::Rejected => "rejected",
        }
    }
}

/// How the games of a pair begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredOpening {
    /// Actions from the start.
    pub plies: Vec<u16>,
    /// Plies after them that are sampled from the search.
    pub sampled_plies: u32,
}

/// A gate.
#[derive(Clone, Debug, PartialEq)]
pub struct GateRow {
    /// Its number.
    pub id: u32,
    /// Who wants to become champion.
    pub candidate: ModelId,
    /// Who is champion.
    pub champion: ModelId,
    /// Iteration of the candidate.
    pub iteration: u32,
    /// The rule; `pairs` as configured.
    pub rule: FixedRule,
    /// Pairs that are really played.
    pub pairs_target: u32,
    /// Seed the openings were drawn with.
    pub seed: u64,
    /// One for each pair.
    pub openings: Vec<StoredOpening>,
    /// Where it stands.
    pub state: GateState,
    /// The counted games; only kept up to date once decided.
    pub tally: Tally,
    /// The decision in a sentence.
    pub reason: String,
    /// When it was opened.
    pub opened_ms: i64,
    /// When it was decided.
    pub decided_ms: Option<i64>,
}

const COLUMNS: &str = "gate, candidate, champion, iteration, pairs_wanted, pairs_target, threshold_millionths, strict, \
                       seed, openings, state, pairs, wins, draws, losses, reason, opened_ms, decided_ms";

/// Stores a gate that was just opened.
pub fn insert(connection: &Connection, gate: &GateRow) -> Result<(), StoreError> {
    let openings = serde_json::to_string(&gate.openings).map_err(|error| StoreError::corrupt("openings", error))?;
    let sql = "INSERT INTO gates VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', 0, 0, 0, 0, '', ?, NULL)";
    connection.execute(
        sql,
        params![
            gate.id,
            gate.candidate.0,
            gate.champion.0,
            gate.iteration,
            gate.rule.pairs,
            gate.pairs_target,
            gate.rule.threshold_millionths,
            gate.rule.strict,
            gate.seed as i64,
            openings,
            gate.opened_ms
        ],
    )?;
    Ok(())
}

/// Notes the decision.
pub fn decide(
    connection: &Connection,
    gate: GateId,
    state: GateState,
    tally: Tally,
    reason: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE gates SET state = ?2, pairs = ?3, wins = ?4, draws = ?5, losses = ?6, reason = ?7, decided_ms = ?8 \
               WHERE gate = ?1 AND state = 'open'";
    let values = params![
        gate.0,
        state.as_str(),
        tally.pairs,
        tally.wins,
        tally.draws,
        tally.losses,
        reason,
        now_ms
    ];
    connection.execute(sql, values)?;
    Ok(())
}

/// The gate in progress.
pub fn open(connection: &Connection) -> Result<Option<GateRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM gates WHERE state = 'open'");
    connection
        .query_row(&sql, [], columns)
        .optional()?
        .map(parse)
        .transpose()
}

/// How many gates there have been, and how many are decided.
pub fn counts(connection: &Connection) -> Result<(u32, u32), StoreError> {
    let sql = "SELECT coalesce(max(gate), 0), count(decided_ms) FROM gates";
    Ok(connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

/// Up to `limit` gates below number `before`, newest first.
pub fn list(connection: &Connection, before: u32, limit: u32) -> Result<Vec<GateRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM gates WHERE gate < ?1 ORDER BY gate DESC LIMIT ?2");
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([before, limit], columns)?;
    rows.map(|row| parse(row?)).collect()
}

/// The gate with this number.
pub fn get(connection: &Connection, gate: u32) -> Result<Option<GateRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM gates WHERE gate = ?1");
    connection
        .query_row(&sql, [gate], columns)
        .optional()?
        .map(parse)
        .transpose()
}

/// The newest gate of a candidate.
pub fn of_candidate(connection: &Connection, candidate: ModelId) -> Result<Option<GateRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM gates WHERE candidate = ?1 ORDER BY gate DESC LIMIT 1");
    connection
        .query_row(&sql, [candidate.0], columns)
        .optional()?
        .map(parse)
        .transpose()
}

/// Of the decided gates those that were decided after the first `from` and within the first `to`, at most the newest
/// `limit`, oldest first.
pub fn decided_between(connection: &Connection, from: u32, to: u32, limit: u32) -> Result<Vec<GateRow>, StoreError> {
    let first = from.max(to.saturating_sub(limit));
    let sql = format!(
        "SELECT {COLUMNS} FROM gates WHERE decided_ms IS NOT NULL ORDER BY decided_ms, gate LIMIT ?1 OFFSET ?2"
    );
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([to.saturating_sub(first), first], columns)?;
    rows.map(|row| parse(row?)).collect()
}

/// Appends a match game to its gate's log.
pub fn append_log(connection: &Connection, gate: GateId, sequence: u64, entry: &LogEntry) -> Result<(), StoreError> {
    let score = match entry.score {
        GameScore::Win => "win",
        GameScore::Draw => "draw",
        GameScore::Loss => "loss",
    };
    let standing = match entry.standing {
        Standing::Counts => "counts",
        Standing::Late => "late",
    };
    let leg = u32::from(entry.leg == Leg::ChampionFirst);
    let mut statement = connection.prepare_cached("INSERT INTO gate_log VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    statement.execute(params![
        gate.0,
        sequence,
        entry.lease.0,
        entry.pair,
        leg,
        score,
        standing
    ])?;
    Ok(())
}

/// The log of a gate, in commit order.
pub fn log(connection: &Connection, gate: u32) -> Result<Vec<LogEntry>, StoreError> {
    let sql = "SELECT lease, pair, leg, score, standing FROM gate_log WHERE gate = ?1 ORDER BY sequence";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([gate], |row| {
        let lease: Vec<u8> = row.get(0)?;
        let (score, standing): (String, String) = (row.get(3)?, row.get(4)?);
        Ok((lease, row.get(1)?, row.get::<_, u32>(2)?, score, standing))
    })?;
    rows.map(|row| {
        let (lease, pair, leg, score, standing) = row?;
        let score = match score.as_str() {
            "win" => GameScore::Win,
            "draw" => GameScore::Draw,
            "loss" => GameScore::Loss,
            other => return Err(StoreError::corrupt("score", other)),
        };
        let standing = match standing.as_str() {
            "counts" => Standing::Counts,
            "late" => Standing::Late,
            other => return Err(StoreError::corrupt("standing", other)),
        };
        let leg = Leg::BOTH[(leg == 1) as usize];
        Ok(LogEntry {
            lease: LeaseId(array("lease id", &lease)?),
            pair,
            leg,
            score,
            standing,
        })
    })
    .collect()
}

impl GateRow {
    /// The gate with its log filled in: what counts is counted again.
    pub fn restore(&self, log: &[LogEntry]) -> Gate {
        let candidate = Candidate {
            model: tengen_control::ModelId(self.candidate.0),
            iteration: self.iteration,
        };
        let champion = tengen_control::ModelId(self.champion.0);
        let mut gate = Gate::new(GateId(self.id), candidate, champion, self.rule, self.pairs_target);
        log.iter().for_each(|entry| gate.append(*entry));
        gate
    }
}

struct Columns {
    gate: GateRow,
    candidate: Vec<u8>,
    champion: Vec<u8>,
    openings: String,
    state: String,
}

fn columns(row: &rusqlite::Row) -> rusqlite::Result<Columns> {
    let rule = FixedRule {
        pairs: row.get(4)?,
        threshold_millionths: row.get(6)?,
        strict: row.get::<_, bool>(7)?,
    };
    let tally = Tally {
        pairs: row.get(11)?,
        wins: row.get(12)?,
        draws: row.get(13)?,
        losses: row.get(14)?,
    };
    let gate = GateRow {
        id: row.get(0)?,
        candidate: ModelId([0; 32]),
        champion: ModelId([0; 32]),
        iteration: row.get(3)?,
        rule,
        pairs_target: row.get(5)?,
        seed: row.get::<_, i64>(8)? as u64,
        openings: Vec::new(),
        state: GateState::Open,
        tally,
        reason: row.get(15)?,
        opened_ms: row.get(16)?,
        decided_ms: row.get(17)?,
    };
    Ok(Columns {
        gate,
        candidate: row.get(1)?,
        champion: row.get(2)?,
        openings: row.get(9)?,
        state: row.get(10)?,
    })
}

fn parse(columns: Columns) -> Result<GateRow, StoreError> {
    let states = [GateState::Open, GateState::Promoted, GateState::Rejected];
    let state = states.into_iter().find(|state| state.as_str() == columns.state);
    Ok(GateRow {
        candidate: model_id("candidate id", &columns.candidate)?,
        champion: model_id("champion id", &columns.champion)?,
        openings: serde_json::from_str(&columns.openings).map_err(|error| StoreError::corrupt("openings", error))?,
        state: state.ok_or_else(|| StoreError::corrupt("gate state", &columns.state))?,
        ..columns.gate
    })
}
