//! Gates and their logs.

use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use tengen_control::{
    Candidate, Elo, Evidence, GameScore, Gate, GateId, LeaseId, Leg, LogEntry, MatchPlan, MatchRule, Openings,
    Standing, Tally,
};
use tengen_records::ModelId;

use super::gate_rules::{fixed_rule, pool_of, rule_columns, rule_of};
use super::leases::model_id;
use super::{StoreError, array};

pub use super::gate_rules::StoredMatch;

/// Where a gate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateState {
    /// Being played.
    Open,
    /// The candidate became champion.
    Promoted,
    /// The champion stays: the candidate failed, or passed as one of several in a row and was not the last.
    Rejected,
    /// Somebody closed it before it was decided.
    Void,
}

impl GateState {
    /// The stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            GateState::Open => "open",
            GateState::Promoted => "promoted",
            GateState::Rejected => "rejected",
            GateState::Void => "void",
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
    /// What decides the match with the champion, over as many pairs as are configured.
    pub rule: MatchRule,
    /// The openings that there are for it.
    pub drawn: Openings,
    /// The matches with earlier champions.
    pub pool: Vec<StoredMatch>,
    /// Seed the openings were drawn with.
    pub seed: u64,
    /// One for each pair: those of the champion's match, then those of the pool's in order.
    pub openings: Vec<StoredOpening>,
    /// Where it stands.
    pub state: GateState,
    /// The counted games against the champion; only kept up to date once decided. Before schema 8 nobody noted how many
    /// pairs brought how much: then `pairs_by_half_points` is empty.
    pub tally: Tally,
    /// The log-likelihood ratio of the decision, where the rule goes by one.
    pub llr: Option<f64>,
    /// The Elo difference that the decided match suggests.
    pub elo: Option<Elo>,
    /// Successive candidates that had passed with this one; 0 when it failed.
    pub streak: u32,
    /// How many must.
    pub in_a_row: u32,
    /// The decision in a sentence.
    pub reason: String,
    /// When it was opened.
    pub opened_ms: i64,
    /// When it was decided.
    pub decided_ms: Option<i64>,
}

const COLUMNS: &str = "gate, candidate, champion, iteration, pairs_wanted, pairs_target, threshold_millionths, strict, \
                       seed, openings, state, pairs, wins, draws, losses, reason, opened_ms, decided_ms, rule, \
                       openings_repeated, pool, pair_scores, llr, elo, elo_low, elo_high, streak, in_a_row";

/// Stores a gate that was just opened.
pub fn insert(connection: &Connection, gate: &GateRow) -> Result<(), StoreError> {
    let openings = serde_json::to_string(&gate.openings).map_err(|error| StoreError::corrupt("openings", error))?;
    let (threshold_millionths, strict, rule) = rule_columns(&gate.rule)?;
    let sql = "INSERT INTO gates (gate, candidate, champion, iteration, pairs_wanted, pairs_target, \
               threshold_millionths, strict, seed, openings, state, pairs, wins, draws, losses, reason, opened_ms, rule, \
               openings_repeated, pool, in_a_row) \
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', 0, 0, 0, 0, '', ?, ?, ?, ?, ?)";
    connection.execute(
        sql,
        params![
            gate.id,
            gate.candidate.0,
            gate.champion.0,
            gate.iteration,
            gate.rule.pairs(),
            gate.drawn.pairs,
            threshold_millionths,
            strict,
            gate.seed as i64,
            openings,
            gate.opened_ms,
            rule,
            gate.drawn.repeated,
            StoredMatch::to_json(&gate.pool)?,
            gate.in_a_row
        ],
    )?;
    Ok(())
}

/// What is noted of a decision.
#[derive(Clone, Copy, Debug)]
pub struct Decided<'a> {
    /// How the gate ends.
    pub state: GateState,
    /// What that rests on.
    pub evidence: &'a Evidence,
    /// Successive candidates that have passed with this one.
    pub streak: u32,
    /// The decision in a sentence.
    pub reason: &'a str,
}

/// Notes the decision of the open gate.
pub fn decide(connection: &Connection, gate: GateId, decided: Decided, now_ms: i64) -> Result<(), StoreError> {
    let Evidence { tally, llr, elo, pool } = decided.evidence;
    let pair_scores = serde_json::to_string(&tally.pairs_by_half_points)
        .map_err(|error| StoreError::corrupt("pair scores", error))?;
    let pool: Vec<StoredMatch> = pool.iter().map(StoredMatch::decided).collect();
    let sql = "UPDATE gates SET state = ?2, pairs = ?3, wins = ?4, draws = ?5, losses = ?6, reason = ?7, decided_ms = ?8, \
               pair_scores = ?9, llr = ?10, elo = ?11, elo_low = ?12, elo_high = ?13, streak = ?14, pool = ?15 \
               WHERE gate = ?1 AND state = 'open'";
    let values = params![
        gate.0,
        decided.state.as_str(),
        tally.pairs,
        tally.wins,
        tally.draws,
        tally.losses,
        decided.reason,
        now_ms,
        pair_scores,
        llr,
        elo.map(|elo| elo.difference),
        elo.map(|elo| elo.low),
        elo.map(|elo| elo.high),
        decided.streak,
        StoredMatch::to_json(&pool)?
    ];
    connection.execute(sql, values)?;
    Ok(())
}

