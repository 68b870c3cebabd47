//! The driver's games against the rules, the record's contract, and each other.

#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod common;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use common::{expected, lease, network, opinions, play, settings};
use tengen_games::{Action, AnyGame, Game, GameVisitor, State, draw_openings, registry};
use tengen_inference::{Outputs, SessionOptions};
use tengen_records::{Kind, LeaseId, NetworkPlay, Player, Precision, ReasonCode, Record, check, decode, encode};
use tengen_search::Wdl;
use tengen_selfplay::evaluator::{HashEvaluator, UniformEvaluator};
use tengen_selfplay::offline::{OfflineOptions, selfplay_offline};
use tengen_selfplay::{
    Driver, DriverOptions, EvaluateError, EvaluationCache, Evaluator, GameOrder, Lease, MatchGame, ModelBytes, Plan,
    StartError,
};

fn tic_tac_toe() -> AnyGame {
    AnyGame::parse("tic-tac-toe").unwrap()
}

/// Runs generic code with a game by name.
fn with<V: GameVisitor>(name: &str, visitor: V) -> V::Output {
    AnyGame::parse(name).unwrap().visit(visitor)
}

const SELF_PLAY: fn(u32) -> Plan = |games| Plan::SelfPlay {
    games,
    random_plies_max: 2,
};

#[test]
fn self_play_of_every_game_passes_the_check() {
    struct Visitor;
    impl GameVisitor for Visitor {
        type Output = ();

        fn visit<G: Game>(self, game: G) {
            let lease = lease(SELF_PLAY(4), settings(8), 11);
            let evaluator = UniformEvaluator {
                actions: game.spec().actions.len(),
            };
            let records = play(&game, evaluator, DriverOptions::default(), &lease);
            assert_eq!(records.len(), 4);
            for record in &records {
                let checked = check(&game, record, &expected(&game, &lease)).unwrap();
                assert_eq!(checked.positions as usize, record.plies.len(), "{}", game.spec().id);
                assert_eq!(decode(&encode(record)).unwrap(), *record);
                describe_search(record);
            }
        }
    }
    for name in registry::names() {
        with(name, Visitor);
    }
    with("caro5?size=7", Visitor);
}

/// What the check cannot know: that the block tells what the search did.
fn describe_search(record: &Record) {
    let Kind::SelfPlay = record.kind else {
        panic!("{:?}", record.kind)
    };
    for ply in &record.plies {
        let search = ply.search.as_ref().unwrap();
        assert!(search.visits_total >= 8, "{search:?}");
        let children: u32 = search.visits.iter().map(|&(_, visits)| visits).sum();
        assert!(
            search.visits.iter().any(|&(action, _)| action == ply.action),
            "{search:?}"
        );
        assert!(children < search.visits_total, "{search:?}");
        for (&(action, probability), &(visited, visits)) in search.policy_target.iter().zip(&search.visits) {
            assert_eq!(action, visited);
            assert!((probability - visits as f32 / children as f32).abs() < 1e-6);
        }
        assert!(search.net_policy_top.is_sorted_by(|a, b| a.1 >= b.1));
        if search.temperature == 0.0 {
            let most = search.visits.iter().map(|&(_, visits)| visits).max();
            assert!(search.visits.contains(&(ply.action, most.unwrap())), "{search:?}");
        }
    }
}

#[test]
fn temperature_is_used_in_the_first_turns_only() {
    struct Visitor;
    impl GameVisitor for Visitor {
        type Output = ();

        fn visit<G: Game>(self, game: G) {
            let lease = lease(
                Plan::SelfPlay {
                    games: 3,
                    random_plies_max: 3,
                },
                settings(6),
                5,
            );
            for record in play(&game, opinions(&game), DriverOptions::default(), &lease) {
                for (n, ply) in record.plies.iter().enumerate() {
                    let turn = record.opening.len() + n;
                    let temperature = ply.search.as_ref().unwrap().temperature;
                    assert_eq!(temperature, if turn < 4 { 1.0 } else { 0.0 }, "turn {turn}");
                }
            }
        }
    }
    with("connect-four", Visitor);
}

