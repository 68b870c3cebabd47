//! A value changes its sign only where the acting seat changes.

use tengen_games::{Action, Game, State};
use tengen_search::{RootNoise, Settings, Tree};

use crate::drive::{rng, search, uniform};
use crate::script::Place::{Act, Drawn, Won};
use crate::script::{Place, Script};
use crate::solver::Solver;
use crate::thicket::Thicket;

/// Seat 0 acts twice in a row after action 0 and can win there; after action 1 seat 1 answers and wins.
const TWO_IN_A_ROW: &[Place] = &[
    Act(0, &[1, 2]),
    Act(0, &[3, 4]),
    Act(1, &[5, 6]),
    Won(1),
    Won(0),
    Won(1),
    Drawn,
];

/// The same for the other seat at the root, with a run of three and a draw as its best result.
const THREE_IN_A_ROW: &[Place] = &[
    Act(1, &[1, 2]),
    Act(1, &[3, 4]),
    Act(0, &[5, 6]),
    Act(1, &[6, 7]),
    Won(0),
    Won(0),
    Won(0),
    Drawn,
];

fn searched(places: &'static [Place], simulations: u32) -> Tree<impl Game> {
    let game = Script::game(places);
    let mut tree = Tree::new(game.clone(), game.start(), Settings::default());
    search(&mut tree, simulations, RootNoise::None, 1, &mut rng(0), uniform(&game));
    tree
}

#[test]
fn a_win_by_two_actions_in_a_row_is_found_and_has_the_right_sign() {
    let tree = searched(TWO_IN_A_ROW, 400);
    let stats = tree.root_stats();
    assert_eq!(tree.choose(0.0, &mut rng(0)), Some(Action(0)));
    assert!(stats.children[0].q > 0.9, "{stats:?}");
    assert!(stats.children[1].q < -0.5, "{stats:?}");
    assert!(stats.root_wdl.win > 0.9, "{stats:?}");
}

#[test]
fn results_behind_a_run_of_actions_are_exact_for_the_seat_that_acts_there() {
    let mut tree = searched(TWO_IN_A_ROW, 400);
    tree.advance(Action(0)).unwrap();
    let stats = tree.root_stats();
    assert_eq!((stats.children[0].q, stats.children[1].q), (-1.0, 1.0));
    let mut tree = searched(TWO_IN_A_ROW, 400);
    tree.advance(Action(1)).unwrap();
    let stats = tree.root_stats();
    assert_eq!(
        (stats.children[0].q, stats.children[1].q),
        (1.0, 0.0),
        "seat 1's view: it wins or draws"
    );
}

#[test]
fn a_draw_by_three_actions_in_a_row_is_found_and_counted_as_a_draw() {
    let tree = searched(THREE_IN_A_ROW, 600);
    let stats = tree.root_stats();
    assert_eq!(tree.choose(0.0, &mut rng(0)), Some(Action(0)));
    assert!(stats.children[0].q > -0.1, "{stats:?}");
    assert!(stats.children[1].q < -0.9, "{stats:?}");
    assert!(stats.root_wdl.draw > 0.8 && stats.root_wdl.win < 0.05, "{stats:?}");
}

#[test]
fn arbitrary_runs_of_actions_are_searched_to_their_exact_value() {
    for seed in 0..60 {
        let game = Thicket::game(seed, 5);
        let mut solver = Solver::default();
        let best = solver.value(&game.start());
        let mut tree = Tree::new(game.clone(), game.start(), Settings::default());
        search(&mut tree, 20_000, RootNoise::None, 1, &mut rng(seed), uniform(&game));
        let stats = tree.root_stats();
        assert!(
            (stats.root_wdl.value() - f32::from(best)).abs() < 0.15,
            "seed {seed}: exact {best}, {stats:?}"
        );
        let mut next = game.start();
        next.apply(tree.choose(0.0, &mut rng(0)).unwrap()).unwrap();
        let played = solver.value(&next) * if next.seat() == game.start().seat() { 1 } else { -1 };
        assert_eq!(played, best, "seed {seed}: {stats:?}");
    }
}
