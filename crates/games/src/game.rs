//! What a game is to the rest of the house: the [`Game`] and [`State`] traits and the small types they speak in.
//!
//! No particular game lives here.

use std::fmt;

use crate::spec::{Spec, Symmetry};

/// Who acts: seat 0 or seat 1. Never a colour; colours are the game's own business.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seat(u8);

impl Seat {
    /// The seat that acts first in a game from its start.
    pub const FIRST: Seat = Seat(0);
    /// The other one.
    pub const SECOND: Seat = Seat(1);
    /// Both seats in order.
    pub const BOTH: [Seat; 2] = [Seat(0), Seat(1)];

    /// The seat with this index, if there is one.
    pub const fn new(index: u8) -> Option<Seat> {
        if index < 2 { Some(Seat(index)) } else { None }
    }

    /// 0 or 1.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The opponent's seat.
    pub const fn other(self) -> Seat {
        Seat(1 - self.0)
    }
}

impl fmt::Display for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seat {}", self.0)
    }
}

/// An index in a game's one flat action space, `0..spec.actions.len()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Action(pub u16);

impl Action {
    /// The action as an index into arrays of length `spec.actions.len()`.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a game ended. The text form ([`Reason::as_str`]) is what records and the wire carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// A winning line was completed.
    Line,
    /// No cell is left and nobody has won.
    BoardFull,
    /// The game reached its move limit: a draw, or decided by points where the game counts them.
    MoveLimit,
    /// The losing seat gave up.
    Resignation,
    /// The acting seat has nothing legal to do.
    NoMoves,
    /// Points were counted at the end.
    Score,
    /// Black made a line longer than five (renju).
    Overline,
    /// Black made two fours at once (renju).
    DoubleFour,
    /// Black made two threes at once (renju).
    DoubleThree,
    /// The sides' goals were joined (Hex).
    Connection,
    /// One side has no piece left.
    NoPieces,
    /// Too many moves without progress, as the game defines it: a draw by the rules.
    NoProgress,
    /// A position came back too often.
    Repetition,
    /// A position came back too often because one side kept giving check, which loses (xiangqi).
    PerpetualCheck,
}

impl Reason {
    /// Every reason, for parsing and for tests.
    pub const ALL: [Reason; 14] = [
        Reason::Line,
        Reason::BoardFull,
        Reason::MoveLimit,
        Reason::Resignation,
        Reason::NoMoves,
        Reason::Score,
        Reason::Overline,
        Reason::DoubleFour,
        Reason::DoubleThree,
        Reason::Connection,
        Reason::NoPieces,
        Reason::NoProgress,
        Reason::Repetition,
        Reason::PerpetualCheck,
    ];

    /// The stable name used in records, on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Line => "line",
            Reason::BoardFull => "board-full",
            Reason::MoveLimit => "move-limit",
            Reason::Resignation => "resignation",
            Reason::NoMoves => "no-moves",
            Reason::Score => "score",
            Reason::Overline => "overline",
            Reason::DoubleFour => "double-four",
            Reason::DoubleThree => "double-three",
            Reason::Connection => "connection",
            Reason::NoPieces => "no-pieces",
            Reason::NoProgress => "no-progress",
            Reason::Repetition => "repetition",
            Reason::PerpetualCheck => "perpetual-check",
        }
    }

    /// The reason with this stable name.
    pub fn parse(name: &str) -> Option<Reason> {
        Reason::ALL.into_iter().find(|reason| reason.as_str() == name)
    }
}

/// How a game ended: who won (`None` is a draw) and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// The winning seat, or `None` for a draw.
    pub winner: Option<Seat>,
    /// What ended the game.
    pub reason: Reason,
}

impl Outcome {
    /// A win of `seat`.
    pub const fn win(seat: Seat, reason: Reason) -> Outcome {
        Outcome {
            winner: Some(seat),
            reason,
        }
    }

    /// A draw.
    pub const fn draw(reason: Reason) -> Outcome {
        Outcome { winner: None, reason }
    }

    /// +1, 0 or -1 from the view of `seat`.
    pub fn value_for(self, seat: Seat) -> f32 {
        match self.winner {
            None => 0.0,
            Some(winner) if winner == seat => 1.0,
            Some(_) => -1.0,
        }
    }
}

/// Who took which part in a game, as far as the game has such parts. Stated outright in records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// The seat that placed the opening (Swap2).
    pub opener: Option<Seat>,
    /// The seat that chose a colour first (Swap2).
    pub chooser: Option<Seat>,
    /// The seat that holds the first colour (black, X); `None` until colours are fixed.
    pub first_colour: Option<Seat>,
}

/// An action that the rules do not allow in this position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("action {action} is illegal: {why}")]
pub struct IllegalAction {
    /// The refused action.
    pub action: Action,
    /// What is wrong with it, for a person.
    pub why: &'static str,
}

