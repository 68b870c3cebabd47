//! The feature planes of stone games, put together from parts: the stones, what the opening needs, and threats.

use crate::line::{Board, Colour};
use crate::spec::{OpeningRule, Plane};
use crate::stones::StoneState;
use crate::swap2::Phase;
use crate::threats::{self, THREAT_PLANES};

/// Greatest depth of a history: eight planes a colour, as in AlphaGo Zero.
pub const HISTORY_DEPTH_MAX: usize = 16;

/// How the stones are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoneStack {
    /// A plane for the colour to place and one for the other.
    Sides,
    /// The stack of the self-learning Gomoku project: the colour to place, then half of `depth` planes with the black
    /// stones and as many with the white ones, each with one stone fewer than the one before.
    History {
        /// Even, 2 to [`HISTORY_DEPTH_MAX`]; 2 is no history.
        depth: u8,
    },
}

/// Whether the planes of [`THREAT_PLANES`] are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threats {
    /// They are.
    Shown,
    /// They are not.
    LeftOut,
}

/// The planes of one game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StonePlanes {
    /// How the stones are shown.
    pub stack: StoneStack,
    /// Whether threats are shown.
    pub threats: Threats,
}

const SIDES: [Plane; 2] = [
    Plane::binary("stones of the colour to place"),
    Plane::binary("stones of the other colour"),
];
const COLOUR: Plane = Plane::binary("the colour to place is black");
/// Without an opening black always begins, so there is no phase to tell.
const BOARD: Plane = Plane::binary("ones: where the board is");
const LAST: Plane = Plane::binary("last stone");
const PHASES: [Plane; 4] = [
    Plane::binary("phase: opener places three stones"),
    Plane::binary("phase: chooser decides"),
    Plane::binary("phase: offer"),
    Plane::binary("phase: normal play"),
];
const OPENING_STONES: [Plane; 2] = [Plane::binary("opener's three stones"), Plane::binary("offered stones")];
const BLACK_HISTORY: [Plane; HISTORY_DEPTH_MAX / 2] = [
    Plane::binary("black stones"),
    Plane::binary("black stones without the last one"),
    Plane::binary("black stones without the last 2"),
    Plane::binary("black stones without the last 3"),
    Plane::binary("black stones without the last 4"),
    Plane::binary("black stones without the last 5"),
    Plane::binary("black stones without the last 6"),
    Plane::binary("black stones without the last 7"),
];
const WHITE_HISTORY: [Plane; HISTORY_DEPTH_MAX / 2] = [
    Plane::binary("white stones"),
    Plane::binary("white stones without the last one"),
    Plane::binary("white stones without the last 2"),
    Plane::binary("white stones without the last 3"),
    Plane::binary("white stones without the last 4"),
    Plane::binary("white stones without the last 5"),
    Plane::binary("white stones without the last 6"),
    Plane::binary("white stones without the last 7"),
];

impl StonePlanes {
    /// The planes in order. With Swap2 and without a history they are those of Caro5.
    pub fn list(self, opening: OpeningRule) -> Vec<Plane> {
        let mut planes = Vec::new();
        match (self.stack, opening) {
            (StoneStack::Sides, OpeningRule::None) => {
                planes.extend(SIDES);
                planes.extend([COLOUR, BOARD]);
            }
            (StoneStack::Sides, OpeningRule::Swap2) => {
                planes.extend(SIDES);
                planes.push(LAST);
                planes.extend(PHASES);
                planes.push(COLOUR);
                planes.extend(OPENING_STONES);
            }
            (StoneStack::History { depth }, opening) => {
                let half = depth as usize / 2;
                planes.push(COLOUR);
                planes.extend_from_slice(&BLACK_HISTORY[..half]);
                planes.extend_from_slice(&WHITE_HISTORY[..half]);
                if opening == OpeningRule::Swap2 {
                    planes.push(LAST);
                    planes.extend(PHASES);
                    planes.extend(OPENING_STONES);
                }
            }
        }
        if self.threats == Threats::Shown {
            planes.extend(THREAT_PLANES);
        }
        planes
    }

    /// Number of last stones that a state must know for its planes.
    pub(crate) fn recent_len(self, opening: OpeningRule) -> usize {
        let last = usize::from(opening == OpeningRule::Swap2);
        match self.stack {
            StoneStack::Sides => last,
            StoneStack::History { depth } => last.max(depth as usize - 2),
        }
    }

    /// Overwrites `out` with the planes of [`StonePlanes::list`].
    pub(crate) fn fill(self, state: &StoneState, out: &mut [u8]) {
        out.fill(0);
        let board = state.board();
        let mut planes = Rest {
            bytes: out,
            cells: board.cells(),
        };
        let swap2 = state.swap2().has_opening();
        match self.stack {
            StoneStack::Sides => {
                planes.stones(board, state.colour());
                planes.stones(board, state.colour().other());
                if swap2 {
                    planes.cells(state.last_stone());
                    planes.phases(state);
                    planes.colour(state);
                    planes.opening_stones(state);
                } else {
                    planes.colour(state);
                    planes.next().fill(1);
                }
            }
            StoneStack::History { depth } => {
                planes.colour(state);
                for colour in Colour::BOTH {
                    planes.history(state, colour, depth as usize / 2);
                }
                if swap2 {
                    planes.cells(state.last_stone());
                    planes.phases(state);
                    planes.opening_stones(state);
                }
            }
        }
        if self.threats == Threats::Shown {
            let rule = state.rules().lines[state.colour().index()];
            threats::fill_threat_planes(board, state.colour(), rule, planes.bytes);
        }
    }
}

/// The planes that are not filled yet; all zero.
struct Rest<'a> {
    bytes: &'a mut [u8],
    cells: usize,
}

impl<'a> Rest<'a> {
    fn next(&mut self) -> &'a mut [u8] {
        let (plane, rest) = std::mem::take(&mut self.bytes).split_at_mut(self.cells);
        self.bytes = rest;
        plane
    }

    fn cells(&mut self, cells: impl IntoIterator<Item = usize>) {
        let plane = self.next();
        cells.into_iter().for_each(|cell| plane[cell] = 1);
    }

    fn stones(&mut self, board: &Board, colour: Colour) {
        let plane = self.next();
        board.for_each_stone(colour, |cell| plane[cell] = 1);
    }

    fn colour(&mut self, state: &StoneState) {
        let plane = self.next();
        if state.colour() == Colour::Black {
            plane.fill(1);
        }
    }

    fn phases(&mut self, state: &StoneState) {
        for phase in [Phase::Opening, Phase::Choice, Phase::Offer, Phase::Normal] {
            let plane = self.next();
            if state.swap2().phase() == phase {
                plane.fill(1);
            }
        }
    }

    fn opening_stones(&mut self, state: &StoneState) {
        self.cells(state.first_stones());
        self.cells(state.offered_stones());
    }

    /// `len` planes of `colour`, each without one stone more.
    fn history(&mut self, state: &StoneState, colour: Colour, len: usize) {
        let recent = state.recent_stones().filter(|&cell| state.board().has(cell, colour));
        let mut left_out: Vec<usize> = Vec::with_capacity(len);
        let mut recent = recent.take(len - 1);
        for _ in 0..len {
            let plane = self.next();
            state.board().for_each_stone(colour, |cell| plane[cell] = 1);
            left_out.iter().for_each(|&cell| plane[cell] = 0);
            left_out.extend(recent.next());
        }
    }
}
