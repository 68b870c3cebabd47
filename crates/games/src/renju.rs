//! `renju`: black needs exactly five and loses by an overline, a double four or a double three; white wins by five or
//! more and is never at fault.
//!
//! A forbidden point is legal for the referee, who scores it as black's loss, and left out of what players choose among.
//! When black has only forbidden points left, white has won.

use crate::five::{self, FiveRules};
use crate::line::LineRule;
use crate::params::{Params, ParseGameError};
use crate::registry::Family;
use crate::spec::OpeningRule;
use crate::stones::{Fouls, StoneGame};

/// `renju` in the registry.
pub const FAMILY: Family<StoneGame> = Family {
    name: "renju",
    summary: "five in a row with black's forbidden points (RIF)",
    parameters: five::PARAMETERS,
    rules: "Black and white alternate placing a stone on an empty cell; black begins. White wins by five or more in \
            a row, black by exactly five. A black stone that makes no five and makes six or more in a row, two fours \
            or two threes at once is a foul: the referee scores it as black's loss and names it (`overline`, \
            `double-four`, `double-three`). A three counts only if the stone that would make it a straight four is \
            itself no foul, and so on. Players never choose a foul; when black has nothing else left, white has won \
            (`no-moves`). White commits no fouls. A full board without a line is a draw.",
    samples: &["renju?size=9", "renju?size=6&opening=swap2&history=4"],
    build,
};

fn build(mut params: Params) -> Result<StoneGame, ParseGameError> {
    let size = five::size(&mut params)?;
    let rules = FiveRules {
        lines: [LineRule::exactly(5), LineRule::at_least(5)],
        fouls: Fouls::Renju,
        opening: OpeningRule::None,
    };
    five::build(params, size, rules)
}
