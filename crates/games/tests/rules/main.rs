//! The games against the facts of the rules: vectors, counts, exact values and golden fingerprints.

mod amazons;
mod ataxx;
mod black_hole;
mod caro5;
mod connect_four;
mod counts;
mod drawing;
mod fingerprints;
mod five;
mod go;
mod hex;
mod laws;
mod notation;
mod openings;
mod page;
mod parsing;
mod renju;
mod swap2_values;
mod xiangqi;

use tengen_games::{Action, Game, State};

/// Plays `actions` from the start.
fn play<G: Game>(game: &G, actions: &[u16]) -> G::State {
    let mut state = game.start();
    for &action in actions {
        state
            .apply(Action(action))
            .unwrap_or_else(|error| panic!("{}: {error}", game.spec().id));
    }
    state
}

/// The legal actions.
fn legal<S: State>(state: &S) -> Vec<Action> {
    let mut legal = Vec::new();
    state.legal(&mut legal);
    legal
}

/// Parses a stone game or `connect-four` into its own type.
macro_rules! game {
    ($variant:ident, $text:expr) => {
        match tengen_games::AnyGame::parse($text) {
            Ok(tengen_games::AnyGame::$variant(game)) => game,
            other => panic!("{} is {other:?}", $text),
        }
    };
}
pub(crate) use game;

/// A file of the repository's `vectors/`.
fn vectors<T: serde::de::DeserializeOwned>(name: &str) -> T {
    let path = format!("{}/../../vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}
