//! Two sessions held against each other, in what they say and in how fast they are, over the real ONNX Runtime.

mod common;

use common::{columns, config, lively_weights, model, positions, session};
use tengen_inference::{InferenceError, batch_times, compare_precisions};
use tengen_network::random_weights;

/// Positions compared.
const N: usize = 12;

#[test]
fn a_network_is_no_distance_from_itself_and_far_from_another() {
    let shape = columns(&config(2, 8));
    let planes = positions(&shape, N, 3);
    let one = model(&shape, &lively_weights(&shape, 1));
    // Batches of another size pad otherwise and may round otherwise.
    let same = compare_precisions(&mut session(&one, 5), &mut session(&one, 16), &planes, N).expect("both run");
    assert!(same.is_faithful() && same.positions as usize == N, "{same}");
    assert!(same.policy_kl < 1e-6 && same.value_error < 1e-3, "{same}");
    let other = model(&shape, &lively_weights(&shape, 2));
    let apart = compare_precisions(&mut session(&one, 5), &mut session(&other, 5), &planes, N).expect("both run");
    assert!(!apart.is_faithful(), "{apart}");
}

#[test]
fn policies_and_values_are_told_apart() {
    let shape = columns(&config(2, 8));
    let planes = positions(&shape, N, 4);
    let mut weights = random_weights(&shape, 5);
    // Undecided everywhere, so that the bias alone speaks.
    let undecided = weights.get_mut("value.out.weight").expect("it is there");
    undecided.data_mut().fill(0.0);
    let mut sure_of_winning = weights.clone();
    let bias = sure_of_winning.get_mut("value.out.bias").expect("it is there");
    bias.data_mut()[0] += 2.0;
    let mut whole = session(&model(&shape, &weights), 8);
    let found = compare_precisions(
        &mut whole,
        &mut session(&model(&shape, &sure_of_winning), 8),
        &planes,
        N,
    );
    let found = found.expect("both run");
    assert!(found.policy_kl < 1e-6 && found.value_error > 0.05, "{found}");
    assert!(!found.is_faithful());
}

#[test]
fn sessions_of_other_sizes_are_not_compared() {
    let (small, large) = (columns(&config(1, 4)), &common::shapes()[0]);
    let mut one = session(&model(&small, &lively_weights(&small, 1)), 4);
    let mut other = session(&model(large, &lively_weights(large, 1)), 4);
    let refused = compare_precisions(&mut one, &mut other, &positions(&small, 1, 1), 1);
    assert!(matches!(refused, Err(InferenceError::Signature { .. })), "{refused:?}");
}

#[test]
fn the_smaller_of_two_networks_is_the_faster_one() {
    let (small, large) = (columns(&config(1, 4)), columns(&config(6, 96)));
    let planes = positions(&small, 3, 6);
    let mut quick = session(&model(&small, &random_weights(&small, 7)), 16);
    let mut slow = session(&model(&large, &random_weights(&large, 7)), 16);
    // A thousand times the work: no other load turns that round.
    let [quick_time, slow_time] = batch_times([&mut quick, &mut slow], &planes, 16).expect("both run");
    assert!(quick_time < slow_time, "{quick_time:?} and {slow_time:?}");
    let nothing = batch_times([&mut quick, &mut slow], &[], 16);
    assert!(matches!(nothing, Err(InferenceError::PlanesLen { .. })), "{nothing:?}");
}
