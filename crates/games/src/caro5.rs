//! `caro5`: exactly five in a row with at least one open end wins; six or more never do; Swap2 opening.

use crate::five::{self, FiveRules};
use crate::line::{EdgePolicy, Ends, LineRule, Overline};
use crate::params::{Params, ParseGameError};
use crate::registry::Family;
use crate::spec::OpeningRule;
use crate::stones::{Fouls, StoneGame};

/// `caro5` in the registry.
pub const FAMILY: Family<Caro5> = Family {
    name: "caro5",
    summary: "exactly five in a row with an open end, Swap2 opening",
    parameters: "size=5..20 (15), edge=closed|open, opening=swap2|none, history=2..16 even (none), threat_planes=true|false",
    rules: "Black and white alternate placing a stone on an empty cell. A line of exactly five wins if at least one \
            of its two end cells is on the board and empty; with `edge=open` the edge of the board leaves an end \
            open too. Six or more never win and are never forbidden. One winning line is enough, whatever else the \
            stone makes. A full board is a draw. Under Swap2 the opener places black, white and black anywhere; the \
            chooser takes black, takes white, or adds a white and a black stone and leaves the choice of colour to \
            the opener. White places the next stone.",
    samples: &[
        "caro5?size=5",
        "caro5?size=9",
        "caro5?size=6&history=6&threat_planes=false",
    ],
    build,
};

/// The game.
pub type Caro5 = StoneGame;

/// Which lines win when the edge of the board closes or leaves open the end of a line.
pub const fn line_rule(edge: EdgePolicy) -> LineRule {
    LineRule {
        length: 5,
        overline: Overline::Nothing,
        ends: Ends::OneOpen(edge),
    }
}

pub(crate) fn build(mut params: Params) -> Result<Caro5, ParseGameError> {
    let size = five::size(&mut params)?;
    let edge = params.choice("edge", &[("closed", EdgePolicy::Closed), ("open", EdgePolicy::Open)])?;
    let rules = FiveRules {
        lines: [line_rule(edge); 2],
        fouls: Fouls::None,
        opening: OpeningRule::Swap2,
    };
    five::build(params, size, rules)
}
