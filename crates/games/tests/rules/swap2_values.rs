//! Exact Swap2 values on small boards, by exhaustive search.
//!
//! The opening goes through the games' own states; normal play, whose value depends on the stones alone, through a
//! solver on bit sets of its own.

use std::collections::HashMap;

use tengen_games::line::Colour;
use tengen_games::mnk::Mnk;
use tengen_games::{Action, Game, Reason, Roles, Seat, State};

use crate::{game, legal, play};

/// Solves normal play of k in a row on a small square board: +1, 0 or -1 for the colour to move.
struct Solver {
    cells: u32,
    lines: Vec<u32>,
    images: Vec<Vec<u16>>,
    solved: HashMap<(u32, u32), i8>,
}

impl Solver {
    fn new(game: &Mnk) -> Solver {
        let (side, k) = (game.spec().rows as i32, i32::from(game.rules().lines[0].length));
        let mut lines = Vec::new();
        for (row, col) in (0..side * side).map(|cell| (cell / side, cell % side)) {
            for (row_step, col_step) in [(0, 1), (1, 0), (1, 1), (1, -1)] {
                let (row_last, col_last) = (row + (k - 1) * row_step, col + (k - 1) * col_step);
                if row_last < side && (0..side).contains(&col_last) {
                    lines.push(
                        (0..k)
                            .map(|i| 1 << ((row + i * row_step) * side + col + i * col_step))
                            .sum(),
                    );
                }
            }
        }
        let images = game
            .spec()
            .symmetries
            .iter()
            .map(|symmetry| symmetry.cells.clone())
            .collect();
        Solver {
            cells: (side * side) as u32,
            lines,
            images,
            solved: HashMap::new(),
        }
    }

    fn value(&mut self, mine: u32, theirs: u32) -> i8 {
        let taken = mine | theirs;
        if self.lines.iter().any(|&line| line & !theirs == 0) {
            return -1;
        }
        // A line is still possible while one colour has none of its cells.
        if self.lines.iter().all(|&line| line & mine != 0 && line & theirs != 0) || taken.count_ones() == self.cells {
            return 0;
        }
        let key = self
            .images
            .iter()
            .map(|image| (permuted(mine, image), permuted(theirs, image)))
            .min();
        let key = key.expect("there is the identity");
        if let Some(&value) = self.solved.get(&key) {
            return value;
        }
        let mut best = -1;
        for cell in (0..self.cells).filter(|cell| taken >> cell & 1 == 0) {
            best = best.max(-self.value(theirs, mine | 1 << cell));
            if best == 1 {
                break;
            }
        }
        self.solved.insert(key, best);
        best
    }
}

fn permuted(cells: u32, image: &[u16]) -> u32 {
    image
        .iter()
        .enumerate()
        .filter(|(cell, _)| cells >> cell & 1 == 1)
        .map(|(_, &to)| 1 << to)
        .sum()
}

/// Whether the chooser may complete a line by the black stone it offers.
#[derive(Clone, Copy, PartialEq)]
enum LineOffer {
    Allowed,
    Forbidden,
}

type MnkState = <Mnk as Game>::State;

/// The value of any state for seat 0, the opener.
fn opener_value(solver: &mut Solver, state: &MnkState, offer: LineOffer) -> i8 {
    if let Some(outcome) = state.outcome() {
        return outcome.value_for(Seat::FIRST) as i8;
    }
    let sign = if state.seat() == Seat::FIRST { 1 } else { -1 };
    if state.swap2().black().is_some() {
        let bits = |colour| {
            let cells = 0..state.board().cells();
            cells
                .filter(|&cell| state.board().has(cell, colour))
                .map(|cell| 1 << cell)
                .sum::<u32>()
        };
        return sign * solver.value(bits(state.colour()), bits(state.colour().other()));
    }
    let mut best = -1;
    for action in legal(state) {
        let mut next = state.clone();
        next.apply(action).expect("a legal action");
        if next.outcome().is_some() && offer == LineOffer::Forbidden {
            continue;
        }
        best = best.max(sign * opener_value(solver, &next, offer));
        if best == 1 {
            break;
        }
    }
    sign * best
}

