//! The board of all games of stones in a line: two sets of stones, the runs through a cell, and the one parameterised
//! test that says which run wins.
//!
//! Nothing here knows seats, turns or openings.

/// Greatest number of rows and of columns of a board.
pub const SIDE_MAX: usize = 20;
/// Greatest number of cells of a board.
pub const CELLS_MAX: usize = SIDE_MAX * SIDE_MAX;
const WORDS: usize = CELLS_MAX.div_ceil(64);

/// The colour of a stone. Black places the first stone of every game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Colour {
    /// The first colour, drawn `X`.
    Black,
    /// The second colour, drawn `O`.
    White,
}

impl Colour {
    /// Both colours, black first.
    pub const BOTH: [Colour; 2] = [Colour::Black, Colour::White];

    /// The opposite colour.
    pub const fn other(self) -> Colour {
        match self {
            Colour::Black => Colour::White,
            Colour::White => Colour::Black,
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// A set of cells as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct CellSet([u64; WORDS]);

impl CellSet {
    const fn has(&self, cell: usize) -> bool {
        self.0[cell / 64] >> (cell % 64) & 1 == 1
    }

    const fn insert(&mut self, cell: usize) {
        self.0[cell / 64] |= 1 << (cell % 64);
    }
}

/// The four directions of a line as (row step, column step).
pub const DIRECTIONS: [(i8, i8); 4] = [(0, 1), (1, 0), (1, 1), (1, -1)];

/// What lies just beyond the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// An empty cell of the board.
    Empty,
    /// A stone of the other colour.
    Stone,
    /// The edge of the board.
    Edge,
}

/// A maximal unbroken run of one colour in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Number of stones, the placed one included.
    pub length: u8,
    /// What lies before and behind.
    pub ends: [End; 2],
}

/// Stones on a board of up to 20x20 cells. Cells are numbered row by row from the top left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Board {
    rows: u8,
    cols: u8,
    stones_len: u16,
    stones: [CellSet; 2],
}

impl Board {
    /// The empty board. Both sides are at most [`SIDE_MAX`].
    pub fn new(rows: usize, cols: usize) -> Board {
        debug_assert!(rows <= SIDE_MAX && cols <= SIDE_MAX, "board of {rows}x{cols}");
        Board {
            rows: rows as u8,
            cols: cols as u8,
            stones_len: 0,
            stones: [CellSet::default(); 2],
        }
    }

    /// Height.
    pub const fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Width.
    pub const fn cols(&self) -> usize {
        self.cols as usize
    }

    /// Number of cells.
    pub const fn cells(&self) -> usize {
        self.rows() * self.cols()
    }

    /// Number of stones.
    pub const fn stones_len(&self) -> usize {
        self.stones_len as usize
    }

    /// Whether no cell is empty.
    pub const fn is_full(&self) -> bool {
        self.stones_len() == self.cells()
    }

    /// The stone on `cell`.
    pub const fn get(&self, cell: usize) -> Option<Colour> {
        if self.has(cell, Colour::Black) {
            Some(Colour::Black)
        } else if self.has(cell, Colour::White) {
            Some(Colour::White)
        } else {
            None
        }
    }

    /// Whether a stone of `colour` lies on `cell`.
    pub const fn has(&self, cell: usize, colour: Colour) -> bool {
        self.stones[colour.index()].has(cell)
    }

    /// Whether `cell` is empty.
    pub const fn is_empty(&self, cell: usize) -> bool {
        self.get(cell).is_none()
    }

    /// Places a stone on an empty cell.
    pub fn place(&mut self, cell: usize, colour: Colour) {
        debug_assert!(self.is_empty(cell), "cell {cell} is taken");
        self.stones[colour.index()].insert(cell);
        self.stones_len += 1;
    }

    /// Calls `each` for every empty cell in ascending order.
    pub fn for_each_empty(&self, mut each: impl FnMut(usize)) {
        let [black, white] = &self.stones;
        self.for_each_bit(|word| !(black.0[word] | white.0[word]), &mut each);
    }

