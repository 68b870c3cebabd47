//! Files in reduced precisions, run beside the fp32 file of the same network.

mod common;

use common::reduced::{fp16, int8, metadata, ranges};
use common::{columns, config, lively_weights, model, options, positions, session, shapes};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{AnyGame, Game, GameVisitor, State, registry};
use tengen_inference::{
    InferenceError, Optimisations, Outputs, Probe, REPRODUCTION_TOLERANCE, Session, Signature, answered, run_probes,
    softmax,
};
use tengen_network::{ActivationRange, ActivationRanges, Precision, Shape, write_onnx_int8};

/// Greatest mean divergence of an int8 policy from the fp32 one that passes here, nats: well above what rounding does to
/// networks of this size, and well below the distance of two networks.
const DIVERGENCE_MAX: f64 = 0.01;
/// Greatest mean difference of win minus loss, likewise.
const VALUE_ERROR_MAX: f64 = 0.05;
/// Greatest difference of a probability that 16-bit floats may make.
const FP16_DIFFERENCE_MAX: f32 = 5e-3;

fn run(model: &[u8], shape: &Shape, planes: &[u8]) -> Outputs {
    let n = planes.len() / shape.planes_len();
    let mut outputs = Outputs::default();
    session(model, n).run(planes, n, &mut outputs).expect("the batch runs");
    outputs
}

/// Mean divergence of the policies, `one` to `other`, and mean difference of win minus loss.
fn distance(one: &Outputs, other: &Outputs) -> (f64, f64) {
    let mut sums = (0.0, 0.0);
    for index in 0..one.len() {
        let ((policy, wdl), (other_policy, other_wdl)) = (one.position(index), other.position(index));
        let pairs = softmax(policy).into_iter().zip(softmax(other_policy));
        let terms = pairs.map(|(p, q)| f64::from(p) * (f64::from(p) / f64::from(q)).ln());
        sums.0 += terms.sum::<f64>();
        let value = |wdl: &[f32; 3]| {
            let wdl = softmax(wdl);
            f64::from(wdl[0]) - f64::from(wdl[2])
        };
        sums.1 += (value(&wdl) - value(&other_wdl)).abs();
    }
    let n = one.len() as f64;
    (sums.0 / n, sums.1 / n)
}

/// Planes of so many positions of random games, `[n, C, H, W]`.
struct RandomPlay {
    n: usize,
    seed: u64,
}

impl GameVisitor for RandomPlay {
    type Output = Vec<u8>;

    fn visit<G: Game>(self, game: G) -> Vec<u8> {
        let len = game.spec().planes_len();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let (mut state, mut legal, mut planes) = (game.start(), Vec::new(), vec![0; self.n * len]);
        for position in planes.chunks_exact_mut(len) {
            state.planes(position);
            // A few plies on, so that openings are not all there is.
            for _ in 0..rng.random_range(1..5) {
                state.playable(&mut legal);
                let action = legal[rng.random_range(0..legal.len())];
                state.apply(action).expect("it is playable");
                if state.outcome().is_some() {
                    state = game.start();
                }
            }
        }
        planes
    }
}

#[test]
fn every_registered_game_has_networks_in_reduced_precisions_that_answer_like_the_fp32_one() {
    for name in registry::names() {
        let game = AnyGame::parse(name).expect("a registered name");
        let shape = Shape::new(game.spec(), &config(2, 16)).expect("the game has a network");
        let weights = lively_weights(&shape, 5);
        let calibration = game.visit(RandomPlay { n: 6, seed: 1 });
        let planes = game.visit(RandomPlay { n: 16, seed: 2 });
        let fp32 = run(&model(&shape, &weights), &shape, &planes);

        let reduced = run(&int8(&shape, &weights, &calibration), &shape, &planes);
        let (divergence, value_error) = distance(&fp32, &reduced);
        assert!(divergence > 0.0, "{name}: nothing was rounded");
        assert!(divergence <= DIVERGENCE_MAX, "{name}: {divergence} nats");
        assert!(value_error <= VALUE_ERROR_MAX, "{name}: {value_error}");
        // The bounds tell networks apart: another one is far outside of them.
        let other = run(&model(&shape, &lively_weights(&shape, 6)), &shape, &planes);
        let (divergence, _) = distance(&fp32, &other);
        assert!(
            divergence > 2.0 * DIVERGENCE_MAX,
            "{name}: another network is {divergence} nats away"
        );

        let halved = run(&fp16(&shape, &weights), &shape, &planes);
        for index in 0..fp32.len() {
            let (expected, actual) = (fp32.position(index).0, halved.position(index).0);
            for (expected, actual) in softmax(expected).into_iter().zip(softmax(actual)) {
                let difference = (expected - actual).abs();
                assert!(difference <= FP16_DIFFERENCE_MAX, "{name}: {difference}");
            }
        }
    }
}

