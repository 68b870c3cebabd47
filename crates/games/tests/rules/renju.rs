//! Renju: the published positions, the definition word by word, and what the referee says.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Deserialize;
use tengen_games::fouls::{Foul, foul};
use tengen_games::line::{Board, Colour, DIRECTIONS};
use tengen_games::stones::{StoneGame, StoneState};
use tengen_games::{Action, Game, Outcome, Reason, Seat, State, random_opening};

use crate::{game, legal, play, vectors};

const SIZE: usize = 15;

#[derive(Deserialize)]
struct Vector {
    name: String,
    black: Vec<String>,
    white: Vec<String>,
    forbidden: BTreeMap<String, String>,
}

/// The cell that renju players call `point`: letter of the column, row from the bottom.
fn cell(point: &str) -> usize {
    let (col, row) = point.split_at(1);
    let row: usize = row.parse().expect("a row number");
    (SIZE - row) * SIZE + usize::from(col.as_bytes()[0] - b'a')
}

fn point(cell: usize) -> String {
    format!("{}{}", char::from(b'a' + (cell % SIZE) as u8), SIZE - cell / SIZE)
}

fn board_of(black: &[impl AsRef<str>], white: &[impl AsRef<str>]) -> Board {
    let mut board = Board::new(SIZE, SIZE);
    black
        .iter()
        .for_each(|stone| board.place(cell(stone.as_ref()), Colour::Black));
    white
        .iter()
        .for_each(|stone| board.place(cell(stone.as_ref()), Colour::White));
    board
}