#[test]
fn a_game_does_not_depend_on_what_is_played_beside_it() {
    struct Visitor;
    impl GameVisitor for Visitor {
        type Output = ();

        fn visit<G: Game>(self, game: G) {
            let lease = lease(SELF_PLAY(12), settings(12), 21);
            let with = |games, batch_max, leaves_per_game| {
                let options = DriverOptions {
                    games,
                    batch_max,
                    leaves_per_game,
                    ..DriverOptions::default()
                };
                play(&game, opinions(&game), options, &lease)
            };
            for leaves_per_game in [1, 3] {
                let alone = with(1, 1, leaves_per_game);
                assert_eq!(alone, with(5, 2, leaves_per_game));
                assert_eq!(alone, with(64, 64, leaves_per_game));
            }
        }
    }
    with("connect-four", Visitor);
    with("caro5?size=5", Visitor);
}

fn match_plan<G: Game>(game: &G, pairs: usize, sampled_plies: u32) -> Plan {
    let openings = draw_openings(game, pairs, 3);
    let pair = |(pair, opening): (usize, &tengen_games::Opening)| {
        [0, 1].map(|seat0_model| MatchGame {
            pair: pair as u32,
            opening: opening.plies.clone(),
            sampled_plies: sampled_plies.max(opening.sampled_plies),
            seat0_model,
        })
    };
    Plan::Match {
        games: openings.iter().enumerate().flat_map(pair).collect(),
    }
}

#[test]
fn a_match_gives_each_seat_its_model_and_each_model_its_own_tree() {
    struct Visitor;
    impl GameVisitor for Visitor {
        type Output = ();

        fn visit<G: Game>(self, game: G) {
            let lease = lease(match_plan(&game, 4, 2), settings(10), 31);
            let records = play(&game, opinions(&game), DriverOptions::default(), &lease);
            assert_eq!(records.len(), 8);
            for record in &records {
                check(&game, record, &expected(&game, &lease)).unwrap();
                assert_eq!(record.positions(), 0, "a match teaches nothing");
                let order = lease.order();
                let Plan::Match { games } = &order.plan else {
                    panic!("{order:?}")
                };
                let ordered = &games[record.id.index as usize];
                assert_eq!(record.opening, ordered.opening);
                let mut state = game.start();
                record.opening.iter().for_each(|&action| state.apply(action).unwrap());
                for (n, ply) in record.plies.iter().enumerate() {
                    let search = ply.search.as_ref().unwrap();
                    assert_eq!(ply.model, record.seat_models[state.seat().index()]);
                    assert_eq!(
                        search.temperature,
                        if n < ordered.sampled_plies as usize { 1.0 } else { 0.0 }
                    );
                    // The root's own evaluation is that of the seat's model: a tree of the other one would show.
                    let seen = evaluation(&game, &lease.models()[ply.model.index()], &state);
                    assert!(
                        (search.net_wdl[0] - seen.win).abs() < 1e-6,
                        "ply {n}: {search:?} {seen:?}"
                    );
                    state.apply(ply.action).unwrap();
                }
            }
            let of_pair = |record: &&Record| record.match_pair == 0;
            assert_eq!(records.iter().filter(of_pair).count(), 2);
        }
    }
    with("connect-four", Visitor);
    with("caro5?size=6", Visitor);
}

/// A rating match between two players, in pairs.
fn rating_plan<G: Game>(game: &G, players: [Player; 2]) -> Plan {
    let Plan::Match { games } = match_plan(game, 4, 1) else {
        panic!("a match was asked for")
    };
    Plan::Rating { players, games }
}

