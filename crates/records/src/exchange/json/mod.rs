//! The JSON of the Caro5 seed, for all games of five in a row: an object a game.
//!
//! Everything that follows from the moves is said again in the document, and what is said must be so: the reader makes the
//! document of the game it has read and compares (`conflict`).

mod conflict;
pub mod document;
mod read;
mod search;
mod write;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use write::export;

pub(super) use read::import;

use tengen_games::{AnyGame, params};

const FORMAT: &str = "json";
/// The only version there is.
const SCHEMA_VERSION: u32 = 1;
/// The last millisecond that RFC 3339 can say: of the year 9999.
const TIME_MS_MAX: i64 = 253_402_300_799_999;

/// A time in RFC 3339, with milliseconds; `None` for one that it cannot say.
pub(super) fn time(unix_ms: i64) -> Option<String> {
    let since = u64::try_from(unix_ms).ok().filter(|_| unix_ms <= TIME_MS_MAX)?;
    Some(humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(since)).to_string())
}

/// Milliseconds since the Unix epoch of a time in RFC 3339 and UTC.
pub(super) fn unix_ms(text: &str) -> Option<i64> {
    let time: SystemTime = humantime::parse_rfc3339(text).ok()?;
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

/// The game that the plain fields of `rules` name: `caro5`, which alone has no line of six.
fn named_by_fields(rules: &document::Rules) -> String {
    let mut id = String::from("caro5?");
    if rules.board_size != 15 {
        id += &format!("size={}&", rules.board_size);
    }
    if rules.edge_closes == Some(false) {
        id += "edge=open&";
    }
    if !rules.swap2 {
        id += "opening=none&";
    }
    id.pop();
    id
}

/// Whether a line of six or more wins nothing for black, and whether the edge of the board leaves a line open.
fn line_rules(game: &AnyGame) -> (bool, bool) {
    let id = &game.spec().id;
    let (name, given) = params::split(id).unwrap_or((id, Vec::new()));
    let edge_open = given.iter().any(|(key, value)| key == "edge" && value == "open");
    (!matches!(name, "gomoku-freestyle" | "caro"), edge_open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_back() {
        for ms in [0, 1, 1_764_374_400_123, TIME_MS_MAX] {
            assert_eq!(unix_ms(&time(ms).unwrap()), Some(ms));
        }
        assert_eq!((time(-1), time(TIME_MS_MAX + 1)), (None, None));
        assert_eq!(unix_ms("2026-11-29T00:00:00Z"), Some(1_795_910_400_000));
        assert_eq!(unix_ms("yesterday"), None);
    }
}
