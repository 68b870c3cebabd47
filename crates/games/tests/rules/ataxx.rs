//! Ataxx: perft of positions, passes, ends, and the notation of clones.

use std::collections::BTreeMap;

use tengen_games::ataxx::Ataxx;
use tengen_games::{Action, Game, Outcome, Reason, Seat, State, notation, perft_from, perft_moves};

use crate::{game, legal, vectors};

fn at(text: &str) -> (Ataxx, <Ataxx as Game>::State) {
    let game = game!(Ataxx, "ataxx");
    let state = game.parse_position(text).unwrap_or_else(|error| panic!("{error}"));
    (game, state)
}

#[test]
fn published_perft_of_every_position() {
    let all: BTreeMap<String, serde_json::Value> = vectors("perft.json");
    let positions: BTreeMap<String, Vec<u64>> =
        serde_json::from_value(all["ataxx"].clone()).expect("counts by position");
    assert_eq!(positions.len(), 6);
    for (text, expected) in positions {
        let (game, state) = at(&text);
        let counts: Vec<u64> = (1..=expected.len() as u32)
            .map(|depth| perft_moves(&game, &state, depth))
            .collect();
        assert_eq!(counts, expected, "{text}");
    }
}

#[test]
fn the_registered_walls_are_those_positions() {
    for (id, fen) in [
        ("ataxx", "x5o/7/7/7/7/7/o5x x 0 1"),
        ("ataxx?walls=square", "x5o/7/2-1-2/7/2-1-2/7/o5x x 0 1"),
        ("ataxx?walls=diamond", "x5o/7/3-3/2-1-2/3-3/7/o5x x 0 1"),
    ] {
        let game = game!(Ataxx, id);
        assert_eq!(game.position_text(&game.start()).as_deref(), Some(fen));
    }
}

#[test]
fn pairs_of_points_and_moves_are_counted_apart() {
    let (game, state) = at("7/7/7/7/ooooooo/ooooooo/xxxxxxx o");
    let counts = (
        perft_from(&state, 1),
        perft_from(&state, 2),
        perft_moves(&game, &state, 1),
    );
    assert_eq!(counts, (14, 87, 75));
    let start = game.start();
    assert_eq!((perft_from(&start, 1), perft_from(&start, 2)), (2, 16));
}

#[track_caller]
fn check_pass(text: &str, must_pass: bool) {
    let (game, state) = at(text);
    let pass = [Action(49)];
    assert_eq!(legal(&state) == pass, must_pass, "{text}");
    assert_eq!(legal(&state).contains(&pass[0]), must_pass, "{text}");
    if must_pass {
        let word = notation::words(&game, &state, &pass);
        assert_eq!(word, ["0000"]);
        for text in ["0000", "null", "pass", "a1a1", "49"] {
            let read = notation::play(&game, &state, &[text]).map(|(actions, _)| actions);
            assert_eq!(read.as_deref(), Ok(&pass[..]), "{text}");
        }
    }
}

#[test]
fn passing_is_legal_only_when_forced() {
    check_pass("x5o/7/7/7/7/7/o5x x", false);
    check_pass("7/7/7/7/ooooooo/ooooooo/xxxxxxx x", true);
    check_pass("7/7/7/7/4ooo/4ooo/4oox x", true);
    check_pass("7/7/7/7/4ooo/4ooo/4oox o", false);
    check_pass("xxxxxxx/-------/-------/7/7/-------/ooooooo x", true);
    check_pass("xxxxxxx/-------/-------/7/7/-------/ooooooo o", false);
}

#[track_caller]
fn check_outcome(text: &str, expected: Option<Outcome>) {
    let (_, state) = at(text);
    assert_eq!(state.outcome(), expected, "{text}");
    assert_eq!(legal(&state).is_empty(), expected.is_some(), "{text}");
}

#[test]
fn ends_follow_the_rules() {
    let (first, second) = (Seat::FIRST, Seat::SECOND);
    let full = "xxxxxxx/xxxxxxx/xxxxxxx/xxxoooo/ooooooo/ooooooo/ooooooo";
    check_outcome(&format!("{full} x"), Some(Outcome::win(second, Reason::Score)));
    let walled = "xxxxxxx/xxxxxxx/xxxxxxx/xxx-ooo/ooooooo/ooooooo/ooooooo";
    check_outcome(&format!("{walled} o"), Some(Outcome::draw(Reason::Score)));
    // Nobody can move: the count decides before the hundred moves do.
    let walled_in = "7/7/7/7/-------/-------/xxxxooo x 100 1";
    check_outcome(walled_in, Some(Outcome::win(first, Reason::Score)));
    check_outcome("x5o/7/7/7/7/7/o5x x 100 1", Some(Outcome::draw(Reason::NoProgress)));
    check_outcome("x5o/7/7/7/7/7/o5x x 99 1", None);
    check_outcome("7/7/7/3x3/7/7/7 o", Some(Outcome::win(first, Reason::NoPieces)));
    check_outcome("7/7/7/3o3/7/7/7 o", Some(Outcome::win(second, Reason::NoPieces)));
}

