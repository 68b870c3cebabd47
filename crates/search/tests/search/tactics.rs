//! Search alone, with an evaluator that knows nothing, sees wins and blocks on real boards.

use tengen_games::{Action, AnyGame, Game, GameVisitor, State};
use tengen_search::{RootNoise, Settings, Tree};

use crate::drive::{rng, search, uniform};

/// Searches the position after these plies and says what is played.
struct Played<'a> {
    plies: &'a [u16],
    simulations: u32,
    noise: RootNoise,
    leaves_max: usize,
}

impl GameVisitor for Played<'_> {
    type Output = Action;

    fn visit<G: Game>(self, game: G) -> Action {
        let mut state = game.start();
        for &ply in self.plies {
            state.apply(Action(ply)).unwrap();
        }
        let mut tree = Tree::new(game.clone(), state, Settings::default());
        search(
            &mut tree,
            self.simulations,
            self.noise,
            self.leaves_max,
            &mut rng(0),
            uniform(&game),
        );
        tree.choose(0.0, &mut rng(0)).unwrap()
    }
}

/// Checks that exactly `expected` is played after 600 visits, with and without noise, one leaf or many at a time.
fn check(game: &str, plies: &[u16], expected: u16) {
    check_within(600, game, plies, expected);
}

/// The same after so many visits.
fn check_within(simulations: u32, game: &str, plies: &[u16], expected: u16) {
    let game = AnyGame::parse(game).unwrap();
    for noise in [RootNoise::None, RootNoise::Dirichlet] {
        for leaves_max in [1, 8] {
            let played = game.visit(Played {
                plies,
                simulations,
                noise,
                leaves_max,
            });
            assert_eq!(
                played,
                Action(expected),
                "{game:?} after {plies:?}, {noise:?}, {leaves_max} leaves at a time"
            );
        }
    }
}

#[test]
fn tic_tac_toe_wins_are_taken() {
    check("tic-tac-toe", &[0, 3, 1, 4], 2);
    check("tic-tac-toe", &[8, 0, 7, 4, 1], 6);
}

#[test]
fn tic_tac_toe_lines_are_blocked() {
    check("tic-tac-toe", &[0, 4, 1], 2);
    check("tic-tac-toe", &[4, 0, 2], 6);
}

#[test]
fn connect_four_wins_are_taken() {
    check("connect-four", &[3, 0, 3, 0, 3, 0], 3);
    check("connect-four", &[0, 0, 1, 1, 2, 2], 3);
}

#[test]
fn connect_four_lines_are_blocked() {
    check("connect-four", &[3, 0, 3, 0, 3], 3);
    check("connect-four", &[0, 0, 1, 1, 2], 3);
}

/// A four is stopped before anything else: closed at one end, with a gap, and on the diagonal of a corner.
#[test]
fn fours_are_blocked() {
    check_within(4_000, "gomoku-freestyle?size=6", &[13, 12, 14, 0, 15, 30, 16], 17);
    check_within(4_000, "gomoku-freestyle?size=6", &[12, 0, 13, 30, 15, 35, 16], 14);
    check_within(4_000, "gomoku-freestyle?size=6", &[0, 5, 7, 30, 14, 4, 21], 28);
}

#[test]
fn a_five_is_made_rather_than_a_four_blocked() {
    check_within(4_000, "gomoku-freestyle?size=6", &[12, 0, 13, 1, 14, 2, 15, 3, 30], 4);
}

#[test]
fn tic_tac_toe_is_played_to_a_draw() {
    let Ok(AnyGame::TicTacToe(game)) = AnyGame::parse("tic-tac-toe") else {
        panic!("no tic-tac-toe")
    };
    let mut tree = Tree::new(game.clone(), game.start(), Settings::default());
    let mut rng = rng(0);
    while tree.root().outcome().is_none() {
        search(&mut tree, 2000, RootNoise::None, 4, &mut rng, uniform(&game));
        tree.advance(tree.choose(0.0, &mut rng).unwrap()).unwrap();
    }
    assert_eq!(tree.root().outcome().unwrap().winner, None, "{}", tree.root().draw());
}
