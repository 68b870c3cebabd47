//! Games of stones on a square board, as the formats of five in a row see them: every action is a stone on a cell or a
//! Swap2 decision, and stones alternate in colour from black.

use tengen_games::line::Colour as StoneColour;
use tengen_games::swap2::{Decision, next_colour};
use tengen_games::{Action, AnyGame, OpeningRule, Spec};

use super::transcript::Colour;
use super::{Unfit, family};

/// The families of five in a row. `caro5-gomocup` is a preset of `caro5` and has its id.
const FAMILIES: [&str; 5] = ["gomoku-freestyle", "gomoku-standard", "caro", "caro5", "renju"];

/// A game of five in a row as formats see it.
#[derive(Clone, Debug)]
pub(super) struct Board {
    /// Cells of a side.
    pub(super) size: usize,
    /// Whether the opening is Swap2.
    pub(super) swap2: bool,
}

/// What an action is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A stone, `x` from the left and `y` from the top, both from 0.
    Stone { x: usize, y: usize },
    /// A choice of colours.
    Decision(Decision),
}

impl Board {
    /// The board of `game`, if it is one of five in a row.
    pub(super) fn of(game: &AnyGame, format: &'static str) -> Result<Board, Unfit> {
        Board::of_spec(game.spec()).ok_or_else(|| Unfit {
            format,
            game: game.spec().id.clone(),
            why: "it takes games of five in a row",
        })
    }

    fn of_spec(spec: &Spec) -> Option<Board> {
        FAMILIES.contains(&family(&spec.id)).then_some(Board {
            size: spec.rows,
            swap2: spec.opening == OpeningRule::Swap2,
        })
    }

    /// What `action` is; `None` when the game has no such action.
    pub(super) fn kind(&self, action: Action) -> Option<Kind> {
        let cells = self.size * self.size;
        match action.index().checked_sub(cells) {
            None => Some(Kind::Stone {
                x: action.index() % self.size,
                y: action.index() / self.size,
            }),
            Some(index) => Decision::ALL.get(index).map(|&decision| Kind::Decision(decision)),
        }
    }

    /// The stone on a cell; `None` off the board.
    pub(super) fn stone(&self, x: usize, y: usize) -> Option<Action> {
        (x < self.size && y < self.size).then(|| Action((y * self.size + x) as u16))
    }

    /// The action of a decision.
    pub(super) fn decision(&self, decision: Decision) -> Action {
        let place = Decision::ALL.iter().position(|&other| other == decision).unwrap_or(0);
        Action((self.size * self.size + place) as u16)
    }
}

/// The colour of the stone that follows `stones` others.
pub(super) fn colour_after(stones: usize) -> Colour {
    match next_colour(stones) {
        StoneColour::Black => Colour::First,
        StoneColour::White => Colour::Second,
    }
}
