//! Games whose moves are made in stages: pick a piece, then where it goes, and perhaps once more. One state machine for
//! all of them; a family says by [`StagedRules`] what may be picked and what a whole move does.
//!
//! The state machine keeps the laws of staged games: the seat changes only after the last stage, the picked piece is
//! lifted from the board before anything is generated, results are looked for only between moves, and a point is
//! offered only when the move can be finished from it.

mod points;

use std::fmt;
use std::sync::Arc;

pub use points::{POINTS_MAX, Points};

use crate::draw;
use crate::game::{Action, Game, IllegalAction, Moves, Outcome, ParsePositionError, Roles, Seat, State};
use crate::hash::Mixer;
use crate::spec::{ActionBlock, ActionLayout, OpeningRule, Plane, Spec, Symmetry};
use crate::symmetry;

/// Most stages that a move has.
const STAGES_MAX: usize = 3;
/// How the extra action of games with passing is written.
const PASS: &str = "pass";

/// What makes one family of staged games differ from another: the board, whose points number at most [`POINTS_MAX`].
pub trait StagedRules: Clone + fmt::Debug + PartialEq + Send + Sync + 'static {
    /// Points to pick for one move, two or three.
    const STAGES: usize;
    /// Whether there is an action for passing, after the points.
    const PASSING: Passing;
    /// Planes of the board, before those of the picks and stages.
    const PLANES: &'static [Plane];

    /// Height of the board.
    fn rows(&self) -> usize;

    /// Width of the board.
    fn cols(&self) -> usize;

    /// Points that `seat` may pick after `picked`, whose first point is already lifted, as far as this stage alone
    /// can tell.
    fn candidates(&self, seat: Seat, picked: &[u8]) -> Points;

    /// Takes the piece of `seat` off its point.
    fn lift(&mut self, seat: Seat, point: u8);

    /// Plays a whole move of `seat`.
    fn play(&mut self, seat: Seat, points: &[u8]);

    /// A move of passing; only with [`Passing::WhenForced`].
    fn pass(&mut self) {}

    /// The result with `seat` to move, if the game is over.
    fn outcome(&self, seat: Seat) -> Option<Outcome>;

    /// Fills `out` (`[PLANES, H, W]`, already zero) as `seat` sees the board.
    fn fill_planes(&self, seat: Seat, out: &mut [u8]);

    /// Everything about the board, for the hash.
    fn words(&self) -> [u64; 6];

    /// The board with every point moved to its image.
    fn permute(&self, cells: &[u16]) -> Self;

    /// The character of a point in a drawing.
    fn symbol(&self, point: usize) -> char;

    /// A whole move of `seat` as people write it.
    fn move_text(&self, seat: Seat, points: &[u8]) -> String;

    /// The points of the move of `seat` that people write as `text`, empty for a pass.
    fn parse_move(&self, seat: Seat, text: &str) -> Option<Vec<u8>>;

    /// Whether lists of moves name this one; false where other points make the same move and are named instead.
    fn is_named(&self, _seat: Seat, _points: &[u8]) -> bool {
        true
    }

    /// The position of `text` on a board of this size: the board, who moves, and turns before it.
    ///
    /// # Errors
    /// What is wrong with the text.
    fn parse_position(&self, text: &str) -> Result<(Self, Seat, u32), String>;

    /// The position as text.
    fn position_text(&self, seat: Seat, turn: u32) -> String;
}

/// Whether a seat may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// Never: there is no such action.
    Never,
    /// Exactly when the seat has no move and the game goes on.
    WhenForced,
}

/// A family with its parameters fixed.
#[derive(Clone, Debug)]
pub struct StagedGame<R> {
    spec: Arc<Spec>,
    start: Arc<R>,
}

impl<R: StagedRules> StagedGame<R> {
    /// The game `id` that begins on the board `start`, no longer than `plies_max`. Its symmetries are those of the
    /// board that keep the start.
    pub fn new(id: String, start: R, plies_max: usize) -> StagedGame<R> {
        let (rows, cols) = (start.rows(), start.cols());
        debug_assert!(rows * cols <= POINTS_MAX && (2..=STAGES_MAX).contains(&R::STAGES));
        let mut blocks = vec![ActionBlock::Cells { planes: 1 }];
        if R::PASSING == Passing::WhenForced {
            blocks.push(ActionBlock::Global { count: 1 });
        }
        let actions = ActionLayout::new(blocks, rows, cols);
        let mut symmetries = symmetry::of_board(rows, cols, &actions);
        symmetries.retain(|symmetry| start.permute(&symmetry.cells) == start);
        let mut planes = R::PLANES.to_vec();
        planes.extend(PICKED_PLANES[..R::STAGES - 1].iter().cloned());
        planes.extend(STAGE_PLANES[..R::STAGES].iter().cloned());
        let spec = Arc::new(Spec {
            id,
            rows,
            cols,
            planes,
            actions,
            symmetries,
            opening: OpeningRule::None,
            plies_max,
        });
        StagedGame {
            spec,
            start: Arc::new(start),
        }
    }
}

