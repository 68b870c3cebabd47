//! What the games of five in a row have in common: board size, opening protocol, and the choice of planes.
//!
//! Which line wins, and what is a foul, each family says itself.

use crate::line::{LineRule, SIDE_MAX};
use crate::params::{Params, ParseGameError};
use crate::spec::OpeningRule;
use crate::stone_planes::{HISTORY_DEPTH_MAX, StonePlanes, StoneStack, Threats};
use crate::stones::{Fouls, StoneGame, StoneRules};

/// The parameters of a family that adds none of its own, for people.
pub(crate) const PARAMETERS: &str =
    "size=5..20 (15), opening=none|swap2, history=2..16 even (none), threat_planes=true|false";

/// What one family of five in a row says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FiveRules {
    /// Which lines win, for black and for white.
    pub lines: [LineRule; 2],
    /// Which stones lose at once.
    pub fouls: Fouls,
    /// The opening protocol when none is named.
    pub opening: OpeningRule,
}

/// Reads the length of the board's side.
pub(crate) fn size(params: &mut Params) -> Result<usize, ParseGameError> {
    params.number("size", 15, 5..=SIDE_MAX)
}

/// Reads the parameters that all families share, and builds the game on a board of `size` x `size`.
pub(crate) fn build(mut params: Params, size: usize, family: FiveRules) -> Result<StoneGame, ParseGameError> {
    let mut openings = [("none", OpeningRule::None), ("swap2", OpeningRule::Swap2)];
    if family.opening == OpeningRule::Swap2 {
        openings.reverse();
    }
    let opening = params.choice("opening", &openings)?;
    let stack = match params.optional_number("history", 2..=HISTORY_DEPTH_MAX)? {
        None => StoneStack::Sides,
        Some(depth) if depth.is_multiple_of(2) => StoneStack::History { depth: depth as u8 },
        Some(odd) => {
            return Err(params.bad_value(
                "history",
                odd,
                "an even number: the same number of planes for each colour",
            ));
        }
    };
    let threats = params.choice(
        "threat_planes",
        &[("true", Threats::Shown), ("false", Threats::LeftOut)],
    )?;
    let rules = StoneRules {
        lines: family.lines,
        fouls: family.fouls,
        planes: StonePlanes { stack, threats },
    };
    Ok(StoneGame::new(params.finish()?, rules, size, size, opening))
}