/// A rules family with its parameters fixed, for example Caro5 on a 15x15 board.
///
/// A game is cheap to clone and shared freely between threads.
pub trait Game: Clone + fmt::Debug + Send + Sync + 'static {
    /// A position of this game.
    type State: State;

    /// Everything about the game that is not a position.
    fn spec(&self) -> &Spec;

    /// The position before the first ply.
    fn start(&self) -> Self::State;

    /// An action as people write it, for example `h8` or `take-black`.
    fn action_text(&self, action: Action) -> String;

    /// The action that people write as `text` (the inverse of [`Game::action_text`], also accepting a bare index).
    fn parse_action(&self, text: &str) -> Option<Action> {
        let by_index = text.parse::<u16>().ok().map(Action);
        (0..self.spec().actions.len() as u16)
            .map(Action)
            .find(|&action| self.action_text(action) == text)
            .or(by_index.filter(|action| action.index() < self.spec().actions.len()))
    }

    /// Whether people count several actions as one move, as in games that pick a piece first and its destination next.
    fn moves(&self) -> Moves {
        Moves::Actions
    }

    /// One move as people write it, for example `d1-d4-a4`: the actions of one turn from `state`. Only games of
    /// [`Moves::Staged`] answer otherwise than by [`Game::action_text`] of each action.
    fn move_text(&self, _state: &Self::State, actions: &[Action]) -> String {
        let texts: Vec<String> = actions.iter().map(|&action| self.action_text(action)).collect();
        texts.join("-")
    }

    /// The actions of the move that people write as `text` in `state`, at the beginning of a turn: the inverse of
    /// [`Game::move_text`]. That they are legal is not promised.
    fn parse_move(&self, _state: &Self::State, text: &str) -> Option<Vec<Action>> {
        self.parse_action(text).map(|action| vec![action])
    }

    /// Whether lists of moves name this one. It is false where other actions make the same move and are named instead.
    fn is_named(&self, _state: &Self::State, _actions: &[Action]) -> bool {
        true
    }

    /// The position that `text` describes, in the game's own position text (FEN where people use it).
    ///
    /// # Errors
    /// What is wrong with the text, or that the game has no such text.
    fn parse_position(&self, text: &str) -> Result<Self::State, ParsePositionError> {
        Err(ParsePositionError {
            text: text.to_owned(),
            why: "the game has no position text: give a list of moves".to_owned(),
        })
    }

    /// The position as [`Game::parse_position`] reads it, where there is such a text for this state.
    fn position_text(&self, _state: &Self::State) -> Option<String> {
        None
    }
}

/// What people count as one move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// Every action is a move.
    Actions,
    /// The actions of a turn make one move.
    Staged,
}

/// A text that describes no position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no position: {why}")]
pub struct ParsePositionError {
    /// The text as given.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

/// One position: board, phase and who acts. Plain data without a way back.
pub trait State: Clone + fmt::Debug + PartialEq + Send + Sync + 'static {
    /// Who acts now. After the end it is the seat that would have acted next.
    fn seat(&self) -> Seat;

    /// The part of a composite move that the next action belongs to; 0 for games of single actions. A turn begins
    /// where the acting seat's run of stages begins.
    fn stage(&self) -> u8;

    /// Number of whole turns finished so far (in an opening with several stones by one seat, the run is one turn).
    fn turn(&self) -> u32;

    /// Clears `out` and fills it with the legal actions in ascending order. Empty after the end.
    fn legal(&self, out: &mut Vec<Action>);

    /// Clears `out` and fills it with the actions that players choose among, in ascending order: the legal ones less
    /// fouls, by which the acting seat would lose at once (renju's forbidden points). The referee, who judges games,
    /// accepts a foul; search and random play never make one. Not empty while the game goes on.
    fn playable(&self, out: &mut Vec<Action>) {
        self.legal(out);
    }

    /// Whether `action` is legal here.
    fn is_legal(&self, action: Action) -> bool;

    /// Plays `action`. On an error the state is unchanged; after the end every action is an error.
    fn apply(&mut self, action: Action) -> Result<(), IllegalAction>;

    /// How the game ended, or `None` while it goes on. Never changes once set.
    fn outcome(&self) -> Option<Outcome>;

    /// Overwrites `out`, of length `C * H * W` in the order `[C, H, W]`, with the feature planes as the acting seat's
    /// network sees them. Raw bytes; the plane's scale in the spec turns them into inputs.
    fn planes(&self, out: &mut [u8]);

    /// A hash of everything that planes, legal actions, seat and future depend on. Equal hashes imply equal planes.
    fn hash(&self) -> u64;

    /// The same position seen through `symmetry`, one of the spec's.
    fn transform(&self, symmetry: &Symmetry) -> Self;

    /// Who holds which part so far.
    fn roles(&self) -> Roles;

    /// The board as text, rows top to bottom, for people.
    fn draw(&self) -> String;
}
