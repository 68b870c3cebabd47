//! `hex`: join your two edges of a rhombus of hexagons; on square boards the second player may swap.
//!
//! Seat 0 is Black and joins top and bottom, seat 1 is White and joins left and right. Swapping is an action, legal only
//! as the second ply: the black stone becomes a white one on the mirrored cell, so seats keep their colours.

use std::sync::Arc;

use crate::draw;
use crate::game::{Action, Game, IllegalAction, Outcome, Reason, Roles, Seat, State};
use crate::hash::Mixer;
use crate::params::{Params, ParseGameError};
use crate::registry::Family;
use crate::spec::{ActionBlock, ActionLayout, OpeningRule, Plane, Spec, Symmetry};
use crate::symmetry;

/// `hex` in the registry.
pub const FAMILY: Family<Hex> = Family {
    name: "hex",
    summary: "join your two edges of a rhombus; swap on square boards",
    rules: "Seats alternate placing a stone on any empty cell of a rhombus of hexagons; a cell's neighbours are \
            those beside it in its row and column, the one above to the right and the one below to the left. Seat 0 \
            joins the top and bottom rows, seat 1 the left and right columns. Whoever joins them has won; there are \
            no draws. With `swap`, on boards with equal sides only, seat 1 may answer the first stone by \
            `swap-pieces`: the stone becomes seat 1's on the cell mirrored at the diagonal from the top left, and \
            seat 0 goes on. Rows are numbered from the top.",
    parameters: "size=2..19 (11), cols=2..19 (as size), swap=yes|no (rectangular boards: no)",
    samples: &[
        "hex?size=2",
        "hex?size=4&swap=no",
        "hex?size=5",
        "hex?size=4&cols=7",
        "hex?size=19",
    ],
    build,
};

const SIDE_MAX: usize = 19;
const CELLS_MAX: usize = SIDE_MAX * SIDE_MAX;
const SIDE_DEFAULT: usize = 11;
/// How swapping is written, as in SGF and GTP.
const SWAP: &str = "swap-pieces";

const PLANES: [Plane; 5] = [
    Plane::binary("stones of the acting seat"),
    Plane::binary("stones of the other seat"),
    Plane::binary("the acting seat joins top and bottom"),
    Plane::binary("swapping is legal"),
    Plane::binary("ones: where the board is"),
];

/// Steps to the six neighbours of a cell.
const NEIGHBOURS: [(isize, isize); 6] = [(-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0)];

/// Whether the second player may swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Swap {
    Allowed,
    Never,
}

/// The game. Actions are cells, written `a1` with row 1 at the top, and on boards with swap `swap-pieces`.
#[derive(Clone, Debug)]
pub struct Hex {
    spec: Arc<Spec>,
    swap: Swap,
}

fn build(mut params: Params) -> Result<Hex, ParseGameError> {
    let rows = params.number("size", SIDE_DEFAULT, 2..=SIDE_MAX)?;
    let cols = params.number("cols", rows, 2..=SIDE_MAX)?;
    let swap = if rows == cols {
        params.choice("swap", &[("yes", Swap::Allowed), ("no", Swap::Never)])?
    } else {
        params.choice("swap", &[("no", Swap::Never)])?
    };
    let (blocks, swaps) = match swap {
        Swap::Allowed => (
            vec![ActionBlock::Cells { planes: 1 }, ActionBlock::Global { count: 1 }],
            1,
        ),
        Swap::Never => (vec![ActionBlock::Cells { planes: 1 }], 0),
    };
    let actions = ActionLayout::new(blocks, rows, cols);
    let symmetries = symmetry::half_turn(rows, cols, &actions);
    let spec = Spec {
        id: params.finish()?,
        rows,
        cols,
        planes: PLANES.to_vec(),
        actions,
        symmetries,
        opening: OpeningRule::None,
        plies_max: rows * cols + swaps,
    };
    Ok(Hex {
        spec: Arc::new(spec),
        swap,
    })
}

impl Game for Hex {
    type State = HexState;

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn start(&self) -> HexState {
        HexState {
            rows: self.spec.rows as u8,
            cols: self.spec.cols as u8,
            cells: [EMPTY; CELLS_MAX],
            plies: 0,
            swap: self.swap,
            outcome: None,
        }
    }

    fn action_text(&self, action: Action) -> String {
        let (cell, cols) = (action.index(), self.spec.cols);
        if cell < self.spec.cells() {
            format!("{}{}", draw::column_letter(cell % cols), cell / cols + 1)
        } else {
            SWAP.to_owned()
        }
    }
}

/// No stone; a stone is the index of its seat.
const EMPTY: u8 = 2;

/// A position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HexState {
    rows: u8,
    cols: u8,
    cells: [u8; CELLS_MAX],
    plies: u16,
    swap: Swap,
    outcome: Option<Outcome>,
}

/// A checked action.
enum Ply {
    Stone(usize),
    Swap,
}

impl HexState {
    fn len(&self) -> usize {
        self.rows as usize * self.cols as usize
    }

    fn can_swap(&self) -> bool {
        self.swap == Swap::Allowed && self.plies == 1
    }