#[test]
fn rating_games_of_all_players_pass_the_check_and_say_who_played() {
    struct Visitor;
    impl GameVisitor for Visitor {
        type Output = ();

        fn visit<G: Game>(self, game: G) {
            let network = |byte, play| Player::Network {
                network: ModelBytes::new(vec![byte]).id(),
                play,
            };
            let rollout = Player::Rollout { simulations: 8 };
            let pairs = [
                [Player::Random, Player::OnePly],
                [rollout.clone(), network(1, NetworkPlay::AsOrdered)],
                [network(1, NetworkPlay::AsOrdered), network(1, NetworkPlay::Policy)],
                [network(1, NetworkPlay::Visits(5)), network(2, NetworkPlay::AsOrdered)],
                [rollout, Player::Random],
            ];
            for players in pairs {
                let lease = lease(rating_plan(&game, players.clone()), settings(8), 31);
                let records = play(&game, opinions(&game), DriverOptions::default(), &lease);
                assert_eq!(records.len(), 8, "four pairs");
                for record in &records {
                    let checked = check(&game, record, &expected(&game, &lease)).unwrap();
                    assert_eq!((checked.positions, record.kind), (0, Kind::Match));
                    assert_eq!(decode(&encode(record)).unwrap(), *record);
                    who_played(record, &players);
                }
            }
        }
    }
    with("connect-four", Visitor);
    with("caro5?size=6", Visitor);
}

/// The plies of a rating game tell who chose them, and what was searched for them.
fn who_played(record: &Record, players: &[Player; 2]) {
    assert_eq!(record.players.as_ref(), Some(players));
    for ply in &record.plies {
        assert_eq!(ply.model, record.seat_models[ply.seat.index()]);
        let visits = ply.search.as_ref().map(|search| search.visits_total);
        match &players[ply.model.index()] {
            Player::Network { play, network } => {
                assert_eq!(record.network(ply.model), Some(*network));
                let visits = visits.unwrap();
                match play {
                    NetworkPlay::Policy => assert_eq!(visits, 1),
                    NetworkPlay::Visits(least) => assert!(visits >= *least),
                    NetworkPlay::AsOrdered => assert!(visits >= 8),
                }
            }
            _ => assert_eq!((visits, record.network(ply.model)), (None, None)),
        }
    }
}

#[test]
fn a_search_of_a_player_without_a_network_is_refused() {
    struct Visitor;
    impl GameVisitor for Visitor {
        type Output = ();

        fn visit<G: Game>(self, game: G) {
            let network = Player::Network {
                network: ModelBytes::new(vec![1]).id(),
                play: NetworkPlay::AsOrdered,
            };
            let lease = lease(rating_plan(&game, [Player::Random, network]), settings(8), 37);
            let expected = expected(&game, &lease);
            let record = play(&game, opinions(&game), DriverOptions::default(), &lease).remove(0);
            let refused = |change: &dyn Fn(&mut Record)| {
                let mut changed = record.clone();
                change(&mut changed);
                check(&game, &changed, &expected).unwrap_err().code
            };
            let block = record.plies.iter().find_map(|ply| ply.search.clone());
            let of_random = record.plies.iter().position(|ply| ply.search.is_none()).unwrap();
            let stated = refused(&|record| record.plies[of_random].search.clone_from(&block));
            assert_eq!(stated, ReasonCode::UnwantedSearch);
            let others = refused(&|record| record.players = Some([Player::OnePly, Player::Random]));
            assert_eq!(others, ReasonCode::WrongPlayers);
            assert_eq!(refused(&|record| record.players = None), ReasonCode::WrongPlayers);
        }
    }
    with("connect-four", Visitor);
}

fn evaluation<G: Game>(game: &G, model: &Arc<ModelBytes>, state: &G::State) -> Wdl {
    let mut planes = vec![0; game.spec().planes_len()];
    state.planes(&mut planes);
    let mut outputs = Outputs::default();
    opinions(game).evaluate(model, &planes, 1, &mut outputs).unwrap();
    Wdl::from_logits([outputs.wdl[0], outputs.wdl[1], outputs.wdl[2]])
}

/// Notes the size and the model of every batch.
struct Noting(HashEvaluator, Rc<RefCell<Vec<(tengen_records::ModelId, usize)>>>);

impl Evaluator for Noting {
    fn evaluate(
        &mut self,
        model: &Arc<ModelBytes>,
        planes: &[u8],
        n: usize,
        out: &mut Outputs,
    ) -> Result<(), EvaluateError> {
        self.1.borrow_mut().push((model.id(), n));
        self.0.evaluate(model, planes, n, out)
    }
}

