//! Pieces on their points: how each moves, and when a general is attacked.
//!
//! Nothing here knows turns, captures so far or repetition. Rows count from the top, where Black sits; Red's pieces go up.

use crate::game::Seat;
use crate::staged::Points;

pub(super) const ROWS: usize = 10;
pub(super) const COLS: usize = 9;
pub(super) const POINTS: usize = ROWS * COLS;

const ORTHOGONALS: [Step; 4] = [(-1, 0), (0, -1), (0, 1), (1, 0)];
const DIAGONALS: [Step; 4] = [(-1, -1), (-1, 1), (1, -1), (1, 1)];

/// Rows and columns to go.
type Step = (isize, isize);

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    General,
    Advisor,
    Elephant,
    Horse,
    Rook,
    Cannon,
    Soldier,
}

impl Kind {
    /// In the order of the planes.
    pub(super) const ALL: [Kind; 7] = [
        Kind::General,
        Kind::Advisor,
        Kind::Elephant,
        Kind::Horse,
        Kind::Rook,
        Kind::Cannon,
        Kind::Soldier,
    ];
    /// Letters in the same order, as position texts have them.
    const LETTERS: [char; 7] = ['k', 'a', 'b', 'n', 'r', 'c', 'p'];
}

/// One piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) seat: Seat,
    pub(super) kind: Kind,
}

impl Piece {
    /// The piece of this letter, upper case for Red.
    pub(super) fn of_letter(letter: char) -> Option<Piece> {
        let index = Kind::LETTERS
            .iter()
            .position(|&known| known == letter.to_ascii_lowercase())?;
        let seat = if letter.is_ascii_uppercase() {
            Seat::FIRST
        } else {
            Seat::SECOND
        };
        let kind = Kind::ALL[index];
        Some(Piece { seat, kind })
    }

    pub(super) fn letter(self) -> char {
        let letter = Kind::LETTERS[self.kind as usize];
        if self.seat == Seat::FIRST {
            letter.to_ascii_uppercase()
        } else {
            letter
        }
    }

    /// A number from 1 to 14.
    pub(super) const fn code(self) -> u64 {
        1 + self.kind as u64 + 7 * self.seat.index() as u64
    }
}

/// The point at a step from `point`, if it is on the board.
fn step(point: usize, (rows, cols): Step) -> Option<usize> {
    let row = (point / COLS).checked_add_signed(rows).filter(|&row| row < ROWS)?;
    let col = (point % COLS).checked_add_signed(cols).filter(|&col| col < COLS)?;
    Some(row * COLS + col)
}

/// The points from `point` to the edge, in order.
fn ray(point: usize, direction: Step) -> impl Iterator<Item = usize> {
    std::iter::successors(step(point, direction), move |&point| step(point, direction))
}

/// Rows up (negative) or down that a soldier goes.
const fn forward(seat: Seat) -> isize {
    if seat.index() == 0 { -1 } else { 1 }
}

/// Whether `point` lies on the half of the board where `seat` sits.
const fn is_at_home(point: usize, seat: Seat) -> bool {
    (point / COLS >= ROWS / 2) == (seat.index() == 0)
}

/// Whether `point` lies in the palace of `seat`: the three middle columns of its last three rows.
pub(super) fn is_in_palace(point: usize, seat: Seat) -> bool {
    let (row, col) = (point / COLS, point % COLS);
    let rows = if seat == Seat::FIRST { 7..=9 } else { 0..=2 };
    rows.contains(&row) && (3..=5).contains(&col)
}

/// Which piece is on which point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pieces([Option<Piece>; POINTS]);

impl Pieces {
    pub(super) const EMPTY: Pieces = Pieces([None; POINTS]);

    pub(super) const fn get(&self, point: usize) -> Option<Piece> {
        self.0[point]
    }

    pub(super) const fn set(&mut self, point: usize, piece: Piece) {
        self.0[point] = Some(piece);
    }

    pub(super) const fn take(&mut self, point: usize) -> Option<Piece> {
        self.0[point].take()
    }

    fn is_of(&self, point: usize, seat: Seat) -> bool {
        self.0[point].is_some_and(|piece| piece.seat == seat)
    }

    pub(super) fn of(&self, seat: Seat) -> Points {
        (0..POINTS).filter(|&point| self.is_of(point, seat)).collect()
    }

    pub(super) fn permute(&self, cells: &[u16]) -> Pieces {
        let mut image = Pieces::EMPTY;
        for (piece, &cell) in self.0.iter().zip(cells) {
            image.0[cell as usize] = *piece;
        }
        image
    }

    /// Four bits a point.
    pub(super) fn words(&self) -> impl Iterator<Item = u64> {
        let code = |piece: &Option<Piece>| piece.map_or(0, Piece::code);
        self.0
            .chunks(16)
            .map(move |points| points.iter().fold(0, |word, piece| word << 4 | code(piece)))
    }

