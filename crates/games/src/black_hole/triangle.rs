//! The triangle of cells: rows, distances and symmetries. It knows no tiles.

use super::{CELLS_MAX, ROWS_MAX};
use crate::draw;
use crate::spec::Symmetry;

/// The cells of a triangle of `rows` rows; row `r` has `r + 1` of them, and cell `r (r + 1) / 2 + c` is the `c`-th.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triangle {
    rows: u8,
}

/// (row, place in the row) of every cell of the largest triangle. A smaller one is the first part of it.
const PLACES: [(u8, u8); CELLS_MAX] = {
    let mut places = [(0, 0); CELLS_MAX];
    let mut cell = 1;
    while cell < CELLS_MAX {
        let (row, col) = places[cell - 1];
        places[cell] = if col < row { (row, col + 1) } else { (row + 1, 0) };
        cell += 1;
    }
    places
};

impl Triangle {
    /// The triangle of `rows` rows, at most 10.
    pub fn new(rows: usize) -> Triangle {
        debug_assert!(rows <= ROWS_MAX, "{rows} rows");
        Triangle { rows: rows as u8 }
    }

    /// Number of rows.
    pub const fn rows(self) -> usize {
        self.rows as usize
    }

    /// Number of cells.
    pub const fn cells(self) -> usize {
        self.rows() * (self.rows() + 1) / 2
    }

    /// Number of tiles of each seat: all but one cell are filled, half by either.
    pub const fn tiles(self) -> usize {
        self.cells() / 2
    }

    /// Row and place in the row of `cell`.
    pub fn place(self, cell: usize) -> (usize, usize) {
        let (row, col) = PLACES[cell];
        (row as usize, col as usize)
    }

    /// Index of `cell` in a plane of `rows` x `rows`.
    pub(crate) fn in_plane(self, cell: usize) -> usize {
        let (row, col) = self.place(cell);
        row * self.rows() + col
    }

    /// Steps from one cell to another: the ring around the one in which the other lies. The triangle is convex, so the
    /// way never leaves it.
    pub fn distance(self, from: usize, to: usize) -> usize {
        let ((from_row, from_col), (to_row, to_col)) = (self.place(from), self.place(to));
        let rows = to_row as i32 - from_row as i32;
        let cols = to_col as i32 - from_col as i32;
        rows.abs().max(cols.abs()).max((rows - cols).abs()) as usize
    }

    /// Letter of the row from the tip, and place in the row from 1.
    pub(crate) fn cell_text(self, cell: usize) -> String {
        let (row, col) = self.place(cell);
        format!("{}{}", draw::column_letter(row), col + 1)
    }

    /// The six symmetries of the triangle. Off the board the square of the planes is empty, so its cells stay.
    pub(crate) fn symmetries(self) -> Vec<Symmetry> {
        let last = self.rows() - 1;
        let rotate = |(row, col): (usize, usize)| (last - col, row - col);
        let mirror = |(row, col): (usize, usize)| (row, row - col);
        vec![
            self.symmetry("identity", |place| place),
            self.symmetry("rotate 120", rotate),
            self.symmetry("rotate 240", |place| rotate(rotate(place))),
            self.symmetry("mirror left-right", mirror),
            self.symmetry("mirror through the left corner", |place| rotate(mirror(place))),
            self.symmetry("mirror through the right corner", |place| rotate(rotate(mirror(place)))),
        ]
    }

    fn symmetry(self, name: &'static str, map: impl Fn((usize, usize)) -> (usize, usize)) -> Symmetry {
        let actions: Vec<u16> = (0..self.cells())
            .map(|cell| {
                let (row, col) = map(self.place(cell));
                (row * (row + 1) / 2 + col) as u16
            })
            .collect();
        let mut cells: Vec<u16> = (0..(self.rows() * self.rows()) as u16).collect();
        for (cell, &image) in actions.iter().enumerate() {
            cells[self.in_plane(cell)] = self.in_plane(image as usize) as u16;
        }
        Symmetry { name, cells, actions }
    }
}