#[test]
fn batches_gather_every_game_and_stay_within_their_bound() {
    struct Visitor;
    impl GameVisitor for Visitor {
        type Output = ();

        fn visit<G: Game>(self, game: G) {
            for batch_max in [1, 3, 8, 64] {
                let lease = lease(SELF_PLAY(8), settings(8), 41);
                let noted = Rc::default();
                let options = DriverOptions {
                    games: 8,
                    batch_max,
                    ..DriverOptions::default()
                };
                play(&game, Noting(opinions(&game), Rc::clone(&noted)), options, &lease);
                let noted = noted.borrow();
                assert!(noted.iter().all(|&(_, n)| (1..=batch_max).contains(&n)), "{noted:?}");
                assert_eq!(
                    noted[0].1,
                    batch_max.min(8),
                    "the first tick asks for every root at once"
                );
            }
        }
    }
    with("connect-four", Visitor);
}

#[test]
fn two_models_never_share_a_batch() {
    struct Visitor;
    impl GameVisitor for Visitor {
        type Output = ();

        fn visit<G: Game>(self, game: G) {
            let lease = lease(match_plan(&game, 4, 0), settings(4), 51);
            let noted = Rc::default();
            play(
                &game,
                Noting(opinions(&game), Rc::clone(&noted)),
                DriverOptions::default(),
                &lease,
            );
            let noted = noted.borrow();
            let ids: Vec<_> = lease.models().iter().map(|model| model.id()).collect();
            assert!(
                ids.iter()
                    .all(|id| noted.iter().any(|(model, n)| model == id && *n == 4)),
                "{noted:?}"
            );
        }
    }
    with("connect-four", Visitor);
}

#[test]
fn a_drain_finishes_games_while_it_may_and_names_the_rest() {
    struct Visitor;
    impl GameVisitor for Visitor {
        type Output = ();

        fn visit<G: Game>(self, game: G) {
            let lease = lease(SELF_PLAY(6), settings(6), 61);
            let started = || {
                let mut driver = Driver::new(game.clone(), opinions(&game), DriverOptions::default());
                (0..6).for_each(|index| {
                    driver
                        .start(GameOrder {
                            lease: Arc::clone(&lease),
                            index,
                        })
                        .unwrap()
                });
                driver
            };
            let mut records = Vec::new();
            assert_eq!(started().drain(|| true, &mut records).unwrap(), []);
            assert_eq!(records.len(), 6);

            let mut records = Vec::new();
            let mut rounds = 0..20;
            let left = started().drain(|| rounds.next().is_some(), &mut records).unwrap();
            assert!(!left.is_empty() && left.len() + records.len() == 6, "{left:?}");
            assert!(left.iter().any(|unfinished| unfinished.plies > 0), "{left:?}");

            let mut driver = started();
            assert_eq!(driver.give_up(|lease| lease.id() == LeaseId(0)), []);
            assert_eq!(driver.give_up(|_| true).len(), 6);
            assert!(driver.is_idle());
        }
    }
    with("connect-four", Visitor);
}

#[test]
fn the_games_of_a_cancelled_lease_are_given_up_and_the_others_play_on() {
    struct Visitor;
    impl GameVisitor for Visitor {
        type Output = ();

        fn visit<G: Game>(self, game: G) {
            let [kept, gone] = [62, 63].map(|seed| lease(SELF_PLAY(3), settings(6), seed));
            let mut driver = Driver::new(game.clone(), opinions(&game), DriverOptions::default());
            for lease in [&kept, &gone] {
                for index in 0..3 {
                    let lease = Arc::clone(lease);
                    driver.start(GameOrder { lease, index }).unwrap();
                }
            }
            assert_eq!(driver.plies_in_flight(), 0);
            let mut records = Vec::new();
            for _ in 0..12 {
                driver.tick(&mut records).unwrap();
                assert_eq!(driver.give_up(Lease::is_cancelled), []);
            }
            let (games, plies) = (driver.games(), driver.plies_in_flight());
            let finished: u64 = records.iter().map(|record| record.plies.len() as u64).sum();
            assert_eq!(plies + finished, driver.counters().plies);

            gone.cancel();
            let left = driver.give_up(Lease::is_cancelled);
            assert!(!left.is_empty() && left.iter().all(|unfinished| unfinished.id.lease == gone.id()));
            assert_eq!(driver.games(), games - left.len());
            let given_up: u64 = left.iter().map(|unfinished| u64::from(unfinished.plies)).sum();
            assert!(given_up > 0);
            assert_eq!(driver.plies_in_flight(), plies - given_up);
            assert_eq!(driver.give_up(Lease::is_cancelled), []);

            assert_eq!(driver.drain(|| true, &mut records).unwrap(), []);
            let of_kept = records.iter().filter(|record| record.id.lease == kept.id());
            assert_eq!(of_kept.count(), 3);
            assert_eq!(driver.plies_in_flight(), 0);
            // Nobody holds a lease for games that have ended.
            assert_eq!((Arc::strong_count(&kept), Arc::strong_count(&gone)), (1, 1));
        }
    }
    with("connect-four", Visitor);
}

