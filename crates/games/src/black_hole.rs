//! `black-hole`: numbered tiles on a triangle of cells; the cell that stays empty swallows the tiles around it, and who
//! has the lower sum in the first ring in which the sums differ wins.
//!
//! Cells are actions: row by row from the tip, cell 0. The board is the lower left half of a square, so that a triangle's
//! six neighbours lie within a 3x3 square and networks see it as they see any other board.

mod state;
mod triangle;

use std::sync::Arc;

use crate::game::{Action, Game};
use crate::params::{Params, ParseGameError};
use crate::registry::Family;
use crate::spec::{ActionBlock, ActionLayout, OpeningRule, Plane, Spec};

pub use state::BlackHoleState;
pub use triangle::Triangle;

/// `black-hole` in the registry.
pub const FAMILY: Family<BlackHole> = Family {
    name: "black-hole",
    summary: "numbered tiles on a triangle; the lower sum around the last empty cell wins",
    parameters: "rows=2|5|6|9|10 (9), history=0..8 (0)",
    rules: "Cells form a triangle. Seats alternate placing their tiles 1, 2, 3, ... in this order on any empty cell. \
            The cell that stays empty is the black hole. The tiles are summed for either seat in rings around it, \
            from the nearest: in the first ring in which the sums differ the lower sum wins. Equal sums in every \
            ring are a draw.",
    samples: &[
        "black-hole?rows=2",
        "black-hole?rows=5&history=3",
        "black-hole?rows=6",
        "black-hole?rows=10",
    ],
    build,
};

/// Greatest number of rows.
pub(crate) const ROWS_MAX: usize = 10;
/// Cells of the largest triangle.
pub(crate) const CELLS_MAX: usize = ROWS_MAX * (ROWS_MAX + 1) / 2;
/// Most earlier positions that the planes show.
const HISTORY_MAX: usize = 8;

/// The game. Actions are cells, written as row and place in the row: `a1` is the tip, `b1` and `b2` lie below it.
#[derive(Clone, Debug)]
pub struct BlackHole {
    spec: Arc<Spec>,
    triangle: Triangle,
    history: u8,
}

fn build(mut params: Params) -> Result<BlackHole, ParseGameError> {
    let rows = params.number("rows", 9, 2..=ROWS_MAX)?;
    if !matches!(rows % 4, 1 | 2) {
        let expected = "one of 2, 5, 6, 9, 10: the number of cells must be odd, so that both seats place as many tiles";
        return Err(params.bad_value("rows", rows, expected));
    }
    let history = params.number("history", 0, 0..=HISTORY_MAX)?;
    Ok(BlackHole::new(params.finish()?, rows, history))
}

impl BlackHole {
    fn new(id: String, rows: usize, history: usize) -> BlackHole {
        let triangle = Triangle::new(rows);
        let actions = ActionLayout::new(vec![ActionBlock::Triangle], rows, rows);
        let spec = Spec {
            id,
            rows,
            cols: rows,
            planes: plane_list(triangle.tiles(), history),
            symmetries: triangle.symmetries(),
            actions,
            opening: OpeningRule::None,
            plies_max: triangle.cells() - 1,
        };
        BlackHole {
            spec: Arc::new(spec),
            triangle,
            history: history as u8,
        }
    }

    /// The board.
    pub fn triangle(&self) -> Triangle {
        self.triangle
    }
}

/// The tiles of either seat one ply ago, two plies ago and so on.
const EARLIER: [[&str; 2]; HISTORY_MAX] = [
    ["own tiles 1 ply ago", "their tiles 1 ply ago"],
    ["own tiles 2 plies ago", "their tiles 2 plies ago"],
    ["own tiles 3 plies ago", "their tiles 3 plies ago"],
    ["own tiles 4 plies ago", "their tiles 4 plies ago"],
    ["own tiles 5 plies ago", "their tiles 5 plies ago"],
    ["own tiles 6 plies ago", "their tiles 6 plies ago"],
    ["own tiles 7 plies ago", "their tiles 7 plies ago"],
    ["own tiles 8 plies ago", "their tiles 8 plies ago"],
];

/// Planes for games of `tiles` tiles a seat. A tile is shown as its number over the greatest number.
fn plane_list(tiles: usize, history: usize) -> Vec<Plane> {
    let numbers = |name| Plane {
        name,
        scale: 1.0 / tiles as f32,
    };
    let mut planes = vec![
        numbers("own tiles"),
        numbers("their tiles"),
        Plane::binary("empty cells"),
        numbers("own tiles to come"),
        Plane::binary("ones: where the board is"),
    ];
    planes.extend(EARLIER[..history].iter().flatten().map(|&name| numbers(name)));
    planes
}

impl Game for BlackHole {
    type State = BlackHoleState;

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn start(&self) -> BlackHoleState {
        BlackHoleState::start(self.triangle, self.history)
    }

    fn action_text(&self, action: Action) -> String {
        if action.index() >= self.triangle.cells() {
            return action.to_string();
        }
        self.triangle.cell_text(action.index())
    }
}
