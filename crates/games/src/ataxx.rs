//! `ataxx`: clone a stone one step or jump two, and turn the stones around it; most stones win.
//!
//! A move has two stages, origin and destination. Passing is legal only without a move. A clone can be picked from any
//! stone beside its destination; people name it by the destination alone, which here stands for the origin of lowest
//! index, and a clone from another origin is written with both points, so that no text loses a stage.

use crate::draw;
use crate::fen;
use crate::game::{Outcome, Reason, Seat};
use crate::params::{Params, ParseGameError};
use crate::registry::Family;
use crate::spec::Plane;
use crate::staged::{Passing, Points, StagedGame, StagedRules};

/// `ataxx` in the registry.
pub const FAMILY: Family<Ataxx> = Family {
    name: "ataxx",
    summary: "clone or jump, turn the stones around; most stones win",
    rules: "Seat 0 has the stones in the top left and bottom right corners. A turn has two stages, each an action: \
            pick a stone that can move, then an empty cell. At distance one, diagonals counted, a second stone is \
            placed there (a clone); at distance two the stone jumps there, over anything. Then all enemy stones \
            beside that cell change sides. Nothing enters a wall. A seat without a move passes if the other can \
            move, and only then. Who has no stone left loses. When neither seat can move, most stones win and equal \
            numbers are a draw. A hundred moves in a row without a clone, passes counted, are a draw if nothing else \
            ended the game.",
    parameters: "walls=none|square|diamond",
    samples: &["ataxx?walls=square", "ataxx?walls=diamond"],
    build,
};

/// The game.
pub type Ataxx = StagedGame<AtaxxBoard>;

const SIDE: usize = 7;
const CELLS: usize = SIDE * SIDE;
/// Moves in a row without a clone that make a draw.
const QUIET_MOVES_MAX: u8 = 100;
const PIECES: &str = "xo-";
/// Each start with its walls.
const STARTS: [(&str, &str); 3] = [
    ("none", "x5o/7/7/7/7/7/o5x"),
    ("square", "x5o/7/2-1-2/7/2-1-2/7/o5x"),
    ("diamond", "x5o/7/3-3/2-1-2/3-3/7/o5x"),
];
/// How a pass is written in lists of moves.
const PASS: &str = "0000";

fn build(mut params: Params) -> Result<Ataxx, ParseGameError> {
    let start = params.choice("walls", &STARTS)?;
    let board = AtaxxBoard::read(start).map_err(|why| params.bad_value("walls", start, why))?;
    // Every clone fills a point, and fewer than a hundred other moves lie between two of them.
    let clones_max = board.empties().len();
    let moves_max = (clones_max + 1) * QUIET_MOVES_MAX as usize;
    Ok(StagedGame::new(params.finish()?, board, moves_max * AtaxxBoard::STAGES))
}

/// The stones of both seats and the walls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtaxxBoard {
    stones: [Points; 2],
    walls: Points,
    /// Moves since the last clone, passes counted.
    quiet_moves: u8,
}

impl AtaxxBoard {
    fn empties(&self) -> Points {
        Points::below(CELLS).without(self.stones[0].or(self.stones[1]).or(self.walls))
    }

    fn can_move(&self, seat: Seat) -> bool {
        let empties = self.empties();
        let mut stones = self.stones[seat.index()].iter();
        stones.any(|stone| !around(stone, 2).and(empties).is_empty())
    }

    fn read(text: &str) -> Result<AtaxxBoard, String> {
        let points = fen::parse_board(text, SIDE, SIDE, PIECES)?;
        let set = |piece| (0..CELLS).filter(|&point| points[point] == piece).collect();
        Ok(AtaxxBoard {
            stones: [set('x'), set('o')],
            walls: set('-'),
            quiet_moves: 0,
        })
    }

    /// The origin that the short form of a clone stands for. An origin that is picked is off the board.
    fn clone_origin(&self, seat: Seat, destination: usize) -> Option<usize> {
        around(destination, 1).and(self.stones[seat.index()]).iter().next()
    }
}