#[test]
fn games_that_cannot_start_are_refused_and_named() {
    struct Visitor;
    impl GameVisitor for Visitor {
        type Output = ();

        fn visit<G: Game>(self, game: G) {
            let game_with = |opening: &[u16]| MatchGame {
                pair: 0,
                opening: opening.iter().map(|&action| Action(action)).collect(),
                sampled_plies: 0,
                seat0_model: 0,
            };
            let plan = Plan::Match {
                games: vec![game_with(&[0, 0]), game_with(&[0, 3, 1, 4, 2]), game_with(&[4])],
            };
            let lease = lease(plan, settings(4), 71);
            let options = DriverOptions {
                games: 1,
                ..DriverOptions::default()
            };
            let mut driver = Driver::new(game.clone(), opinions(&game), options);
            let mut start = |index| {
                driver.start(GameOrder {
                    lease: Arc::clone(&lease),
                    index,
                })
            };
            assert!(matches!(start(0), Err(StartError::Opening { .. })));
            assert!(matches!(start(1), Err(StartError::OpeningEnds { .. })));
            assert!(matches!(start(9), Err(StartError::Index { games: 3, index: 9, .. })));
            start(2).unwrap();
            assert!(matches!(start(2), Err(StartError::Full { games: 1 })));
        }
    }
    tic_tac_toe().visit(Visitor);
}

#[test]
fn a_real_network_plays_offline_and_its_games_pass_the_check() {
    struct Visitor<'a>(&'a [Record]);
    impl GameVisitor for Visitor<'_> {
        type Output = ();

        fn visit<G: Game>(self, game: G) {
            let order = self.0[0].clone();
            let mut lease_expected = expected(&game, &lease(SELF_PLAY(6), settings(16), 9));
            lease_expected.run_id = order.run_id.clone();
            lease_expected.lease = order.id.lease;
            lease_expected.models = order.models.clone();
            lease_expected.settings_revision = 0;
            for record in self.0 {
                check(&game, record, &lease_expected).unwrap();
            }
        }
    }
    tengen_inference::init(None).unwrap();
    for name in ["tic-tac-toe", "caro5?size=5"] {
        let game = AnyGame::parse(name).unwrap();
        let options = OfflineOptions {
            games: 6,
            settings: settings(16),
            random_plies_max: 2,
            seed: 9,
            driver: DriverOptions::default(),
            sessions: SessionOptions::default(),
        };
        let records = selfplay_offline(&game, network(&game, 1), &options).unwrap();
        assert_eq!(records.len(), 6);
        game.visit(Visitor(&records));
    }
}

