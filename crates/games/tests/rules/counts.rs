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
