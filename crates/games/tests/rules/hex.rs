//! Hex: swap, edges of rectangular boards, and the exact values of small boards.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::hex::Hex;
use tengen_games::{Action, Game, Outcome, Reason, Seat, State, notation, perft};

use crate::{game, legal, vectors};

fn play(game: &Hex, words: &[&str]) -> <Hex as Game>::State {
    let played = notation::play(game, &game.start(), words);
    played.map(|(_, state)| state).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn swap_counts_among_the_second_plies() {
    let all: BTreeMap<String, serde_json::Value> = vectors("perft.json");
    let expected: Vec<u64> = serde_json::from_value(all["hex11_swap"].clone()).expect("counts");
    let game = game!(Hex, "hex");
    assert_eq!(vec![perft(&game, 1), perft(&game, 2)], expected);
    assert_eq!(legal(&play(&game, &["a1"])).len(), 121);
    assert_eq!(legal(&play(&game, &["a1", "swap-pieces"])).len(), 120);
}

/// The black stone becomes a white one on the cell mirrored at the main diagonal, and black goes on.
#[test]
fn swapping_mirrors_the_stone() {
    let game = game!(Hex, "hex?size=3");
    let state = play(&game, &["b1", "swap-pieces"]);
    assert_eq!(state.seat(), Seat::FIRST);
    assert_eq!(
        state.draw(),
        "    a b c\n  1 . . .\n   2 O . .\n    3 . . .\nseat 0 to play X, top to bottom\n"
    );
    for late in [
        &["a1", "b2", "swap-pieces"][..],
        &["swap-pieces"],
        &["a1", "swap-pieces", "swap-pieces"],
    ] {
        let error = notation::play(&game, &game.start(), late).expect_err("too late or too early");
        assert_eq!(error.why, "swapping is legal only as the second ply");
    }
}

#[test]
fn rectangular_boards_have_their_own_edges_and_no_swap() {
    let game = game!(Hex, "hex?size=2&cols=5");
    assert_eq!(game.spec().actions.len(), 10);
    // Black needs two stones from top to bottom, white five from left to right.
    let top_bottom = play(&game, &["e1", "a1", "e2"]);
    assert_eq!(
        top_bottom.outcome(),
        Some(Outcome::win(Seat::FIRST, Reason::Connection))
    );
    let game = game!(Hex, "hex?size=5&cols=2");
    let left_right = play(&game, &["a1", "a5", "a2", "b5"]);
    assert_eq!(
        left_right.outcome(),
        Some(Outcome::win(Seat::SECOND, Reason::Connection))
    );
    let long = play(&game, &["a1", "b1", "a2", "b2", "a3", "b3", "a4", "b4"]);
    assert_eq!(long.outcome(), None);
    let refused = tengen_games::AnyGame::parse("hex?size=5&cols=2&swap=yes").expect_err("no mirror");
    assert!(refused.to_string().contains("`swap=yes` is not allowed"), "{refused}");
}

/// Colours stay with the seats, and the players with their colours: only the stone changes.
#[test]
fn swapping_changes_neither_seats_nor_colours() {
    let game = game!(Hex, "hex?size=4");
    let swapped = play(&game, &["d2", "swap-pieces"]);
    assert_eq!(swapped.roles(), game.start().roles());
    // The white stone on b4 counts from left to right: white joins a4 to d4 and seat 1 has won.
    let won = play(&game, &["d2", "swap-pieces", "a1", "a4", "b1", "c4", "c1", "d4"]);
    assert_eq!(won.outcome(), Some(Outcome::win(Seat::SECOND, Reason::Connection)));
}

/// Neighbours are (0,1), (1,0) and (1,-1) away, not (1,1).
#[test]
fn the_short_diagonal_does_not_join() {
    let game = game!(Hex, "hex?size=2&swap=no");
    assert_eq!(play(&game, &["a1", "a2", "b2"]).outcome(), None);
    let joined = play(&game, &["b1", "a1", "a2"]).outcome();
    assert_eq!(joined, Some(Outcome::win(Seat::FIRST, Reason::Connection)));
}

proptest! {
    /// A full board has exactly one winner: no random game is drawn.
    #[test]
    fn there_are_no_draws(seed: u64, size in 2_usize..9, cols in 2_usize..9) {
        let game = game!(Hex, &format!("hex?size={size}&cols={cols}"));
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut state = game.start();
        while state.outcome().is_none() {
            let open = legal(&state);
            let index = rng.random_range(0..open.len());
            state.apply(open[index]).expect("legal");
        }
        let outcome = state.outcome().expect("over");
        prop_assert_eq!(outcome.reason, Reason::Connection);
        prop_assert!(outcome.winner.is_some());
    }
}

/// Whether the acting seat wins, by full search with a table.
fn wins(state: &<Hex as Game>::State, known: &mut HashMap<u64, bool>) -> bool {
    if let Some(outcome) = state.outcome() {
        return outcome.winner == Some(state.seat());
    }
    if let Some(&known) = known.get(&state.hash()) {
        return known;
    }
    let won = legal(state).into_iter().any(|action| {
        let mut next = state.clone();
        next.apply(action).expect("legal");
        !wins(&next, known)
    });
    known.insert(state.hash(), won);
    won
}

/// The first moves that win without swap.
#[track_caller]
fn check_winning(size: usize, expected: &[&str]) {
    let game = game!(Hex, &format!("hex?size={size}&swap=no"));
    let mut known = HashMap::new();
    let winning: Vec<String> = legal(&game.start())
        .into_iter()
        .filter(|&action| {
            let mut next = game.start();
            next.apply(action).expect("legal");
            !wins(&next, &mut known)
        })
        .map(|action| game.action_text(action))
        .collect();
    assert_eq!(winning, expected, "{size}x{size}");
}

#[test]
fn winning_first_moves_of_small_boards() {
    check_winning(2, &["b1", "a2"]);
    check_winning(3, &["c1", "a2", "b2", "c2", "a3"]);
    check_winning(4, &["d1", "c2", "b3", "a4"]);
}

#[test]
fn the_second_player_wins_with_swap() {
    for size in [2, 3] {
        let game = game!(Hex, &format!("hex?size={size}"));
        assert!(!wins(&game.start(), &mut HashMap::new()), "{size}x{size}");
    }
    assert_eq!(game!(Hex, "hex").parse_action("swap-pieces"), Some(Action(121)));
}
