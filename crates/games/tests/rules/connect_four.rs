//! Connect Four: who wins, by a solver with a board of its own, which is held against the rules first.

use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::connect_four::{ConnectFour, ConnectFourState};
use tengen_games::{Action, Game, Seat, State};

use crate::{game, legal};

const COLS: u32 = 7;
const ROWS: u32 = 6;
/// Bits of a column: its cells from the bottom, and one that is always clear.
const COLUMN: u32 = ROWS + 1;
/// The lowest cell of every column.
const FLOOR: u64 = 0x0000_0408_1020_4081;
const BOARD: u64 = FLOOR * ((1 << ROWS) - 1);
/// The lowest row, the third and the fifth: those whose cells the other seat's answers in the same column leave to seat 0
/// while the columns hold an even number of empty cells.
const ODD_ROWS: u64 = FLOOR | FLOOR << 2 | FLOOR << 4;
/// Bits of the key in an entry of the table.
const KEY_BITS: u32 = 49;

/// Stones of either seat; whose turn it is follows from their number.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stones([u64; 2]);

impl Stones {
    fn taken(self) -> u64 {
        self.0[0] | self.0[1]
    }

    fn seat(self) -> usize {
        (self.taken().count_ones() % 2) as usize
    }

    fn with(mut self, cell: u64) -> Stones {
        self.0[self.seat()] |= cell;
        self
    }

    /// The cells on which a stone can come to rest.
    fn playable(self) -> u64 {
        (self.taken() + FLOOR) & BOARD
    }

    /// The same for a position and its mirror image, and for no other position.
    fn key(self) -> u64 {
        let key = |mover: u64, taken: u64| mover + taken + FLOOR;
        let (mover, taken) = (self.0[self.seat()], self.taken());
        key(mover, taken).min(key(mirror(mover), mirror(taken)))
    }
}

fn mirror(stones: u64) -> u64 {
    let column = (1 << COLUMN) - 1;
    (0..COLS).fold(0, |image, col| {
        image | ((stones >> (col * COLUMN)) & column) << ((COLS - 1 - col) * COLUMN)
    })
}

fn has_four(stones: u64) -> bool {
    [1, COLUMN - 1, COLUMN, COLUMN + 1].into_iter().any(|step| {
        let pairs = stones & (stones >> step);
        pairs & (pairs >> (2 * step)) != 0
    })
}

/// The cells that complete a four of these stones, taken ones among them.
fn completing(stones: u64) -> u64 {
    let mut cells = (stones << 1) & (stones << 2) & (stones << 3);
    for step in [COLUMN - 1, COLUMN, COLUMN + 1] {
        let below = (stones << step) & (stones << (2 * step));
        let above = (stones >> step) & (stones >> (2 * step));
        cells |= below & ((stones << (3 * step)) | (stones >> step));
        cells |= above & ((stones >> (3 * step)) | (stones << step));
    }
    cells & BOARD
}

/// Searches whether seat 0 wins, each position once as far as the table has room.
struct Solver {
    /// Pairs of entries: the first keeps what took most work, the second what came last. Key, answer, logarithm of the work.
    table: Vec<u64>,
    /// How often a cell refuted, for either seat; begins with the number of fours through it.
    merits: [[i32; 64]; 2],
    visited: u64,
}

impl Solver {
    /// A solver whose table has `2^bits` entries of 8 bytes.
    fn new(bits: u32) -> Solver {
        const FOURS: [[i32; 3]; 4] = [[3, 4, 5], [4, 6, 8], [5, 8, 11], [7, 10, 13]];
        let mut merits = [[0; 64]; 2];
        for (col, row) in (0..COLS).flat_map(|col| (0..ROWS).map(move |row| (col, row))) {
            let fours = FOURS[col.min(COLS - 1 - col) as usize][row.min(ROWS - 1 - row) as usize];
            merits
                .iter_mut()
                .for_each(|of_seat| of_seat[(col * COLUMN + row) as usize] = fours);
        }
        Solver {
            table: vec![0; 1 << bits],
            merits,
            visited: 0,
        }
    }

