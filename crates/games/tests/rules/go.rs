//! Go: counts with superko and suicide, the order of clearing, area, komi and the ends.

use std::collections::{BTreeMap, HashSet};

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::go::Go;
use tengen_games::{Action, Game, Outcome, Reason, Seat, State, notation, perft, rules_fingerprint};

use crate::{game, legal, vectors};

fn play(game: &Go, words: &str) -> <Go as Game>::State {
    let words: Vec<&str> = words.split_whitespace().collect();
    let played = notation::play(game, &game.start(), &words);
    played.map(|(_, state)| state).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn check_perft(game: &str, expected: &[u64]) {
    let game = game!(Go, game);
    let counts: Vec<u64> = (1..=expected.len() as u32).map(|depth| perft(&game, depth)).collect();
    assert_eq!(counts, expected);
}

#[test]
fn action_sequences_are_counted_with_superko_and_suicide() {
    let all: BTreeMap<String, serde_json::Value> = vectors("perft.json");
    let expected = |name: &str| -> Vec<u64> { serde_json::from_value(all[name].clone()).expect("counts") };
    check_perft("go?size=2", &expected("go_tt_2x2"));
    check_perft("go?size=3", &expected("go_tt_3x3"));
    check_perft("go?size=2", &[5, 21, 68, 156, 316, 604, 1088]);
    check_perft("go?size=3", &[10, 91, 738, 5281]);
    check_perft("go?size=1", &[1, 1, 0]);
    assert_eq!(legal(&game!(Go, "go").start()).len(), 362);
}

/// Every legal colouring of 2x2 is reached by random games: 57 with the empty one.
#[test]
fn all_57_legal_positions_of_2x2_are_reached() {
    let game = game!(Go, "go?size=2");
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut boards = HashSet::new();
    for _ in 0..5_000 {
        let mut state = game.start();
        while state.outcome().is_none() {
            boards.insert(state.draw().lines().take(2).collect::<String>());
            let open = legal(&state);
            state.apply(open[rng.random_range(0..open.len())]).expect("legal");
        }
    }
    assert_eq!(boards.len(), 57);
}

/// Lays the stones of a colouring one by one, seats passing in between where only one of them has stones left. In a legal
/// colouring no string ever loses its last liberty on the way, so it arises as it is; one with a string without liberties
/// never does.
fn can_be_laid(game: &Go, colouring: &[u8]) -> bool {
    let cells = |colour: u8| -> Vec<usize> { (0..colouring.len()).filter(|&cell| colouring[cell] == colour).collect() };
    let stones = [cells(1), cells(2)];
    let pass = Action(colouring.len() as u16);
    let mut state = game.start();
    for turn in 0..2 * stones[0].len().max(stones[1].len()) {
        let stone = stones[turn % 2].get(turn / 2);
        let action = stone.map_or(pass, |&cell| Action(cell as u16));
        if state.apply(action).is_err() {
            return false;
        }
    }
    let drawn = state.draw();
    let rows = drawn.lines().take(game.spec().rows);
    let points = rows.flat_map(|line| line.chars().skip(3).filter(|&symbol| symbol != ' '));
    points.eq(colouring.iter().map(|&colour| ['.', 'X', 'O'][colour as usize]))
}

/// The published numbers of legal colourings: 1, 57 and 12,675.
#[test]
fn as_many_boards_arise_as_are_legal() {
    for (side, expected) in [(1, 1), (2, 57), (3, 12_675)] {
        let game = game!(Go, &format!("go?size={side}"));
        let points = side * side;
        let colouring = |number: u32| -> Vec<u8> {
            (0..points as u32)
                .map(|point| (number / 3_u32.pow(point) % 3) as u8)
                .collect()
        };
        let laid = (0..3_u32.pow(points as u32)).filter(|&number| can_be_laid(&game, &colouring(number)));
        assert_eq!(laid.count(), expected, "{side}x{side}");
    }
}

#[track_caller]
fn check_refused(game: &str, words: &str, why: &str) {
    let game = game!(Go, game);
    let words: Vec<&str> = words.split_whitespace().collect();
    let error = notation::play(&game, &game.start(), &words)
        .map(|_| ())
        .expect_err("refused");
    assert_eq!((error.ply, error.why.as_str()), (words.len() - 1, why));
}

#[test]
fn a_ko_may_not_be_retaken_at_once() {
    // Black c3 captures nothing yet: white surrounds d3 and takes, black may not take back at once.
    let shape = "c4 d4 b3 e3 c2 d2 d3 c3";
    check_refused(
        "go?size=5",
        &format!("{shape} d3"),
        "superko: the board was like this before",
    );
    let game = game!(Go, "go?size=5");
    let after_threats = play(&game, &format!("{shape} a1 e1 d3"));
    assert_eq!(after_threats.outcome(), None);
}

#[test]
fn suicide_of_one_stone_repeats_the_board_and_of_two_clears_them() {
    // White a2, b1 surround a1.
    check_refused("go?size=3", "c3 a2 c2 b1 a1", "superko: the board was like this before");
    let game = game!(Go, "go?size=3");
    let state = play(&game, "a1 a2 pass b2 pass c1 b1");
    assert!(
        state.draw().starts_with("  3 . . .\n  2 O O .\n  1 . . O\n"),
        "{}",
        state.draw()
    );
}

/// A stone without liberties that captures is no suicide: the other side's strings go first.
#[test]
fn captures_come_before_suicide() {
    let game = game!(Go, "go?size=3");
    let state = play(&game, "b1 a1 b2 a2 c3 a3 b3");
    assert!(
        state.draw().starts_with("  3 . X X\n  2 . X .\n  1 . X .\n"),
        "{}",
        state.draw()
    );
    let state = play(&game, "a3 a2 b2 b1 c1 pass a1");
    assert!(
        state.draw().starts_with("  3 X . .\n  2 . X .\n  1 X . X\n"),
        "{}",
        state.draw()
    );
}

#[test]
fn two_passes_end_the_game_and_area_decides() {
    let outcome = |id: &str, words: &str| play(&game!(Go, id), words).outcome();
    let win = |seat| Some(Outcome::win(seat, Reason::Score));
    assert_eq!(outcome("go?size=3", "pass pass"), win(Seat::SECOND));
    assert_eq!(
        outcome("go?size=3&komi=0", "pass pass"),
        Some(Outcome::draw(Reason::Score))
    );
    assert_eq!(outcome("go?size=3", "b2 pass pass"), win(Seat::FIRST));
    assert_eq!(
        outcome("go?size=3&komi=9", "b2 pass pass"),
        Some(Outcome::draw(Reason::Score))
    );
    assert_eq!(outcome("go?size=3&komi=9.5", "b2 pass pass"), win(Seat::SECOND));
    assert_eq!(outcome("go?size=3", "b2 pass c3 pass"), None);
    // Nothing follows the second pass, not even a third.
    check_refused("go?size=3", "b2 pass pass pass", "the game is over");
    check_refused("go?size=3", "b2 pass pass a1", "the game is over");
    // Dead stones are not taken off, and a region that both reach is nobody's.
    let state = play(&game!(Go, "go?size=3"), "b2 a3 pass pass");
    assert_eq!(state.area(), [1, 1]);
}

/// A game without two passes in a row ends at its move limit and is scored then, with its own reason.
#[test]
fn the_move_limit_scores_the_board() {
    let game = game!(Go, "go?size=1");
    assert_eq!(game.spec().plies_max, 66);
    let game = game!(Go, "go?size=5");
    let mut state = game.start();
    let pass = game.spec().actions.len() as u16 - 1;
    while state.outcome().is_none() {
        let open = legal(&state);
        let stone = open.iter().copied().find(|action| action.0 != pass);
        state.apply(stone.unwrap_or(open[open.len() - 1])).expect("legal");
    }
    let outcome = state.outcome().expect("over");
    assert_eq!(
        (state.turn() as usize, outcome.reason),
        (game.spec().plies_max, Reason::MoveLimit)
    );
}

/// Rules named by a game's id are those rules again, and no two of them look alike to records, runs and models.
#[test]
fn every_choice_of_rules_survives_its_name() {
    let mut fingerprints = BTreeMap::new();
    for size in ["", "size=5", "size=9", "size=13"] {
        for komi in ["", "komi=0", "komi=6.5", "komi=7"] {
            let parameters: Vec<&str> = [size, komi].into_iter().filter(|text| !text.is_empty()).collect();
            let text = ["go", &parameters.join("&")].join(if parameters.is_empty() { "" } else { "?" });
            let game = game!(Go, &text);
            assert_eq!(game.spec().id, text);
            let again = game!(Go, &game.spec().id);
            assert_eq!(rules_fingerprint(&again), rules_fingerprint(&game), "{text}");
            let other = fingerprints.insert(rules_fingerprint(&game).to_string(), text);
            assert_eq!(other, None);
        }
    }
}

/// Strings that are surely dead stay on the board and count: passing is never taken for an agreement on them.
#[test]
fn dead_stones_count_as_they_stand() {
    // White's lone stone in black's area makes the empty points around it nobody's.
    let with_stone = play(&game!(Go, "go?size=5&komi=0"), "b2 d4 b3 pass c3 pass pass");
    assert_eq!(with_stone.area(), [3, 1]);
    assert_eq!(with_stone.outcome(), Some(Outcome::win(Seat::FIRST, Reason::Score)));
}

#[test]
fn points_are_named_without_the_letter_i() {
    let game = game!(Go, "go");
    assert_eq!(game.action_text(Action(8)), "j19");
    assert_eq!(game.action_text(Action(360)), "t1");
    assert_eq!(game.parse_action("T1"), Some(Action(360)));
    assert_eq!(game.parse_action("i9"), None);
    assert_eq!(game.parse_action("PASS"), Some(Action(361)));
}

/// The same board with another past is another position: only one of them forbids the retaking.
#[test]
fn the_hash_covers_what_superko_remembers() {
    let game = game!(Go, "go?size=5");
    let quick = play(&game, "c4 d4 b3 e3 c2 d2 d3 c3");
    // Both lose a tempo first, then the same stones lie, but the position before the capture did not occur.
    let other = play(&game, "c4 d4 b3 e3 c2 d2 pass c3");
    assert!(quick.draw().lines().take(5).eq(other.draw().lines().take(5)));
    assert_ne!(quick.hash(), other.hash());
    assert_ne!(legal(&quick), legal(&other));
}

#[test]
fn komi_is_read_in_halves() {
    let id = |text| tengen_games::AnyGame::parse(text).map(|game| game.spec().id.clone());
    assert_eq!(id("go?komi=7.5").as_deref(), Ok("go"));
    assert_eq!(id("go?size=9&komi=7").as_deref(), Ok("go?size=9&komi=7"));
    for bad in ["7.25", "-1", "7.0", "362", "x", "1e2"] {
        let text = format!("go?komi={bad}");
        let error = tengen_games::AnyGame::parse(&text).expect_err(bad).to_string();
        assert!(error.contains("a whole number or one with .5 from 0 to 361"), "{error}");
    }
}
