//! Lists of words against lists of actions: lossless both ways, in every registered game, and errors that name the ply.

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{Action, AnyGame, Game, GameVisitor, State, notation, random_opening, registry};

use crate::game;

/// Random games of 0 to 120 plies, written and read again, broken off inside a move or not.
struct RoundTrips;

impl GameVisitor for RoundTrips {
    type Output = ();

    fn visit<G: Game>(self, game: G) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        for _ in 0..60 {
            let actions = random_opening(&game, 120, &mut rng);
            let words = notation::words(&game, &game.start(), &actions);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let read = notation::play(&game, &game.start(), &words).map(|(actions, _)| actions);
            assert_eq!(read.as_ref(), Ok(&actions), "{}: {words:?}", game.spec().id);
            let indexes: Vec<String> = actions.iter().map(Action::to_string).collect();
            let indexes: Vec<&str> = indexes.iter().map(String::as_str).collect();
            let read = notation::play(&game, &game.start(), &indexes).map(|(actions, _)| actions);
            assert_eq!(read, Ok(actions), "{}", game.spec().id);
        }
    }
}

#[test]
fn words_and_actions_say_the_same_in_every_game() {
    for entry in registry::entries() {
        for text in [entry.name].iter().chain(entry.samples) {
            AnyGame::parse(text).expect("a registered game").visit(RoundTrips);
        }
    }
}

#[track_caller]
fn check_refused<G: Game>(game: &G, words: &[&str], message: &str) {
    let error = notation::play(game, &game.start(), words)
        .map(|_| ())
        .expect_err(message);
    assert_eq!(error.to_string(), message);
}

#[test]
fn a_refused_word_is_named_with_its_ply() {
    let amazons = game!(Amazons, "amazons");
    check_refused(
        &amazons,
        &["d1-d4-a4"],
        "ply 2: d1-d4-a4: the picked piece does not reach this point",
    );
    check_refused(
        &amazons,
        &["d1-d4-b4", "x9"],
        "ply 3: x9: no move of this position: expected one like d10-a10-b10, or an index below 100",
    );
    check_refused(
        &game!(ConnectFour, "connect-four"),
        &["d", "7"],
        "ply 1: 7: no move of this position: expected one like a, or an index below 7",
    );
    let tic_tac_toe = game!(TicTacToe, "tic-tac-toe");
    check_refused(
        &tic_tac_toe,
        &["a1", "a3", "b1", "b3", "c1", "c3"],
        "ply 5: c3: the game is over",
    );
}

#[test]
fn a_list_may_break_off_inside_a_move() {
    let game = game!(Amazons, "amazons");
    let (actions, state) = notation::play(&game, &game.start(), &["d1-d7-g7", "a7-"]).expect("legal");
    assert_eq!((actions.len(), state.turn(), state.stage()), (4, 1, 1));
    assert_eq!(notation::words(&game, &game.start(), &actions), ["d1-d7-g7", "a7-"]);
}
