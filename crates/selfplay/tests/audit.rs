//! Audits against a real ONNX Runtime: what the driver plays passes, what another network says is found.

#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod common;

use std::sync::Arc;

use common::{network, play, settings};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{AnyGame, Game, GameVisitor, State, draw_openings};
use tengen_inference::{Device, InferenceError, Outputs, Probe, Session, SessionOptions, answered, softmax};
use tengen_network::{Metadata, Shape, Weights, random_weights, read_weights, write_onnx};
use tengen_records::{LeaseId, NET_POLICY_TOP_MAX, Precision, Record, RunId, SearchBlock};
use tengen_search::{Settings, Wdl};
use tengen_selfplay::audit::{
    AuditError, Difference, Tolerances, audit, divergence, draw_plies, evaluator, networks, reproduction,
};
use tengen_selfplay::evaluator::EvaluateError;
use tengen_selfplay::{DriverOptions, Evaluator, Lease, MatchGame, ModelBytes, Order, Plan, SessionEvaluator};

/// Positions of a game that an audit looks at by default.
const POSITIONS: usize = 4;

fn sessions() -> SessionEvaluator {
    tengen_inference::init(None).expect("ONNX Runtime is laid out");
    SessionEvaluator::new(SessionOptions {
        device: Device::Cpu,
        intra_threads: 1,
        batch_max: 16,
    })
}

/// Outputs of a trained network's size, so that networks have opinions that differ.
fn lively(game: &AnyGame, seed: u64) -> Arc<ModelBytes> {
    let plain = network(game, seed);
    rewritten(game, &plain, |weights, shape| {
        for layer in shape.layers() {
            if layer.name.starts_with("policy") || layer.name == "value.out" {
                let weight = weights.get_mut(&layer.weight_name()).unwrap();
                weight.data_mut().iter_mut().for_each(|value| *value *= 30.0);
            }
        }
    })
}

fn rewritten(game: &AnyGame, model: &ModelBytes, change: impl FnOnce(&mut Weights, &Shape)) -> Arc<ModelBytes> {
    let mut weights = read_weights(model.bytes()).unwrap();
    let config = tengen_network::Config {
        blocks: 1,
        channels: 8,
        ..tengen_network::Config::default()
    };
    let shape = Shape::new(game.spec(), &config).unwrap();
    change(&mut weights, &shape);
    ModelBytes::new(write_onnx(&shape, &weights, &Metadata::of_shape(&shape)).unwrap())
}

/// Evaluates everything with one network, whatever is asked for.
struct Instead(SessionEvaluator, Arc<ModelBytes>);

impl Evaluator for Instead {
    fn evaluate(
        &mut self,
        _model: &Arc<ModelBytes>,
        planes: &[u8],
        n: usize,
        out: &mut Outputs,
    ) -> Result<(), EvaluateError> {
        self.0.evaluate(&self.1, planes, n, out)
    }
}

fn self_play(models: &[Arc<ModelBytes>], games: u32, seed: u64) -> Arc<Lease> {
    lease(
        models,
        Plan::SelfPlay {
            games,
            random_plies_max: 3,
        },
        seed,
    )
}

fn lease(models: &[Arc<ModelBytes>], plan: Plan, seed: u64) -> Arc<Lease> {
    let order = Order {
        lease: LeaseId(u128::from(seed)),
        models: models.iter().map(|model| model.id()).collect(),
        settings: settings(8),
        settings_revision: 1,
        seed,
        plan,
    };
    Lease::new(RunId::new("audits").unwrap(), order, models.to_vec()).unwrap()
}

fn at_once(games: usize) -> DriverOptions {
    DriverOptions {
        games,
        batch_max: 16,
        ..DriverOptions::default()
    }
}

/// The worst position of a game as the coordinator's audit draws them.
fn worst<G: Game>(game: &G, record: &Record, models: &[Arc<ModelBytes>], seed: u64) -> Difference {
    let plies = draw_plies(record, POSITIONS, seed);
    let found = audit(game, record, &plies, models, &mut sessions()).unwrap();
    assert_eq!(found.len(), plies.len());
    Difference::worst(&found, &Tolerances::default()).expect("every ply was searched")
}

