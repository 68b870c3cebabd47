//! Caro5: vectors, the worked examples of the planes, and the completeness of the win test.

use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Deserialize;
use tengen_games::caro5::{Caro5, line_rule as rule};
use tengen_games::conformance::{self, Options};
use tengen_games::line::{Board, Colour, DIRECTIONS, EdgePolicy, End, LineRule};
use tengen_games::threats::fill_threat_planes;
use tengen_games::{ActionBlock, Game, Reason, Roles, Seat, State, perft, perft_from};

use crate::{game, legal, play, vectors};

#[derive(Deserialize)]
struct Vector {
    name: String,
    actions: Vec<u16>,
    closed: Expected,
    open: Expected,
    black_seat: u8,
}

#[derive(Deserialize)]
struct Expected {
    result: Option<String>,
    winner_seat: Option<u8>,
}

#[test]
fn the_vectors_hold_under_both_edge_policies() {
    let all: Vec<Vector> = vectors("caro5.json");
    assert!(all.len() >= 11);
    for vector in &all {
        for (text, expected) in [("caro5", &vector.closed), ("caro5?edge=open", &vector.open)] {
            let state = play(&game!(Caro5, text), &vector.actions);
            let won = state.outcome().map(|outcome| (outcome.winner, outcome.reason));
            let winner = expected.winner_seat.and_then(Seat::new);
            let wanted = expected.result.as_ref().map(|_| (winner, Reason::Line));
            assert_eq!(won, wanted, "{} with {text}", vector.name);
            let roles = Roles {
                opener: Some(Seat::FIRST),
                chooser: Some(Seat::SECOND),
                first_colour: Seat::new(vector.black_seat),
            };
            assert_eq!(state.roles(), roles, "{}", vector.name);
        }
    }
}

#[test]
fn the_offer_game_goes_step_by_step() {
    let game = game!(Caro5, "caro5");
    let actions = [112, 113, 144, 227, 128, 98, 226, 126, 99, 0];
    let (opener, chooser) = (Seat::FIRST, Seat::SECOND);
    let (black, white) = (Colour::Black, Colour::White);
    // (plane of the phase, actor, colour of the next stone, number of legal actions) before each action.
    let expected = [
        (3, opener, black, 225),
        (3, opener, white, 224),
        (3, opener, black, 223),
        (4, chooser, white, 3),
        (5, chooser, white, 222),
        (5, chooser, black, 221),
        (5, opener, white, 2),
        (6, opener, white, 220),
        (6, chooser, black, 219),
        (6, opener, white, 218),
    ];
    for (plies, expected) in expected.into_iter().enumerate() {
        let state = play(&game, &actions[..plies]);
        let planes = planes_of(&game, &state);
        let phase: Vec<usize> = (3..7)
            .filter(|&plane| planes[plane].iter().all(|&byte| byte == 1))
            .collect();
        assert_eq!(phase.len(), 1, "ply {plies}");
        assert_eq!(
            (phase[0], state.seat(), state.colour(), legal(&state).len()),
            expected,
            "ply {plies}"
        );
    }
}

/// 7,485,307,200 sequences of five plies: 11,239,200 of three stones, three choices after each, and 222 cells after each
/// of those.
#[test]
fn five_plies_are_counted_by_their_openings() {
    let game = game!(Caro5, "caro5");
    for stones in [[112, 113, 144], [0, 14, 224], [7, 8, 9]] {
        assert_eq!(perft_from(&play(&game, &stones), 2), 3 * 222);
    }
    assert_eq!(perft(&game, 3) * 3 * 222, 7_485_307_200);
}

