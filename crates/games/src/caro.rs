//! `caro`: six or more in a row win, five only if not both ends are the opponent's stones (Gomocup rule 8).

use crate::five::{self, FiveRules};
use crate::line::{EdgePolicy, Ends, LineRule, Overline};
use crate::params::{Params, ParseGameError};
use crate::registry::Family;
use crate::spec::OpeningRule;
use crate::stones::{Fouls, StoneGame};

/// `caro` in the registry.
pub const FAMILY: Family<StoneGame> = Family {
    name: "caro",
    summary: "six or more in a row, or five that stones do not close at both ends",
    parameters: five::PARAMETERS,
    rules: "Black and white alternate placing a stone on an empty cell; black begins. Six or more in a row win; five \
            win unless the opponent's stones close both ends. The edge of the board closes nothing. A full board \
            without a line is a draw. This is Gomocup's rule 8.",
    samples: &["caro?size=6", "caro?size=7&opening=swap2&history=4"],
    build,
};

const LINE_RULE: LineRule = LineRule {
    length: 5,
    overline: Overline::Wins,
    ends: Ends::OneOpen(EdgePolicy::Open),
};

fn build(mut params: Params) -> Result<StoneGame, ParseGameError> {
    let size = five::size(&mut params)?;
    let rules = FiveRules {
        lines: [LINE_RULE; 2],
        fouls: Fouls::None,
        opening: OpeningRule::None,
    };
    five::build(params, size, rules)
}
