//! Xiangqi: published counts, how each piece moves, the ends, and repetition.

use std::collections::BTreeMap;

use tengen_games::xiangqi::Xiangqi;
use tengen_games::{Game, Outcome, Reason, Seat, State, notation, perft, perft_moves};

use crate::{game, legal, vectors};

type XiangqiState = <Xiangqi as Game>::State;

fn at(text: &str) -> (Xiangqi, XiangqiState) {
    let game = game!(Xiangqi, "xiangqi");
    let state = game.parse_position(text).unwrap_or_else(|error| panic!("{error}"));
    (game, state)
}

/// Plays moves from a position.
fn after(text: &str, moves: &str) -> XiangqiState {
    let (game, state) = at(text);
    let words: Vec<&str> = moves.split_whitespace().collect();
    let played = notation::play(&game, &state, &words);
    played.map(|(_, state)| state).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn published_perft_of_the_start() {
    let all: BTreeMap<String, serde_json::Value> = vectors("perft.json");
    let expected: Vec<u64> = serde_json::from_value(all["xiangqi"].clone()).expect("a list of counts");
    let game = game!(Xiangqi, "xiangqi");
    let counts: Vec<u64> = (1..=expected.len() as u32)
        .map(|depth| perft_moves(&game, &game.start(), depth))
        .collect();
    assert_eq!(counts, expected);
    // Stages: 16 pieces that can move, 44 pairs of points.
    assert_eq!((perft(&game, 1), perft(&game, 2)), (16, 44));
}

/// Fairy-Stockfish's own test positions.
#[test]
fn published_perft_of_an_endgame() {
    let (game, state) = at("4kcP1N/8n/3rb4/9/9/9/9/3p1A3/4K4/5CB2 w");
    assert_eq!(perft_moves(&game, &state, 4), 92_741);
}

/// The deepest published counts: one more than the vectors have, and a position of many captures.
#[test]
#[ignore = "plays eight million moves: make conformance"]
fn deeper_counts_of_xiangqi_hold_too() {
    let game = game!(Xiangqi, "xiangqi");
    assert_eq!(perft_moves(&game, &game.start(), 4), 3_290_240);
    let (game, state) = at("1rbaka2R/5r3/6n2/2p1p1p2/4P1bP1/PpC3Bc1/1nPR2P2/2N2AN2/1c2K1p2/2BAC4 w");
    assert_eq!(perft_moves(&game, &state, 4), 4_485_547);
}

#[test]
fn the_start_is_written_as_it_is_read() {
    let game = game!(Xiangqi, "xiangqi");
    let fen = "rnbakabnr/9/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RNBAKABNR w - - 0 1";
    assert_eq!(game.position_text(&game.start()).as_deref(), Some(fen));
    assert_eq!(game.parse_position(fen), Ok(game.start()));
    let names: Vec<&str> = game.spec().symmetries.iter().map(|symmetry| symmetry.name).collect();
    assert_eq!(names, ["identity", "mirror left-right"]);
    assert_eq!((game.spec().actions.len(), game.spec().plies_max), (90, 2 * 31 * 120));
}

/// Where the piece on `origin` may go; nothing if it is not offered at all.
#[track_caller]
fn check_reach(text: &str, origin: &str, expected: &str) {
    let (game, mut state) = at(text);
    let action = game.parse_action(origin).expect("a point");
    let reached: Vec<String> = if state.apply(action).is_ok() {
        legal(&state)
            .into_iter()
            .map(|action| game.action_text(action))
            .collect()
    } else {
        Vec::new()
    };
    assert_eq!(reached.join(" "), expected, "{origin} in\n{}", state.draw());
}

#[test]
fn every_piece_of_the_start_has_its_moves() {
    let start = "rnbakabnr/9/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C5C1/9/RNBAKABNR w";
    check_reach(start, "a1", "a3 a2");
    check_reach(start, "b1", "a3 c3");
    check_reach(start, "c1", "a3 e3");
    check_reach(start, "d1", "e2");
    check_reach(start, "e1", "e2");
    check_reach(start, "a4", "a5");
    // The horse on b10 stands behind the enemy's cannon.
    check_reach(start, "b3", "b10 b7 b6 b5 b4 a3 c3 d3 e3 f3 g3 b2");
}

#[test]
fn horses_and_elephants_are_blocked_by_what_stands_next_to_them() {
    check_reach("3k5/9/9/9/9/9/9/9/1P7/1N2K4 w", "b1", "d2");
    check_reach("3k5/9/9/9/9/9/9/9/9/1N2K4 w", "b1", "a3 c3 d2");
    check_reach("3k5/9/9/9/9/9/3P5/4B4/9/4K4 w", "e3", "g5 c1 g1");
    // The river is not crossed.
    check_reach("3k5/9/9/9/9/2B6/9/9/9/4K4 w", "c5", "a3 e3");
    check_reach("3k5/9/9/9/2b6/9/9/9/9/4K4 b", "c6", "a8 e8");
}

#[test]
fn a_cannon_takes_over_exactly_one_piece() {
    check_reach(
        "3k5/1r7/9/9/1p7/9/9/1C7/9/4K4 w",
        "b3",
        "b9 b5 b4 a3 c3 d3 e3 f3 g3 h3 i3 b2 b1",
    );
    check_reach(
        "3k5/1r7/1p7/9/1p7/9/9/1C7/9/4K4 w",
        "b3",
        "b8 b5 b4 a3 c3 d3 e3 f3 g3 h3 i3 b2 b1",
    );
    check_reach(
        "3k5/9/9/9/1p7/9/9/1C7/9/4K4 w",
        "b3",
        "b5 b4 a3 c3 d3 e3 f3 g3 h3 i3 b2 b1",
    );
}

#[test]
fn soldiers_go_sideways_beyond_the_river_and_never_back() {
    let text = "3k5/9/9/9/4P4/9/P8/9/9/4K4";
    check_reach(&format!("{text} w"), "a4", "a5");
    check_reach(&format!("{text} w"), "e6", "e7 d6 f6");
    check_reach("3k5/9/9/9/9/2p6/9/9/9/4K4 b", "c5", "b5 d5 c4");
    check_reach("2P1k4/9/9/9/9/9/9/9/9/3K5 w", "c10", "b10 d10");
}

#[test]
fn palaces_are_not_left_and_generals_do_not_face_each_other() {
    check_reach("4k4/9/9/9/9/9/9/9/9/3K5 w", "d1", "d2");
    check_reach("3k5/9/9/9/9/9/9/9/9/3AK4 w", "d1", "e2");
    // The horse is all that stands between the generals.
    check_reach("4k4/9/9/9/4N4/9/9/9/9/4K4 w", "e6", "");
    check_reach("4k4/9/9/9/4N4/4P4/9/9/9/4K4 w", "e6", "d8 f8 c7 g7 c5 g5");
}

#[track_caller]
fn check_outcome(text: &str, moves: &str, expected: Option<Outcome>) {
    let state = after(text, moves);
    assert_eq!(state.outcome(), expected, "{moves} in\n{}", state.draw());
    assert_eq!(legal(&state).is_empty(), expected.is_some());
}

#[test]
fn who_cannot_move_loses_checked_or_not() {
    let red = Some(Outcome::win(Seat::FIRST, Reason::NoMoves));
    check_outcome("3k5/4R4/9/9/9/9/9/9/9/4K4 b", "", red);
    check_outcome("3k5/9/9/9/9/9/9/9/4R4/R3K4 w", "a1a10", None);
    check_outcome("3k5/9/9/9/9/9/9/4R4/R8/4K4 w", "e3e9", red);
    check_outcome("3k5/4R4/9/9/9/9/9/9/9/R3K4 w", "a1a10", red);
}

/// A perpetual checker loses, other repetitions are draws.
#[test]
fn the_third_occurrence_of_a_position_ends_the_game() {
    let checks = "e6d6 d10e10 d6e6 e10d10";
    let checker = "3k5/9/9/9/4R4/9/9/9/9/5K3 w";
    check_outcome(checker, checks, None);
    let lost = Some(Outcome::win(Seat::SECOND, Reason::PerpetualCheck));
    check_outcome(checker, &format!("{checks} {checks}"), lost);
    // The same with colours changed.
    let black = "5k3/9/9/9/9/4r4/9/9/9/3K5 b";
    let checks = "e5d5 d1e1 d5e5 e1d1";
    let lost = Some(Outcome::win(Seat::FIRST, Reason::PerpetualCheck));
    check_outcome(black, &format!("{checks} {checks}"), lost);

    let quiet = "e2a2 d10d9 a2e2 d9d10";
    let calm = "3k5/9/9/9/9/9/9/9/4R4/5K3 w";
    check_outcome(calm, quiet, None);
    let draw = Some(Outcome::draw(Reason::Repetition));
    check_outcome(calm, &format!("{quiet} {quiet}"), draw);
    // Who does not check with every move of the round is no perpetual checker.
    let seldom = "e6d6 d10e10 d6a6 e10e9 a6b6 e9d9 b6e6 d9d10";
    check_outcome(checker, &format!("{seldom} {seldom}"), draw);
}

/// A perpetual chase of an unprotected piece is a draw here, though tournament rules call it lost.
#[test]
fn perpetual_chases_are_draws() {
    let text = "3k5/9/n8/9/9/9/9/9/R8/4K4 b";
    let chase = "a8b10 a2b2 b10a8 b2a2";
    let draw = Some(Outcome::draw(Reason::Repetition));
    check_outcome(text, &format!("{chase} {chase}"), draw);
}

#[test]
fn a_hundred_and_twenty_moves_without_a_capture_are_a_draw() {
    let text = "3k5/9/9/9/9/9/9/p8/4R4/4K4 w - - 119 80";
    check_outcome(text, "e2e8", Some(Outcome::draw(Reason::NoProgress)));
    check_outcome(text, "e2a2", Some(Outcome::draw(Reason::NoProgress)));
    check_outcome(&text.replace("p8/4R4", "4p4/4R4"), "e2e3", None);
    // Who has no move has lost before moves are counted.
    let stalemate = "3k5/9/9/9/9/9/9/9/4R4/4K4 w - - 119 80";
    check_outcome(stalemate, "e2e9", Some(Outcome::win(Seat::FIRST, Reason::NoMoves)));
    let clocks = |moves: &str| {
        let (game, _) = at(text);
        game.position_text(&after(&text.replace("119", "7"), moves))
    };
    assert_eq!(clocks("e2e8").as_deref(), Some("3k5/9/4R4/9/9/9/9/p8/9/4K4 b - - 8 80"));
}

fn plane_sums(game: &Xiangqi, state: &XiangqiState) -> Vec<u32> {
    let mut planes = vec![9; game.spec().planes_len()];
    state.planes(&mut planes);
    planes
        .chunks(90)
        .map(|plane| plane.iter().map(|&byte| u32::from(byte)).sum())
        .collect()
}

#[test]
fn planes_show_kinds_side_repetition_clock_and_the_lifted_piece() {
    let game = game!(Xiangqi, "xiangqi");
    let at_start = [1, 2, 2, 2, 2, 2, 5, 1, 2, 2, 2, 2, 2, 5, 90, 0, 0, 0, 90, 0];
    assert_eq!(plane_sums(&game, &game.start()), at_start);
    let play = |words: &[&str]| {
        let played = notation::play(&game, &game.start(), words);
        played.map(|(_, state)| state).expect("legal")
    };
    // The lifted cannon is still shown among the cannons, and the pick beside it.
    let lifted = [1, 2, 2, 2, 2, 2, 5, 1, 2, 2, 2, 2, 2, 5, 90, 0, 0, 1, 0, 90];
    assert_eq!(plane_sums(&game, &play(&["h3-"])), lifted);
    let moved = [1, 2, 2, 2, 2, 2, 5, 1, 2, 2, 2, 2, 2, 5, 0, 0, 90, 0, 90, 0];
    assert_eq!(plane_sums(&game, &play(&["h3e3"])), moved);
    let back = play(&["h3e3", "h8e8", "e3h3", "e8h8"]);
    let repeated = [1, 2, 2, 2, 2, 2, 5, 1, 2, 2, 2, 2, 2, 5, 90, 90, 360, 0, 90, 0];
    assert_eq!(plane_sums(&game, &back), repeated);
    assert_eq!(
        plane_sums(&game, &play(&["h3e3", "h8e8", "e3h3", "e8h8", "h3-"]))[15],
        90
    );
}

/// The same board with another past is another position: repetition remembers.
#[test]
fn the_hash_covers_what_repetition_remembers() {
    let text = "3k5/9/9/9/4R4/9/9/9/9/5K3 w - - 4 3";
    let (_, fresh) = at(text);
    let known = after(&text.replace("4 3", "0 1"), "e6d6 d10e10 d6e6 e10d10");
    assert_eq!(fresh.draw(), known.draw());
    assert_ne!(fresh.hash(), known.hash());
    assert_ne!(fresh, known);
}

#[test]
fn moves_are_named_by_both_points() {
    let game = game!(Xiangqi, "xiangqi");
    let read = |text| notation::play(&game, &game.start(), &[text]).map(|(actions, _)| actions);
    let actions = read("h3e3").expect("legal");
    assert_eq!(read("h3-e3").as_ref(), Ok(&actions));
    assert_eq!(notation::words(&game, &game.start(), &actions), ["h3e3"]);
    let far = read("b3b10").expect("legal");
    assert_eq!(notation::words(&game, &game.start(), &far), ["b3b10"]);
    for bad in ["h3e", "h3e3e3", "h3e11", "h0e3", "j3e3", "h3h11", "é3e3"] {
        assert!(read(bad).is_err(), "{bad}");
    }
}

#[test]
fn bad_positions_are_refused_with_the_reason() {
    let why = |text: &str| game!(Xiangqi, "xiangqi").parse_position(text).expect_err(text).why;
    assert_eq!(why(""), "1 rows, the board has 10");
    assert_eq!(why("3k5/9/9/9/9/9/9/9/9/9 w"), "there is not one `K`");
    assert_eq!(why("3k5/9/9/9/9/9/9/9/9/3KK4 w"), "there is not one `K`");
    assert_eq!(why("9/9/9/3k5/9/9/9/9/9/4K4 w"), "`k` is outside its palace");
    assert_eq!(
        why("4k4/9/9/9/9/9/9/9/9/4K4 w"),
        "seat 0 could take the general of the other side"
    );
    assert!(why("3k5/9/9/9/9/9/9/9/9/4K4 w - - 121 1").contains("not from 0 to 120"));
    assert!(why("3k5/9/9/9/9/9/9/9/9/4K4 x").contains("`x` to move is neither w nor b"));
    assert!(why("3k5/9/9/9/9/PPPPPPPPP/PPPPPPPPP/9/9/4K4 w").contains("seat 0 has 19 pieces, more than 16"));
    assert_eq!(
        why("3k5/9/9/9/9/9/9/9/9/4K4 w - - 0 1 2"),
        "`2` follows the move number"
    );
}
