//! Renju's forbidden points: black's overlines, double fours and double threes, by the recursive definition.
//!
//! Only a stone and its four lines are looked at; whose turn it is, the caller knows.

use crate::game::Reason;
use crate::line::{Board, Colour, DIRECTIONS};

/// Why a black stone loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foul {
    /// Six or more in a row.
    Overline,
    /// Two fours at once.
    DoubleFour,
    /// Two threes at once.
    DoubleThree,
}

impl Foul {
    /// The reason under which a game ends by this foul.
    pub const fn reason(self) -> Reason {
        match self {
            Foul::Overline => Reason::Overline,
            Foul::DoubleFour => Reason::DoubleFour,
            Foul::DoubleThree => Reason::DoubleThree,
        }
    }
}

/// The foul that a black stone on `cell`, empty or just taken by it, is. A stone that makes five is none, whatever else
/// it makes.
pub fn foul(board: &Board, cell: usize) -> Option<Foul> {
    match judge(board, cell) {
        Verdict::Foul(foul) => Some(foul),
        Verdict::Five | Verdict::Sound => None,
    }
}

/// What a black stone makes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Five,
    Foul(Foul),
    Sound,
}

fn judge(board: &Board, cell: usize) -> Verdict {
    let lines = DIRECTIONS.map(|direction| Line::read(board, cell, direction));
    if lines.iter().any(|line| line.run() == 5) {
        return Verdict::Five;
    }
    if lines.iter().any(|line| line.run() > 5) {
        return Verdict::Foul(Foul::Overline);
    }
    if lines.iter().map(|line| line.fours()).sum::<u32>() >= 2 {
        return Verdict::Foul(Foul::DoubleFour);
    }
    // A three needs a look at further stones, so it is worth one only where a second is possible.
    let possible = lines.iter().filter(|line| line.straight_four_points().next().is_some());
    if possible.count() >= 2 && is_double_three(board, cell, &lines) {
        return Verdict::Foul(Foul::DoubleThree);
    }
    Verdict::Sound
}

/// Whether two of the lines hold a three: a stone could make a straight four there and is itself neither five nor foul.
/// Each level of the recursion adds a stone, so it ends.
fn is_double_three(board: &Board, cell: usize, lines: &[Line; 4]) -> bool {
    let mut after = *board;
    if after.is_empty(cell) {
        after.place(cell, Colour::Black);
    }
    let is_three = |line: &&Line| {
        line.straight_four_points()
            .any(|offset| judge(&after, line.cell(offset)) == Verdict::Sound)
    };
    lines.iter().filter(is_three).take(2).count() == 2
}

/// Cells to each side of the stone that its fours can depend on.
const REACH: usize = 5;
/// Cells of a line, the stone in the middle.
const LINE_CELLS: usize = 2 * REACH + 1;

/// The stretch of a line around a black stone, one bit a cell. White stones and the edge are in neither set.
struct Line {
    black: u16,
    empty: u16,
    /// The stone and the distance from a cell of the line to the next, in cells of the board.
    centre: usize,
    step: isize,
}

impl Line {
    fn read(board: &Board, centre: usize, (row_step, col_step): (i8, i8)) -> Line {
        let (rows, cols) = (board.rows() as isize, board.cols() as isize);
        let (row_step, col_step) = (row_step as isize, col_step as isize);
        let mut line = Line {
            black: 1 << REACH,
            empty: 0,
            centre,
            step: row_step * cols + col_step,
        };
        let (row, col) = (centre as isize / cols, centre as isize % cols);
        for index in (0..LINE_CELLS).filter(|&index| index != REACH) {
            let offset = index as isize - REACH as isize;
            let (row, col) = (row + offset * row_step, col + offset * col_step);
            if row < 0 || col < 0 || row >= rows || col >= cols {
                continue;
            }
            match board.get((row * cols + col) as usize) {
                Some(Colour::Black) => line.black |= 1 << index,
                Some(Colour::White) => {}
                None => line.empty |= 1 << index,
            }
        }
        line
    }

    /// The cell at this index of the line.
    fn cell(&self, index: usize) -> usize {
        self.centre
            .wrapping_add_signed((index as isize - REACH as isize) * self.step)
    }

    /// Length of the unbroken run through the stone, as far as the line reaches.
    fn run(&self) -> u32 {
        let onward = (self.black >> REACH).trailing_ones();
        let back = (self.black << (u16::BITS as usize - REACH)).leading_ones();
        onward + back
    }

    /// Number of fours through the stone: sets of four stones to which one stone can be added to make exactly five. A
    /// straight four is one, though two cells complete it.
    fn fours(&self) -> u32 {
        let (mut count, mut last) = (0, 0);
        for first in 1..=REACH {
            let window = 0b1_1111 << first;
            let stones = self.black & window;
            let beyond = 1 << (first - 1) | 1 << (first + 5);
            let is_four = stones.count_ones() == 4 && self.empty & window != 0 && self.black & beyond == 0;
            // Only neighbouring windows can hold the same four stones.
            if is_four && stones != last {
                count += 1;
                last = stones;
            }
        }
        count
    }

    /// Indexes of the empty cells where a stone makes a straight four through the stone: an unbroken four whose two ends
    /// are empty and complete exactly five.
    fn straight_four_points(&self) -> impl Iterator<Item = usize> + '_ {
        (2..=REACH).filter_map(|first| {
            let four: u16 = 0b1111 << first;
            let missing = four & !self.black;
            let ends = 1 << (first - 1) | 1 << (first + 4);
            let beyond = 1 << (first - 2) | 1 << (first + 5);
            let makes_four = missing.count_ones() == 1 && missing & self.empty != 0;
            let is_straight = self.empty & ends == ends && self.black & beyond == 0;
            (makes_four && is_straight).then_some(missing.trailing_zeros() as usize)
        })
    }
}
