//! The symmetries of a rectangular board as permutations of cells and actions.

use crate::spec::{ActionBlock, ActionLayout, Symmetry};

/// Where the cell at (row, column) of a board of `rows` x `cols` goes.
type CellMap = fn(row: usize, col: usize, rows: usize, cols: usize) -> (usize, usize);

const IDENTITY: (&str, CellMap) = ("identity", |row, col, _, _| (row, col));
const MIRROR_LEFT_RIGHT: (&str, CellMap) = ("mirror left-right", |row, col, _, cols| (row, cols - 1 - col));
const MIRROR_TOP_BOTTOM: (&str, CellMap) = ("mirror top-bottom", |row, col, rows, _| (rows - 1 - row, col));
const ROTATE_180: (&str, CellMap) = ("rotate 180", |row, col, rows, cols| (rows - 1 - row, cols - 1 - col));
/// These four need a square board.
const SQUARE_ONLY: [(&str, CellMap); 4] = [
    ("rotate 90", |row, col, rows, _| (col, rows - 1 - row)),
    ("rotate 270", |row, col, _, cols| (cols - 1 - col, row)),
    ("mirror main diagonal", |row, col, _, _| (col, row)),
    ("mirror anti-diagonal", |row, col, rows, cols| {
        (cols - 1 - col, rows - 1 - row)
    }),
];

/// Every symmetry of the bare board: eight for a square, four for a rectangle, fewer for a single row or column.
pub fn of_board(rows: usize, cols: usize, layout: &ActionLayout) -> Vec<Symmetry> {
    let mut maps = vec![IDENTITY, MIRROR_LEFT_RIGHT, MIRROR_TOP_BOTTOM, ROTATE_180];
    if rows == cols {
        maps.extend(SQUARE_ONLY);
    }
    distinct(&maps, rows, cols, layout)
}

/// The two symmetries of a board with gravity: identity and left-right mirror.
pub fn left_right(rows: usize, cols: usize, layout: &ActionLayout) -> Vec<Symmetry> {
    distinct(&[IDENTITY, MIRROR_LEFT_RIGHT], rows, cols, layout)
}

/// The two symmetries of a board whose sides differ by direction: identity and half turn.
pub fn half_turn(rows: usize, cols: usize, layout: &ActionLayout) -> Vec<Symmetry> {
    distinct(&[IDENTITY, ROTATE_180], rows, cols, layout)
}

fn distinct(maps: &[(&'static str, CellMap)], rows: usize, cols: usize, layout: &ActionLayout) -> Vec<Symmetry> {
    let mut found: Vec<Symmetry> = Vec::with_capacity(maps.len());
    for &(name, map) in maps {
        let symmetry = permutation(name, map, rows, cols, layout);
        if found.iter().all(|earlier| earlier.cells != symmetry.cells) {
            found.push(symmetry);
        }
    }
    found
}

fn permutation(name: &'static str, map: CellMap, rows: usize, cols: usize, layout: &ActionLayout) -> Symmetry {
    let cells: Vec<u16> = (0..rows * cols)
        .map(|cell| {
            let (row, col) = map(cell / cols, cell % cols, rows, cols);
            (row * cols + col) as u16
        })
        .collect();
    let mut actions = Vec::with_capacity(layout.len());
    for &block in layout.blocks() {
        let first = actions.len() as u16;
        match block {
            ActionBlock::Cells { planes } => {
                for plane in 0..planes {
                    let plane_first = first + (plane * rows * cols) as u16;
                    actions.extend(cells.iter().map(|&cell| plane_first + cell));
                }
            }
            ActionBlock::Columns => actions.extend((0..cols).map(|col| first + map(0, col, rows, cols).1 as u16)),
            ActionBlock::Triangle => {
                unreachable!("no symmetry of a rectangle but one keeps the triangle: it has its own")
            }
            ActionBlock::Global { count } => actions.extend((0..count as u16).map(|index| first + index)),
        }
    }
    Symmetry { name, cells, actions }
}