/// Every forbidden point of the board, with its reason.
fn forbidden(board: &Board) -> BTreeMap<String, String> {
    (0..board.cells())
        .filter(|&cell| board.is_empty(cell))
        .filter_map(|cell| Some((point(cell), foul(board, cell)?.reason().as_str().to_owned())))
        .collect()
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Checks the complete set of forbidden points, given as `point:reason`.
#[track_caller]
fn check(black: &str, white: &str, expected: &str) {
    let wanted: BTreeMap<String, String> = words(expected)
        .iter()
        .filter_map(|item| item.split_once(':'))
        .map(|(point, reason)| (point.to_owned(), reason.to_owned()))
        .collect();
    assert_eq!(
        forbidden(&board_of(&words(black), &words(white))),
        wanted,
        "{black} / {white}"
    );
}

#[test]
fn the_vectors_hold() {
    let all: Vec<Vector> = vectors("renju.json");
    assert!(all.len() >= 12);
    for vector in &all {
        let board = board_of(&vector.black, &vector.white);
        assert_eq!(forbidden(&board), vector.forbidden, "{}", vector.name);
    }
}

#[test]
fn the_public_positions_have_their_forbidden_points_and_no_others() {
    check("h9 h10 g8 f8", "", "h8:double-three");
    check("h9 h11 g8 e8", "", "h8:double-three");
    check("h9 h10 g8 f8", "e8", "");
    check("g8 i8 h9 h7", "e8 k8", "");
    check("b3 b4 c2 d2", "", "b2:double-three");
    check("f8 g8 i8 j8", "", "");
    check("e8 f8 j8 k8", "", "");
    check("e8 f8 g8 h9 h10", "d8", "");
    check("e8 f8 g8 h9 h10 h11", "d8 h12", "h8:double-four");
    check("e8 g8 i8 k8", "", "h8:double-four");
    check("e8 f8 i8 k8 l8", "", "h8:double-four");
    check("e8 f8 g8 i8 j8", "", "h8:overline");
    check("f10 g9 f8 g8 i8 i7", "", "h8:double-four");
    check("f10 g9 f8 g8 i8 i7 d12", "j6", "");
}

#[test]
fn a_point_that_completes_five_elsewhere_makes_no_three() {
    // The only straight-four point of one line makes five in another direction.
    check("f8 i8 h9 h10 g4 g5 g6 g7", "", "h7:double-three");
}

#[test]
fn a_three_whose_four_would_be_forbidden_is_none() {
    let black = "c8 f8 h8 f7 i7 j7 e6 l6 m6 i5 k5 l5 k4";
    let forbidden = "i8:double-three k7:double-three l7:double-three k6:double-three f5:double-three";
    check(black, "g9 o6 j5", forbidden);
}

/// The definition without any regard to speed: boards are copied, lines are scanned cell by cell.
fn foul_by_definition(board: &Board, cell: usize) -> Option<Foul> {
    let mut after = *board;
    after.place(cell, Colour::Black);
    let run = |direction| after.run(cell, Colour::Black, direction).length;
    if makes_five(&after, cell) {
        return None;
    }
    if DIRECTIONS.into_iter().any(|direction| run(direction) > 5) {
        return Some(Foul::Overline);
    }
    let fours: usize = DIRECTIONS
        .into_iter()
        .map(|direction| fours(&after, cell, direction))
        .sum();
    if fours >= 2 {
        return Some(Foul::DoubleFour);
    }
    let threes = DIRECTIONS
        .into_iter()
        .filter(|&direction| is_three(&after, cell, direction));
    (threes.count() >= 2).then_some(Foul::DoubleThree)
}

fn makes_five(board: &Board, cell: usize) -> bool {
    DIRECTIONS
        .into_iter()
        .any(|direction| board.run(cell, Colour::Black, direction).length == 5)
}

/// The cells of the line through `cell`, from one edge to the other.
fn line(board: &Board, cell: usize, (row_step, col_step): (i8, i8)) -> Vec<usize> {
    let (rows, cols) = (board.rows() as i32, board.cols() as i32);
    let (row, col) = (cell as i32 / cols, cell as i32 % cols);
    (-20..=20)
        .map(|n| (row + n * i32::from(row_step), col + n * i32::from(col_step)))
        .filter(|&(row, col)| (0..rows).contains(&row) && (0..cols).contains(&col))
        .map(|(row, col)| (row * cols + col) as usize)
        .collect()
}

/// Sets of four stones with `cell` among them that one further stone makes exactly five.
fn fours(board: &Board, cell: usize, direction: (i8, i8)) -> usize {
    let mut sets = Vec::new();
    for window in line(board, cell, direction).windows(5) {
        let stones: Vec<usize> = window
            .iter()
            .copied()
            .filter(|&at| board.has(at, Colour::Black))
            .collect();
        let Some(&gap) = window.iter().find(|&&at| board.is_empty(at)) else {
            continue;
        };
        if stones.len() == 4 && stones.contains(&cell) && board.run(gap, Colour::Black, direction).length == 5 {
            sets.push(stones);
        }
    }
    sets.sort();
    sets.dedup();
    sets.len()
}

fn is_three(board: &Board, cell: usize, direction: (i8, i8)) -> bool {
    let line = line(board, cell, direction);
    line.iter().filter(|&&at| board.is_empty(at)).any(|&at| {
        let mut after = *board;
        after.place(at, Colour::Black);
        makes_straight_four(&after, [cell, at], &line, direction)
            && !makes_five(&after, at)
            && foul_by_definition(board, at).is_none()
    })
}

/// Whether both `cells` are part of an unbroken four of which both ends are empty and complete exactly five.
fn makes_straight_four(board: &Board, cells: [usize; 2], line: &[usize], direction: (i8, i8)) -> bool {
    line.windows(6).any(|window| {
        let (ends, four) = ([window[0], window[5]], &window[1..5]);
        cells.iter().all(|cell| four.contains(cell))
            && four.iter().all(|&at| board.has(at, Colour::Black))
            && ends
                .iter()
                .all(|&end| board.is_empty(end) && board.run(end, Colour::Black, direction).length == 5)
    })
}

/// A board with stones mostly near its centre, so that lines meet.
fn crowded_board(size: usize, stones: usize, rng: &mut Xoshiro256PlusPlus) -> Board {
    let mut board = Board::new(size, size);
    let mut near = || (rng.next_u64() % size as u64 + rng.next_u64() % size as u64) as usize / 2;
    for number in 0..stones {
        let cell = near() * size + near();
        if board.is_empty(cell) {
            board.place(cell, if number % 3 < 2 { Colour::Black } else { Colour::White });
        }
    }
    board
}

#[test]
fn forbidden_points_follow_their_definition() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
    let mut seen = BTreeMap::<_, u32>::new();
    for _ in 0..1_200 {
        let stones = 12 + (rng.next_u64() % 40) as usize;
        let board = crowded_board(
            if rng.next_u64().is_multiple_of(4) { 9 } else { SIZE },
            stones,
            &mut rng,
        );
        for cell in (0..board.cells()).filter(|&cell| board.is_empty(cell)) {
            let (fast, slow) = (foul(&board, cell), foul_by_definition(&board, cell));
            assert_eq!(fast, slow, "cell {cell} of {board:?}");
            *seen.entry(format!("{fast:?}")).or_default() += 1;
        }
    }
    // The boards hold every kind of point, or the comparison would say nothing.
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert!(seen.values().all(|&count| count >= 50), "{seen:?}");
}

