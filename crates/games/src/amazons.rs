//! `amazons`: an amazon slides like a queen, then shoots an arrow like a queen from where it stands; who cannot move
//! loses.
//!
//! A move has three stages: the amazon, its destination, the arrow. The amazon is lifted first, so it may shoot through
//! and onto the point that it left.

use crate::draw;
use crate::fen;
use crate::game::{Outcome, Reason, Seat};
use crate::params::{Params, ParseGameError};
use crate::registry::Family;
use crate::spec::Plane;
use crate::staged::{Passing, Points, StagedGame, StagedRules};

/// `amazons` in the registry.
pub const FAMILY: Family<Amazons> = Family {
    name: "amazons",
    summary: "slide an amazon, shoot an arrow; who cannot move loses",
    rules: "Each side has amazons: four, on the 4x4 board two. They move like queens in chess. A turn has three \
            stages, each an action: pick an amazon that can move, the empty cell it moves to, and the empty cell \
            where it shoots an arrow, as a queen from where it now stands; the cell it left counts as empty. An \
            arrow blocks its cell for good, and nothing passes over amazons or arrows. Nothing is captured and \
            nobody passes: who cannot move at the start of a turn loses.",
    parameters: "size=10|6|4",
    samples: &["amazons?size=6", "amazons?size=4"],
    build,
};

/// The game.
pub type Amazons = StagedGame<AmazonsBoard>;

/// The starts: 10x10 is the common one, 6x6 is ours, 4x4 is for exact solvers. Upper case moves first.
const STARTS: [(&str, &str); 3] = [
    ("10", "3q2q3/10/10/q8q/10/10/Q8Q/10/10/3Q2Q3"),
    ("6", "1Q2Q1/Q4Q/6/6/q4q/1q2q1"),
    ("4", "2q1/q3/3Q/1Q2"),
];
const PIECES: &str = "Qq*";
const DIRECTIONS: [(isize, isize); 8] = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)];

fn build(mut params: Params) -> Result<Amazons, ParseGameError> {
    let choices = STARTS.map(|(size, start)| (size, (size, start)));
    let (size, start) = params.choice("size", &choices)?;
    let side: usize = size.parse().map_err(|_| params.bad_value("size", size, "a number"))?;
    let empty = AmazonsBoard {
        side: side as u8,
        ..AmazonsBoard::default()
    };
    let board = empty.read(start).map_err(|why| params.bad_value("size", size, why))?;
    let arrows_max = side * side - board.amazons[0].len() - board.amazons[1].len();
    Ok(StagedGame::new(
        params.finish()?,
        board,
        arrows_max * AmazonsBoard::STAGES,
    ))
}

/// The amazons of both seats and the arrows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AmazonsBoard {
    side: u8,
    amazons: [Points; 2],
    arrows: Points,
}

impl AmazonsBoard {
    fn side(&self) -> usize {
        self.side as usize
    }

    fn empties(&self) -> Points {
        let taken = self.amazons[0].or(self.amazons[1]).or(self.arrows);
        Points::below(self.side() * self.side()).without(taken)
    }

    /// The point one step from `point`, if it is on the board.
    fn step(&self, point: usize, (row_step, col_step): (isize, isize)) -> Option<usize> {
        let side = self.side();
        let row = (point / side).checked_add_signed(row_step).filter(|&row| row < side)?;
        let col = (point % side).checked_add_signed(col_step).filter(|&col| col < side)?;
        Some(row * side + col)
    }

    /// Points that a queen on `from` reaches.
    fn slides(&self, from: usize) -> Points {
        let empties = self.empties();
        let mut reached = Points::EMPTY;
        for direction in DIRECTIONS {
            let mut next = self.step(from, direction);
            while let Some(point) = next.filter(|&point| empties.has(point)) {
                reached.insert(point);
                next = self.step(point, direction);
            }
        }
        reached
    }

    fn can_move(&self, seat: Seat) -> bool {
        let empties = self.empties();
        self.amazons[seat.index()].iter().any(|amazon| {
            DIRECTIONS
                .into_iter()
                .any(|direction| self.step(amazon, direction).is_some_and(|point| empties.has(point)))
        })
    }

    /// The board part of a position text on a board of this side.
    fn read(&self, text: &str) -> Result<AmazonsBoard, String> {
        let points = fen::parse_board(text, self.side(), self.side(), PIECES)?;
        let set = |piece| (0..points.len()).filter(|&point| points[point] == piece).collect();
        Ok(AmazonsBoard {
            side: self.side,
            amazons: [set('Q'), set('q')],
            arrows: set('*'),
        })
    }
}