/// How many of all three-stone positions lose, draw and win for the opener.
fn openings(text: &str, offer: LineOffer) -> [u32; 3] {
    let game = game!(Mnk, text);
    let mut solver = Solver::new(&game);
    let cells = game.spec().cells() as u16;
    let mut values = [0; 3];
    for (first, third) in (0..cells).flat_map(|first| (first + 1..cells).map(move |third| (first, third))) {
        for second in (0..cells).filter(|&second| second != first && second != third) {
            let value = opener_value(&mut solver, &play(&game, &[first, second, third]), offer);
            values[(value + 1) as usize] += 1;
        }
    }
    values
}

#[test]
fn three_in_a_row_on_3x3_is_a_draw_by_138_of_252_openings() {
    let text = "mnk?m=3&n=3&k=3&opening=swap2";
    assert_eq!(openings(text, LineOffer::Allowed), [114, 138, 0]);
    assert_eq!(openings(text, LineOffer::Forbidden), [114, 138, 0]);
}

#[test]
fn three_in_a_row_on_4x4_loses_for_the_opener_whatever_it_places() {
    let text = "mnk?m=4&n=4&k=3&opening=swap2";
    assert_eq!(openings(text, LineOffer::Allowed), [1_680, 0, 0]);
    assert_eq!(openings(text, LineOffer::Forbidden), [1_680, 0, 0]);
}

#[test]
fn four_in_a_row_on_4x4_draws_whatever_the_opener_places() {
    assert_eq!(
        openings("mnk?m=4&n=4&k=4&opening=swap2", LineOffer::Allowed),
        [0, 1_680, 0]
    );
}

#[test]
fn taking_white_is_worth_the_negative_of_taking_black_at_every_choice() {
    let game = game!(Mnk, "mnk?m=3&n=3&k=3&opening=swap2");
    let mut solver = Solver::new(&game);
    for third in 2..9 {
        let state = play(&game, &[0, 1, third]);
        let values = [9, 10].map(|decision| {
            let mut next = state.clone();
            next.apply(Action(decision)).expect("a legal decision");
            opener_value(&mut solver, &next, LineOffer::Allowed)
        });
        assert_eq!(values[0], -values[1], "third stone {third}");
    }
}

#[test]
fn a_line_by_the_offered_black_stone_wins_for_the_opener_at_once() {
    let game = game!(Mnk, "mnk?m=3&n=3&k=3&opening=swap2");
    let state = play(&game, &[0, 4, 1, 11, 8, 2]);
    assert_eq!(
        state.outcome().map(|outcome| (outcome.winner, outcome.reason)),
        Some((Some(Seat::FIRST), Reason::Line))
    );
    let roles = Roles {
        opener: Some(Seat::FIRST),
        chooser: Some(Seat::SECOND),
        first_colour: Some(Seat::FIRST),
    };
    assert_eq!(state.roles(), roles);
    assert_eq!((state.seat(), state.turn(), state.stage()), (Seat::FIRST, 2, 0));
    assert_eq!(state.colour(), Colour::White);
}

#[test]
fn transpositions_are_one_position() {
    let plain = game!(Mnk, "mnk?m=5&n=5&k=4");
    let (one, other) = (play(&plain, &[0, 1, 2, 3]), play(&plain, &[2, 3, 0, 1]));
    assert_eq!((&one, one.hash()), (&other, other.hash()));
    let swap2 = game!(Caro5, "caro5");
    // The last stone shows in the planes: after the opening the two orders differ, one stone later they do not.
    let (one, other) = (play(&swap2, &[0, 9, 30]), play(&swap2, &[30, 9, 0]));
    assert_ne!(one, other);
    assert_ne!(one.hash(), other.hash());
    let (one, other) = (play(&swap2, &[0, 9, 30, 226, 100]), play(&swap2, &[30, 9, 0, 226, 100]));
    assert_eq!((&one, one.hash()), (&other, other.hash()));
    // Who holds black is part of the position although the board is the same.
    let (one, other) = (play(&swap2, &[0, 9, 30, 226]), play(&swap2, &[0, 9, 30, 225]));
    assert_ne!(one.hash(), other.hash());
}