/// 5,619,600 positions of two black stones and a white one; 703,934 up to the symmetries, by Burnside's lemma.
#[test]
fn openings_are_counted_up_to_symmetry() {
    let game = game!(Caro5, "caro5");
    let kept: Vec<u64> = game
        .spec()
        .symmetries
        .iter()
        .map(|symmetry| {
            let image = |cell: usize| symmetry.cells[cell] as usize;
            let fixed = (0..225).filter(|&cell| image(cell) == cell).count() as u64;
            let swapped = (0..225).filter(|&cell| image(cell) > cell && image(image(cell)) == cell);
            // The white stone stays, and the black ones stay or change places.
            let pairs_of_fixed = fixed.saturating_sub(1) * fixed.saturating_sub(2) / 2;
            fixed * (pairs_of_fixed + swapped.count() as u64)
        })
        .collect();
    assert_eq!(kept[0], 5_619_600);
    assert_eq!(kept.iter().sum::<u64>() / 8, 703_934);
}

#[test]
fn the_spec_is_that_of_the_rules() {
    let game = game!(Caro5, "caro5");
    let spec = game.spec();
    assert_eq!(
        spec.actions.blocks(),
        [ActionBlock::Cells { planes: 1 }, ActionBlock::Global { count: 3 }]
    );
    assert_eq!(
        (
            spec.actions.len(),
            spec.planes.len(),
            spec.symmetries.len(),
            spec.plies_max
        ),
        (228, 13, 8, 227)
    );
}

fn planes_of<G: Game>(game: &G, state: &G::State) -> Vec<Vec<u8>> {
    let mut planes = vec![0xff; game.spec().planes_len()];
    state.planes(&mut planes);
    planes.chunks(game.spec().cells()).map(<[u8]>::to_vec).collect()
}

fn marked(plane: &[u8]) -> Vec<usize> {
    (0..plane.len()).filter(|&cell| plane[cell] != 0).collect()
}

#[test]
fn the_first_ten_planes_follow_the_opening() {
    let game = game!(Caro5, "caro5");
    let check = |actions: &[u16], expected: [&[usize]; 5], black: bool| {
        let planes = planes_of(&game, &play(&game, actions));
        let seen = [0, 1, 2, 8, 9].map(|plane| marked(&planes[plane]));
        assert_eq!(seen.each_ref().map(Vec::as_slice), expected, "{actions:?}");
        assert_eq!(planes[7], vec![u8::from(black); 225], "{actions:?}");
    };
    check(&[], [&[], &[], &[], &[], &[]], true);
    check(&[112], [&[], &[112], &[112], &[112], &[]], false);
    check(&[112, 113], [&[112], &[113], &[113], &[112, 113], &[]], true);
    check(
        &[112, 113, 144],
        [&[113], &[112, 144], &[144], &[112, 113, 144], &[]],
        false,
    );
    // An offer leaves the board as it was; the last stone stays the last stone.
    check(
        &[112, 113, 144, 227],
        [&[113], &[112, 144], &[144], &[112, 113, 144], &[]],
        false,
    );
    check(
        &[112, 113, 144, 227, 128],
        [&[112, 144], &[113, 128], &[128], &[112, 113, 144], &[128]],
        true,
    );
    let after_offer = [112, 113, 144, 227, 128, 98, 226];
    check(
        &after_offer,
        [&[113, 128], &[98, 112, 144], &[98], &[112, 113, 144], &[98, 128]],
        false,
    );
    // In normal play the opening stones stay marked.
    let stones = [112, 113, 144, 226, 0];
    check(&stones, [&[112, 144], &[0, 113], &[0], &[112, 113, 144], &[]], true);
}

/// Stones of a 15x15 board by a pattern from `col` on in row 7: `X` black, `O` white.
fn board_of(pattern: &str, col: usize, more_black: &[(usize, usize)]) -> Board {
    let mut board = Board::new(15, 15);
    for (index, point) in pattern.chars().enumerate() {
        match point {
            'X' => board.place(7 * 15 + col + index, Colour::Black),
            'O' => board.place(7 * 15 + col + index, Colour::White),
            _ => {}
        }
    }
    more_black
        .iter()
        .for_each(|&(row, col)| board.place(row * 15 + col, Colour::Black));
    board
}

