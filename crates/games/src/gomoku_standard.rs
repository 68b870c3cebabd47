//! `gomoku-standard`: exactly five in a row win, longer lines are nothing (Gomocup rule 1).

use crate::five::{self, FiveRules};
use crate::line::LineRule;
use crate::params::{Params, ParseGameError};
use crate::registry::Family;
use crate::spec::OpeningRule;
use crate::stones::{Fouls, StoneGame};

/// `gomoku-standard` in the registry.
pub const FAMILY: Family<StoneGame> = Family {
    name: "gomoku-standard",
    summary: "exactly five in a row",
    parameters: five::PARAMETERS,
    rules: "Black and white alternate placing a stone on an empty cell; black begins. Exactly five in a row win, in \
            any direction; longer lines are nothing. A full board without a line is a draw. This is Gomocup's rule \
            1; with `opening=swap2` it is the tournament game.",
    samples: &["gomoku-standard?size=9&opening=swap2", "gomoku-standard?size=6"],
    build,
};

fn build(mut params: Params) -> Result<StoneGame, ParseGameError> {
    let size = five::size(&mut params)?;
    let rules = FiveRules {
        lines: [LineRule::exactly(5); 2],
        fouls: Fouls::None,
        opening: OpeningRule::None,
    };
    five::build(params, size, rules)
}