const PICKED_PLANES: [Plane; STAGES_MAX - 1] = [
    Plane::binary("the point picked first, its piece lifted"),
    Plane::binary("the point picked second"),
];
/// The last stage's plane stands for the board too: exactly one of these is ones.
const STAGE_PLANES: [Plane; STAGES_MAX] = [
    Plane::binary("first stage"),
    Plane::binary("second stage"),
    Plane::binary("third stage"),
];

/// Points picked so far in the running move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Picked {
    points: [u8; STAGES_MAX],
    len: u8,
}

impl Picked {
    fn as_slice(&self) -> &[u8] {
        &self.points[..self.len as usize]
    }

    fn with(mut self, point: u8) -> Picked {
        self.points[self.len as usize] = point;
        self.len += 1;
        self
    }

    fn permute(self, cells: &[u16]) -> Picked {
        let images = self.as_slice().iter().map(|&point| cells[point as usize] as u8);
        images.fold(Picked::default(), Picked::with)
    }
}

/// A position of a staged game.
#[derive(Clone, Debug, PartialEq)]
pub struct StagedState<R> {
    /// The board, without the piece that is lifted.
    board: R,
    seat: Seat,
    turn: u32,
    picked: Picked,
    outcome: Option<Outcome>,
}

/// A checked action.
enum Ply {
    Pick(u8),
    Pass,
}

impl<R: StagedRules> StagedState<R> {
    fn new(board: R, seat: Seat, turn: u32) -> StagedState<R> {
        StagedState {
            outcome: board.outcome(seat),
            board,
            seat,
            turn,
            picked: Picked::default(),
        }
    }

    /// The board, without the piece that is lifted.
    pub fn board(&self) -> &R {
        &self.board
    }

    fn cells(&self) -> usize {
        self.board.rows() * self.board.cols()
    }

    /// Points that can be picked next.
    fn open(&self) -> Points {
        let candidates = self.board.candidates(self.seat, self.picked.as_slice());
        candidates.filter(|point| can_finish(&self.board, self.seat, self.picked.with(point)))
    }

    fn check(&self, action: Action) -> Result<Ply, &'static str> {
        if self.outcome.is_some() {
            return Err("the game is over");
        }
        if action.index() < self.cells() {
            let point = action.0 as u8;
            let candidate = self
                .board
                .candidates(self.seat, self.picked.as_slice())
                .has(action.index());
            let open = candidate && can_finish(&self.board, self.seat, self.picked.with(point));
            return match (open, self.picked.len) {
                (true, _) => Ok(Ply::Pick(point)),
                (false, 0) => Err("no piece of the acting seat that can move is there"),
                (false, _) => Err("the picked piece does not reach this point"),
            };
        }
        if R::PASSING == Passing::Never || action.index() > self.cells() {
            return Err("there is no such action");
        }
        if self.open().is_empty() {
            Ok(Ply::Pass)
        } else {
            Err("passing is legal only without a move")
        }
    }

    fn pick(&mut self, point: u8) {
        if self.picked.len == 0 {
            self.board.lift(self.seat, point);
        }
        self.picked = self.picked.with(point);
        if self.picked.len as usize == R::STAGES {
            self.board.play(self.seat, self.picked.as_slice());
            self.end_turn();
        }
    }

    fn end_turn(&mut self) {
        self.picked = Picked::default();
        self.seat = self.seat.other();
        self.turn += 1;
        self.outcome = self.board.outcome(self.seat);
    }
}

/// Whether a move of `seat` that began with `picked` can be finished. The last of them is not on `board` yet.
fn can_finish<R: StagedRules>(board: &R, seat: Seat, picked: Picked) -> bool {
    if picked.len as usize == R::STAGES {
        return true;
    }
    let lifted;
    let board = if picked.len == 1 {
        let mut copy = board.clone();
        copy.lift(seat, picked.points[0]);
        lifted = copy;
        &lifted
    } else {
        board
    };
    let mut candidates = board.candidates(seat, picked.as_slice()).iter();
    candidates.any(|point| can_finish(board, seat, picked.with(point as u8)))
}

impl<R: StagedRules> State for StagedState<R> {
    fn seat(&self) -> Seat {
        self.seat
    }

    fn stage(&self) -> u8 {
        self.picked.len
    }

    fn turn(&self) -> u32 {
        self.turn
    }