/// Checks the threats of black and its traps, under both edge policies, with black to move.
#[track_caller]
fn check_threats(board: &Board, threats: &[(usize, usize)], traps: &[(usize, usize)]) {
    for edge in [EdgePolicy::Closed, EdgePolicy::Open] {
        let mut planes = vec![0; 3 * 225];
        fill_threat_planes(board, Colour::Black, rule(edge), &mut planes);
        let places = |plane: &[u8]| {
            marked(plane)
                .into_iter()
                .map(|cell| (cell / 15, cell % 15))
                .collect::<Vec<_>>()
        };
        assert_eq!(places(&planes[..225]), threats, "threats, {edge:?}");
        assert_eq!(places(&planes[450..]), traps, "traps, {edge:?}");
    }
}

#[test]
fn the_worked_examples_of_the_threat_planes_hold() {
    let check = |pattern, threats: &[_], traps: &[_]| check_threats(&board_of(pattern, 3, &[]), threats, traps);
    let three = [(7, 4), (7, 5), (7, 6)];
    let four = [(7, 4), (7, 5), (7, 6), (7, 7)];
    check(".XXX.", &three, &[]);
    check("OXXX.", &three, &[]);
    check("OXXXO", &[], &[]);
    check(".XXXX.", &four, &[]);
    check(".XX.", &[], &[]);
    check("OXXXXXO", &[], &[]);
    check(".XXX.X.", &three, &[]);
    check(".XXX.XX.", &three, &[(7, 7)]);
    check(".XXXX.X.", &four, &[(7, 8)]);
    check("OXXXXX.", &[], &[(7, 9)]);
    check(".XXXXXX.", &[], &[(7, 3), (7, 10)]);
    check_threats(&board_of("XXX.", 0, &[]), &[(7, 0), (7, 1), (7, 2)], &[]);
    check_threats(&board_of("XXXO", 0, &[]), &[], &[]);
    // The cell (7,7) makes a six and a valid five: a win, not a trap.
    let column = [(8, 7), (9, 7), (10, 7), (11, 7)];
    let threats = [&three[..], &column].concat();
    check_threats(&board_of(".XXX.XX", 3, &column), &threats, &[]);
    let column = [(8, 5), (9, 5)];
    check_threats(&board_of("OXXXO", 3, &column), &[(7, 5), (8, 5), (9, 5)], &[]);
}

#[test]
fn threats_of_the_other_colour_have_their_own_plane() {
    let mut planes = vec![0; 3 * 225];
    let board = board_of("OXXXX.", 3, &[]);
    fill_threat_planes(&board, Colour::White, rule(EdgePolicy::Closed), &mut planes);
    let seen = [0, 1, 2].map(|plane| marked(&planes[plane * 225..(plane + 1) * 225]));
    assert_eq!(seen, [vec![], vec![109, 110, 111, 112], vec![]]);
}

/// What the planes' own descriptions say, word by word and without any regard to speed.
fn threats_by_definition(board: &Board, colour: Colour, rule: LineRule) -> Vec<u8> {
    let cells = board.cells();
    let mut planes = vec![0; 3 * cells];
    for cell in 0..cells {
        for (plane, owner) in [(0, colour), (1, colour.other())] {
            planes[plane * cells + cell] = u8::from(
                board.has(cell, owner) && {
                    let mut runs = DIRECTIONS
                        .into_iter()
                        .map(|direction| board.run(cell, owner, direction));
                    runs.any(|run| [3, 4].contains(&run.length) && run.ends.contains(&End::Empty))
                },
            );
        }
        if board.is_empty(cell) {
            let mut after = *board;
            after.place(cell, colour);
            let too_long = DIRECTIONS
                .into_iter()
                .any(|direction| after.run(cell, colour, direction).length > rule.length);
            planes[2 * cells + cell] = u8::from(too_long && !rule.wins_at(&after, cell, colour));
        }
    }
    planes
}

