//! Actors that ever registered.

use rusqlite::{Connection, params};

use super::StoreError;

/// An actor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActorRow {
    /// Its identity.
    pub actor: String,
    /// Its host.
    pub host: String,
    /// Its build.
    pub build: String,
    /// Execution provider it registered with.
    pub provider: String,
    /// Records of it that were refused.
    pub strikes: u32,
    /// When it was suspended.
    pub suspended_ms: Option<i64>,
    /// Public part of the token it came with.
    pub token: Option<String>,
    /// When it last registered.
    pub registered_ms: i64,
}

/// Every actor.
pub fn all(connection: &Connection) -> Result<Vec<ActorRow>, StoreError> {
    page(connection, "", u32::MAX)
}

/// Up to `limit` actors after this one, by identity.
pub fn page(connection: &Connection, after: &str, limit: u32) -> Result<Vec<ActorRow>, StoreError> {
    let sql = "SELECT actor, host, build, provider, strikes, suspended_ms, token, registered_ms FROM actors \
               WHERE actor > ?1 ORDER BY actor LIMIT ?2";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map(params![after, limit], |row| {
        Ok(ActorRow {
            actor: row.get(0)?,
            host: row.get(1)?,
            build: row.get(2)?,
            provider: row.get(3)?,
            strikes: row.get(4)?,
            suspended_ms: row.get(5)?,
            token: row.get(6)?,
            registered_ms: row.get(7)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Notes a registration; strikes and suspension of an earlier one stay.
pub fn register(connection: &Connection, actor: &ActorRow, now_ms: i64) -> Result<(), StoreError> {
    let sql = "INSERT INTO actors (actor, host, build, provider, registered_ms, strikes, token) \
               VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6) ON CONFLICT (actor) DO UPDATE \
               SET host = ?2, build = ?3, provider = ?4, registered_ms = ?5, token = ?6";
    connection.execute(
        sql,
        params![
            actor.actor,
            actor.host,
            actor.build,
            actor.provider,
            now_ms,
            actor.token
        ],
    )?;
    Ok(())
}

/// Writes strikes and suspension.
pub fn set_strikes(
    connection: &Connection,
    actor: &str,
    strikes: u32,
    suspended_ms: Option<i64>,
) -> Result<(), StoreError> {
    let sql = "UPDATE actors SET strikes = ?2, suspended_ms = ?3 WHERE actor = ?1";
    connection.execute(sql, params![actor, strikes, suspended_ms])?;
    Ok(())
}