impl StagedRules for AmazonsBoard {
    const STAGES: usize = 3;
    const PASSING: Passing = Passing::Never;
    const PLANES: &'static [Plane] = &[
        Plane::binary("amazons of the acting seat"),
        Plane::binary("amazons of the other seat"),
        Plane::binary("arrows"),
    ];

    fn rows(&self) -> usize {
        self.side()
    }

    fn cols(&self) -> usize {
        self.side()
    }

    fn candidates(&self, seat: Seat, picked: &[u8]) -> Points {
        match picked.last() {
            None => self.amazons[seat.index()],
            Some(&from) => self.slides(from as usize),
        }
    }

    fn lift(&mut self, seat: Seat, point: u8) {
        self.amazons[seat.index()].remove(point as usize);
    }

    fn play(&mut self, seat: Seat, points: &[u8]) {
        self.amazons[seat.index()].insert(points[1] as usize);
        self.arrows.insert(points[2] as usize);
    }

    fn outcome(&self, seat: Seat) -> Option<Outcome> {
        let stuck = !self.can_move(seat);
        stuck.then(|| Outcome::win(seat.other(), Reason::NoMoves))
    }

    fn fill_planes(&self, seat: Seat, out: &mut [u8]) {
        let sets = [
            self.amazons[seat.index()],
            self.amazons[seat.other().index()],
            self.arrows,
        ];
        let cells = self.side() * self.side();
        for (plane, set) in out.chunks_exact_mut(cells).zip(sets) {
            set.fill(plane);
        }
    }

    fn words(&self) -> [u64; 6] {
        let [a, b] = self.amazons[0].words();
        let [c, d] = self.amazons[1].words();
        let [e, f] = self.arrows.words();
        [a, b, c, d, e, f]
    }

    fn permute(&self, cells: &[u16]) -> AmazonsBoard {
        AmazonsBoard {
            side: self.side,
            amazons: self.amazons.map(|amazons| amazons.permute(cells)),
            arrows: self.arrows.permute(cells),
        }
    }

    fn symbol(&self, point: usize) -> char {
        if self.amazons[0].has(point) {
            'Q'
        } else if self.amazons[1].has(point) {
            'q'
        } else if self.arrows.has(point) {
            '*'
        } else {
            '.'
        }
    }

    /// Written `d1-d4-a4`.
    fn move_text(&self, _seat: Seat, points: &[u8]) -> String {
        let texts: Vec<String> = points
            .iter()
            .map(|&point| draw::cell_text(point as usize, self.side(), self.side()))
            .collect();
        texts.join("-")
    }

    /// Reads `d1-d4-a4`, `d1-d4/a4` and `d1d4,d4a4`.
    fn parse_move(&self, _seat: Seat, text: &str) -> Option<Vec<u8>> {
        let mut points = Vec::with_capacity(4);
        let mut rest = text;
        while !rest.is_empty() {
            let (point, after) = draw::split_cell(rest, self.side(), self.side())?;
            points.push(point as u8);
            rest = after.strip_prefix(['-', '/', ',']).unwrap_or(after);
        }
        // Fairy-Stockfish names the destination again before the arrow.
        if points.len() == 4 && points[1] == points[2] && text.contains(',') {
            points.remove(2);
        }
        (points.len() == Self::STAGES && !text.ends_with(['-', '/', ','])).then_some(points)
    }

    /// Reads `BOARD [w|b] ...`: upper case is seat 0 and `w`. What follows the side to move is not needed.
    fn parse_position(&self, text: &str) -> Result<(AmazonsBoard, Seat, u32), String> {
        let mut fields = text.split_whitespace();
        let board = self.read(fields.next().unwrap_or_default())?;
        let seat = match fields.next() {
            None | Some("w") => Seat::FIRST,
            Some("b") => Seat::SECOND,
            Some(side) => return Err(format!("`{side}` to move is neither w nor b")),
        };
        Ok((board, seat, board.arrows.len() as u32))
    }

    fn position_text(&self, seat: Seat, turn: u32) -> String {
        let board = fen::board_text(self.side(), self.side(), |point| self.symbol(point));
        let side = if seat == Seat::FIRST { 'w' } else { 'b' };
        format!("{board} {side} - - 0 {}", turn / 2 + 1)
    }
}
