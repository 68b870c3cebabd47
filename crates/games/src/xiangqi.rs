//! `xiangqi`: Chinese chess. Who cannot move loses, checked or not.
//!
//! A move has two stages, the piece and its destination. Repetition is judged by a small part of the tournament rules:
//! perpetual check loses, and everything else that repeats, perpetual chases among it, is a draw.

mod past;
mod pieces;

use crate::draw;
use crate::fen;
use crate::game::{Outcome, Reason, Seat};
use crate::hash::Mixer;
use crate::params::{Params, ParseGameError};
use crate::registry::Family;
use crate::spec::Plane;
use crate::staged::{Passing, Points, StagedGame, StagedRules};
use past::{Past, QUIET_MOVES_MAX, Repetition};
use pieces::{COLS, Kind, POINTS, Piece, Pieces, ROWS};

/// `xiangqi` in the registry.
pub const FAMILY: Family<Xiangqi> = Family {
    name: "xiangqi",
    summary: "Chinese chess; who cannot move loses",
    rules: "Chinese chess. Red (seat 0) sits at the bottom and moves first. A turn has two stages, each an action: pick a \
            piece that can move, then its destination. The general steps along lines and the advisor diagonally, both \
            within their palace; the elephant goes two points diagonally, not across the river and not over a piece; \
            the horse goes one point along a line, where nothing may stand, and one diagonally; the rook goes any way \
            along lines; the cannon goes like it and takes by jumping over one piece; the soldier steps forward, beyond \
            the river sideways too. No move may leave the own general attacked, or the generals facing each other on an \
            open column. Who has no legal move loses. A hundred and twenty moves in a row without a capture are a draw. \
            When a position with the same side to move occurs for the third time, the moves since its previous \
            occurrence decide: a side whose every move gave check loses, unless both did; otherwise it is a draw. \
            Perpetual chases are draws: of the tournament rules on repetition only perpetual check is here.",
    parameters: "none",
    samples: &[],
    build,
};

/// The game.
pub type Xiangqi = StagedGame<XiangqiBoard>;

const START: &str = "rnbakabnr/9/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RNBAKABNR";
const LETTERS: &str = "KABNRCPkabnrcp";
/// Pieces of a side at the start, none of which is ever added.
const PIECES_MAX: usize = 16;

fn build(params: Params) -> Result<Xiangqi, ParseGameError> {
    let board = XiangqiBoard::read(START).map_err(|why| params.bad_value("start", START, why))?;
    // Between two captures, and after the last, lie fewer moves than end the game; generals are not captured.
    let captures_max = 2 * (PIECES_MAX - 1);
    let moves_max = (captures_max + 1) * QUIET_MOVES_MAX as usize;
    Ok(StagedGame::new(
        params.finish()?,
        board,
        moves_max * XiangqiBoard::STAGES,
    ))
}

/// The pieces of both seats, and the moves since the last capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XiangqiBoard {
    /// Without the piece that is lifted.
    pieces: Pieces,
    /// Where the generals stand, or stood when they were lifted.
    generals: [u8; 2],
    lifted: Option<Lifted>,
    /// Moves since the last capture. A position text says how many, but not which, so `past` may hold fewer.
    quiet_moves: u8,
    past: Past,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lifted {
    piece: Piece,
    origin: u8,
}

impl XiangqiBoard {
    /// The board part of a position text.
    fn read(text: &str) -> Result<XiangqiBoard, String> {
        let letters = fen::parse_board(text, ROWS, COLS, LETTERS)?;
        let mut pieces = Pieces::EMPTY;
        for (point, &letter) in letters.iter().enumerate() {
            if let Some(piece) = Piece::of_letter(letter) {
                pieces.set(point, piece);
            }
        }
        let mut generals = [0; 2];
        for seat in Seat::BOTH {
            let general = Piece {
                seat,
                kind: Kind::General,
            };
            let own = pieces.of(seat);
            let mut found = own.iter().filter(|&point| pieces.get(point) == Some(general));
            let (Some(point), None) = (found.next(), found.next()) else {
                return Err(format!("there is not one `{}`", general.letter()));
            };
            if !pieces::is_in_palace(point, seat) {
                return Err(format!("`{}` is outside its palace", general.letter()));
            }
            if own.len() > PIECES_MAX {
                return Err(format!("{seat} has {} pieces, more than {PIECES_MAX}", own.len()));
            }
            generals[seat.index()] = point as u8;
        }
        Ok(XiangqiBoard {
            pieces,
            generals,
            lifted: None,
            quiet_moves: 0,
            past: Past::EMPTY,
        })
    }

