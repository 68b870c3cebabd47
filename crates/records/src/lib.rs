//! The record of one finished game: its type, its bytes, and its check against the rules.
//!
//! A [`Record`] is what an actor sends, the coordinator [`check`]s and stores, and the learner replays. [`encode`] and
//! [`decode`] are the only way between a record and its bytes; both sides of the wire use them.
//!
//! **This crate does no IO and knows no clock**, and it never decides what becomes of a record: it says whether the
//! record is true ([`Checked`]) or what is wrong with it ([`Rejection`]).

mod check;
pub mod exchange;
mod expected;
mod ids;
mod player;
mod record;
mod rejection;
mod seed;
pub mod testing;
mod wire;

pub use check::{Checked, TOLERANCE, WEIGHT_MAX, check, referee};
pub use expected::{Endings, Expected, MatchGame, Work};
pub use ids::{LeaseId, ModelId, ParseIdError, RUN_ID_LEN_MAX, RecordId, RunId};
pub use player::{HUMAN_NAME_LEN_MAX, HumanName, NetworkPlay, PLAYER_SIMULATIONS_MAX, ParsePlayerError, Player};
pub use record::{Kind, ModelIndex, NET_POLICY_TOP_MAX, PlyRecord, Precision, Record, SearchBlock};
pub use rejection::{ReasonCode, Rejection};
pub use seed::game_seed;
pub use wire::{
    PLIES_MAX, PlayersError, RECORD_BYTES_MAX, SCHEMA_VERSION, SCHEMA_VERSION_MIN, decode, encode, networks_of,
    peek_id, players_from_wire, players_to_wire, precision_from_wire, precision_to_wire,
};
