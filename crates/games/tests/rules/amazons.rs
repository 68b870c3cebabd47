//! Amazons: published counts, the lifted origin, the notations, and the end.

use tengen_games::amazons::AmazonsBoard;
use tengen_games::staged::StagedRules;
use tengen_games::{Action, Game, Outcome, Reason, Seat, State, notation, perft, perft_moves};

use crate::{game, legal, vectors};

#[track_caller]
fn check_moves(game: &str, vector: &str) {
    let all: std::collections::BTreeMap<String, serde_json::Value> = vectors("perft.json");
    let expected: Vec<u64> = serde_json::from_value(all[vector].clone()).expect("a list of counts");
    let game = game!(Amazons, game);
    let counts: Vec<u64> = (1..=expected.len() as u32)
        .map(|depth| perft_moves(&game, &game.start(), depth))
        .collect();
    assert_eq!(counts, expected, "{vector}");
}

/// 2,176 needs the lifted origin: with the origin in the way it would be 2,048; 146 is the wrong piece's count.
#[test]
fn published_perft_10x10() {
    check_moves("amazons", "amazons10");
}

#[test]
fn published_perft_6x6() {
    check_moves("amazons?size=6", "amazons6_4v4");
}

#[test]
fn stages_count_as_plies() {
    let game = game!(Amazons, "amazons");
    assert_eq!((perft(&game, 1), perft(&game, 2), perft(&game, 3)), (4, 80, 2176));
    let small = game!(Amazons, "amazons?size=4");
    assert_eq!((perft(&small, 1), perft(&small, 2), perft(&small, 3)), (2, 18, 122));
    assert_eq!(perft_moves(&small, &small.start(), 2), 10_282);
    let six = game!(Amazons, "amazons?size=6");
    assert_eq!((perft(&six, 1), perft(&six, 2)), (4, 40));
}

#[test]
fn the_start_is_the_common_one() {
    let game = game!(Amazons, "amazons");
    let fen = game.position_text(&game.start()).expect("between moves");
    assert_eq!(fen, "3q2q3/10/10/q8q/10/10/Q8Q/10/10/3Q2Q3 w - - 0 1");
    assert_eq!(game.parse_position(&fen), Ok(game.start()));
    assert_eq!(game.spec().plies_max, 276);
    let origins: Vec<String> = legal(&game.start())
        .into_iter()
        .map(|action| game.action_text(action))
        .collect();
    assert_eq!(origins, ["a4", "j4", "d1", "g1"]);
}

#[test]
fn three_notations_mean_one_move() {
    let game = game!(Amazons, "amazons");
    let read = |text| notation::play(&game, &game.start(), &[text]).map(|(actions, _)| actions);
    let actions = read("d1-d6-g9").expect("legal");
    assert_eq!(actions, [93, 43, 16].map(Action));
    assert_eq!(read("d1-d6/g9").as_ref(), Ok(&actions));
    assert_eq!(read("d1d6,d6g9").as_ref(), Ok(&actions));
    assert_eq!(notation::words(&game, &game.start(), &actions), ["d1-d6-g9"]);
    for bad in [
        "d1-d6",
        "d1-d6/",
        "d1-d6-g11",
        "d1-d6-g0",
        "d1d6,d5g9",
        "é1-d6-g9",
        "d1-d6-g99999999999999999999",
    ] {
        assert!(read(bad).is_err(), "{bad}");
    }
}

/// An amazon may shoot where it came from, and through that point.
#[test]
fn the_vacated_origin_is_empty() {
    let game = game!(Amazons, "amazons");
    for arrow in ["d1", "c1", "a1"] {
        let word = format!("d1-f1-{arrow}");
        assert!(notation::play(&game, &game.start(), &[&word]).is_ok(), "{word}");
    }
}

/// An amazon without an empty neighbour is not offered as an origin.
#[test]
fn dead_ends_are_never_offered() {
    let game = game!(Amazons, "amazons?size=4");
    let state = game.parse_position("Q*2/**2/4/2qQ w").expect("a position");
    let origins: Vec<String> = legal(&state)
        .into_iter()
        .map(|action| game.action_text(action))
        .collect();
    assert_eq!(origins, ["d1"]);
}

#[test]
fn who_cannot_move_loses() {
    let game = game!(Amazons, "amazons?size=4");
    let state = game.parse_position("Q*2/**2/2*q/3* w").expect("a position");
    assert_eq!(state.outcome(), Some(Outcome::win(Seat::SECOND, Reason::NoMoves)));
    assert_eq!(legal(&state), []);
    let goes_on = game.parse_position("Q*2/**2/2*q/3* b").expect("a position");
    assert_eq!(goes_on.outcome(), None);
}

#[test]
fn planes_show_stage_and_picks() {
    let game = game!(Amazons, "amazons?size=6");
    let mut planes = vec![9; game.spec().planes_len()];
    let sums = |words: &[&str], planes: &mut Vec<u8>| {
        let (_, state) = notation::play(&game, &game.start(), words).expect("legal");
        state.planes(planes);
        let sums: Vec<u32> = planes
            .chunks(36)
            .map(|plane| plane.iter().map(|&byte| u32::from(byte)).sum())
            .collect();
        sums
    };
    // Own and other amazons, arrows, first and second pick, three stages.
    assert_eq!(sums(&[], &mut planes), [4, 4, 0, 0, 0, 36, 0, 0]);
    assert_eq!(sums(&["b6-"], &mut planes), [3, 4, 0, 1, 0, 0, 36, 0]);
    assert_eq!(sums(&["b6-b5-"], &mut planes), [3, 4, 0, 1, 1, 0, 0, 36]);
    assert_eq!(sums(&["b6-b5-b6"], &mut planes), [4, 4, 1, 0, 0, 36, 0, 0]);
}

#[test]
fn bad_positions_are_refused_with_the_reason() {
    let game = game!(Amazons, "amazons?size=4");
    let why = |text: &str| game.parse_position(text).expect_err(text).to_string();
    assert_eq!(why(""), "`` is no position: 1 rows, the board has 4");
    assert_eq!(
        why("4/4/4/4 x"),
        "`4/4/4/4 x` is no position: `x` to move is neither w nor b"
    );
    assert!(why("4/4/4/3z w").contains("row 1: `z` is none of Qq*"));
    assert_eq!(AmazonsBoard::STAGES, 3);
}