fn random_board(rows: usize, cols: usize, points: &[u8]) -> Board {
    let mut board = Board::new(rows, cols);
    for (cell, point) in points.iter().take(rows * cols).enumerate() {
        match point {
            0..=4 => board.place(cell, Colour::Black),
            5..=6 => board.place(cell, Colour::White),
            _ => {}
        }
    }
    board
}

proptest! {
    #[test]
    fn the_threat_planes_follow_their_definition(
        (rows, cols) in (1..=20_usize, 1..=20_usize),
        points in proptest::collection::vec(0..9_u8, 400),
        edge in prop_oneof![Just(EdgePolicy::Closed), Just(EdgePolicy::Open)],
        length in 3..=7_u8,
    ) {
        let board = random_board(rows, cols, &points);
        let rules = [rule(edge), LineRule::exactly(length), LineRule { length, ..rule(edge) }];
        for (rule, colour) in rules.into_iter().flat_map(|rule| Colour::BOTH.map(|colour| (rule, colour))) {
            let mut planes = vec![0; 3 * board.cells()];
            fill_threat_planes(&board, colour, rule, &mut planes);
            prop_assert_eq!(&planes, &threats_by_definition(&board, colour, rule));
        }
    }
}

/// Whether any stone on the board is part of a winning line.
fn has_winning_line(board: &Board, rule: LineRule) -> bool {
    (0..board.cells()).any(|cell| board.get(cell).is_some_and(|colour| rule.wins_at(board, cell, colour)))
}

#[test]
fn a_rescan_of_the_whole_board_finds_a_line_iff_the_last_stone_won() {
    for text in ["caro5?size=6", "caro5?size=7&edge=open", "caro5"] {
        let game = game!(Caro5, text);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(12);
        for _ in 0..100 {
            let mut state = game.start();
            while state.outcome().is_none() {
                let legal = legal(&state);
                state
                    .apply(legal[(rng.next_u64() % legal.len() as u64) as usize])
                    .expect("a legal action");
                let won = state.outcome().is_some_and(|outcome| outcome.reason == Reason::Line);
                let rule = game.rules().lines[0];
                assert_eq!(has_winning_line(state.board(), rule), won, "{text}\n{}", state.draw());
            }
        }
    }
}

fn results(game: &Caro5, games: u32) -> [u32; 3] {
    let options = Options {
        games,
        deep_checks: 500,
        seed: 5,
        ..Options::default()
    };
    conformance::check(game, &options)
        .map(|summary| summary.results)
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn on_5x5_nobody_can_win_when_the_edge_is_closed() {
    assert_eq!(results(&game!(Caro5, "caro5?size=5"), 2_000), [0, 0, 2_000]);
    let [first, second, _] = results(&game!(Caro5, "caro5?size=5&edge=open"), 2_000);
    assert!(first > 0 && second > 0);
    // Every line of five cells has both ends at the edge.
    for direction in DIRECTIONS {
        for start in 0..25 {
            let (row, col) = ((start / 5) as i8, (start % 5) as i8);
            let line: Vec<_> = (0..5).map(|i| (row + i * direction.0, col + i * direction.1)).collect();
            if line
                .iter()
                .any(|(row, col)| !(0..5).contains(row) || !(0..5).contains(col))
            {
                continue;
            }
            let mut board = Board::new(5, 5);
            line.iter()
                .for_each(|&(row, col)| board.place((row * 5 + col) as usize, Colour::Black));
            assert!(!has_winning_line(&board, rule(EdgePolicy::Closed)));
            assert!(has_winning_line(&board, rule(EdgePolicy::Open)));
        }
    }
}

#[test]
fn the_largest_board_obeys_the_laws_too() {
    assert_eq!(results(&game!(Caro5, "caro5?size=20"), 200).iter().sum::<u32>(), 200);
}