    /// Whether some empty cell has the property.
    pub fn any_empty(&self, has: impl FnMut(usize) -> bool) -> bool {
        (0..self.cells()).filter(|&cell| self.is_empty(cell)).any(has)
    }

    /// Calls `each` for every stone of `colour` in ascending order.
    pub fn for_each_stone(&self, colour: Colour, mut each: impl FnMut(usize)) {
        self.for_each_bit(|word| self.stones[colour.index()].0[word], &mut each);
    }

    /// The stones of `colour` in one row, a bit a column.
    pub(crate) fn row(&self, row: usize, colour: Colour) -> u32 {
        let first = row * self.cols();
        let words = &self.stones[colour.index()].0;
        let next = words.get(first / 64 + 1).copied().unwrap_or(0);
        let bits = (u128::from(next) << 64 | u128::from(words[first / 64])) >> (first % 64);
        bits as u32 & ((1 << self.cols()) - 1)
    }

    /// The maximal run of `colour` through `cell` in one of the [`DIRECTIONS`], as if such a stone lay on `cell`.
    pub fn run(&self, cell: usize, colour: Colour, (row_step, col_step): (i8, i8)) -> Run {
        let (behind, far) = self.walk(cell, colour, row_step, col_step);
        let (before, near) = self.walk(cell, colour, -row_step, -col_step);
        Run {
            length: before + 1 + behind,
            ends: [near, far],
        }
    }

    /// The stones as words, for hashing.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        let words = self.cells().div_ceil(64);
        let [black, white] = self.stones;
        (0..words).flat_map(move |word| [black.0[word], white.0[word]])
    }

    /// The board whose stone on `cells[i]` is this one's stone on `i`.
    pub fn permute(&self, cells: &[u16]) -> Board {
        let mut image = Board {
            stones: [CellSet::default(); 2],
            ..*self
        };
        for colour in Colour::BOTH {
            self.for_each_stone(colour, |cell| image.stones[colour.index()].insert(cells[cell] as usize));
        }
        image
    }

    fn for_each_bit(&self, bits: impl Fn(usize) -> u64, each: &mut impl FnMut(usize)) {
        let cells = self.cells();
        for word in 0..cells.div_ceil(64) {
            let mut left = bits(word);
            let cells_left = cells - word * 64;
            if cells_left < 64 {
                left &= (1 << cells_left) - 1;
            }
            while left != 0 {
                each(word * 64 + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
    }

    fn walk(&self, cell: usize, colour: Colour, row_step: i8, col_step: i8) -> (u8, End) {
        let (mut row, mut col) = ((cell / self.cols()) as i8, (cell % self.cols()) as i8);
        let mut steps = 0;
        loop {
            row += row_step;
            col += col_step;
            if row < 0 || col < 0 || row >= self.rows as i8 || col >= self.cols as i8 {
                return (steps, End::Edge);
            }
            match self.get(row as usize * self.cols() + col as usize) {
                Some(stone) if stone == colour => steps += 1,
                Some(_) => return (steps, End::Stone),
                None => return (steps, End::Empty),
            }
        }
    }
}

/// Whether the edge of the board leaves the end of a line open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EdgePolicy {
    /// The edge closes an end, as an opponent's stone does.
    Closed,
    /// Only an opponent's stone closes an end.
    Open,
}

/// Which ends a line of exactly the winning length needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ends {
    /// Any.
    Any,
    /// At least one open.
    OneOpen(EdgePolicy),
}

/// Whether a line longer than the winning length wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overline {
    /// It wins, whatever its ends.
    Wins,
    /// It is nothing: the game goes on.
    Nothing,
}

/// Which lines win.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LineRule {
    /// The winning length.
    pub length: u8,
    /// What a longer line is.
    pub overline: Overline,
    /// The ends that a line of exactly the winning length needs.
    pub ends: Ends,
}

impl LineRule {
    /// `length` or more in a row win.
    pub const fn at_least(length: u8) -> LineRule {
        LineRule {
            length,
            overline: Overline::Wins,
            ends: Ends::Any,
        }
    }

