//! The planes of threats and traps: runs of three or four that are still open, and cells
//! where a stone would make too long a line.
//!
//! They are facts about one board; whose turn it is and which game is played, the caller says.

use crate::line::{Board, CELLS_MAX, Colour, DIRECTIONS, LineRule, SIDE_MAX};
use crate::spec::Plane;

/// The planes that [`fill_threat_planes`] fills.
pub const THREAT_PLANES: [Plane; 3] = [
    Plane::binary("runs of three or four with an open end, colour to place"),
    Plane::binary("runs of three or four with an open end, other colour"),
    Plane::binary("traps: cells that would make six or more and not win"),
];

/// Fills three zero planes, `[3, H, W]`: threats of `colour`, threats of the other colour, traps of `colour`.
pub fn fill_threat_planes(board: &Board, colour: Colour, rule: LineRule, out: &mut [u8]) {
    let (mine, rest) = out.split_at_mut(board.cells());
    let (theirs, traps) = rest.split_at_mut(board.cells());
    let grid = Grid::new(board);
    grid.mark_threats(colour, mine);
    grid.mark_threats(colour.other(), theirs);
    grid.mark_traps(colour, rule, traps);
}

/// A copy of the board with a border, so that walking along a line needs no coordinates.
struct Grid<'a> {
    board: &'a Board,
    stride: usize,
    points: [Point; CELLS_MAX + 4 * SIDE_MAX + 4],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Point {
    Empty,
    Stone(Colour),
    Edge,
}

impl Grid<'_> {
    fn new(board: &Board) -> Grid<'_> {
        let stride = board.cols() + 2;
        let mut grid = Grid {
            board,
            stride,
            points: [Point::Edge; CELLS_MAX + 4 * SIDE_MAX + 4],
        };
        for row in 0..board.rows() {
            let first = grid.point(row * board.cols());
            grid.points[first..first + board.cols()].fill(Point::Empty);
        }
        for colour in Colour::BOTH {
            board.for_each_stone(colour, |cell| {
                let point = grid.point(cell);
                grid.points[point] = Point::Stone(colour);
            });
        }
        grid
    }

    /// The index of a cell in `points`.
    fn point(&self, cell: usize) -> usize {
        let cols = self.board.cols();
        (cell / cols + 1) * self.stride + cell % cols + 1
    }

    /// Number of stones of `colour` from `point` on, `point` itself left out, and the index behind them.
    fn walk(&self, point: usize, colour: Colour, step: isize) -> (u8, usize) {
        let mut length = 0;
        let mut next = point.wrapping_add_signed(step);
        while self.points[next] == Point::Stone(colour) {
            length += 1;
            next = next.wrapping_add_signed(step);
        }
        (length, next)
    }

    /// Calls `each` for every maximal run of `colour`, in every direction.
    fn for_each_run(&self, colour: Colour, mut each: impl FnMut(&StoneRun)) {
        let cols = self.board.cols() as isize;
        let steps = DIRECTIONS.map(|(row_step, col_step)| {
            let (row_step, col_step) = (row_step as isize, col_step as isize);
            (row_step * self.stride as isize + col_step, row_step * cols + col_step)
        });
        self.board.for_each_stone(colour, |cell| {
            let point = self.point(cell);
            for (step, cell_step) in steps {
                let before = point.wrapping_add_signed(-step);
                if self.points[before] != Point::Stone(colour) {
                    let (more, behind) = self.walk(point, colour, step);
                    each(&StoneRun {
                        cell,
                        cell_step,
                        step,
                        length: more + 1,
                        before,
                        behind,
                    });
                }
            }
        });
    }

    /// Marks the stones of every maximal run of three or four with an empty cell at one end. The edge is
    /// never an open end here, whatever the edge policy.
    fn mark_threats(&self, colour: Colour, out: &mut [u8]) {
        self.for_each_run(colour, |run| {
            let open = self.points[run.before] == Point::Empty || self.points[run.behind] == Point::Empty;
            if open && (3..=4).contains(&run.length) {
                for stone in 0..run.length {
                    out[run.cell.wrapping_add_signed(run.cell_step * stone as isize)] = 1;
                }
            }
        });
    }

    /// Marks every empty cell where `colour` would make six or more in some direction without winning.
    fn mark_traps(&self, colour: Colour, rule: LineRule, out: &mut [u8]) {
        self.for_each_run(colour, |run| {
            // Each end of a run, with the cell there and the way on.
            let last = run.length as isize;
            for (end, offset, step) in [(run.before, -1, -run.step), (run.behind, last, run.step)] {
                if self.points[end] != Point::Empty {
                    continue;
                }
                let (beyond, _) = self.walk(end, colour, step);
                let cell = run.cell.wrapping_add_signed(run.cell_step * offset);
                if run.length + 1 + beyond > rule.length && !rule.wins_at(self.board, cell, colour) {
                    out[cell] = 1;
                }
            }
        });
    }
}

/// A maximal run of stones in a grid.
struct StoneRun {
    /// The first stone, as a cell of the board.
    cell: usize,
    /// From one stone to the next, in cells and in points.
    cell_step: isize,
    step: isize,
    length: u8,
    /// The points just outside.
    before: usize,
    behind: usize,
}
