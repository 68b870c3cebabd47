//! Duels: fair to both seats, the same on any number of threads, with real networks.

#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod common;

use common::network;
use tengen_games::AnyGame;
use tengen_inference::SessionOptions;
use tengen_selfplay::duel::{DuelError, DuelOptions, DuelReport, Player, duel};

fn play(game: &str, first: &Player, second: &Player, options: &DuelOptions) -> DuelReport {
    let game = AnyGame::parse(game).unwrap();
    let mut heard = 0;
    let sessions = SessionOptions::default();
    let report = duel(&game, first, second, options, &sessions, &mut |tally| {
        heard = tally.games()
    })
    .unwrap();
    assert_eq!(heard, report.tally.games(), "the last progress is the whole duel");
    report
}

#[test]
fn random_against_random_is_even() {
    for game in ["tic-tac-toe", "connect-four", "caro5?size=6"] {
        let report = play(
            game,
            &Player::Random,
            &Player::Random,
            &DuelOptions {
                games: 1000,
                ..DuelOptions::default()
            },
        );
        assert_eq!(report.tally.games(), 1000);
        assert!((report.score.mean - 0.5).abs() < 0.05, "{game}: {report:?}");
        assert!(report.score.low < 0.5 && report.score.high > 0.5, "{game}: {report:?}");
    }
}

#[test]
fn a_duel_says_how_many_pairs_had_no_opening_of_their_own() {
    let options = DuelOptions {
        games: 1000,
        ..DuelOptions::default()
    };
    let report = play("tic-tac-toe", &Player::Random, &Player::Random, &options);
    assert!(
        report.pairs == 500 && (1..500).contains(&report.pairs_random),
        "{report:?}"
    );
    let few = play(
        "connect-four",
        &Player::Random,
        &Player::Random,
        &DuelOptions { games: 7, ..options },
    );
    assert_eq!(
        (few.tally.games(), few.pairs, few.pairs_random),
        (8, 4, 0),
        "whole pairs"
    );
}

#[test]
fn the_number_of_threads_and_games_at_once_does_not_matter() {
    let with = |threads, games_parallel| {
        let options = DuelOptions {
            games: 100,
            seed: 7,
            threads,
            games_parallel,
            ..DuelOptions::default()
        };
        play("connect-four", &Player::Random, &Player::Random, &options)
    };
    assert_eq!(with(1, 1), with(3, 16));
    assert_eq!(with(1, 1), with(200, 1));
}

#[test]
fn networks_play_with_and_without_search() {
    tengen_inference::init(None).unwrap();
    let game = AnyGame::parse("tic-tac-toe").unwrap();
    let model = network(&game, 1);
    let options = DuelOptions {
        games: 40,
        threads: 2,
        ..DuelOptions::default()
    };
    let player = |simulations| Player::Network {
        model: model.clone(),
        simulations,
    };
    let searching = play("tic-tac-toe", &player(64), &Player::Random, &options);
    assert!(
        searching.score.mean > 0.7,
        "search alone beats random moves: {searching:?}"
    );
    let alone = play("tic-tac-toe", &player(0), &Player::Random, &options);
    assert_eq!(alone.tally.games(), 40);
    let itself = play("tic-tac-toe", &player(0), &player(0), &options);
    assert_eq!(
        itself.score.mean, 0.5,
        "a deterministic player splits every pair with itself: {itself:?}"
    );
}

#[test]
fn a_duel_of_no_games_is_refused() {
    let game = AnyGame::parse("tic-tac-toe").unwrap();
    let options = DuelOptions {
        games: 0,
        ..DuelOptions::default()
    };
    let refused = duel(
        &game,
        &Player::Random,
        &Player::Random,
        &options,
        &SessionOptions::default(),
        &mut |_| (),
    );
    assert!(matches!(refused, Err(DuelError::NoGames)));
}
