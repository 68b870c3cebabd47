//! Duels: fair to both seats, the same on any number of threads, with real networks.

#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod common;

use common::network;
use tengen_games::{AnyGame, Seat};
use tengen_inference::SessionOptions;
use tengen_records::NetworkPlay;
use tengen_search::Settings;
use tengen_selfplay::duel::{DuelError, DuelGame, DuelOptions, DuelReport, Player, duel};

fn play(game: &str, first: &Player, second: &Player, options: &DuelOptions) -> DuelReport {
    let game = AnyGame::parse(game).unwrap();
    let mut heard = 0;
    let sessions = SessionOptions::default();
    let report = duel(&game, first, second, options, &sessions, &mut |tally, _| {
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
        settings: Settings {
            simulations: 64,
            ..Settings::default()
        },
        ..DuelOptions::default()
    };
    let player = |play| Player::Network {
        network: model.clone(),
        play,
    };
    let (searcher, policy) = (player(NetworkPlay::AsOrdered), player(NetworkPlay::Policy));
    let searching = play("tic-tac-toe", &searcher, &Player::Random, &options);
    assert!(
        searching.score.mean > 0.7,
        "search alone beats random moves: {searching:?}"
    );
    let explicit = play(
        "tic-tac-toe",
        &player(NetworkPlay::Visits(64)),
        &Player::Random,
        &options,
    );
    assert_eq!(explicit, searching, "the same search, named by the player itself");
    let alone = play("tic-tac-toe", &policy, &Player::Random, &options);
    assert_eq!(alone.tally.games(), 40);
    let itself = play("tic-tac-toe", &policy, &policy, &options);
    assert_eq!(
        itself.score.mean, 0.5,
        "a deterministic player splits every pair with itself: {itself:?}"
    );
}

/// 400 games of two players. A score that is truly 0.5 would exceed 0.57 with probability below 0.003 (2.8 standard deviations
/// of at most 0.025); the seed is fixed.
fn beats(game: &str, first: &Player, second: &Player, score: f32) {
    let options = DuelOptions {
        games: 400,
        threads: 2,
        ..DuelOptions::default()
    };
    let report = play(game, first, second, &options);
    println!("{game}: {first:?} scores {:.3} against {second:?}", report.score.mean);
    assert!(report.score.mean > score, "{game}: {report:?}");
}

#[test]
fn baselines_stand_in_their_order() {
    for (game, over_random, simulations, over_one_ply) in
        [("tic-tac-toe", 0.7, 1_000, 0.57), ("connect-four", 0.8, 100, 0.7)]
    {
        beats(game, &Player::OnePly, &Player::Random, over_random);
        let rollout = Player::Rollout { simulations };
        beats(game, &rollout, &Player::Random, over_random);
        beats(game, &rollout, &Player::OnePly, over_one_ply);
    }
    let [many, few] = [300, 20].map(|simulations| Player::Rollout { simulations });
    beats("connect-four", &many, &few, 0.7);
}

/// With Swap2 one seat places three stones and may place two more: runs of actions by one seat.
#[test]
fn baselines_know_whose_turn_it_is_where_a_seat_acts_several_times() {
    let rollout = Player::Rollout { simulations: 60 };
    beats("caro5?size=7", &Player::OnePly, &Player::Random, 0.6);
    beats("caro5?size=7", &rollout, &Player::Random, 0.6);
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
        &mut |_, _| (),
    );
    assert!(matches!(refused, Err(DuelError::NoGames)));
}

/// A search for every ply of the first player, each with a whole tree.
fn holds_together(game: &DuelGame) {
    let first = usize::from(game.first_seat != Seat::FIRST);
    let opening = game.opening.len();
    assert!(
        (opening..opening + game.actions.len())
            .filter(|ply| ply % 2 == first)
            .count()
            == game.searches.len()
    );
    for search in &game.searches {
        assert_eq!((search.seat, (opening + search.ply) % 2), (game.first_seat, first));
        assert_eq!(game.actions[search.ply], search.chosen);
        let root = &search.nodes[0];
        assert_eq!((root.from, root.visits), (None, search.root.visits_total));
        // Every visit of a position but its own evaluation went on to one of its children.
        for (index, node) in search.nodes.iter().enumerate() {
            let children = search
                .nodes
                .iter()
                .filter(|child| child.from.is_some_and(|(from, _)| from as usize == index));
            let visits: u32 = children.map(|child| child.visits).sum();
            let own = if node.terminal { node.visits } else { 1 };
            assert_eq!(node.visits, visits + own, "{node:?}");
        }
        let best = search
            .root
            .children
            .iter()
            .find(|child| child.action == search.chosen)
            .unwrap();
        let node = search
            .nodes
            .iter()
            .find(|node| node.from == Some((0, search.chosen)))
            .unwrap();
        assert_eq!((node.visits, node.prior), (best.visits, best.prior));
    }
}

#[test]
fn the_first_players_searches_are_kept_whole_when_they_are_asked_for() {
    tengen_inference::init(None).expect("ONNX Runtime is laid out");
    let game = AnyGame::parse("connect-four").unwrap();
    let searching = Player::Network {
        network: network(&game, 1),
        play: NetworkPlay::Visits(24),
    };
    let options = DuelOptions {
        games: 4,
        traced: true,
        ..DuelOptions::default()
    };
    let mut games = Vec::new();
    let sessions = SessionOptions::default();
    duel(
        &game,
        &searching,
        &Player::Random,
        &options,
        &sessions,
        &mut |_, game| games.push(game),
    )
    .unwrap();
    games.sort_by_key(|game| game.index);
    assert_eq!(games.iter().map(|game| game.index).collect::<Vec<_>>(), [0, 1, 2, 3]);
    games.iter().for_each(holds_together);
    let untraced = DuelOptions {
        traced: false,
        ..options
    };
    duel(
        &game,
        &searching,
        &Player::Random,
        &untraced,
        &sessions,
        &mut |_, game| assert_eq!(game.searches, [], "nobody asked"),
    )
    .unwrap();
}