/// The points within `distance` rows and columns of `point`, itself left out.
fn around(point: usize, distance: usize) -> Points {
    AROUND[distance - 1][point]
}

/// [`around`] for the distances 1 and 2.
static AROUND: std::sync::LazyLock<[[Points; CELLS]; 2]> = std::sync::LazyLock::new(|| {
    [1, 2].map(|distance| {
        std::array::from_fn(|point| {
            let within = |other: &usize| (1..=distance).contains(&chebyshev(point, *other));
            (0..CELLS).filter(within).collect()
        })
    })
});

fn chebyshev(one: usize, other: usize) -> usize {
    let rows = (one / SIDE).abs_diff(other / SIDE);
    rows.max((one % SIDE).abs_diff(other % SIDE))
}

impl StagedRules for AtaxxBoard {
    const STAGES: usize = 2;
    const PASSING: Passing = Passing::WhenForced;
    const PLANES: &'static [Plane] = &[
        Plane::binary("stones of the acting seat"),
        Plane::binary("stones of the other seat"),
        Plane::binary("walls"),
        Plane {
            name: "moves since the last clone",
            scale: 1.0 / QUIET_MOVES_MAX as f32,
        },
    ];

    fn rows(&self) -> usize {
        SIDE
    }

    fn cols(&self) -> usize {
        SIDE
    }

    fn candidates(&self, seat: Seat, picked: &[u8]) -> Points {
        match picked.last() {
            None => self.stones[seat.index()],
            // The lifted origin is empty now, and no destination: it is no step away.
            Some(&origin) => around(origin as usize, 2).and(self.empties()),
        }
    }

    fn lift(&mut self, seat: Seat, point: u8) {
        self.stones[seat.index()].remove(point as usize);
    }

    fn play(&mut self, seat: Seat, points: &[u8]) {
        let (origin, destination) = (points[0] as usize, points[1] as usize);
        let [mine, theirs] = [seat.index(), seat.other().index()];
        if chebyshev(origin, destination) == 1 {
            self.stones[mine].insert(origin);
            self.quiet_moves = 0;
        } else {
            self.quiet_moves += 1;
        }
        self.stones[mine].insert(destination);
        let turned = around(destination, 1).and(self.stones[theirs]);
        self.stones[mine] = self.stones[mine].or(turned);
        self.stones[theirs] = self.stones[theirs].without(turned);
    }

    fn pass(&mut self) {
        self.quiet_moves += 1;
    }

    fn outcome(&self, seat: Seat) -> Option<Outcome> {
        for seat in Seat::BOTH {
            if self.stones[seat.index()].is_empty() {
                return Some(Outcome::win(seat.other(), Reason::NoPieces));
            }
        }
        if !self.can_move(seat) && !self.can_move(seat.other()) {
            let [first, second] = self.stones.map(Points::len);
            return Some(match first.cmp(&second) {
                std::cmp::Ordering::Greater => Outcome::win(Seat::FIRST, Reason::Score),
                std::cmp::Ordering::Less => Outcome::win(Seat::SECOND, Reason::Score),
                std::cmp::Ordering::Equal => Outcome::draw(Reason::Score),
            });
        }
        let quiet = self.quiet_moves >= QUIET_MOVES_MAX;
        quiet.then(|| Outcome::draw(Reason::NoProgress))
    }

    fn fill_planes(&self, seat: Seat, out: &mut [u8]) {
        let sets = [self.stones[seat.index()], self.stones[seat.other().index()], self.walls];
        let (points, quiet) = out.split_at_mut(sets.len() * CELLS);
        for (plane, set) in points.chunks_exact_mut(CELLS).zip(sets) {
            set.fill(plane);
        }
        quiet.fill(self.quiet_moves);
    }

    fn words(&self) -> [u64; 6] {
        let [first, second, walls] = [self.stones[0], self.stones[1], self.walls].map(|set| set.words()[0]);
        [first, second, walls, u64::from(self.quiet_moves), 0, 0]
    }

    fn permute(&self, cells: &[u16]) -> AtaxxBoard {
        AtaxxBoard {
            stones: self.stones.map(|stones| stones.permute(cells)),
            walls: self.walls.permute(cells),
            quiet_moves: self.quiet_moves,
        }
    }

    fn symbol(&self, point: usize) -> char {
        if self.stones[0].has(point) {
            'x'
        } else if self.stones[1].has(point) {
            'o'
        } else if self.walls.has(point) {
            '-'
        } else {
            '.'
        }
    }

    /// Written `g2` for a clone, `g1g3` for a jump, `0000` for a pass.
    fn move_text(&self, seat: Seat, points: &[u8]) -> String {
        let text = |point: u8| draw::cell_text(point as usize, SIDE, SIDE);
        match *points {
            [] => PASS.to_owned(),
            [_, destination] if self.is_named(seat, points) && !self.is_jump(points) => text(destination),
            _ => points.iter().map(|&point| text(point)).collect(),
        }
    }

    /// Reads those, `x@g2` and `P@g2` for a clone to g2, `null` and a stone that goes nowhere (`a1a1`) for a pass.
    fn parse_move(&self, seat: Seat, text: &str) -> Option<Vec<u8>> {
        if matches!(text, PASS | "null") {
            return Some(Vec::new());
        }
        let short = ["x@", "o@", "P@"].iter().find_map(|drop| text.strip_prefix(drop));
        let (first, rest) = draw::split_cell(short.unwrap_or(text), SIDE, SIDE)?;
        if rest.is_empty() {
            let origin = self.clone_origin(seat, first)?;
            return Some(vec![origin as u8, first as u8]);
        }
        if short.is_some() {
            return None;
        }
        let (second, rest) = draw::split_cell(rest, SIDE, SIDE)?;
        match (rest.is_empty(), chebyshev(first, second)) {
            (true, 0) => Some(Vec::new()),
            (true, 1 | 2) => Some(vec![first as u8, second as u8]),
            _ => None,
        }
    }

    fn is_named(&self, seat: Seat, points: &[u8]) -> bool {
        self.is_jump(points) || self.clone_origin(seat, points[1] as usize) == Some(points[0] as usize)
    }

    /// Reads `BOARD [x|o] [quiet half-moves] [move number]`; `b` and `w` stand for x and o.
    fn parse_position(&self, text: &str) -> Result<(AtaxxBoard, Seat, u32), String> {
        let mut fields = text.split_whitespace();
        let mut board = AtaxxBoard::read(fields.next().unwrap_or_default())?;
        let seat = match fields.next() {
            None | Some("x" | "b" | "X" | "B") => Seat::FIRST,
            Some("o" | "w" | "O" | "W") => Seat::SECOND,
            Some(side) => return Err(format!("`{side}` to move is neither x nor o")),
        };
        board.quiet_moves = match fields.next().unwrap_or("0").parse() {
            Ok(quiet) if quiet <= QUIET_MOVES_MAX => quiet,
            _ => return Err(format!("the half-move clock is not from 0 to {QUIET_MOVES_MAX}")),
        };
        let number = fields.next().unwrap_or("1").parse::<u16>().unwrap_or(0);
        if number == 0 {
            return Err("the move number is not from 1 to 65535".to_owned());
        }
        if let Some(field) = fields.next() {
            return Err(format!("`{field}` follows the move number"));
        }
        let turn = 2 * (u32::from(number) - 1) + seat.index() as u32;
        Ok((board, seat, turn))
    }

    fn position_text(&self, seat: Seat, turn: u32) -> String {
        let board = fen::board_text(SIDE, SIDE, |point| self.symbol(point));
        let side = if seat == Seat::FIRST { 'x' } else { 'o' };
        format!("{board} {side} {} {}", self.quiet_moves, turn / 2 + 1)
    }
}

impl AtaxxBoard {
    fn is_jump(&self, points: &[u8]) -> bool {
        chebyshev(points[0] as usize, points[1] as usize) == 2
    }
}
