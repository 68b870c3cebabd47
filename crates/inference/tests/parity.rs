//! The written graph against an independent forward pass, and the probes that carry such a comparison along.

mod common;

use common::reference::forward;
use common::{columns, config, lively_weights, model, positions, session, shapes};
use tengen_inference::{InferenceError, Outputs, PARITY_TOLERANCE, Probe, run_probes, softmax};
use tengen_network::{Shape, Weights};

/// Greatest difference of a logit, relative to the greater of 1 and its size.
fn greatest_difference(shape: &Shape, weights: &Weights, planes: &[u8], n: usize) -> f64 {
    let mut outputs = Outputs::default();
    session(&model(shape, weights), n)
        .run(planes, n, &mut outputs)
        .expect("the batch runs");
    let mut greatest: f64 = 0.0;
    for (index, one) in planes.chunks(shape.planes_len()).enumerate() {
        let (policy, wdl) = forward(shape, weights, one);
        let (actual_policy, actual_wdl) = outputs.position(index);
        assert_eq!(policy.len(), actual_policy.len());
        let pairs = policy.iter().zip(actual_policy).chain(wdl.iter().zip(&actual_wdl));
        for (expected, actual) in pairs {
            greatest = greatest.max((expected - f64::from(*actual)).abs() / expected.abs().max(1.0));
        }
    }
    greatest
}

#[test]
fn the_graph_computes_the_documented_architecture() {
    for (seed, shape) in shapes().into_iter().enumerate() {
        let weights = lively_weights(&shape, seed as u64);
        let difference = greatest_difference(&shape, &weights, &positions(&shape, 5, seed as u64), 5);
        assert!(difference < 1e-4, "{}: {difference}", shape.describe());
    }
}

#[test]
fn every_tensor_of_the_file_takes_part() {
    let shape = shapes().swap_remove(3);
    let weights = lively_weights(&shape, 9);
    let planes = positions(&shape, 4, 9);
    let run = |weights: &Weights| {
        let mut outputs = Outputs::default();
        session(&model(&shape, weights), 4)
            .run(&planes, 4, &mut outputs)
            .expect("the batch runs");
        outputs
    };
    let before = run(&weights);
    for (name, _) in weights.iter() {
        let mut changed = weights.clone();
        changed
            .get_mut(name)
            .expect("it is there")
            .data_mut()
            .iter_mut()
            .for_each(|value| *value *= 1.5);
        assert_ne!(run(&changed), before, "{name} changes nothing");
    }
}

/// Probes that the reference computed.
fn probes(shape: &Shape, weights: &Weights, n: usize) -> Vec<Probe> {
    let single = |values: Vec<f64>| softmax(&values.iter().map(|value| *value as f32).collect::<Vec<f32>>());
    let probe = |planes: &[u8]| {
        let (policy, wdl) = forward(shape, weights, planes);
        let wdl = single(wdl);
        Probe {
            planes: planes.to_vec(),
            policy: single(policy),
            wdl: [wdl[0], wdl[1], wdl[2]],
        }
    };
    positions(shape, n, 5).chunks(shape.planes_len()).map(probe).collect()
}

#[test]
fn probes_of_the_same_network_pass_and_tell_their_difference() {
    for shape in shapes() {
        let weights = lively_weights(&shape, 6);
        let mut session = session(&model(&shape, &weights), 4);
        let difference = run_probes(&mut session, &probes(&shape, &weights, 9), PARITY_TOLERANCE).expect("parity");
        assert!(difference < 1e-4, "{}: {difference}", shape.describe());
    }
    let shape = columns(&config(1, 4));
    let mut session = session(&model(&shape, &lively_weights(&shape, 1)), 4);
    assert_eq!(run_probes(&mut session, &[], PARITY_TOLERANCE), Ok(0.0));
}

#[test]
fn probes_of_another_network_fail_naming_the_worst() {
    let shape = columns(&config(2, 8));
    let weights = lively_weights(&shape, 6);
    let mut session = session(&model(&shape, &weights), 4);

    let mut changed = probes(&shape, &weights, 5);
    changed[3].policy[0] += 0.25;
    let error = run_probes(&mut session, &changed, PARITY_TOLERANCE).expect_err("one probe is wrong");
    let InferenceError::ProbeDiffers {
        index: 3,
        difference,
        tolerance: PARITY_TOLERANCE,
    } = error
    else {
        panic!("{error}");
    };
    assert!((difference - 0.25).abs() < 1e-3, "{difference}");

    changed[2].wdl = [f32::NAN, 0.0, 1.0];
    let error = run_probes(&mut session, &changed, PARITY_TOLERANCE).expect_err("one probe is no number");
    assert!(
        matches!(error, InferenceError::ProbeDiffers { index: 2, .. }),
        "{error}"
    );

    changed[1].policy.pop();
    let error = run_probes(&mut session, &changed, PARITY_TOLERANCE);
    assert_eq!(
        error,
        Err(InferenceError::ProbeShape {
            index: 1,
            what: "policy",
            len: 6,
            expected: 7
        })
    );
}