/// Successive candidates that have passed against the champion: those of the newest decided gate since people last went
/// back to that champion. A void gate neither adds to them nor ends them.
pub fn streak(connection: &Connection, champion: ModelId) -> Result<u32, StoreError> {
    let sql = "SELECT CASE state WHEN 'rejected' THEN streak ELSE 0 END FROM gates \
               WHERE champion = ?1 AND state IN ('promoted', 'rejected') \
               AND decided_ms > coalesce((SELECT max(at_ms) FROM rollbacks WHERE model = ?1), -1) ORDER BY gate DESC LIMIT 1";
    let streak = connection.query_row(sql, [champion.0], |row| row.get(0));
    Ok(streak.optional()?.unwrap_or(0))
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

/// Who played the leases in a gate's log.
pub fn players(connection: &Connection, gate: u32) -> Result<Vec<(LeaseId, String)>, StoreError> {
    let sql = "SELECT DISTINCT lease, actor FROM gate_log JOIN leases USING (lease) WHERE gate_log.gate = ?1";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([gate])?;
    let mut players = Vec::new();
    while let Some(row) = rows.next()? {
        let lease: Vec<u8> = row.get(0)?;
        players.push((LeaseId(array("lease id", &lease)?), row.get(1)?));
    }
    Ok(players)
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
        let champion = MatchPlan {
            opponent: tengen_control::ModelId(self.champion.0),
            rule: self.rule,
            openings: self.drawn,
        };
        let pool: Vec<MatchPlan> = self.pool.iter().map(StoredMatch::plan).collect();
        let mut gate = Gate::new(GateId(self.id), candidate, champion)
            .with_pool(&pool)
            .with_in_a_row(self.in_a_row);
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
    rule: String,
    pool: String,
    pair_scores: Option<String>,
}

fn columns(row: &rusqlite::Row) -> rusqlite::Result<Columns> {
    let tally = Tally {
        pairs: row.get(11)?,
        wins: row.get(12)?,
        draws: row.get(13)?,
        losses: row.get(14)?,
        ..Tally::default()
    };
    let elo: [Option<f64>; 3] = [row.get(23)?, row.get(24)?, row.get(25)?];
    let gate = GateRow {
        id: row.get(0)?,
        candidate: ModelId([0; 32]),
        champion: ModelId([0; 32]),
        iteration: row.get(3)?,
        rule: fixed_rule(row.get(4)?, row.get(6)?, row.get(7)?),
        drawn: Openings {
            pairs: row.get(5)?,
            repeated: row.get(19)?,
        },
        pool: Vec::new(),
        seed: row.get::<_, i64>(8)? as u64,
        openings: Vec::new(),
        state: GateState::Open,
        tally,
        llr: row.get(22)?,
        elo: match elo {
            [Some(difference), Some(low), Some(high)] => Some(Elo { difference, low, high }),
            _ => None,
        },
        streak: row.get(26)?,
        in_a_row: row.get(27)?,
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
        rule: row.get(18)?,
        pool: row.get(20)?,
        pair_scores: row.get(21)?,
    })
}

fn parse(columns: Columns) -> Result<GateRow, StoreError> {
    let states = [
        GateState::Open,
        GateState::Promoted,
        GateState::Rejected,
        GateState::Void,
    ];
    let state = states.into_iter().find(|state| state.as_str() == columns.state);
    let pairs_by_half_points = match &columns.pair_scores {
        None => [0; 5],
        Some(json) => serde_json::from_str(json).map_err(|error| StoreError::corrupt("pair scores", error))?,
    };
    Ok(GateRow {
        candidate: model_id("candidate id", &columns.candidate)?,
        champion: model_id("champion id", &columns.champion)?,
        rule: rule_of(&columns.rule, columns.gate.rule)?,
        pool: pool_of(&columns.pool)?,
        openings: serde_json::from_str(&columns.openings).map_err(|error| StoreError::corrupt("openings", error))?,
        state: state.ok_or_else(|| StoreError::corrupt("gate state", &columns.state))?,
        tally: Tally {
            pairs_by_half_points,
            ..columns.gate.tally
        },
        ..columns.gate
    })
}