    /// Whether `piece`, lifted, may go to `point` without leaving its general attacked.
    fn is_safe(&self, piece: Piece, point: u8) -> bool {
        let mut after = self.pieces;
        after.set(point as usize, piece);
        let general = match piece.kind {
            Kind::General => point,
            _ => self.generals[piece.seat.index()],
        };
        !after.attacks(general as usize, piece.seat)
    }

    fn can_move(&self, seat: Seat) -> bool {
        self.pieces.of(seat).iter().any(|origin| {
            let mut lifted = *self;
            lifted.lift(seat, origin as u8);
            !lifted.candidates(seat, &[origin as u8]).is_empty()
        })
    }

    fn is_in_check(&self, seat: Seat) -> bool {
        self.pieces.attacks(self.generals[seat.index()] as usize, seat)
    }

    /// The pieces with the lifted one on its point.
    fn whole(&self) -> Pieces {
        let mut whole = self.pieces;
        if let Some(lifted) = self.lifted {
            whole.set(lifted.origin as usize, lifted.piece);
        }
        whole
    }
}

impl StagedRules for XiangqiBoard {
    const STAGES: usize = 2;
    const PASSING: Passing = Passing::Never;
    const PLANES: &'static [Plane] = &[
        Plane::binary("general of the acting seat"),
        Plane::binary("advisors of the acting seat"),
        Plane::binary("elephants of the acting seat"),
        Plane::binary("horses of the acting seat"),
        Plane::binary("rooks of the acting seat"),
        Plane::binary("cannons of the acting seat"),
        Plane::binary("soldiers of the acting seat"),
        Plane::binary("general of the other seat"),
        Plane::binary("advisors of the other seat"),
        Plane::binary("elephants of the other seat"),
        Plane::binary("horses of the other seat"),
        Plane::binary("rooks of the other seat"),
        Plane::binary("cannons of the other seat"),
        Plane::binary("soldiers of the other seat"),
        Plane::binary("the acting seat is Red, whose soldiers go up"),
        Plane::binary("the position was there once before"),
        Plane {
            name: "moves since the last capture",
            scale: 1.0 / QUIET_MOVES_MAX as f32,
        },
    ];

    fn rows(&self) -> usize {
        ROWS
    }

    fn cols(&self) -> usize {
        COLS
    }

    fn candidates(&self, seat: Seat, picked: &[u8]) -> Points {
        match (picked.last(), self.lifted) {
            (Some(&origin), Some(lifted)) => self
                .pieces
                .reach(origin as usize, lifted.piece)
                .filter(|point| self.is_safe(lifted.piece, point)),
            _ => self.pieces.of(seat),
        }
    }

    fn lift(&mut self, _seat: Seat, point: u8) {
        self.lifted = self
            .pieces
            .take(point as usize)
            .map(|piece| Lifted { piece, origin: point });
    }

    fn play(&mut self, seat: Seat, points: &[u8]) {
        let (origin, destination) = (points[0] as usize, points[1] as usize);
        let Some(Lifted { piece, .. }) = self.lifted.take() else {
            return;
        };
        let captured = self.pieces.take(destination);
        self.pieces.set(destination, piece);
        if piece.kind == Kind::General {
            self.generals[seat.index()] = destination as u8;
        }
        if captured.is_some() {
            self.quiet_moves = 0;
            self.past = Past::EMPTY;
        } else {
            self.quiet_moves += 1;
            self.past.push(origin, destination, self.is_in_check(seat.other()));
        }
    }

    fn outcome(&self, seat: Seat) -> Option<Outcome> {
        if !self.can_move(seat) {
            return Some(Outcome::win(seat.other(), Reason::NoMoves));
        }
        if let Some(repetition) = self.past.third_occurrence(&self.pieces) {
            return Some(match repetition {
                Repetition::CheckedByLast => Outcome::win(seat, Reason::PerpetualCheck),
                Repetition::CheckedByNext => Outcome::win(seat.other(), Reason::PerpetualCheck),
                Repetition::Even => Outcome::draw(Reason::Repetition),
            });
        }
        let quiet = self.quiet_moves >= QUIET_MOVES_MAX;
        quiet.then(|| Outcome::draw(Reason::NoProgress))
    }

    /// The lifted piece is shown on its point, so that the network knows which it is.
    fn fill_planes(&self, seat: Seat, out: &mut [u8]) {
        let pieces = self.whole();
        let (kinds, rest) = out.split_at_mut(2 * Kind::ALL.len() * POINTS);
        for point in 0..POINTS {
            if let Some(piece) = pieces.get(point) {
                let first = if piece.seat == seat { 0 } else { Kind::ALL.len() };
                kinds[(first + piece.kind as usize) * POINTS + point] = 1;
            }
        }
        let facts = [
            u8::from(seat == Seat::FIRST),
            u8::from(self.past.has_repeated(&pieces)),
            self.quiet_moves,
        ];
        for (plane, fact) in rest.chunks_exact_mut(POINTS).zip(facts) {
            plane.fill(fact);
        }
    }

    /// All of it in the first word.
    fn words(&self) -> [u64; 6] {
        let lifted = self.lifted.map_or(0, |lifted| lifted.piece.code());
        let mixer = Mixer::new(lifted << 8 | u64::from(self.quiet_moves));
        let mixer = self.pieces.words().fold(mixer, Mixer::with);
        [self.past.mix(mixer).finish(), 0, 0, 0, 0, 0]
    }

    fn permute(&self, cells: &[u16]) -> XiangqiBoard {
        let image = |point: u8| cells[point as usize] as u8;
        XiangqiBoard {
            pieces: self.pieces.permute(cells),
            generals: self.generals.map(image),
            lifted: self.lifted.map(|lifted| Lifted {
                origin: image(lifted.origin),
                ..lifted
            }),
            quiet_moves: self.quiet_moves,
            past: self.past.permute(cells),
        }
    }

    fn symbol(&self, point: usize) -> char {
        self.pieces.get(point).map_or('.', Piece::letter)
    }

    /// Written `h3e3`, rows from 1 to 10.
    fn move_text(&self, _seat: Seat, points: &[u8]) -> String {
        let text = |point: &u8| draw::cell_text(*point as usize, ROWS, COLS);
        points.iter().map(text).collect()
    }

    /// Reads `h3e3` and `h3-e3`.
    fn parse_move(&self, _seat: Seat, text: &str) -> Option<Vec<u8>> {
        let (origin, rest) = draw::split_cell(text, ROWS, COLS)?;
        let (destination, rest) = draw::split_cell(rest.strip_prefix('-').unwrap_or(rest), ROWS, COLS)?;
        rest.is_empty().then(|| vec![origin as u8, destination as u8])
    }

    /// Reads `BOARD [w|b] [-] [-] [moves since the last capture] [move number]`; `r` stands for w. The moves themselves are
    /// not in the text, so no earlier position counts for repetition.
    fn parse_position(&self, text: &str) -> Result<(XiangqiBoard, Seat, u32), String> {
        let mut fields = text.split_whitespace().peekable();
        let mut board = XiangqiBoard::read(fields.next().unwrap_or_default())?;
        let seat = match fields.next() {
            None | Some("w" | "r") => Seat::FIRST,
            Some("b") => Seat::SECOND,
            Some(side) => return Err(format!("`{side}` to move is neither w nor b")),
        };
        for _ in 0..2 {
            fields.next_if_eq(&"-");
        }
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
        if board.is_in_check(seat.other()) {
            return Err(format!("{} could take the general of the other side", seat));
        }
        let turn = 2 * (u32::from(number) - 1) + seat.index() as u32;
        Ok((board, seat, turn))
    }

    fn position_text(&self, seat: Seat, turn: u32) -> String {
        let board = fen::board_text(ROWS, COLS, |point| self.symbol(point));
        let side = if seat == Seat::FIRST { 'w' } else { 'b' };
        format!("{board} {side} - - {} {}", self.quiet_moves, turn / 2 + 1)
    }
}