    fn legal(&self, out: &mut Vec<Action>) {
        out.clear();
        if self.outcome.is_some() {
            return;
        }
        let open = self.open();
        out.extend(open.iter().map(|point| Action(point as u16)));
        if R::PASSING == Passing::WhenForced && open.is_empty() {
            out.push(Action(self.cells() as u16));
        }
    }

    fn is_legal(&self, action: Action) -> bool {
        self.check(action).is_ok()
    }

    fn apply(&mut self, action: Action) -> Result<(), IllegalAction> {
        match self.check(action).map_err(|why| IllegalAction { action, why })? {
            Ply::Pick(point) => self.pick(point),
            Ply::Pass => {
                self.board.pass();
                self.end_turn();
            }
        }
        Ok(())
    }

    fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    fn planes(&self, out: &mut [u8]) {
        out.fill(0);
        let cells = self.cells();
        let (board, rest) = out.split_at_mut(R::PLANES.len() * cells);
        self.board.fill_planes(self.seat, board);
        let (picked, stages) = rest.split_at_mut((R::STAGES - 1) * cells);
        for (plane, &point) in picked.chunks_exact_mut(cells).zip(self.picked.as_slice()) {
            plane[point as usize] = 1;
        }
        let stage = self.picked.len as usize;
        stages[stage * cells..(stage + 1) * cells].fill(1);
    }

    fn hash(&self) -> u64 {
        let [first, second, third] = self.picked.points.map(u64::from);
        let picked = u64::from(self.picked.len) | first << 8 | second << 16 | third << 24;
        let mut mixer = Mixer::new(self.seat.index() as u64).with(picked);
        for word in self.board.words() {
            mixer = mixer.with(word);
        }
        mixer.finish()
    }

    fn transform(&self, symmetry: &Symmetry) -> StagedState<R> {
        StagedState {
            board: self.board.permute(&symmetry.cells),
            picked: self.picked.permute(&symmetry.cells),
            ..self.clone()
        }
    }

    fn roles(&self) -> Roles {
        Roles {
            opener: None,
            chooser: None,
            first_colour: Some(Seat::FIRST),
        }
    }

    fn draw(&self) -> String {
        let marked = self.picked.as_slice().last().map(|&point| point as usize);
        let mut text = draw::board(self.board.rows(), self.board.cols(), marked, |cell| {
            self.board.symbol(cell)
        });
        text.push_str(&match (self.outcome, self.picked.len) {
            (Some(outcome), _) => draw::outcome_text(outcome),
            (None, 0) => format!("{} to move\n", self.seat),
            (None, stage) => format!("{} to move, stage {} of {}\n", self.seat, stage + 1, R::STAGES),
        });
        text
    }
}

impl<R: StagedRules> StagedGame<R> {
    fn action(&self, point: u8) -> Action {
        Action(u16::from(point))
    }

    fn pass(&self) -> Action {
        Action(self.spec.cells() as u16)
    }
}

impl<R: StagedRules> Game for StagedGame<R> {
    type State = StagedState<R>;

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn start(&self) -> StagedState<R> {
        StagedState::new(R::clone(&self.start), Seat::FIRST, 0)
    }

    fn action_text(&self, action: Action) -> String {
        if action.index() < self.spec.cells() {
            draw::cell_text(action.index(), self.spec.rows, self.spec.cols)
        } else {
            PASS.to_owned()
        }
    }

    fn moves(&self) -> Moves {
        Moves::Staged
    }

    fn move_text(&self, state: &StagedState<R>, actions: &[Action]) -> String {
        if actions == [self.pass()] {
            return state.board.move_text(state.seat, &[]);
        }
        let points: Vec<u8> = actions.iter().map(|action| action.0 as u8).collect();
        state.board.move_text(state.seat, &points)
    }

    fn parse_move(&self, state: &StagedState<R>, text: &str) -> Option<Vec<Action>> {
        let points = state.board.parse_move(state.seat, text)?;
        if points.is_empty() {
            return Some(vec![self.pass()]);
        }
        Some(points.into_iter().map(|point| self.action(point)).collect())
    }

    fn is_named(&self, state: &StagedState<R>, actions: &[Action]) -> bool {
        let points: Vec<u8> = actions.iter().map(|action| action.0 as u8).collect();
        points.len() != R::STAGES || state.board.is_named(state.seat, &points)
    }

    fn parse_position(&self, text: &str) -> Result<StagedState<R>, ParsePositionError> {
        let (board, seat, turn) = self.start.parse_position(text).map_err(|why| ParsePositionError {
            text: text.to_owned(),
            why,
        })?;
        Ok(StagedState::new(board, seat, turn))
    }

    fn position_text(&self, state: &StagedState<R>) -> Option<String> {
        let between_moves = state.picked.len == 0;
        between_moves.then(|| state.board.position_text(state.seat, state.turn))
    }
}