    fn place(&self, key: u64) -> usize {
        let bits = self.table.len().trailing_zeros();
        (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - bits)) as usize & !1
    }

    fn known(&self, key: u64) -> Option<bool> {
        let at = self.place(key);
        let entries = [self.table[at], self.table[at + 1]];
        let found = entries.into_iter().find(|entry| entry & ((1 << KEY_BITS) - 1) == key);
        found.map(|entry| entry >> KEY_BITS & 1 == 1)
    }

    fn keep(&mut self, key: u64, wins: bool, work: u64) {
        let effort = u64::from(u64::BITS - work.max(1).leading_zeros());
        let entry = key | u64::from(wins) << KEY_BITS | effort << (KEY_BITS + 1);
        let at = self.place(key);
        let held = self.table[at];
        let is_same = held & ((1 << KEY_BITS) - 1) == key;
        let slot = at + usize::from(!is_same && effort < held >> (KEY_BITS + 1));
        self.table[slot] = entry;
    }

    /// Whether seat 0 wins when both play as well as can be. Nobody has a four yet.
    fn seat_0_wins(&mut self, stones: Stones) -> bool {
        self.visited += 1;
        let (seat, playable) = (stones.seat(), stones.playable());
        if completing(stones.0[seat]) & playable != 0 {
            return seat == 0;
        }
        // What the other seat threatens must be answered, and nothing is played below one of its fours.
        let threats = completing(stones.0[1 - seat]);
        let forced = playable & threats;
        if forced.count_ones() > 1 {
            return seat == 1;
        }
        let candidates = if forced == 0 { playable } else { forced } & !(threats >> 1);
        if candidates == 0 {
            return playable != 0 && seat == 1;
        }
        if is_out_of_reach(stones) {
            return false;
        }
        let key = stones.key();
        if let Some(wins) = self.known(key) {
            return wins;
        }
        let begun = self.visited;
        let cells = self.ordered(stones, candidates);
        let wins = self.best(stones, &cells[..candidates.count_ones() as usize]);
        self.keep(key, wins, self.visited - begun);
        wins
    }

    /// The candidates, the most promising first: what makes threats, and what has refuted before. Zeros follow.
    fn ordered(&self, stones: Stones, candidates: u64) -> [u64; COLS as usize] {
        let seat = stones.seat();
        let merit = |cell: &u64| {
            let threats = completing(stones.0[seat] | cell) & !(stones.taken() | cell);
            match *cell {
                0 => i32::MAX,
                _ => -(self.merits[seat][cell.trailing_zeros() as usize] + 4 * threats.count_ones() as i32),
            }
        };
        let mut cells = [3, 2, 4, 1, 5, 0, 6].map(|col| candidates & (((1 << ROWS) - 1) << (col * COLUMN)));
        let mut merits = cells.each_ref().map(merit);
        for end in 1..cells.len() {
            let mut at = end;
            while at > 0 && merits[at - 1] > merits[at] {
                merits.swap(at - 1, at);
                cells.swap(at - 1, at);
                at -= 1;
            }
        }
        cells
    }

    fn best(&mut self, stones: Stones, cells: &[u64]) -> bool {
        let (seat, goal) = (stones.seat(), stones.seat() == 0);
        if cells
            .iter()
            .any(|&cell| self.known(stones.with(cell).key()) == Some(goal))
        {
            return goal;
        }
        for (tried, &cell) in cells.iter().enumerate() {
            if self.seat_0_wins(stones.with(cell)) == goal {
                let merits = &mut self.merits[seat];
                merits[cell.trailing_zeros() as usize] += tried as i32;
                cells[..tried]
                    .iter()
                    .for_each(|cell| merits[cell.trailing_zeros() as usize] -= 1);
                return goal;
            }
        }
        !goal
    }
}

/// Whether seat 0 can be kept from a four for certain: it has none even with every empty cell, or, to move while every
/// column has an even number of them, with those that are left to it when each of its stones is answered on top.
fn is_out_of_reach(stones: Stones) -> bool {
    let empty = BOARD & !stones.taken();
    let answered = stones.seat() == 0 && stones.playable() & !ODD_ROWS == 0;
    !has_four(stones.0[0] | empty) || answered && !has_four(stones.0[0] | empty & ODD_ROWS)
}

/// The stones of a position, read from the actions that led to it.
fn stones(actions: &[Action]) -> Stones {
    actions.iter().fold(Stones([0; 2]), |stones, action| {
        let column = ((1 << ROWS) - 1) << (u32::from(action.0) * COLUMN);
        stones.with(stones.playable() & column)
    })
}

/// Whether seat 0 wins, by the rules alone.
fn wins_by_the_rules(state: &ConnectFourState) -> bool {
    if let Some(outcome) = state.outcome() {
        return outcome.winner == Some(Seat::FIRST);
    }
    let goal = state.seat() == Seat::FIRST;
    let reaches = |action: &Action| {
        let mut next = state.clone();
        next.apply(*action).expect("it is legal");
        wins_by_the_rules(&next) == goal
    };
    legal(state).iter().any(reaches) == goal
}

#[test]
fn the_solver_agrees_with_the_rules() {
    let game: ConnectFour = game!(ConnectFour, "connect-four");
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(44);
    let mut solver = Solver::new(16);
    let mut seen = [0; 2];
    while seen.iter().sum::<u32>() < 400 {
        let plies = rng.random_range(28..=41);
        let (mut state, mut actions) = (game.start(), Vec::new());
        while state.outcome().is_none() && actions.len() < plies {
            let action = *legal(&state).choose(&mut rng).expect("the game is not over");
            state.apply(action).expect("it is legal");
            actions.push(action);
        }
        if state.outcome().is_none() {
            let wins = solver.seat_0_wins(stones(&actions));
            assert_eq!(wins, wins_by_the_rules(&state), "after {actions:?}");
            seen[usize::from(wins)] += 1;
        }
    }
    assert!(seen.iter().all(|&count| count > 50), "{seen:?}");
}

#[test]
#[ignore = "five minutes and 1 GiB: part of make conformance"]
fn the_first_player_wins_from_the_centre() {
    let mut solver = Solver::new(27);
    assert!(solver.seat_0_wins(stones(&[Action(3)])));
    println!("{} positions visited", solver.visited);
}
