//! SGF, `FF[4]`: five in a row (`GM[4]`), Go (`GM[1]`), Hex (`GM[11]`) and Amazons (`GM[18]`).
//!
//! `RU` holds the rules: `Caro5`, or a game's id. The choices of a Swap2 opening have no place in the format; they go into
//! a property of our own, `DECISION`, in the node of the stone that follows.

mod points;
mod read;
pub mod tree;
mod write;

use tengen_games::params;

pub use write::export;

pub(super) use read::import;

use super::family;

const FORMAT: &str = "sgf";
/// Our own property: a choice of colours.
const DECISION: &str = "DECISION";
/// What `RU` says of Go.
const TROMP_TAYLOR: &str = "Tromp-Taylor";

/// A kind of game that the format has a number for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Go,
    Stones,
    Hex,
    Amazons,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Go, Kind::Stones, Kind::Hex, Kind::Amazons];

    /// The kind of the game with this id.
    fn of(id: &str) -> Option<Kind> {
        match family(id) {
            "go" => Some(Kind::Go),
            "gomoku-freestyle" | "gomoku-standard" | "caro" | "caro5" | "renju" => Some(Kind::Stones),
            "hex" => Some(Kind::Hex),
            "amazons" => Some(Kind::Amazons),
            _ => None,
        }
    }

    /// `GM`.
    const fn number(self) -> u32 {
        match self {
            Kind::Go => 1,
            Kind::Stones => 4,
            Kind::Hex => 11,
            Kind::Amazons => 18,
        }
    }

    fn of_number(number: u32) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.number() == number)
    }
}

/// The id with a parameter set to `value`, or without it.
fn with_parameter(id: &str, key: &str, value: Option<&str>) -> String {
    let Ok((name, mut given)) = params::split(id) else {
        return id.to_owned();
    };
    given.retain(|(other, _)| other != key);
    given.extend(value.map(|value| (key.to_owned(), value.to_owned())));
    if given.is_empty() {
        return name.to_owned();
    }
    let pairs: Vec<String> = given.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{name}?{}", pairs.join("&"))
}

/// The same game of five in a row without an opening protocol.
pub(super) fn without_opening(id: &str) -> String {
    match family(id) {
        // Only here Swap2 is the default.
        "caro5" => with_parameter(id, "opening", Some("none")),
        _ => with_parameter(id, "opening", None),
    }
}
