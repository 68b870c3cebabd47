//! Tokens: who may come, by the hash of a secret. The secret itself is nowhere.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};

use super::{BUSY_TIMEOUT, FILE_NAME, StoreError, array};
use crate::access::{Role, TokenHash, TokenId};

/// Tokens that a run keeps, the revoked ones included.
pub const TOKENS_MAX: usize = 10_000;

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    /// Its public part.
    pub id: TokenId,
    /// What it is for.
    pub role: Role,
    /// What people call it; may be empty.
    pub name: String,
    /// Hash of its secret.
    pub hash: TokenHash,
    /// When it was made.
    pub created_ms: i64,
    /// Who made it.
    pub created_by: String,
    /// When its time is over.
    pub expires_ms: Option<i64>,
    /// When it was revoked.
    pub revoked_ms: Option<i64>,
}

/// Every token, oldest first.
pub fn all(connection: &Connection) -> Result<Vec<TokenRow>, StoreError> {
    let sql = "SELECT token, role, name, hash, created_ms, created_by, expires_ms, revoked_ms FROM tokens \
               ORDER BY created_ms, token";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut tokens = Vec::new();
    while let Some(row) = rows.next()? {
        tokens.push(token(row)?);
    }
    Ok(tokens)
}

fn token(row: &Row<'_>) -> Result<TokenRow, StoreError> {
    let (id, role, hash): (String, String, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(3)?);
    Ok(TokenRow {
        id: TokenId::parse(&id).map_err(|error| StoreError::corrupt("token id", error))?,
        role: role.parse().map_err(|error| StoreError::corrupt("role", error))?,
        name: row.get(2)?,
        hash: TokenHash(array("token hash", &hash)?),
        created_ms: row.get(4)?,
        created_by: row.get(5)?,
        expires_ms: row.get(6)?,
        revoked_ms: row.get(7)?,
    })
}

/// Whether the run in `folder` has tokens, whoever holds the folder. A folder without a run has none.
pub fn exist(folder: &Path) -> Result<bool, StoreError> {
    let path = folder.join(FILE_NAME);
    if !path.exists() {
        return Ok(false);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    let sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'tokens'";
    let table: Option<u32> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
    if table.is_none() {
        return Ok(false);
    }
    let first: Option<u32> = connection
        .query_row("SELECT 1 FROM tokens LIMIT 1", [], |row| row.get(0))
        .optional()?;
    Ok(first.is_some())
}

/// How many there are.
pub fn count(connection: &Connection) -> Result<usize, StoreError> {
    Ok(connection.query_row("SELECT count(*) FROM tokens", [], |row| row.get(0))?)
}

/// Adds a token.
pub fn insert(connection: &Connection, row: &TokenRow) -> Result<(), StoreError> {
    let sql = "INSERT INTO tokens (token, role, name, hash, created_ms, created_by, expires_ms, revoked_ms) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    connection.execute(
        sql,
        params![
            row.id.as_str(),
            row.role.as_str(),
            row.name,
            row.hash.0,
            row.created_ms,
            row.created_by,
            row.expires_ms,
            row.revoked_ms
        ],
    )?;
    Ok(())
}

/// Revokes a token and returns it; a token that was revoked keeps the time of the first. `None`: there is none.
pub fn revoke(connection: &Connection, id: &TokenId, now_ms: i64) -> Result<Option<TokenRow>, StoreError> {
    let sql = "UPDATE tokens SET revoked_ms = coalesce(revoked_ms, ?2) WHERE token = ?1";
    if connection.execute(sql, params![id.as_str(), now_ms])? == 0 {
        return Ok(None);
    }
    Ok(all(connection)?.into_iter().find(|row| row.id == *id))
}