/// Runs a generic test on Connect Four and on Caro5 with its opening protocol.
fn on_two_games(test: impl GameVisitor<Output = ()> + Copy) {
    for name in ["connect-four", "caro5?size=9"] {
        AnyGame::parse(name).unwrap().visit(test);
    }
}

fn any<G: Game>(game: &G) -> AnyGame {
    AnyGame::parse(&game.spec().id).unwrap()
}

#[test]
fn every_position_of_honest_games_passes_whatever_shared_its_batch() {
    #[derive(Clone, Copy)]
    struct Honest;
    impl GameVisitor for Honest {
        type Output = ();
        fn visit<G: Game>(self, game: G) {
            for model in [network(&any(&game), 1), lively(&any(&game), 2)] {
                for games in [1, 3, 20] {
                    let lease = self_play(&[Arc::clone(&model)], games as u32, 7 + games as u64);
                    for record in play(&game, sessions(), at_once(games), &lease) {
                        let all: Vec<usize> = (0..record.plies.len()).collect();
                        let found = audit(&game, &record, &all, &[Arc::clone(&model)], &mut evaluator()).unwrap();
                        assert_eq!(found.len(), record.plies.len());
                        let faults: Vec<_> = found
                            .iter()
                            .filter_map(|found| found.fault(&Tolerances::default()))
                            .collect();
                        assert!(faults.is_empty(), "{faults:?}");
                    }
                }
            }
        }
    }
    on_two_games(Honest);
}

#[test]
fn both_networks_of_a_match_are_asked_and_swapping_them_is_found() {
    #[derive(Clone, Copy)]
    struct Match;
    impl GameVisitor for Match {
        type Output = ();
        fn visit<G: Game>(self, game: G) {
            let models = [lively(&any(&game), 3), lively(&any(&game), 4)];
            let openings = draw_openings(&game, 4, 5);
            let games = openings.iter().enumerate().map(|(pair, opening)| MatchGame {
                pair: pair as u32,
                opening: opening.plies.clone(),
                sampled_plies: opening.sampled_plies,
                seat0_model: pair % 2,
            });
            let lease = lease(&models, Plan::Match { games: games.collect() }, 6);
            for mut record in play(&game, sessions(), at_once(4), &lease) {
                let turned: Vec<_> = models.iter().rev().cloned().collect();
                assert_eq!(worst(&game, &record, &turned, 1).fault(&Tolerances::default()), None);
                record.models.reverse();
                let fault = worst(&game, &record, &models, 1).fault(&Tolerances::default());
                assert!(fault.is_some_and(|fault| fault.contains("away from network")));
            }
        }
    }
    on_two_games(Match);
}

/// Games of another network, one learning step away or strange altogether: at four positions a game nearly all are found.
#[test]
fn games_of_another_network_are_found() {
    #[derive(Clone, Copy)]
    struct Wrong;
    impl GameVisitor for Wrong {
        type Output = ();
        fn visit<G: Game>(self, game: G) {
            let named = lively(&any(&game), 8);
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(9);
            let next = rewritten(&any(&game), &named, |weights, _| {
                // A random step of length 0.02: the learning rate times a gradient of length 1.
                let names: Vec<String> = weights.iter().map(|(name, _)| name.to_owned()).collect();
                let count: usize = weights.iter().map(|(_, tensor)| tensor.data().len()).sum();
                let width = 0.02 * (3.0 / count as f32).sqrt();
                for name in names {
                    let data = weights.get_mut(&name).unwrap().data_mut();
                    data.iter_mut()
                        .for_each(|value| *value += rng.random_range(-width..width));
                }
            });
            let strange = rewritten(&any(&game), &named, |weights, shape| {
                *weights = random_weights(shape, 99)
            });
            for real in [next, strange] {
                nearly_all_are_found(&game, &named, Instead(sessions(), real));
            }
        }
    }
    on_two_games(Wrong);
}

/// Plays 200 games that name `named` with this evaluator.
fn nearly_all_are_found<G: Game>(game: &G, named: &Arc<ModelBytes>, evaluator: impl Evaluator) {
    let lease = self_play(&[Arc::clone(named)], 200, 10);
    let games = play(game, evaluator, at_once(64), &lease);
    let models = [Arc::clone(named)];
    let is_found = |record: &&Record| {
        worst(game, record, &models, record.seed)
            .fault(&Tolerances::default())
            .is_some()
    };
    let found = games.iter().filter(is_found).count();
    assert!(found >= 198, "{found} of {} wrong games were found", games.len());
}

