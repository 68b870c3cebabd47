//! What people have set about the run, and the champions they took back.

use rusqlite::{Connection, params};
use tengen_control::{Activity, Steering};
use tengen_records::ModelId;

use super::StoreError;

/// What people have set, with the time of the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SteeringRow {
    /// Pauses, the pin, and whether the run was ended.
    pub steering: Steering,
    /// When it was ended.
    pub ended_ms: Option<i64>,
}

/// Reads it.
pub fn load(connection: &Connection) -> Result<SteeringRow, StoreError> {
    let sql = "SELECT self_play_paused, training_paused, gating_paused, pinned, ended_ms FROM steering";
    Ok(connection.query_row(sql, [], |row| {
        let paused: [bool; 3] = [row.get(0)?, row.get(1)?, row.get(2)?];
        let paused = Activity::ALL.into_iter().zip(paused);
        let ended_ms: Option<i64> = row.get(4)?;
        Ok(SteeringRow {
            steering: Steering {
                paused: paused
                    .filter(|(_, paused)| *paused)
                    .map(|(activity, _)| activity)
                    .collect(),
                pinned: row.get(3)?,
                ended: ended_ms.is_some(),
            },
            ended_ms,
        })
    })?)
}

/// Writes it.
pub fn save(connection: &Connection, row: &SteeringRow) -> Result<(), StoreError> {
    let paused = Activity::ALL.map(|activity| row.steering.paused.contains(&activity));
    connection.execute(
        "INSERT OR REPLACE INTO steering VALUES (1, ?1, ?2, ?3, ?4, ?5)",
        params![paused[0], paused[1], paused[2], row.steering.pinned, row.ended_ms],
    )?;
    Ok(())
}

/// Notes that an earlier champion was taken back.
pub fn insert_rollback(
    connection: &Connection,
    model: ModelId,
    previous: ModelId,
    who: &str,
    reason: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO rollbacks (model, previous, who, reason, at_ms) VALUES (?1, ?2, ?3, ?4, ?5)";
    connection.execute(sql, params![model.0, previous.0, who, reason, now_ms])?;
    Ok(())
}
