//! What the run is, and where it stands.

use rusqlite::{Connection, OptionalExtension, params};
use tengen_games::Fingerprint;
use tengen_records::ModelId;

use super::{StoreError, array};

/// What a backup holds as the window's epoch: the start after a restore gives it a fresh one.
pub const EPOCH_OF_A_BACKUP: u64 = 0;

/// What the run is: written once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// Its name.
    pub run_id: String,
    /// Canonical game id.
    pub game: String,
    /// Its seed.
    pub seed: u64,
    /// Fingerprint of its rules.
    pub rules_fingerprint: Fingerprint,
    /// Fingerprint of its planes.
    pub feature_fingerprint: Fingerprint,
    /// Shape of its networks, as people read it.
    pub shape: String,
    /// When it was created.
    pub created_ms: i64,
}

/// Where the run stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Iteration being played.
    pub iteration: u32,
    /// Self-play games of it.
    pub iteration_games: u32,
    /// Self-play games stored.
    pub self_play_games: u64,
    /// Match games stored.
    pub match_games: u64,
    /// Trainable positions stored.
    pub positions: u64,
    /// The newest candidate that was due: iteration and positions.
    pub due: Option<(u32, u64)>,
    /// The newest iteration a candidate was published for.
    pub published_iteration: u32,
    /// The champion.
    pub champion: ModelId,
    /// Its generation.
    pub generation: u32,
    /// The newest fencing token given to a learner.
    pub fence: u64,
    /// Epoch of the window.
    pub window_epoch: u64,
    /// Capacity of the window in this epoch.
    pub window_capacity: u64,
}

/// The run of this database, if it has one yet.
pub fn run(connection: &Connection) -> Result<Option<RunRow>, StoreError> {
    let sql = "SELECT run_id, game, seed, rules_fingerprint, feature_fingerprint, shape, created_ms FROM run";
    let row = connection
        .query_row(sql, [], |row| {
            let fixed = RunRow {
                run_id: row.get(0)?,
                game: row.get(1)?,
                seed: row.get::<_, i64>(2)? as u64,
                rules_fingerprint: Fingerprint([0; 32]),
                feature_fingerprint: Fingerprint([0; 32]),
                shape: row.get(5)?,
                created_ms: row.get(6)?,
            };
            Ok((fixed, row.get::<_, Vec<u8>>(3)?, row.get::<_, Vec<u8>>(4)?))
        })
        .optional()?;
    row.map(|(fixed, rules, features)| {
        let rules_fingerprint = Fingerprint(array("rules fingerprint", &rules)?);
        let feature_fingerprint = Fingerprint(array("feature fingerprint", &features)?);
        Ok(RunRow {
            rules_fingerprint,
            feature_fingerprint,
            ..fixed
        })
    })
    .transpose()
}

/// Writes the run's one row.
pub fn create_run(connection: &Connection, run: &RunRow) -> Result<(), StoreError> {
    connection.execute(
        "INSERT INTO run VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            run.run_id,
            run.game,
            run.seed as i64,
            run.rules_fingerprint.0,
            run.feature_fingerprint.0,
            run.shape,
            run.created_ms
        ],
    )?;
    Ok(())
}

/// Where the run stands.
pub fn load(connection: &Connection) -> Result<Progress, StoreError> {
    let sql = "SELECT iteration, iteration_games, self_play_games, match_games, positions, due_iteration, due_positions, \
               published_iteration, champion, generation, fence, window_epoch, window_capacity FROM progress";
    let (progress, champion) = connection.query_row(sql, [], |row| {
        let due = row.get::<_, Option<u32>>(5)?.zip(row.get::<_, Option<u64>>(6)?);
        let progress = Progress {
            iteration: row.get(0)?,
            iteration_games: row.get(1)?,
            self_play_games: row.get(2)?,
            match_games: row.get(3)?,
            positions: row.get(4)?,
            due,
            published_iteration: row.get(7)?,
            champion: ModelId([0; 32]),
            generation: row.get(9)?,
            fence: row.get(10)?,
            window_epoch: row.get(11)?,
            window_capacity: row.get(12)?,
        };
        Ok((progress, row.get::<_, Vec<u8>>(8)?))
    })?;
    Ok(Progress {
        champion: ModelId(array("champion", &champion)?),
        ..progress
    })
}

/// Writes where the run stands.
pub fn save(connection: &Connection, progress: &Progress) -> Result<(), StoreError> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO progress VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?
        .execute(params![
            progress.iteration,
            progress.iteration_games,
            progress.self_play_games,
            progress.match_games,
            progress.positions,
            progress.due.map(|due| due.0),
            progress.due.map(|due| due.1),
            progress.published_iteration,
            progress.champion.0,
            progress.generation,
            progress.fence,
            progress.window_epoch,
            progress.window_capacity
        ])?;
    Ok(())
}

/// Notes the end of an iteration.
pub fn end_iteration(
    connection: &Connection,
    iteration: u32,
    games: u32,
    positions: u64,
    candidate_due: bool,
    now_ms: i64,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO iterations VALUES (?1, ?2, ?3, ?4, ?5)";
    connection.execute(sql, params![iteration, games, positions, candidate_due, now_ms])?;
    Ok(())
}

/// An iteration that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IterationRow {
    /// The iteration.
    pub iteration: u32,
    /// Its games.
    pub games: u32,
    /// Trainable positions stored when it ended.
    pub positions: u64,
    /// Whether a candidate became due.
    pub candidate_due: bool,
    /// When it ended.
    pub ended_ms: i64,
}

/// The newest `limit` iterations of `from..to`, ascending.
pub fn iterations_between(
    connection: &Connection,
    from: u32,
    to: u32,
    limit: u32,
) -> Result<Vec<IterationRow>, StoreError> {
    let sql = "SELECT iteration, games, positions, candidate_due, ended_ms FROM iterations \
               WHERE iteration >= ?1 AND iteration < ?2 ORDER BY iteration DESC LIMIT ?3";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([from, to, limit], |row| {
        Ok(IterationRow {
            iteration: row.get(0)?,
            games: row.get(1)?,
            positions: row.get(2)?,
            candidate_due: row.get(3)?,
            ended_ms: row.get(4)?,
        })
    })?;
    let mut rows = rows.collect::<Result<Vec<_>, _>>()?;
    rows.reverse();
    Ok(rows)
}