/// The right network on hardware that computes it wrongly: every output is off by up to a thousandth.
struct Broken(SessionEvaluator, Xoshiro256PlusPlus);

impl Evaluator for Broken {
    fn evaluate(
        &mut self,
        model: &Arc<ModelBytes>,
        planes: &[u8],
        n: usize,
        out: &mut Outputs,
    ) -> Result<(), EvaluateError> {
        self.0.evaluate(model, planes, n, out)?;
        let outputs = out.policy.iter_mut().chain(&mut out.wdl);
        outputs.for_each(|logit| *logit += self.1.random_range(-1e-3..1e-3));
        Ok(())
    }
}

#[test]
fn games_of_broken_hardware_are_found() {
    #[derive(Clone, Copy)]
    struct OffByAThousandth;
    impl GameVisitor for OffByAThousandth {
        type Output = ();
        fn visit<G: Game>(self, game: G) {
            let broken = Broken(sessions(), Xoshiro256PlusPlus::seed_from_u64(11));
            nearly_all_are_found(&game, &lively(&any(&game), 8), broken);
        }
    }
    on_two_games(OffByAThousandth);
}

/// Makes a ply state what `model` says of it under a symmetry.
fn restate<G: Game>(game: &G, state: &G::State, search: &mut SearchBlock, symmetry: u16, model: &Arc<ModelBytes>) {
    let image = &game.spec().symmetries[usize::from(symmetry)];
    let mut planes = vec![0; game.spec().planes_len()];
    state.transform(image).planes(&mut planes);
    let mut out = Outputs::default();
    sessions().evaluate(model, &planes, 1, &mut out).unwrap();
    let (policy, wdl) = out.position(0);
    let mut legal = Vec::new();
    state.legal(&mut legal);
    let logits: Vec<f32> = legal
        .iter()
        .map(|action| policy[usize::from(image.actions[action.index()])])
        .collect();
    let mut priors: Vec<_> = legal.iter().copied().zip(softmax(&logits)).collect();
    priors.sort_by(|left, right| right.1.total_cmp(&left.1));
    priors.truncate(NET_POLICY_TOP_MAX);
    let wdl = Wdl::from_logits(wdl);
    search.symmetry = symmetry;
    search.net_policy_top = priors;
    search.net_wdl = [wdl.win, wdl.draw, wdl.loss];
}

#[test]
fn a_position_is_evaluated_under_the_symmetry_that_the_record_states() {
    #[derive(Clone, Copy)]
    struct Symmetric;
    impl GameVisitor for Symmetric {
        type Output = ();
        fn visit<G: Game>(self, game: G) {
            let model = lively(&any(&game), 12);
            let lease = self_play(&[Arc::clone(&model)], 1, 13);
            let mut record = play(&game, sessions(), at_once(1), &lease).remove(0);
            let symmetries = game.spec().symmetries.len() as u16;
            let mut state = game.start();
            record.opening.iter().for_each(|&action| state.apply(action).unwrap());
            for (n, ply) in record.plies.iter_mut().enumerate() {
                let symmetry = n as u16 % symmetries;
                restate(&game, &state, ply.search.as_mut().unwrap(), symmetry, &model);
                state.apply(ply.action).unwrap();
            }
            let all: Vec<usize> = (0..record.plies.len()).collect();
            let found = audit(&game, &record, &all, &[Arc::clone(&model)], &mut evaluator()).unwrap();
            assert_eq!(
                Difference::worst(&found, &Tolerances::default())
                    .unwrap()
                    .fault(&Tolerances::default()),
                None
            );
            // The network is not symmetric, so the same numbers under another symmetry are wrong.
            for ply in &mut record.plies {
                let search = ply.search.as_mut().unwrap();
                search.symmetry = (search.symmetry + 1) % symmetries;
            }
            let found = audit(&game, &record, &all, &[model], &mut evaluator()).unwrap();
            assert!(
                Difference::worst(&found, &Tolerances::default())
                    .unwrap()
                    .fault(&Tolerances::default())
                    .is_some()
            );
        }
    }
    on_two_games(Symmetric);
}

