//! Perft, and the number of games of tic-tac-toe.

use std::collections::BTreeMap;

use tengen_games::{Game, Seat, State, perft, perft_within};

use crate::{game, legal, vectors};

fn expected(name: &str) -> Vec<u64> {
    let all: BTreeMap<String, serde_json::Value> = vectors("perft.json");
    serde_json::from_value(all[name].clone()).expect("a list of counts")
}

#[track_caller]
fn check<G: Game>(game: &G, name: &str) {
    let counts: Vec<u64> = (1..=expected(name).len() as u32)
        .map(|depth| perft(game, depth))
        .collect();
    assert_eq!(counts, expected(name), "{name}");
}

#[test]
fn caro5_perft() {
    check(&game!(Caro5, "caro5"), "caro5");
}

#[test]
fn connect_four_perft() {
    check(&game!(ConnectFour, "connect-four"), "connect4");
}

/// Every count of the file has a test that reads it, here or in the module of its game.
#[test]
fn every_count_of_the_vectors_is_tested() {
    let all: BTreeMap<String, serde_json::Value> = vectors("perft.json");
    let names: Vec<&str> = all.keys().map(String::as_str).collect();
    let tested = [
        "amazons10",
        "amazons6_4v4",
        "ataxx",
        "caro5",
        "connect4",
        "go_tt_2x2",
        "go_tt_3x3",
        "hex11_swap",
        "xiangqi",
    ];
    assert_eq!(names, tested);
}

/// One deeper than the vectors, where games have ended.
#[test]
fn connect_four_perft_of_nine() {
    assert_eq!(perft(&game!(ConnectFour, "connect-four"), 9), 39_394_572);
}

#[test]
fn perft_gives_up_beyond_its_limit() {
    let game = game!(TicTacToe, "tic-tac-toe");
    assert_eq!(perft_within(&game, 3, 504), Some(504));
    assert_eq!(perft_within(&game, 3, 503), None);
    assert_eq!(perft(&game, 0), 1);
    assert_eq!(perft(&game, 9), 127_872);
}

#[test]
fn tic_tac_toe_has_255168_games() {
    fn count<S: State>(state: &S, results: &mut [u32; 3]) {
        if let Some(outcome) = state.outcome() {
            results[outcome.winner.map_or(2, Seat::index)] += 1;
        }
        for action in legal(state) {
            let mut next = state.clone();
            next.apply(action).expect("a legal action");
            count(&next, results);
        }
    }
    let mut results = [0; 3];
    count(&game!(TicTacToe, "tic-tac-toe").start(), &mut results);
    assert_eq!(results, [131_184, 77_904, 46_080]);
}