/// The published counts to depth 5, and none after the hundredth move without a clone.
#[test]
fn deeper_counts_hold_too() {
    for (text, depth, expected) in [
        ("x5o/7/7/7/7/7/o5x x", 5, 4_752_668),
        ("x5o/7/2-1-2/7/2-1-2/7/o5x x", 5, 2_266_352),
        ("x5o/7/3-3/2-1-2/3-3/7/o5x x", 5, 3_639_856),
        ("7/7/7/2x1o2/7/7/7 x", 5, 4_266_992),
        ("7/7/7/7/ooooooo/ooooooo/xxxxxxx x", 5, 452_980),
        ("7/7/7/7/-------/-------/x5o x", 6, 174),
        ("x5o/7/7/7/7/7/o5x x 100 1", 1, 0),
        ("7/7/7/2x1o2/7/7/7 x 100 1", 2, 0),
    ] {
        let (game, state) = at(text);
        assert_eq!(perft_moves(&game, &state, depth), expected, "{text}");
    }
}

/// When both have passed or cannot move the game is over, and no further pass is taken.
#[test]
fn nothing_is_passed_after_the_end() {
    for text in [
        "xxxxxxx/xxxxxxx/xxxxxxx/xxxoooo/ooooooo/ooooooo/ooooooo x",
        "7/7/7/7/-------/-------/xxxxooo o",
        "7/7/7/3x3/7/7/7 o",
    ] {
        let (_, mut state) = at(text);
        let error = state.apply(Action(49)).expect_err(text);
        assert_eq!(error.why, "the game is over", "{text}");
    }
}

/// One jump away from the hundredth move without a clone; passes and jumps count, captures do not reset the clock.
#[test]
fn the_clock_counts_jumps_and_passes() {
    let play = |text: &str, words: &[&str]| {
        let (game, state) = at(text);
        let (_, state) = notation::play(&game, &state, words).expect("legal");
        (game.position_text(&state).expect("between moves"), state.outcome())
    };
    let jumped = play("x5o/7/7/7/7/7/o5x x 98 60", &["a7a5", "a1a3"]);
    let drawn = Some(Outcome::draw(Reason::NoProgress));
    assert_eq!(jumped, ("6o/7/x6/7/o6/7/6x x 100 61".to_owned(), drawn));
    let cloned = play("x5o/7/7/7/7/7/o5x x 99 60", &["b6"]);
    assert_eq!(cloned, ("x5o/1x5/7/7/7/7/o5x o 0 60".to_owned(), None));
    let captured = play("7/7/7/3x3/7/7/3o2o x 5 9", &["d4d2"]);
    assert_eq!(captured, ("7/7/7/7/7/3x3/3x2o o 6 9".to_owned(), None));
    let passed = play("7/7/7/7/4ooo/4ooo/4oox x 7 3", &["0000"]);
    assert_eq!(passed, ("7/7/7/7/4ooo/4ooo/4oox o 8 3".to_owned(), None));
}

#[test]
fn stones_around_the_destination_turn() {
    let (game, state) = at("7/7/2ooo2/2o1o2/2ooo2/7/x6 x");
    let error = notation::play(&game, &state, &["d4"]).expect_err("out of reach");
    assert_eq!(error.ply, 0);
    let (game, state) = at("7/7/2ooo2/2o1o2/2ooo2/3x3/x6 x");
    let (_, state) = notation::play(&game, &state, &["d2d4"]).expect("a jump over a stone");
    assert_eq!(
        game.position_text(&state).as_deref(),
        Some("7/7/2xxx2/2xxx2/2xxx2/7/x6 o 1 1")
    );
}

#[test]
fn a_clone_is_named_by_its_destination_and_loses_no_stage() {
    let (game, state) = at("7/7/7/3xx2/7/7/o6 x");
    let read = |text: &str| notation::play(&game, &state, &[text]).map(|(actions, _)| actions);
    let cell = |text: &str| game.parse_action(text).expect("a cell");
    let (from_d4, from_e4) = ([cell("d4"), cell("d5")], [cell("e4"), cell("d5")]);
    for text in ["d5", "x@d5", "P@d5", "d4d5"] {
        assert_eq!(read(text).as_deref(), Ok(&from_d4[..]), "{text}");
    }
    assert_eq!(read("e4d5").as_deref(), Ok(&from_e4[..]));
    assert_eq!(notation::words(&game, &state, &from_d4), ["d5"]);
    assert_eq!(notation::words(&game, &state, &from_e4), ["e4d5"]);
    let after = |actions: &[Action]| {
        let mut state = state.clone();
        actions.iter().for_each(|&action| state.apply(action).expect("legal"));
        state
    };
    assert_eq!(after(&from_d4), after(&from_e4));
    for bad in ["a1a4", "a0", "g8", "h1", "", "x@d4d5", "d4d7", "d4d", "ü1"] {
        assert!(read(bad).is_err(), "{bad}");
    }
}

#[test]
fn bad_positions_are_refused_with_the_reason() {
    let why = |text: &str| game!(Ataxx, "ataxx").parse_position(text).expect_err(text).why;
    assert_eq!(why("7/7/7/7/7/7/8 x"), "row 1: more than 7 points");
    assert_eq!(why("x5o/7/7/7/7/7/o5x z"), "`z` to move is neither x nor o");
    assert_eq!(
        why("x5o/7/7/7/7/7/o5x x 101"),
        "the half-move clock is not from 0 to 100"
    );
    assert_eq!(why("x5o/7/7/7/7/7/o5x x 0 0"), "the move number is not from 1 to 65535");
    assert_eq!(why("x5o/7/7/7/7/7/o5x x 0 1 2"), "`2` follows the move number");
}
