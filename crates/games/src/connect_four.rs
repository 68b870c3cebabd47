//! `connect-four`: four in a row on seven columns and six rows; stones fall to the bottom.

use std::sync::Arc;

use crate::draw;
use crate::game::{Action, Game, IllegalAction, Outcome, Reason, Roles, Seat, State};
use crate::hash::Mixer;
use crate::params::{Params, ParseGameError};
use crate::registry::Family;
use crate::spec::{ActionBlock, ActionLayout, OpeningRule, Plane, Spec, Symmetry};
use crate::symmetry;

/// `connect-four` in the registry.
pub const FAMILY: Family<ConnectFour> = Family {
    name: "connect-four",
    summary: "four in a row on 7 columns of 6, stones fall",
    parameters: "none",
    rules: "Seats alternate dropping a stone into a column that is not full; it falls to the lowest empty cell. Four \
            in a row in any direction win. A full board without a line is a draw.",
    samples: &[],
    build,
};

const COLS: usize = 7;
const ROWS: usize = 6;
const CELLS: usize = ROWS * COLS;
/// Bits of one column: six cells from the bottom, and one that is always clear, so that lines never wrap.
const COLUMN_BITS: usize = ROWS + 1;
/// Shifts along a column, along a row and along both diagonals.
const LINE_SHIFTS: [usize; 4] = [1, COLUMN_BITS, COLUMN_BITS - 1, COLUMN_BITS + 1];

const PLANES: [Plane; 3] = [
    Plane::binary("stones of the acting seat"),
    Plane::binary("stones of the other seat"),
    Plane::binary("ones: where the board is"),
];

/// The game. Actions are columns, written `a` to `g`.
#[derive(Clone, Debug)]
pub struct ConnectFour {
    spec: Arc<Spec>,
}

fn build(params: Params) -> Result<ConnectFour, ParseGameError> {
    let actions = ActionLayout::new(vec![ActionBlock::Columns], ROWS, COLS);
    let symmetries = symmetry::left_right(ROWS, COLS, &actions);
    let spec = Spec {
        id: params.finish()?,
        rows: ROWS,
        cols: COLS,
        planes: PLANES.to_vec(),
        actions,
        symmetries,
        opening: OpeningRule::None,
        plies_max: CELLS,
    };
    Ok(ConnectFour { spec: Arc::new(spec) })
}

impl Game for ConnectFour {
    type State = ConnectFourState;

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn start(&self) -> ConnectFourState {
        ConnectFourState {
            stones: [0; 2],
            outcome: None,
        }
    }

    fn action_text(&self, action: Action) -> String {
        draw::column_letter(action.index()).to_string()
    }
}

/// A position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectFourState {
    /// The stones of each seat, one bit a cell: column * 7 + height.
    stones: [u64; 2],
    outcome: Option<Outcome>,
}

/// The bit of a cell numbered row by row from the top left.
const fn bit_of(cell: usize) -> usize {
    (cell % COLS) * COLUMN_BITS + (ROWS - 1 - cell / COLS)
}

const fn column_mask(col: usize) -> u64 {
    ((1 << ROWS) - 1) << (col * COLUMN_BITS)
}

fn has_line(stones: u64) -> bool {
    LINE_SHIFTS.into_iter().any(|shift| {
        let pairs = stones & (stones >> shift);
        pairs & (pairs >> (2 * shift)) != 0
    })
}

impl ConnectFourState {
    fn taken(&self) -> u64 {
        self.stones[0] | self.stones[1]
    }

    fn check(&self, action: Action) -> Result<(), &'static str> {
        if self.outcome.is_some() {
            return Err("the game is over");
        }
        if action.index() >= COLS {
            return Err("there is no such column");
        }
        if self.taken() & column_mask(action.index()) == column_mask(action.index()) {
            return Err("the column is full");
        }
        Ok(())
    }
}

impl State for ConnectFourState {
    fn seat(&self) -> Seat {
        if self.turn().is_multiple_of(2) {
            Seat::FIRST
        } else {
            Seat::SECOND
        }
    }

    fn stage(&self) -> u8 {
        0
    }

    fn turn(&self) -> u32 {
        self.taken().count_ones()
    }

    fn legal(&self, out: &mut Vec<Action>) {
        out.clear();
        out.extend((0..COLS as u16).map(Action).filter(|&action| self.is_legal(action)));
    }

    fn is_legal(&self, action: Action) -> bool {
        self.check(action).is_ok()
    }

    fn apply(&mut self, action: Action) -> Result<(), IllegalAction> {
        self.check(action).map_err(|why| IllegalAction { action, why })?;
        let seat = self.seat();
        // Adding the lowest bit of a column to its stones gives the first free cell.
        let column = self.taken() & column_mask(action.index());
        let stone = column + (1 << (action.index() * COLUMN_BITS));
        self.stones[seat.index()] |= stone & !column;
        if has_line(self.stones[seat.index()]) {
            self.outcome = Some(Outcome::win(seat, Reason::Line));
        } else if self.turn() as usize == CELLS {
            self.outcome = Some(Outcome::draw(Reason::BoardFull));
        }
        Ok(())
    }

    fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    fn planes(&self, out: &mut [u8]) {
        let mine = self.stones[self.seat().index()];
        let theirs = self.stones[self.seat().other().index()];
        for cell in 0..CELLS {
            out[cell] = (mine >> bit_of(cell)) as u8 & 1;
            out[CELLS + cell] = (theirs >> bit_of(cell)) as u8 & 1;
        }
        out[2 * CELLS..3 * CELLS].fill(1);
    }

    fn hash(&self) -> u64 {
        Mixer::new(0).with(self.stones[0]).with(self.stones[1]).finish()
    }

    fn transform(&self, symmetry: &Symmetry) -> ConnectFourState {
        let stones = self.stones.map(|stones| {
            (0..CELLS)
                .filter(|&cell| stones >> bit_of(cell) & 1 == 1)
                .fold(0, |image, cell| image | 1 << bit_of(symmetry.cells[cell] as usize))
        });
        ConnectFourState {
            stones,
            outcome: self.outcome,
        }
    }

    fn roles(&self) -> Roles {
        Roles {
            opener: None,
            chooser: None,
            first_colour: Some(Seat::FIRST),
        }
    }

    fn draw(&self) -> String {
        let mut text = draw::board(ROWS, COLS, None, |cell| {
            match self.stones.map(|stones| stones >> bit_of(cell) & 1) {
                [1, _] => 'X',
                [_, 1] => 'O',
                _ => '.',
            }
        });
        text.push_str(&match (self.outcome, self.seat()) {
            (Some(outcome), _) => draw::outcome_text(outcome),
            (None, Seat::FIRST) => format!("{} to play X\n", Seat::FIRST),
            (None, _) => format!("{} to play O\n", Seat::SECOND),
        });
        text
    }
}
