//! `gomoku-freestyle`: five or more in a row win (Gomocup rule 0).

use crate::five::{self, FiveRules};
use crate::line::LineRule;
use crate::params::{Params, ParseGameError};
use crate::registry::Family;
use crate::spec::OpeningRule;
use crate::stones::{Fouls, StoneGame};

/// `gomoku-freestyle` in the registry.
pub const FAMILY: Family<StoneGame> = Family {
    name: "gomoku-freestyle",
    summary: "five or more in a row",
    parameters: five::PARAMETERS,
    rules: "Black and white alternate placing a stone on an empty cell; black begins. Five or more in a row win, in \
            any direction. A full board without a line is a draw. This is Gomocup's rule 0.",
    samples: &[
        "gomoku-freestyle?size=7&history=8&threat_planes=false",
        "gomoku-freestyle?size=6&opening=swap2",
    ],
    build,
};

fn build(mut params: Params) -> Result<StoneGame, ParseGameError> {
    let size = five::size(&mut params)?;
    let rules = FiveRules {
        lines: [LineRule::at_least(5); 2],
        fouls: Fouls::None,
        opening: OpeningRule::None,
    };
    five::build(params, size, rules)
}
