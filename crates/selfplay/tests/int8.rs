//! Networks in int8 as the exporter writes them, in ONNX Runtime: faithful to their fp32, played with, audited and searched
//! again.

#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod common;

use std::sync::Arc;

use common::{network, play, settings};
use tengen_games::{AnyGame, Game, GameVisitor, State};
use tengen_inference::{Device, SessionOptions};
use tengen_network::{ActivationRanges, Config, Shape, read_metadata, read_weights, write_onnx_int8};
use tengen_records::{LeaseId, Precision, Record, RunId};
use tengen_selfplay::audit::{Difference, Tolerances, audit, divergence, evaluator};
use tengen_selfplay::reproduce::{Agreement, agreement, precision_of, reproduce};
use tengen_selfplay::{DriverOptions, Lease, ModelBytes, Order, Plan, SessionEvaluator, check_variant};

/// What the activations of a random network do not leave.
const GREATEST: f32 = 6.0;

/// The network's file in int8.
fn int8(game: &AnyGame, model: &ModelBytes) -> Arc<ModelBytes> {
    let config = Config {
        blocks: 1,
        channels: 8,
        ..Config::default()
    };
    let shape = Shape::new(game.spec(), &config).unwrap();
    let ranges = ActivationRanges::within(&shape, GREATEST);
    let network = read_metadata(model.bytes()).unwrap();
    let metadata = network.in_precision(tengen_network::Precision::Int8, model.id().to_bytes());
    let weights = read_weights(model.bytes()).unwrap();
    let file = write_onnx_int8(&shape, &weights, &ranges, &metadata).unwrap();
    let stated = read_metadata(&file).unwrap();
    check_variant(&stated, Precision::Int8, model.id(), &network).unwrap();
    ModelBytes::variant(model.id(), Precision::Int8, file)
}

fn sessions(batch_max: usize) -> SessionEvaluator {
    tengen_inference::init(None).expect("ONNX Runtime is laid out");
    SessionEvaluator::new(SessionOptions {
        device: Device::Cpu,
        intra_threads: 1,
        batch_max,
    })
}

/// Games of self-play in int8, in batches.
fn games<G: Game>(game: &G, reduced: &Arc<ModelBytes>) -> (Arc<Lease>, Vec<Record>) {
    let order = Order {
        lease: LeaseId(8),
        models: vec![reduced.id()],
        settings: settings(16),
        settings_revision: 1,
        seed: 8,
        plan: Plan::SelfPlay {
            games: 12,
            random_plies_max: 3,
        },
    };
    let lease = Lease::new(RunId::new("int8").unwrap(), order, vec![Arc::clone(reduced)]).unwrap();
    let options = DriverOptions {
        games: 12,
        batch_max: 16,
        ..DriverOptions::default()
    };
    let records = play(game, sessions(16), options, &lease);
    (lease, records)
}

struct Played;

impl GameVisitor for Played {
    type Output = ();

    fn visit<G: Game>(self, game: G) {
        let any = AnyGame::parse(&game.spec().id).unwrap();
        let whole = network(&any, 5);
        let reduced = int8(&any, &whole);
        let (lease, records) = games(&game, &reduced);
        let mut planes = Vec::new();
        for record in &records {
            assert_eq!(record.models, [whole.id()]);
            assert_eq!(precision_of(record, whole.id()), Ok(Precision::Int8));
            let all: Vec<usize> = (0..record.plies.len()).collect();
            let files = [Arc::clone(&whole), Arc::clone(&reduced)];
            let found = audit(&game, record, &all, &files, &mut evaluator()).unwrap();
            let worst = Difference::worst(&found, &Tolerances::default()).unwrap();
            assert_eq!(worst.fault(&Tolerances::default()), None);
            let plies = reproduce(game.clone(), record, &lease, sessions(1)).unwrap();
            let honest = matches!(
                agreement(&plies),
                Agreement::Identical | Agreement::Within { .. } | Agreement::OtherVisits { .. }
            );
            assert!(honest, "{:?}", agreement(&plies));
            let mut state = game.start();
            for action in record.actions() {
                let from = planes.len();
                planes.resize(from + game.spec().planes_len(), 0);
                state.planes(&mut planes[from..]);
                state.apply(action).unwrap();
            }
        }
        let positions = planes.len() / game.spec().planes_len();
        let found = divergence(&whole, &reduced, &planes, positions).unwrap();
        assert!(found.is_faithful(), "{found}");
        assert!(
            found.policy_kl > 0.0 && found.value_error > 0.0,
            "it is rounded: {found}"
        );
    }
}

#[test]
fn games_in_int8_pass_their_audit_and_are_searched_the_same_again() {
    for name in ["connect-four", "caro5?size=7"] {
        AnyGame::parse(name).unwrap().visit(Played);
    }
}
