//! `tic-tac-toe`: three in a row on 3x3, a game of its own name without parameters.

use crate::mnk::{self, Mnk};
use crate::params::{Params, ParseGameError};
use crate::registry::Family;
use crate::spec::OpeningRule;
use crate::stones::StoneGame;

/// `tic-tac-toe` in the registry.
pub const FAMILY: Family<Mnk> = Family {
    name: "tic-tac-toe",
    summary: "three in a row on 3x3",
    parameters: "none",
    rules: "Seats alternate placing a stone of their own on an empty cell; seat 0 begins. Three in a row, in a line, \
            a column or a diagonal, win. A full board without a line is a draw.",
    samples: &[],
    build,
};

fn build(params: Params) -> Result<Mnk, ParseGameError> {
    Ok(StoneGame::new(params.finish()?, mnk::rules(3), 3, 3, OpeningRule::None))
}
