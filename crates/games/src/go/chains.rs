//! The board of Go: stones, the strings they form with their liberties, what a stone would capture, and the area.
//!
//! Nothing here knows turns, passes or superko.

use super::SIDE_MAX;
use crate::game::Seat;
use crate::hash::Mixer;

const POINTS_MAX: usize = SIDE_MAX * SIDE_MAX;
/// No stone; a stone is the index of its seat.
const EMPTY: u8 = 2;

/// The hash of the empty board.
pub(super) const EMPTY_HASH: u64 = 0;

/// One stone that comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    point: u16,
    seat: Seat,
    /// Whether the board is as the rules see it afterwards: all changes of the ply are made.
    finishes_colouring: bool,
}

impl Change {
    const fn new(point: usize, seat: Seat) -> Change {
        Change {
            point: point as u16,
            seat,
            finishes_colouring: false,
        }
    }

    pub(super) const fn finish_colouring(&mut self) {
        self.finishes_colouring = true;
    }

    pub(super) const fn finishes_colouring(self) -> bool {
        self.finishes_colouring
    }

    pub(super) const fn key(self) -> u64 {
        key(self.point as usize, self.seat)
    }

    pub(super) fn permute(self, cells: &[u16]) -> Change {
        Change {
            point: cells[self.point as usize],
            ..self
        }
    }
}

/// Stones on a square board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Board {
    side: u8,
    stones: [u8; POINTS_MAX],
    /// The hash of the colouring: [`EMPTY_HASH`] changed by [`key`] with every stone.
    hash: u64,
}

/// What the hash of a colouring changes by when a stone of `seat` comes or goes.
const fn key(point: usize, seat: Seat) -> u64 {
    Mixer::new(2).with((2 * point + seat.index()) as u64).finish()
}

impl Board {
    pub(super) fn new(side: usize) -> Board {
        Board {
            side: side as u8,
            stones: [EMPTY; POINTS_MAX],
            hash: EMPTY_HASH,
        }
    }

    pub(super) const fn side(&self) -> usize {
        self.side as usize
    }

    pub(super) const fn points(&self) -> usize {
        self.side() * self.side()
    }

    pub(super) const fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) const fn is_empty(&self, point: usize) -> bool {
        self.stones[point] == EMPTY
    }

    pub(super) const fn stone(&self, point: usize) -> Option<Seat> {
        Seat::new(self.stones[point])
    }

    fn set(&mut self, point: usize, seat: Seat) {
        self.stones[point] = seat.index() as u8;
        self.hash ^= key(point, seat);
    }

    fn remove(&mut self, point: usize, seat: Seat) {
        self.stones[point] = EMPTY;
        self.hash ^= key(point, seat);
    }

    pub(super) fn permute(&self, cells: &[u16]) -> Board {
        let mut image = Board::new(self.side());
        for (point, &moved) in cells.iter().enumerate() {
            if let Some(seat) = self.stone(point) {
                image.set(moved as usize, seat);
            }
        }
        image
    }

    /// The points above, below, left and right of `point`.
    fn neighbours(&self, point: usize) -> impl Iterator<Item = usize> + use<> {
        let side = self.side();
        let (row, col) = (point / side, point % side);
        [
            (row > 0).then(|| point - side),
            (row + 1 < side).then(|| point + side),
            (col > 0).then(|| point - 1),
            (col + 1 < side).then(|| point + 1),
        ]
        .into_iter()
        .flatten()
    }

    /// Points that each seat holds or alone reaches over empty points.
    pub(super) fn area(&self) -> [u32; 2] {
        let mut area = [0; 2];
        let mut seen = [false; POINTS_MAX];
        for point in 0..self.points() {
            if let Some(seat) = self.stone(point) {
                area[seat.index()] += 1;
            } else if !seen[point] {
                let (size, reached) = self.region(point, &mut seen);
                match reached {
                    [true, false] => area[0] += size,
                    [false, true] => area[1] += size,
                    _ => {}
                }
            }
        }
        area
    }

    /// The size of the empty region around `point`, and which seats it reaches.
    fn region(&self, point: usize, seen: &mut [bool; POINTS_MAX]) -> (u32, [bool; 2]) {
        let mut reached = [false; 2];
        let mut size = 0;
        let mut open = vec![point];
        seen[point] = true;
        while let Some(point) = open.pop() {
            size += 1;
            for next in self.neighbours(point) {
                match self.stone(next) {
                    Some(seat) => reached[seat.index()] = true,
                    None if !seen[next] => {
                        seen[next] = true;
                        open.push(next);
                    }
                    None => {}
                }
            }
        }
        (size, reached)
    }
}

/// No string: the point is empty.
const NONE: u16 = u16::MAX;

