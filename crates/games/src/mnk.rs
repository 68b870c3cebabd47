//! `mnk`: k stones or more in a row win on a board of m columns and n rows, with optional Swap2.
//!
//! Under Swap2 a line of three can be completed by the offered black stone: see the ruling in [`crate::stones`].

use crate::line::{LineRule, SIDE_MAX};
use crate::params::{Params, ParseGameError};
use crate::registry::Family;
use crate::spec::OpeningRule;
use crate::stone_planes::{StonePlanes, StoneStack, Threats};
use crate::stones::{Fouls, StoneGame, StoneRules};
use crate::swap2;

/// `mnk` in the registry.
pub const FAMILY: Family<Mnk> = Family {
    name: "mnk",
    summary: "k in a row on m columns and n rows, freestyle; default is free gomoku",
    parameters: "m=1..20 (15), n=1..20 (15), k=2..20 (5), opening=none|swap2",
    rules: "Black and white alternate placing a stone on an empty cell of a board of `m` columns and `n` rows; black \
            begins. `k` or more stones in a row win, in any direction. A full board without a line is a draw. With \
            `opening=swap2` the stones of the opening may complete a line: black then wins at once, and the seat \
            that was to choose a colour next is given black, so offering a line never pays.",
    samples: &[
        "mnk?m=4&n=4&k=3",
        "mnk?m=3&n=3&k=3&opening=swap2",
        "mnk?m=5&n=4&k=4&opening=swap2",
        "mnk?m=7&n=3&k=3",
        "mnk?m=6&n=1&k=2",
    ],
    build,
};

/// The game.
pub type Mnk = StoneGame;

/// `k` or more in a row win, with the bare planes.
pub const fn rules(k: u8) -> StoneRules {
    StoneRules {
        lines: [LineRule::at_least(k); 2],
        fouls: Fouls::None,
        planes: StonePlanes {
            stack: StoneStack::Sides,
            threats: Threats::LeftOut,
        },
    }
}

fn build(mut params: Params) -> Result<Mnk, ParseGameError> {
    let cols = params.number("m", 15, 1..=SIDE_MAX)?;
    let rows = params.number("n", 15, 1..=SIDE_MAX)?;
    let k = params.number("k", 5, 2..=SIDE_MAX)?;
    let opening = params.choice("opening", &[("none", OpeningRule::None), ("swap2", OpeningRule::Swap2)])?;
    if k > rows.max(cols) {
        return Err(params.bad_value("k", k, format!("no line of {k} fits on {cols}x{rows}")));
    }
    if opening == OpeningRule::Swap2 {
        if k < 3 {
            return Err(params.bad_value("k", k, "with opening=swap2 at least 3, or the first stones would win"));
        }
        if rows * cols <= swap2::OFFERED_STONES as usize {
            return Err(params.bad_value("opening", "swap2", "a board of more than five cells"));
        }
    }
    Ok(StoneGame::new(params.finish()?, rules(k as u8), rows, cols, opening))
}