#[test]
fn games_under_random_symmetries_pass_under_those_they_state_and_not_under_others() {
    #[derive(Clone, Copy)]
    struct Random;
    impl GameVisitor for Random {
        type Output = ();
        fn visit<G: Game>(self, game: G) {
            let models = [lively(&any(&game), 19)];
            let plain = self_play(&models, 3, 20);
            let order = Order {
                settings: Settings {
                    random_symmetry: true,
                    ..settings(8)
                },
                ..plain.order().clone()
            };
            let lease = Lease::new(plain.run().clone(), order, models.to_vec()).unwrap();
            for mut record in play(&game, sessions(), at_once(3), &lease) {
                let all: Vec<usize> = (0..record.plies.len()).collect();
                let fault = |record: &Record| {
                    let found = audit(&game, record, &all, &models, &mut evaluator()).unwrap();
                    Difference::worst(&found, &Tolerances::default())
                        .unwrap()
                        .fault(&Tolerances::default())
                };
                assert_eq!(fault(&record), None);
                for ply in &mut record.plies {
                    ply.search.as_mut().unwrap().symmetry = 0;
                }
                assert!(fault(&record).is_some(), "the network is not symmetric");
            }
        }
    }
    on_two_games(Random);
}

#[test]
fn what_a_record_leaves_out_or_says_falsely_does_not_hide_it() {
    let columns = AnyGame::parse("connect-four").unwrap();
    let AnyGame::ConnectFour(game) = &columns else {
        panic!("another game")
    };
    let model = lively(&columns, 14);
    let lease = self_play(&[Arc::clone(&model)], 1, 15);
    let honest = play(game, sessions(), at_once(1), &lease).remove(0);
    let fault = |change: &dyn Fn(&mut SearchBlock)| {
        let mut record = honest.clone();
        record
            .plies
            .iter_mut()
            .for_each(|ply| change(ply.search.as_mut().unwrap()));
        worst(game, &record, &[Arc::clone(&model)], 1).fault(&Tolerances::default())
    };
    assert_eq!(fault(&|_| {}), None);
    assert!(fault(&|search| search.net_policy_top.clear()).is_some());
    assert!(
        fault(&|search| {
            search.net_policy_top.remove(0);
        })
        .is_some()
    );
    assert!(fault(&|search| search.net_wdl.rotate_left(1)).is_some());
    let false_precision = fault(&|search| search.precision = Precision::Int8).unwrap();
    assert!(false_precision.contains("int8"), "{false_precision}");

    let stranger = audit(game, &honest, &[0], &[lively(&columns, 16)], &mut evaluator());
    assert!(
        matches!(stranger, Err(AuditError::Model { ply: 0, .. })),
        "{stranger:?}"
    );
}

/// `model` as a variant of itself: what matters here is what it is called, not how it computes.
fn called_int8(network: &ModelBytes, file: &ModelBytes) -> Arc<ModelBytes> {
    ModelBytes::variant(network.id(), Precision::Int8, file.bytes().to_vec())
}

#[test]
fn a_stated_precision_is_audited_with_its_own_file_and_its_own_tolerance() {
    let columns = AnyGame::parse("connect-four").unwrap();
    let AnyGame::ConnectFour(game) = &columns else {
        panic!("another game")
    };
    let (whole, other) = (lively(&columns, 21), lively(&columns, 22));
    let reduced = called_int8(&whole, &other);
    let lease = self_play(&[Arc::clone(&reduced)], 1, 23);
    let mut record = play(game, sessions(), at_once(1), &lease).remove(0);
    let mut searches = record.plies.iter().filter_map(|ply| ply.search.as_ref());
    assert!(searches.all(|search| search.precision == Precision::Int8));
    let all: Vec<usize> = (0..record.plies.len()).collect();
    assert_eq!(
        networks(&record, &all),
        [(whole.id(), Precision::Int8)].into(),
        "one network in one precision"
    );
    let files = [Arc::clone(&whole), Arc::clone(&reduced)];
    let fault = |record: &Record, tolerances: &Tolerances| {
        let found = audit(game, record, &all, &files, &mut evaluator()).unwrap();
        Difference::worst(&found, tolerances).and_then(|worst| worst.fault(tolerances))
    };
    assert_eq!(fault(&record, &Tolerances::default()), None);
    // The same statements about the network in fp32 are another network's.
    let mut restated = record.clone();
    let searches = restated.plies.iter_mut().filter_map(|ply| ply.search.as_mut());
    searches.for_each(|search| search.precision = Precision::Fp32);
    assert!(fault(&restated, &Tolerances::default()).is_some());

    // What is honest of a rounded network is not of a whole one; and of two, the one beyond its tolerance is plainest.
    let tolerances = Tolerances {
        fp32: 1e-4,
        reduced: 0.01,
    };
    record.plies[0].search.as_mut().unwrap().net_wdl[0] += 0.005;
    assert_eq!(fault(&record, &tolerances), None);
    let found = [(0, Precision::Int8, 0.005), (1, Precision::Fp32, 0.001)].map(|(ply, precision, wdl)| Difference {
        ply,
        model: whole.id(),
        wdl,
        policy: 0.0,
        precision,
        offered: true,
    });
    assert_eq!(Difference::worst(&found, &tolerances).unwrap().ply, 1);
}

