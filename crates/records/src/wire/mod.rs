//! Between a record and its bytes.
//!
//! Encoding is deterministic: fields in ascending order, no maps, so equal records have equal bytes. Decoding never
//! panics, and it bounds what it allocates: the bytes and the number of plies are checked before anything is parsed.
//! It refuses what has no place in a [`Record`] (a seat 2, an action above 65,535); whether the record is *true* is
//! [`crate::check`]'s business.
//!
//! Bytes of schema version 1 are read for ever, and what is read of them is encoded as version 2: who passes games on or
//! compares them does so with their bytes as they came.

mod from_wire;
mod lists;
mod outline;
mod players;
mod to_wire;

use prost::Message;
use tengen_proto::v1;

use crate::ids::{LeaseId, RecordId};
use crate::record::Record;
use crate::rejection::{ReasonCode, Rejection};
use outline::Outline;

pub use from_wire::precision_from_wire;
pub use players::{PlayersError, networks_of, players_from_wire, players_to_wire};
pub use to_wire::precision_to_wire;

/// The version of a record's meaning that this build writes, and the newest that it reads.
///
/// * 1: a list of a search block is a message an entry.
/// * 2: it is two columns: about half the bytes, and no message to read for each entry.
pub const SCHEMA_VERSION: u32 = 2;

/// The oldest version of a record's meaning that is read: data folders, spools and files of earlier builds hold it.
pub const SCHEMA_VERSION_MIN: u32 = 1;

/// Largest encoded record, bytes. The largest game in sight (Go 19x19 to its move limit with every action in every
/// target and visit list: some 10 bytes for an action in both, 17 in schema version 1) stays far below it.
///
/// It bounds the memory of the lists too, at 96 MiB in either version. The shortest entry has two bytes: an empty message,
/// or a byte in each of two columns. It becomes eight bytes of the wire types, twice that where their vectors have room to
/// grow, and eight of the [`Record`]. One column without the other takes no more, and is refused before it becomes a list.
pub const RECORD_BYTES_MAX: usize = 8 << 20;

/// Most plies of any record, opening included, whatever its game; an Ataxx game can reach 9,200. The check applies the
/// game's own bound. A ply without a search takes two bytes on the wire and some three hundred in memory, so bytes alone
/// would bound too little.
pub const PLIES_MAX: usize = 10_000;

/// The record's bytes.
pub fn encode(record: &Record) -> Vec<u8> {
    to_wire::record(record).encode_to_vec()
}

/// The record in these bytes.
///
/// # Errors
/// `too-large` for more than [`RECORD_BYTES_MAX`] bytes or [`PLIES_MAX`] plies, `decode` for what is no record at all,
/// `schema-version` for one below [`SCHEMA_VERSION_MIN`] or above [`SCHEMA_VERSION`], and the code of the first field that
/// holds an impossible value.
pub fn decode(bytes: &[u8]) -> Result<Record, Rejection> {
    if bytes.len() > RECORD_BYTES_MAX {
        let detail = format!("{} bytes, at most {RECORD_BYTES_MAX} are allowed", bytes.len());
        return Err(Rejection::new(ReasonCode::TooLarge, detail));
    }
    let outline = Outline::read(bytes).ok_or_else(|| Rejection::new(ReasonCode::Decode, "not a protobuf message"))?;
    if outline.plies > PLIES_MAX {
        let detail = format!("{} plies, at most {PLIES_MAX} are allowed", outline.plies);
        return Err(Rejection::new(ReasonCode::TooLarge, detail));
    }
    let wire = v1::GameRecord::decode(bytes).map_err(|error| Rejection::new(ReasonCode::Decode, error.to_string()))?;
    from_wire::record(wire)
}

/// The id in these bytes, read without parsing the rest: what a verdict on an unreadable record names.
pub fn peek_id(bytes: &[u8]) -> Option<RecordId> {
    if bytes.len() > RECORD_BYTES_MAX {
        return None;
    }
    let outline = Outline::read(bytes)?;
    Some(RecordId {
        lease: LeaseId::from_bytes(outline.lease?).ok()?,
        index: outline.game_index,
    })
}