    /// Where `piece`, lifted from `origin`, may go if the safety of its general is left aside.
    pub(super) fn reach(&self, origin: usize, piece: Piece) -> Points {
        let mut reached = Points::EMPTY;
        let seat = piece.seat;
        match piece.kind {
            Kind::General => self.steps(origin, &ORTHOGONALS, |point| is_in_palace(point, seat), &mut reached),
            Kind::Advisor => self.steps(origin, &DIAGONALS, |point| is_in_palace(point, seat), &mut reached),
            Kind::Elephant => self.two_diagonal_steps(origin, seat, &mut reached),
            Kind::Horse => self.leaps(origin, &mut reached),
            Kind::Rook => self.slides(origin, &mut reached),
            Kind::Cannon => self.slides_and_jumps(origin, &mut reached),
            Kind::Soldier => {
                let directions = [(forward(seat), 0), (0, -1), (0, 1)];
                let crossed = !is_at_home(origin, seat);
                let directions = &directions[..if crossed { 3 } else { 1 }];
                self.steps(origin, directions, |_| true, &mut reached);
            }
        }
        reached.filter(|point| !self.is_of(point as usize, seat))
    }

    fn steps(&self, origin: usize, directions: &[Step], may: impl Fn(usize) -> bool, reached: &mut Points) {
        let points = directions.iter().filter_map(|&direction| step(origin, direction));
        points
            .filter(|&point| may(point))
            .for_each(|point| reached.insert(point));
    }

    /// An elephant: the point between (its eye) is empty, and the river is not crossed.
    fn two_diagonal_steps(&self, origin: usize, seat: Seat, reached: &mut Points) {
        for direction in DIAGONALS {
            let eye = step(origin, direction).filter(|&eye| self.0[eye].is_none());
            let point = eye.and_then(|eye| step(eye, direction));
            if let Some(point) = point.filter(|&point| is_at_home(point, seat)) {
                reached.insert(point);
            }
        }
    }

    /// A horse: one step along a line, where nothing may stand (its leg), and one diagonal step on.
    fn leaps(&self, origin: usize, reached: &mut Points) {
        for (rows, cols) in ORTHOGONALS {
            let Some(leg) = step(origin, (rows, cols)).filter(|&leg| self.0[leg].is_none()) else {
                continue;
            };
            for side in [-1, 1] {
                let on = if rows == 0 { (side, cols) } else { (rows, side) };
                if let Some(point) = step(leg, on) {
                    reached.insert(point);
                }
            }
        }
    }

    /// A rook: to the first piece of each line and onto it.
    fn slides(&self, origin: usize, reached: &mut Points) {
        for direction in ORTHOGONALS {
            for point in ray(origin, direction) {
                reached.insert(point);
                if self.0[point].is_some() {
                    break;
                }
            }
        }
    }

    /// A cannon: over empty points, and onto the piece behind the first one (its screen).
    fn slides_and_jumps(&self, origin: usize, reached: &mut Points) {
        for direction in ORTHOGONALS {
            let mut line = ray(origin, direction);
            for point in line.by_ref() {
                if self.0[point].is_some() {
                    break;
                }
                reached.insert(point);
            }
            if let Some(point) = line.find(|&point| self.0[point].is_some()) {
                reached.insert(point);
            }
        }
    }

    /// Whether the general of `seat` could be taken on `point`. The generals count too: they may not face each other.
    pub(super) fn attacks(&self, point: usize, seat: Seat) -> bool {
        self.is_attacked_along_lines(point, seat) || self.is_attacked_by_horse(point, seat)
    }

    fn is_attacked_along_lines(&self, point: usize, seat: Seat) -> bool {
        let enemy = seat.other();
        ORTHOGONALS.into_iter().any(|direction| {
            let mut pieces = ray(point, direction).filter_map(|at| Some((at, self.0[at]?)));
            let Some((at, first)) = pieces.next() else {
                return false;
            };
            let by_first = first.seat == enemy
                && match first.kind {
                    Kind::Rook => true,
                    Kind::General => direction.1 == 0,
                    Kind::Soldier => {
                        let beside = step(point, direction) == Some(at);
                        beside && (direction.0 == -forward(enemy) || direction.0 == 0 && !is_at_home(at, enemy))
                    }
                    _ => false,
                };
            let cannon = Piece {
                seat: enemy,
                kind: Kind::Cannon,
            };
            by_first || pieces.next().is_some_and(|(_, second)| second == cannon)
        })
    }

    fn is_attacked_by_horse(&self, point: usize, seat: Seat) -> bool {
        let horse = Piece {
            seat: seat.other(),
            kind: Kind::Horse,
        };
        DIAGONALS.into_iter().any(|(rows, cols)| {
            let leg = step(point, (rows, cols)).filter(|&leg| self.0[leg].is_none());
            let from = |on: Step| leg.and_then(|leg| step(leg, on));
            [from((rows, 0)), from((0, cols))]
                .into_iter()
                .flatten()
                .any(|at| self.0[at] == Some(horse))
        })
    }
}