    fn check(&self, action: Action) -> Result<Ply, &'static str> {
        if self.outcome.is_some() {
            return Err("the game is over");
        }
        if action.index() < self.len() {
            return match self.cells[action.index()] {
                EMPTY => Ok(Ply::Stone(action.index())),
                _ => Err("the cell is taken"),
            };
        }
        if action.index() > self.len() || self.swap == Swap::Never {
            return Err("there is no such action");
        }
        if self.can_swap() {
            Ok(Ply::Swap)
        } else {
            Err("swapping is legal only as the second ply")
        }
    }

    fn place(&mut self, cell: usize) {
        let seat = self.seat();
        self.cells[cell] = seat.index() as u8;
        if self.joins(cell, seat) {
            self.outcome = Some(Outcome::win(seat, Reason::Connection));
        }
    }

    /// The one stone becomes a white one on the cell mirrored at the main diagonal.
    fn swap_pieces(&mut self) {
        let side = self.cols as usize;
        let stone = self.cells[..self.len()].iter().position(|&cell| cell != EMPTY);
        if let Some(cell) = stone {
            self.cells[cell] = EMPTY;
            self.cells[cell % side * side + cell / side] = Seat::SECOND.index() as u8;
        }
    }

    /// Whether the stones joined with the one on `cell` reach both edges of `seat`.
    fn joins(&self, cell: usize, seat: Seat) -> bool {
        let (cols, last) = match seat {
            Seat::FIRST => (self.cols as usize, self.rows as usize - 1),
            _ => (self.cols as usize, self.cols as usize - 1),
        };
        let mut edges = [false; 2];
        let mut seen = [false; CELLS_MAX];
        // Every cell is opened at most once, so the stack never outgrows the board.
        let mut open = [0u16; CELLS_MAX];
        let mut opened = 1;
        open[0] = cell as u16;
        seen[cell] = true;
        while opened > 0 {
            opened -= 1;
            let cell = open[opened] as usize;
            let along = if seat == Seat::FIRST { cell / cols } else { cell % cols };
            edges[0] |= along == 0;
            edges[1] |= along == last;
            for next in self.neighbours(cell) {
                if self.cells[next] == seat.index() as u8 && !seen[next] {
                    seen[next] = true;
                    open[opened] = next as u16;
                    opened += 1;
                }
            }
        }
        edges == [true; 2]
    }

    fn neighbours(&self, cell: usize) -> impl Iterator<Item = usize> {
        let (rows, cols) = (self.rows as usize, self.cols as usize);
        NEIGHBOURS.into_iter().filter_map(move |(row_step, col_step)| {
            let row = (cell / cols).checked_add_signed(row_step).filter(|&row| row < rows)?;
            let col = (cell % cols).checked_add_signed(col_step).filter(|&col| col < cols)?;
            Some(row * cols + col)
        })
    }
}

impl State for HexState {
    fn seat(&self) -> Seat {
        if self.plies.is_multiple_of(2) {
            Seat::FIRST
        } else {
            Seat::SECOND
        }
    }

    fn stage(&self) -> u8 {
        0
    }

    fn turn(&self) -> u32 {
        u32::from(self.plies)
    }

    fn legal(&self, out: &mut Vec<Action>) {
        out.clear();
        if self.outcome.is_some() {
            return;
        }
        let cells = self.cells[..self.len()].iter().enumerate();
        out.extend(
            cells
                .filter(|&(_, &stone)| stone == EMPTY)
                .map(|(cell, _)| Action(cell as u16)),
        );
        if self.can_swap() {
            out.push(Action(self.len() as u16));
        }
    }

    fn is_legal(&self, action: Action) -> bool {
        self.check(action).is_ok()
    }

    fn apply(&mut self, action: Action) -> Result<(), IllegalAction> {
        match self.check(action).map_err(|why| IllegalAction { action, why })? {
            Ply::Stone(cell) => self.place(cell),
            Ply::Swap => self.swap_pieces(),
        }
        self.plies += 1;
        Ok(())
    }

    fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    fn planes(&self, out: &mut [u8]) {
        let cells = self.len();
        let (mine, theirs) = (self.seat().index() as u8, self.seat().other().index() as u8);
        for (cell, &stone) in self.cells[..cells].iter().enumerate() {
            out[cell] = u8::from(stone == mine);
            out[cells + cell] = u8::from(stone == theirs);
        }
        out[2 * cells..3 * cells].fill(u8::from(self.seat() == Seat::FIRST));
        out[3 * cells..4 * cells].fill(u8::from(self.can_swap()));
        out[4 * cells..5 * cells].fill(1);
    }

    fn hash(&self) -> u64 {
        let mut mixer = Mixer::new(u64::from(self.rows) << 16 | u64::from(self.plies));
        for chunk in self.cells[..self.len()].chunks(32) {
            mixer = mixer.with(chunk.iter().fold(0, |word, &stone| word << 2 | u64::from(stone)));
        }
        mixer.finish()
    }

    fn transform(&self, symmetry: &Symmetry) -> HexState {
        let mut image = self.clone();
        for (&stone, &cell) in self.cells.iter().zip(&symmetry.cells) {
            image.cells[cell as usize] = stone;
        }
        image
    }

    fn roles(&self) -> Roles {
        Roles {
            opener: None,
            chooser: None,
            first_colour: Some(Seat::FIRST),
        }
    }

    fn draw(&self) -> String {
        let (rows, cols) = (self.rows as usize, self.cols as usize);
        let mut text = String::from("    ");
        let letters: Vec<String> = (0..cols).map(|col| draw::column_letter(col).to_string()).collect();
        text.push_str(&letters.join(" "));
        text.push('\n');
        for row in 0..rows {
            text.push_str(&format!("{:indent$}{:>3}", "", row + 1, indent = row));
            for col in 0..cols {
                text.push(' ');
                text.push(match self.cells[row * cols + col] {
                    0 => 'X',
                    1 => 'O',
                    _ => '.',
                });
            }
            text.push('\n');
        }
        text.push_str(&match (self.outcome, self.seat()) {
            (Some(outcome), _) => draw::outcome_text(outcome),
            (None, Seat::FIRST) => format!("{} to play X, top to bottom\n", Seat::FIRST),
            (None, _) => format!("{} to play O, left to right\n", Seat::SECOND),
        });
        text
    }
}