proptest! {
    #[test]
    fn a_forbidden_point_stays_so_under_every_symmetry(seed in 0..u64::MAX) {
        let game = game!(Renju, "renju");
        let board = crowded_board(SIZE, 40, &mut Xoshiro256PlusPlus::seed_from_u64(seed));
        for symmetry in &game.spec().symmetries {
            let image = board.permute(&symmetry.cells);
            for cell in (0..board.cells()).filter(|&cell| board.is_empty(cell)) {
                prop_assert_eq!(foul(&board, cell), foul(&image, symmetry.cells[cell] as usize));
            }
        }
    }
}

/// A game in which black has `black` and white has `white`, black to move; the stones are laid in this order.
fn position(game: &StoneGame, black: &[&str], white: &[&str]) -> StoneState {
    assert_eq!(black.len(), white.len());
    let plies: Vec<u16> = black
        .iter()
        .zip(white)
        .flat_map(|(black, white)| [cell(black) as u16, cell(white) as u16])
        .collect();
    play(game, &plies)
}

fn playable(state: &StoneState) -> Vec<Action> {
    let mut playable = Vec::new();
    state.playable(&mut playable);
    playable
}

#[test]
fn the_referee_scores_a_forbidden_stone_as_blacks_loss_and_players_do_not_choose_it() {
    let game = game!(Renju, "renju");
    for (black, at, reason) in [
        ("h9 h10 g8 f8", "h8", Reason::DoubleThree),
        ("e8 g8 i8 k8", "h8", Reason::DoubleFour),
        ("e8 f8 g8 i8 j8", "h8", Reason::Overline),
    ] {
        let black = words(black);
        let white = &["a1", "c1", "e1", "g1", "i1"][..black.len()];
        let mut state = position(&game, &black, white);
        let action = Action(cell(at) as u16);
        assert!(state.is_legal(action) && legal(&state).contains(&action));
        assert!(!playable(&state).contains(&action));
        assert_eq!(playable(&state).len(), legal(&state).len() - 1);
        state.apply(action).expect("legal for the referee");
        assert_eq!(state.outcome(), Some(Outcome::win(Seat::SECOND, reason)));
        assert!(legal(&state).is_empty());
    }
}

#[test]
fn five_beats_every_foul() {
    let game = game!(Renju, "renju");
    let black = words("e8 f8 g8 i8 j8 h9 h10 h11 h12");
    let mut state = position(&game, &black, &words("a1 c1 e1 g1 i1 k1 m1 o1 a3"));
    let action = Action(cell("h8") as u16);
    assert!(playable(&state).contains(&action));
    state.apply(action).expect("a winning stone");
    assert_eq!(state.outcome(), Some(Outcome::win(Seat::FIRST, Reason::Line)));
}

#[test]
fn white_is_never_at_fault_and_wins_by_an_overline() {
    let game = game!(Renju, "renju");
    // White stones on both sides of h8, black far away and without a line.
    let white = words("e8 f8 g8 i8 j8");
    let black = words("a1 c1 e1 g1 i1 k1");
    let mut plies = Vec::new();
    for (n, stone) in black.iter().enumerate() {
        plies.push(cell(stone) as u16);
        plies.extend(white.get(n).map(|stone| cell(stone) as u16));
    }
    let mut state = play(&game, &plies);
    assert_eq!(playable(&state), legal(&state));
    state.apply(Action(cell("h8") as u16)).expect("white may");
    assert_eq!(state.outcome(), Some(Outcome::win(Seat::SECOND, Reason::Line)));
}