#[test]
fn a_cache_saves_evaluations_and_changes_nothing_else() {
    struct Visitor;
    impl GameVisitor for Visitor {
        type Output = ();

        fn visit<G: Game>(self, game: G) {
            let lease = lease(SELF_PLAY(40), settings(24), 5);
            let actions = game.spec().actions.len();
            let play = |cache: Option<Arc<EvaluationCache>>| {
                let mut driver =
                    Driver::new(game.clone(), HashEvaluator { actions }, DriverOptions::default()).sharing(cache);
                let mut records = Vec::new();
                driver.play(&lease, |record| records.push(record)).unwrap();
                records.sort_by_key(|record| record.id);
                let untimed = |record: Record| Record {
                    created_unix_ms: 0,
                    duration_ms: 0,
                    ..record
                };
                (records.into_iter().map(untimed).collect::<Vec<_>>(), driver.counters())
            };
            let (alone, before) = play(None);
            let cache = EvaluationCache::new(1 << 22, actions).map(Arc::new);
            let (cached, after) = play(cache.clone());
            assert_eq!(cached, alone);
            assert!(after.cache_hits > 0 && before.cache_hits == 0, "{after:?}");
            for counters in [before, after] {
                let visits = counters.evaluations + counters.cache_hits + counters.terminal_visits;
                assert_eq!(visits, counters.simulations, "{counters:?}");
            }
            assert_eq!(before.evaluations, after.evaluations + after.cache_hits);
            assert!(after.terminal_visits > 0 && after.reused_visits > 0, "{after:?}");
            // Nothing is left to ask when the same games are played again.
            let (again, last) = play(cache);
            assert_eq!(again, alone);
            assert!(last.evaluations < after.evaluations / 10, "{last:?}");
        }
    }
    for name in ["tic-tac-toe", "connect-four"] {
        with(name, Visitor);
    }
}

/// The lease with its first model in int8, as another file.
fn in_int8(lease: &Lease) -> Arc<Lease> {
    let mut models = lease.models().to_vec();
    models[0] = ModelBytes::variant(models[0].id(), Precision::Int8, vec![77]);
    Lease::new(lease.run().clone(), lease.order().clone(), models).unwrap()
}

#[test]
fn every_search_states_the_precision_of_the_file_that_answered_it() {
    struct Visitor;
    impl GameVisitor for Visitor {
        type Output = ();

        fn visit<G: Game>(self, game: G) {
            let whole = lease(match_plan(&game, 2, 0), settings(6), 71);
            let mixed = in_int8(&whole);
            for record in play(&game, opinions(&game), DriverOptions::default(), &mixed) {
                let refused = check(&game, &record, &expected(&game, &whole)).unwrap_err();
                assert_eq!(refused.code, ReasonCode::MixedPrecisions, "no actor plays a match so");
                assert_eq!(record.models, whole.order().models, "a record names the network");
                for ply in &record.plies {
                    let stated = ply.search.as_ref().unwrap().precision;
                    assert_eq!(stated, mixed.models()[ply.model.index()].precision());
                }
            }
        }
    }
    with("connect-four", Visitor);
}

#[test]
fn two_precisions_of_a_network_share_neither_batches_nor_answers() {
    struct Visitor;
    impl GameVisitor for Visitor {
        type Output = ();

        fn visit<G: Game>(self, game: G) {
            let whole = lease(SELF_PLAY(4), settings(16), 72);
            let reduced = in_int8(&whole);
            let actions = game.spec().actions.len();
            let alone: Vec<Vec<Record>> = [&whole, &reduced]
                .map(|lease| play(&game, opinions(&game), DriverOptions::default(), lease))
                .into();
            let cache = EvaluationCache::new(1 << 22, actions).map(Arc::new);
            let options = DriverOptions {
                games: 8,
                clock: || 1_000,
                ..DriverOptions::default()
            };
            let mut driver = Driver::new(game.clone(), opinions(&game), options).sharing(cache);
            for lease in [&whole, &reduced] {
                for index in 0..4 {
                    let lease = Arc::clone(lease);
                    driver.start(GameOrder { lease, index }).unwrap();
                }
            }
            let mut together = Vec::new();
            while !driver.is_idle() {
                driver.tick(&mut together).unwrap();
            }
            for records in &alone {
                for record in records {
                    assert!(together.contains(record), "game {} came out otherwise", record.id);
                }
            }
            let seen = |records: &[Record]| records[0].plies[0].search.as_ref().unwrap().net_wdl;
            assert_ne!(seen(&alone[0]), seen(&alone[1]), "the two answer differently");
        }
    }
    with("connect-four", Visitor);
}