#[test]
fn a_variant_that_is_another_network_is_found_by_its_distance() {
    tengen_inference::init(None).unwrap();
    let columns = AnyGame::parse("connect-four").unwrap();
    let (whole, other) = (lively(&columns, 24), lively(&columns, 25));
    let planes: Vec<u8> = (0..6 * columns.spec().planes_len())
        .map(|at| u8::from(at % 3 == 0))
        .collect();
    let apart = |file: &ModelBytes| divergence(&whole, &called_int8(&whole, file), &planes, 6).unwrap();
    assert!(apart(&whole).is_faithful(), "{}", apart(&whole));
    assert!(!apart(&other).is_faithful(), "{}", apart(&other));
}

#[test]
fn a_file_must_answer_as_it_did_where_it_was_made_unless_nobody_knows_what_that_was() {
    tengen_inference::init(None).unwrap();
    let columns = AnyGame::parse("connect-four").unwrap();
    let (file, other) = (lively(&columns, 26), lively(&columns, 27));
    let question = |at: usize| Probe {
        planes: (0..columns.spec().planes_len())
            .map(|byte| u8::from((at + byte).is_multiple_of(3)))
            .collect(),
        policy: Vec::new(),
        wdl: [0.0; 3],
    };
    let questions: Vec<Probe> = (0..3).map(question).collect();
    let own = answered(
        &mut Session::load(file.bytes(), &SessionOptions::default()).unwrap(),
        &questions,
    );
    let own = own.unwrap();
    assert!(reproduction(&file, &own).unwrap() < 1e-4);
    let refused = reproduction(&other, &own);
    assert!(
        matches!(refused, Err(InferenceError::ProbeDiffers { .. })),
        "{refused:?}"
    );
    assert_eq!(reproduction(&other, &[]), Ok(0.0));
}

#[test]
fn plies_are_drawn_without_replacement_and_by_the_seed() {
    let columns = AnyGame::parse("connect-four").unwrap();
    let AnyGame::ConnectFour(game) = &columns else {
        panic!("another game")
    };
    let model = network(&columns, 17);
    let lease = self_play(&[model], 1, 18);
    let mut record = play(game, sessions(), at_once(1), &lease).remove(0);
    let searched = record.plies.len() - 1;
    record.plies[0].search = None;
    let mut drawn = vec![0; record.plies.len()];
    for seed in 0..1_000 {
        let plies = draw_plies(&record, POSITIONS, seed);
        assert!(plies.is_sorted() && plies.len() == POSITIONS.min(searched), "{plies:?}");
        assert!(plies.array_windows().all(|[left, right]| left < right), "{plies:?}");
        assert_eq!(plies, draw_plies(&record, POSITIONS, seed));
        plies.iter().for_each(|&ply| drawn[ply] += 1);
    }
    assert_eq!(drawn[0], 0);
    // Every searched ply has its fair share, within five standard deviations.
    let expected = 1_000.0 * POSITIONS as f64 / searched as f64;
    for &times in &drawn[1..] {
        assert!((f64::from(times) - expected).abs() < 5.0 * expected.sqrt(), "{drawn:?}");
    }
    assert_eq!(draw_plies(&record, 1_000, 1).len(), searched);
}