#[test]
fn a_forbidden_point_next_to_the_fight_does_not_stop_the_game() {
    // Reported to a public engine that looped when the point it wanted was forbidden.
    let game = game!(Renju, "renju");
    let moves: Vec<u16> = words("h8 g6 f6 g5 f7 g4 h7 g3 g2 a1")
        .iter()
        .map(|at| cell(at) as u16)
        .collect();
    let state = play(&game, &moves);
    assert_eq!(state.colour(), Colour::Black);
    let masked: Vec<Action> = legal(&state)
        .into_iter()
        .filter(|action| !playable(&state).contains(action))
        .collect();
    assert_eq!(masked, [Action(cell("g7") as u16)]);
}

/// Random games in which players choose among playable actions end by a line, a full board or for want of a move;
/// games in which they choose among legal ones end by fouls too.
#[test]
fn random_games_end_in_every_way_that_renju_knows() {
    let mut reasons = BTreeMap::<&str, u32>::new();
    for text in ["renju?size=5", "renju?size=6", "renju?size=7", "renju"] {
        let game = game!(Renju, text);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        for number in 0..400 {
            let mut state = game.start();
            while state.outcome().is_none() {
                let choice = if number % 2 == 0 {
                    playable(&state)
                } else {
                    legal(&state)
                };
                let action = choice[(rng.next_u64() % choice.len() as u64) as usize];
                state.apply(action).expect("a legal action");
            }
            let outcome = state.outcome().expect("the game is over");
            *reasons.entry(outcome.reason.as_str()).or_default() += 1;
            if outcome.reason != Reason::Line && outcome.reason != Reason::BoardFull {
                assert_eq!(outcome.winner, Some(Seat::SECOND), "only black commits fouls");
                assert!(number % 2 == 1 || outcome.reason == Reason::NoMoves, "{}", state.draw());
            }
        }
    }
    for reason in ["line", "board-full", "overline", "double-four", "double-three"] {
        assert!(reasons.contains_key(reason), "{reason}: {reasons:?}");
    }
}

#[test]
fn black_with_nothing_but_forbidden_points_has_lost() {
    // Three lines of 5x5 meet in three corners that are the last empty cells; black has the three stones
    // between each two corners, so a stone on any corner makes two fours.
    let game = game!(Renju, "renju?size=5");
    let black = [1, 2, 3, 5, 10, 15, 8, 12, 16, 6, 24];
    let white = [7, 9, 11, 13, 14, 17, 18, 19, 21, 22, 23];
    let mut state = game.start();
    for (n, (black, white)) in black.into_iter().zip(white).enumerate() {
        assert_eq!(state.outcome(), None, "before black's stone {n}");
        state.apply(Action(black)).expect("an empty cell");
        assert_eq!(state.outcome(), None, "after black's stone {n}");
        state.apply(Action(white)).expect("an empty cell");
    }
    for corner in [0, 4, 20] {
        assert!(state.board().is_empty(corner));
        assert_eq!(foul(state.board(), corner), Some(Foul::DoubleFour));
    }
    assert_eq!(state.outcome(), Some(Outcome::win(Seat::SECOND, Reason::NoMoves)));
    assert!(legal(&state).is_empty() && playable(&state).is_empty());
    // One white stone less, and black still has a cell.
    let plies: Vec<u16> = black
        .iter()
        .zip(&white)
        .flat_map(|(&black, &white)| [black, white])
        .collect();
    let state = play(&game, &plies[..20]);
    assert_eq!(state.outcome(), None);
    assert!(!playable(&state).is_empty());
}

#[test]
fn random_openings_hold_no_foul() {
    let game = game!(Renju, "renju?size=6");
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    for _ in 0..300 {
        let mut state = game.start();
        for action in random_opening(&game, 30, &mut rng) {
            state.apply(action).expect("an opening is legal");
        }
        assert_eq!(state.outcome(), None);
    }
}
