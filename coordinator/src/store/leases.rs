//! Leases: every work order ever given, because games may come late.

use prost::Message;
use rusqlite::{Connection, OptionalExtension, params};
use tengen_proto::v1;
use tengen_records::{Kind, LeaseId};
use tengen_selfplay::Order;
use tengen_selfplay::wire::{order_from_wire, order_to_wire};

use super::{StoreError, array};

/// Where a lease stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// The actor is at it.
    Active,
    /// Every game is stored.
    Finished,
    /// The actor handed it back.
    Returned,
    /// It showed no progress for too long.
    Lapsed,
    /// Its gate was decided.
    Cancelled,
}

impl LeaseState {
    const ALL: [LeaseState; 5] = [
        LeaseState::Active,
        LeaseState::Finished,
        LeaseState::Returned,
        LeaseState::Lapsed,
        LeaseState::Cancelled,
    ];

    /// The stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            LeaseState::Active => "active",
            LeaseState::Finished => "finished",
            LeaseState::Returned => "returned",
            LeaseState::Lapsed => "lapsed",
            LeaseState::Cancelled => "cancelled",
        }
    }

    fn parse(name: &str) -> Result<LeaseState, StoreError> {
        let found = LeaseState::ALL.into_iter().find(|state| state.as_str() == name);
        found.ok_or_else(|| StoreError::corrupt("lease state", name))
    }
}

/// A lease as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaseRow {
    /// Who holds it.
    pub actor: String,
    /// The gate of a match lease.
    pub gate: Option<u32>,
    /// Games it asks for.
    pub games: u32,
    /// Games of it that are stored.
    pub stored: u32,
    /// Where it stands.
    pub state: LeaseState,
    /// The work.
    pub order: Order,
}

/// Stores a lease that was just issued.
pub fn insert(
    connection: &Connection,
    actor: &str,
    gate: Option<u32>,
    order: &Order,
    now_ms: i64,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO leases VALUES (?1, ?2, ?3, ?4, ?5, 0, 'active', ?6, NULL, ?7)";
    connection.prepare_cached(sql)?.execute(params![
        order.lease.to_bytes(),
        actor,
        order.plan.kind().as_str(),
        gate,
        order.plan.games(),
        now_ms,
        order_to_wire(order).encode_to_vec()
    ])?;
    Ok(())
}

/// One lease, if it was ever issued.
pub fn get(connection: &Connection, lease: LeaseId) -> Result<Option<LeaseRow>, StoreError> {
    let sql = "SELECT actor, gate, games, stored, state, work_order FROM leases WHERE lease = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    statement
        .query_row([lease.to_bytes()], columns)
        .optional()?
        .map(parse)
        .transpose()
}

/// The leases in progress.
pub fn active(connection: &Connection) -> Result<Vec<LeaseRow>, StoreError> {
    let sql = "SELECT actor, gate, games, stored, state, work_order FROM leases WHERE state = 'active'";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], columns)?;
    rows.map(|row| parse(row?)).collect()
}

/// Kind and state of a lease, without its order.
pub fn standing(connection: &Connection, lease: LeaseId) -> Result<Option<(Kind, LeaseState)>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT kind, state FROM leases WHERE lease = ?1")?;
    let row = statement
        .query_row([lease.to_bytes()], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        })
        .optional()?;
    row.map(|(kind, state)| {
        let kind = Kind::parse(&kind).ok_or_else(|| StoreError::corrupt("lease kind", &kind))?;
        Ok((kind, LeaseState::parse(&state)?))
    })
    .transpose()
}

/// Counts a stored game of a lease.
pub fn count_stored(connection: &Connection, lease: LeaseId) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached("UPDATE leases SET stored = stored + 1 WHERE lease = ?1")?;
    statement.execute([lease.to_bytes()])?;
    Ok(())
}

/// Ends a lease.
pub fn close(connection: &Connection, lease: LeaseId, state: LeaseState, now_ms: i64) -> Result<(), StoreError> {
    let sql = "UPDATE leases SET state = ?2, closed_ms = ?3 WHERE lease = ?1";
    connection
        .prepare_cached(sql)?
        .execute(params![lease.to_bytes(), state.as_str(), now_ms])?;
    Ok(())
}

type Columns = (String, Option<u32>, u32, u32, String, Vec<u8>);

fn columns(row: &rusqlite::Row) -> rusqlite::Result<Columns> {
    Ok((
        row.get(0)?,
        row.get(1)?,
        row.get(2)?,
        row.get(3)?,
        row.get(4)?,
        row.get(5)?,
    ))
}

fn parse((actor, gate, games, stored, state, order): Columns) -> Result<LeaseRow, StoreError> {
    let wire = v1::WorkOrder::decode(&order[..]).map_err(|error| StoreError::corrupt("work order", error))?;
    let order = order_from_wire(&wire).map_err(|error| StoreError::corrupt("work order", error))?;
    Ok(LeaseRow {
        actor,
        gate,
        games,
        stored,
        state: LeaseState::parse(&state)?,
        order,
    })
}

/// A model id from a blob column.
pub(crate) fn model_id(what: &'static str, bytes: &[u8]) -> Result<tengen_records::ModelId, StoreError> {
    Ok(tengen_records::ModelId(array(what, bytes)?))
}
