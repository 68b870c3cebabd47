//! Match openings and random openings.

use std::collections::HashSet;

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{Action, Game, Opening, State, draw_openings, random_opening};

use crate::game;

/// Plays every opening and returns how many are distinct up to symmetry.
fn distinct<G: Game>(game: &G, openings: &[Opening]) -> usize {
    let mut seen = HashSet::new();
    for opening in openings {
        let mut state = game.start();
        for &action in &opening.plies {
            state.apply(action).expect("openings are legal");
        }
        assert_eq!(state.outcome(), None, "openings are not over");
        let images = game
            .spec()
            .symmetries
            .iter()
            .map(|symmetry| state.transform(symmetry).hash());
        seen.insert(images.min());
    }
    seen.len()
}

#[track_caller]
fn check_plain<G: Game>(game: &G, wanted: usize, given: usize, plies_max: usize) {
    let openings = draw_openings(game, wanted, 7);
    assert_eq!(openings.len(), given);
    assert_eq!(distinct(game, &openings), given, "distinct up to symmetry");
    let lengths: HashSet<usize> = openings.iter().map(|opening| opening.plies.len()).collect();
    assert!(
        lengths.iter().all(|plies| (1..=plies_max).contains(plies)),
        "{lengths:?}"
    );
    assert!(openings.iter().all(|opening| opening.sampled_plies == 0));
}

#[test]
fn openings_are_as_short_as_the_match_allows() {
    check_plain(&game!(ConnectFour, "connect-four"), 4, 4, 1);
    check_plain(&game!(ConnectFour, "connect-four"), 200, 200, 4);
    check_plain(&game!(Mnk, "mnk"), 200, 200, 2);
}

#[test]
fn tic_tac_toe_has_161_openings_of_up_to_four_plies() {
    // 3 + 12 + 38 + 108 positions up to symmetry.
    check_plain(&game!(TicTacToe, "tic-tac-toe"), 1_000, 161, 4);
}

#[test]
fn many_openings_of_a_large_game_are_sampled() {
    check_plain(&game!(Mnk, "mnk"), 8_000, 8_000, 3);
}

#[test]
fn the_seed_decides() {
    let game = game!(ConnectFour, "connect-four");
    assert_eq!(draw_openings(&game, 50, 1), draw_openings(&game, 50, 1));
    assert_ne!(draw_openings(&game, 50, 1), draw_openings(&game, 50, 2));
    assert_eq!(draw_openings(&game, 0, 1), []);
}

#[test]
fn half_of_the_swap2_openings_are_three_stones() {
    let game = game!(Caro5, "caro5");
    let openings = draw_openings(&game, 101, 3);
    assert_eq!(openings.len(), 101);
    let (stones, empty): (Vec<_>, Vec<_>) = openings.into_iter().partition(|opening| opening.plies.len() == 3);
    assert_eq!((stones.len(), empty.len()), (51, 50));
    assert_eq!(distinct(&game, &stones), 51);
    assert!(stones.iter().all(|opening| opening.sampled_plies == 0));
    assert!(empty.iter().all(|opening| *opening
        == Opening {
            plies: Vec::new(),
            sampled_plies: 3
        }));
}

#[test]
fn swap2_on_3x3_has_38_openings_of_three_stones() {
    // 252 positions in 38 classes by Burnside's lemma, whichever black stone came first.
    let openings = draw_openings(&game!(Mnk, "mnk?m=3&n=3&k=3&opening=swap2"), 1_000, 5);
    assert_eq!(openings.len(), 76);
    assert_eq!(openings.iter().filter(|opening| opening.plies.len() == 3).count(), 38);
}

#[test]
fn random_openings_have_every_length_and_never_end_the_game() {
    let game = game!(TicTacToe, "tic-tac-toe");
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
    let mut lengths = HashSet::new();
    for _ in 0..2_000 {
        let opening = random_opening(&game, 9, &mut rng);
        let mut state = game.start();
        for &action in &opening {
            state.apply(action).expect("random openings are legal");
        }
        assert_eq!(state.outcome(), None);
        lengths.insert(opening.len());
    }
    assert_eq!(lengths, (0..=8).collect());
    assert_eq!(random_opening(&game, 0, &mut rng), Vec::<Action>::new());
}