    /// Exactly `length` in a row win.
    pub const fn exactly(length: u8) -> LineRule {
        LineRule {
            overline: Overline::Nothing,
            ..LineRule::at_least(length)
        }
    }

    /// Whether `run` wins.
    pub fn wins(self, run: Run) -> bool {
        if run.length != self.length {
            return run.length > self.length && self.overline == Overline::Wins;
        }
        match self.ends {
            Ends::Any => true,
            Ends::OneOpen(edge) => run.ends.iter().any(|&end| match end {
                End::Empty => true,
                End::Edge => edge == EdgePolicy::Open,
                End::Stone => false,
            }),
        }
    }

    /// Whether a stone of `colour` on `cell` is, or would be, part of a winning line. One line is enough, whatever the
    /// others are.
    pub fn wins_at(self, board: &Board, cell: usize, colour: Colour) -> bool {
        DIRECTIONS
            .into_iter()
            .any(|direction| self.wins(board.run(cell, colour, direction)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDARD: LineRule = LineRule::exactly(5);
    const CARO8: LineRule = LineRule {
        length: 5,
        overline: Overline::Wins,
        ends: Ends::OneOpen(EdgePolicy::Open),
    };
    const CARO9: LineRule = LineRule {
        overline: Overline::Nothing,
        ..CARO8
    };
    const CARO5: LineRule = LineRule {
        ends: Ends::OneOpen(EdgePolicy::Closed),
        ..CARO9
    };

    /// Lays `pattern` on a 15x15 board in each of the four directions and checks who wins by the stone `*`.
    /// Order: freestyle (also renju white), standard (also renju black), caro8, caro9, caro5.
    fn check(pattern: &str, expected: [bool; 5]) {
        let at_edge = pattern.starts_with('|');
        let points: Vec<char> = pattern.chars().filter(|&point| point != '|').collect();
        for (row_step, col_step) in DIRECTIONS {
            let mut board = Board::new(15, 15);
            let inset = usize::from(!at_edge);
            let col_first = if col_step < 0 { 14 - inset } else { inset };
            let mut placed = None;
            for (index, point) in points.iter().enumerate() {
                let row = inset + index * row_step as usize;
                let cell = row * 15 + col_first.wrapping_add_signed(index as isize * col_step as isize);
                match point {
                    'X' | '*' => board.place(cell, Colour::Black),
                    'O' => board.place(cell, Colour::White),
                    _ => {}
                }
                if *point == '*' {
                    placed = Some(cell);
                }
            }
            let cell = placed.expect("every pattern has a `*`");
            let wins = [LineRule::at_least(5), STANDARD, CARO8, CARO9, CARO5]
                .map(|rule| rule.wins_at(&board, cell, Colour::Black));
            assert_eq!(wins, expected, "{pattern} in direction {row_step},{col_step}");
        }
    }

    #[test]
    fn the_line_matrix_of_the_rules_holds() {
        check(".XX*XX.", [true, true, true, true, true]);
        check("OXX*XX.", [true, true, true, true, true]);
        check("OXX*XXO", [true, true, false, false, false]);
        check("|XX*XX.", [true, true, true, true, true]);
        check("|XX*XXO", [true, true, true, true, false]);
        check(".XX*XXX.", [true, false, true, false, false]);
        check("OXX*XXXO", [true, false, true, false, false]);
        check("OXX*XXXX.", [true, false, true, false, false]);
        check("|XXXX*XXXXO", [true, false, true, false, false]);
    }

    #[test]
    fn four_in_a_row_never_win_five() {
        check(".XX*X.", [false; 5]);
        check(".XX*.XX.", [false; 5]);
    }

    #[test]
    fn empty_cells_of_a_board_that_ends_inside_a_word_are_listed_once() {
        for side in 1..=SIDE_MAX {
            let mut board = Board::new(side, side);
            board.place(side * side - 1, Colour::White);
            let mut empty = Vec::new();
            board.for_each_empty(|cell| empty.push(cell));
            assert_eq!(empty, (0..side * side - 1).collect::<Vec<_>>());
        }
    }
}
