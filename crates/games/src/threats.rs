//! The planes of threats and traps: runs of three or four that are still open, and cells
//! where a stone would make too long a line.
//!
//! They are facts about one board; whose turn it is and which game is played, the caller says.

use crate::line::{Board, Colour, DIRECTIONS, LineRule, SIDE_MAX};
use crate::spec::Plane;

/// The planes that [`fill_threat_planes`] fills.
pub const THREAT_PLANES: [Plane; 3] = [
    Plane::binary("runs of three or four with an open end, colour to place"),
    Plane::binary("runs of three or four with an open end, other colour"),
    Plane::binary("traps: cells that would make six or more and not win"),
];

/// Stones of the shortest run that is a threat.
const THREAT_MIN: u8 = 3;

/// Fills three zero planes, `[3, H, W]`: threats of `colour`, threats of the other colour, traps of `colour`.
pub fn fill_threat_planes(board: &Board, colour: Colour, rule: LineRule, out: &mut [u8]) {
    let (mine, rest) = out.split_at_mut(board.cells());
    let (theirs, traps) = rest.split_at_mut(board.cells());
    let grid = Grid::new(board);
    // A trap lies between two runs that have at least a winning line's stones together, or beside one that has.
    let joined_min = rule.length.div_ceil(2);
    grid.for_each_run(colour, joined_min.min(THREAT_MIN), |run| {
        grid.mark_threat(run, mine);
        grid.mark_traps(run, colour, rule, traps);
    });
    grid.for_each_run(colour.other(), THREAT_MIN, |run| grid.mark_threat(run, theirs));
}

/// A copy of the board with a border, in which a line goes on by a fixed number of points and never leaves the board without
/// crossing the border. All points lie in a few words, so runs are looked for everywhere at once.
struct Grid<'a> {
    board: &'a Board,
    stride: usize,
    stones: [Points; 2],
    empty: Points,
}

impl Grid<'_> {
    fn new(board: &Board) -> Grid<'_> {
        let mut grid = Grid {
            board,
            stride: board.cols() + 1,
            stones: [Points::default(); 2],
            empty: Points::default(),
        };
        let all = (1 << board.cols()) - 1;
        for row in 0..board.rows() {
            let first = grid.point(row * board.cols());
            let [black, white] = Colour::BOTH.map(|colour| board.row(row, colour));
            grid.stones[Colour::Black.index()].insert_all(first, black);
            grid.stones[Colour::White.index()].insert_all(first, white);
            grid.empty.insert_all(first, all & !(black | white));
        }
        grid
    }

    /// The point of a cell. One column is the border of the row before it and of the row behind it.
    fn point(&self, cell: usize) -> usize {
        let cols = self.board.cols();
        (cell / cols + 1) * self.stride + cell % cols + 1
    }

    /// The cell of a point that is not on the border.
    fn cell(&self, point: usize) -> usize {
        (point / self.stride - 1) * self.board.cols() + point % self.stride - 1
    }

    fn stones(&self, colour: Colour) -> &Points {
        &self.stones[colour.index()]
    }

    /// Number of stones of `colour` from `point` on, `point` itself left out, and the point behind them.
    fn walk(&self, point: usize, colour: Colour, step: isize) -> (u8, usize) {
        let mut length = 0;
        let mut next = point.wrapping_add_signed(step);
        while self.stones(colour).has(next) {
            length += 1;
            next = next.wrapping_add_signed(step);
        }
        (length, next)
    }

    /// Calls `each` for every maximal run of `colour` of at least `length_min` stones, in every direction.
    fn for_each_run(&self, colour: Colour, length_min: u8, mut each: impl FnMut(&StoneRun)) {
        let stones = self.stones(colour);
        for (row_step, col_step) in DIRECTIONS {
            let step = row_step as isize * self.stride as isize + col_step as isize;
            let mut long = *stones;
            for _ in 1..length_min {
                long = stones.and(&long.moved_back(step.unsigned_abs()));
            }
            long.for_each(|first| {
                let before = first.wrapping_add_signed(-step);
                if stones.has(before) {
                    return;
                }
                let (more, behind) = self.walk(first, colour, step);
                each(&StoneRun {
                    first,
                    step,
                    length: more + 1,
                    before,
                    behind,
                });
            });
        }
    }

    /// Marks the stones of a run of three or four with an empty cell at one end. The edge is never an open end here,
    /// whatever the edge policy.
    fn mark_threat(&self, run: &StoneRun, out: &mut [u8]) {
        let open = self.empty.has(run.before) || self.empty.has(run.behind);
        if open && (THREAT_MIN..=4).contains(&run.length) {
            for stone in 0..run.length {
                out[self.cell(run.first.wrapping_add_signed(run.step * stone as isize))] = 1;
            }
        }
    }

    /// Marks the empty cells at the ends of a run where `colour` would make six or more without winning.
    fn mark_traps(&self, run: &StoneRun, colour: Colour, rule: LineRule, out: &mut [u8]) {
        for (end, onwards) in [(run.before, -run.step), (run.behind, run.step)] {
            if !self.empty.has(end) {
                continue;
            }
            let (beyond, _) = self.walk(end, colour, onwards);
            if run.length + 1 + beyond > rule.length {
                let cell = self.cell(end);
                out[cell] |= u8::from(!rule.wins_at(self.board, cell, colour));
            }
        }
    }
}

/// A maximal run of stones in a grid.
struct StoneRun {
    /// The first stone.
    first: usize,
    /// From one stone to the next.
    step: isize,
    length: u8,
    /// The points just outside.
    before: usize,
    behind: usize,
}

/// Words that hold the points of the greatest grid: a border above and below, and one column of it.
const WORDS: usize = ((SIDE_MAX + 2) * (SIDE_MAX + 1) + 1).div_ceil(64);

/// A set of points of a grid, as bits.
#[derive(Clone, Copy, Default)]
struct Points([u64; WORDS]);

impl Points {
    fn has(&self, point: usize) -> bool {
        self.0[point / 64] >> (point % 64) & 1 == 1
    }

    /// Adds those of the points from `first` on whose bits are set.
    fn insert_all(&mut self, first: usize, bits: u32) {
        let bits = u128::from(bits) << (first % 64);
        self.0[first / 64] |= bits as u64;
        if let Some(word) = self.0.get_mut(first / 64 + 1) {
            *word |= (bits >> 64) as u64;
        }
    }

    fn and(&self, other: &Points) -> Points {
        Points(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    /// Every point moved back by `step`, which is at least 1 and less than 64; those that come before the first one fall out.
    fn moved_back(&self, step: usize) -> Points {
        Points(std::array::from_fn(|word| {
            let next = self.0.get(word + 1).copied().unwrap_or(0);
            self.0[word] >> step | next << (64 - step)
        }))
    }

    fn for_each(&self, mut each: impl FnMut(usize)) {
        for (word, &bits) in self.0.iter().enumerate() {
            let mut left = bits;
            while left != 0 {
                each(word * 64 + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
    }
}