#[test]
fn files_in_reduced_precisions_keep_the_network_contract_in_every_shape() {
    for (seed, shape) in shapes().into_iter().enumerate() {
        let weights = lively_weights(&shape, seed as u64);
        let planes: Vec<u8> = positions(&shape, 5, 3).into_iter().map(|byte| byte.min(1)).collect();
        for file in [int8(&shape, &weights, &planes), fp16(&shape, &weights)] {
            assert_eq!(session(&file, 4).signature(), Signature::from(&shape));
            let outputs = run(&file, &shape, &planes);
            assert_eq!(
                (outputs.policy.len(), outputs.len()),
                (5 * shape.actions(), 5),
                "{}",
                shape.describe()
            );
        }
    }
}

#[test]
fn an_int8_file_answers_alike_however_it_is_run_and_one_whose_values_are_cut_off_does_not() {
    let shape = columns(&config(2, 16));
    let weights = lively_weights(&shape, 7);
    let planes: Vec<u8> = positions(&shape, 12, 7).into_iter().map(|byte| byte.min(1)).collect();
    let question = |planes: &[u8]| Probe {
        planes: planes.to_vec(),
        policy: Vec::new(),
        wdl: [0.0; 3],
    };
    let questions: Vec<Probe> = planes.chunks(shape.planes_len()).map(question).collect();
    let file = int8(&shape, &weights, &planes);
    let own = answered(&mut session(&file, 12), &questions).expect("the batch runs");
    for optimisations in [
        Optimisations::None,
        Optimisations::Basic,
        Optimisations::Extended,
        Optimisations::All,
    ] {
        let mut other = Session::load_with(&file, &options(1), optimisations).expect("it loads");
        let difference = run_probes(&mut other, &own, REPRODUCTION_TOLERANCE);
        assert!(difference.is_ok(), "{optimisations:?}: {difference:?}");
    }

    let (seen, mut narrow) = (ranges(&shape, &weights, &planes), ActivationRanges::new());
    for activation in shape.activations() {
        let ActivationRange { min, max } = seen.get(activation).expect("it was seen");
        let (min, max) = (0.05 * min, 0.05 * max);
        narrow.include(activation, ActivationRange { min, max });
    }
    let cut = write_onnx_int8(&shape, &weights, &narrow, &metadata(&shape, &weights, Precision::Int8));
    let mut cut = session(&cut.expect("an int8 file"), 12);
    let refused = run_probes(&mut cut, &own, REPRODUCTION_TOLERANCE);
    assert!(
        matches!(refused, Err(InferenceError::ProbeDiffers { .. })),
        "{refused:?}"
    );
}

/// CPUs without VNNI add pairs of products in 16 bits. With weights of 8 bits these sums would be cut off there: the logits
/// would be wrong by more than half of their size.
#[test]
fn the_greatest_bytes_times_the_greatest_weights_do_not_saturate() {
    let shape = columns(&config(1, 16));
    let mut weights = lively_weights(&shape, 3);
    for layer in shape.layers().iter().filter(|layer| layer.in_tower()) {
        let mean = 1.0 / layer.fan_in() as f32;
        weights
            .get_mut(&layer.weight_name())
            .expect("it is there")
            .data_mut()
            .fill(mean);
        weights
            .get_mut(&layer.bias_name())
            .expect("it is there")
            .data_mut()
            .fill(0.0);
    }
    let planes = vec![1; 4 * shape.planes_len()];
    let fp32 = run(&model(&shape, &weights), &shape, &planes);
    let reduced = run(&int8(&shape, &weights, &planes), &shape, &planes);
    let pairs = fp32
        .policy
        .iter()
        .zip(&reduced.policy)
        .chain(fp32.wdl.iter().zip(&reduced.wdl));
    for (expected, actual) in pairs {
        assert!((expected - actual).abs() < 0.05, "{actual} for {expected}");
    }
}