/// The strings of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chains {
    /// The index in `list` of the string on each point.
    of_point: [u16; POINTS_MAX],
    list: Vec<Chain>,
}

/// Stones of one seat joined along the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chain {
    liberties: u16,
    /// The keys of its stones together: what the board's hash changes by when it is taken off.
    hash: u64,
}

/// What a stone does: which strings beside it are taken off, and the colouring that results.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effect {
    taken: Taken,
    pub(super) hash: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// Strings of the other seat without liberties, if there are any.
    Theirs,
    /// The stone with the strings it joins: suicide.
    Own,
}

impl Chains {
    pub(super) fn of(board: &Board) -> Chains {
        let mut chains = Chains {
            of_point: [NONE; POINTS_MAX],
            list: Vec::new(),
        };
        // The string that last counted an empty point as a liberty.
        let mut counted = [NONE; POINTS_MAX];
        let mut open = Vec::new();
        for point in 0..board.points() {
            if let Some(seat) = board.stone(point).filter(|_| chains.of_point[point] == NONE) {
                chains.add(board, point, seat, &mut counted, &mut open);
            }
        }
        chains
    }

    fn add(&mut self, board: &Board, point: usize, seat: Seat, counted: &mut [u16; POINTS_MAX], open: &mut Vec<usize>) {
        let index = self.list.len() as u16;
        let mut chain = Chain { liberties: 0, hash: 0 };
        self.of_point[point] = index;
        open.push(point);
        while let Some(point) = open.pop() {
            chain.hash ^= key(point, seat);
            for next in board.neighbours(point) {
                if board.is_empty(next) {
                    chain.liberties += u16::from(counted[next] != index);
                    counted[next] = index;
                } else if board.stone(next) == Some(seat) && self.of_point[next] == NONE {
                    self.of_point[next] = index;
                    open.push(next);
                }
            }
        }
        self.list.push(chain);
    }

    /// Liberties of the string on `point`, which holds a stone.
    pub(super) fn liberties(&self, point: usize) -> usize {
        self.chain(point).liberties as usize
    }

    fn chain(&self, point: usize) -> Chain {
        self.list[self.of_point[point] as usize]
    }

    /// What a stone of `seat` on the empty `point` does: strings of the other seat without liberties go first, then
    /// its own.
    pub(super) fn effect(&self, board: &Board, point: usize, seat: Seat) -> Effect {
        let theirs = self.beside(board, point, seat.other());
        let captured = theirs.clone().filter(|chain| chain.liberties == 1);
        let hash = captured.clone().fold(board.hash, |hash, chain| hash ^ chain.hash);
        let own = self.beside(board, point, seat);
        let breathes = board.neighbours(point).any(|next| board.is_empty(next))
            || captured.clone().next().is_some()
            || own.clone().any(|chain| chain.liberties > 1);
        if breathes {
            let hash = hash ^ key(point, seat);
            let taken = Taken::Theirs;
            Effect { taken, hash }
        } else {
            let hash = own.fold(hash, |hash, chain| hash ^ chain.hash);
            let taken = Taken::Own;
            Effect { taken, hash }
        }
    }

    /// The different strings of `seat` beside `point`.
    fn beside(&self, board: &Board, point: usize, seat: Seat) -> impl Iterator<Item = Chain> + Clone {
        let mut indexes = [NONE; 4];
        for (slot, next) in board.neighbours(point).enumerate() {
            let index = self.of_point[next];
            if board.stone(next) == Some(seat) && !indexes.contains(&index) {
                indexes[slot] = index;
            }
        }
        indexes
            .into_iter()
            .filter(|&index| index != NONE)
            .map(|index| self.list[index as usize])
    }

    /// Plays a stone of `seat` on the empty `point` of the board that these strings are of, with its effect, and notes
    /// the stones that come and go.
    pub(super) fn play(&self, board: &mut Board, point: usize, seat: Seat, effect: Effect, changes: &mut Vec<Change>) {
        let loser = match effect.taken {
            Taken::Theirs => seat.other(),
            Taken::Own => seat,
        };
        let mut dead = [NONE; 4];
        for (slot, next) in board.neighbours(point).enumerate() {
            if board.stone(next) == Some(loser) && self.liberties(next) == 1 {
                dead[slot] = self.of_point[next];
            }
        }
        for other in 0..board.points() {
            if self.of_point[other] != NONE && dead.contains(&self.of_point[other]) {
                board.remove(other, loser);
                changes.push(Change::new(other, loser));
            }
        }
        if effect.taken == Taken::Theirs {
            board.set(point, seat);
            changes.push(Change::new(point, seat));
        }
        debug_assert_eq!(board.hash, effect.hash, "the effect foretells the colouring");
    }
}
