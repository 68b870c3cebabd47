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
