//! Files of a network in reduced precisions, and how far apart answers are.

use tengen_network::{
    ActivationRange, ActivationRanges, Metadata, Precision, Shape, Weights, model_id, write_onnx_fp16, write_onnx_int8,
};

use super::model;
use super::reference::observed;

/// The network in int8, with the ranges that its activations have on these positions.
pub(crate) fn int8(shape: &Shape, weights: &Weights, calibration: &[u8]) -> Vec<u8> {
    let ranges = ranges(shape, weights, calibration);
    write_onnx_int8(shape, weights, &ranges, &metadata(shape, weights, Precision::Int8)).expect("an int8 file")
}

/// The network in fp16.
pub(crate) fn fp16(shape: &Shape, weights: &Weights) -> Vec<u8> {
    write_onnx_fp16(shape, weights, &metadata(shape, weights, Precision::Fp16)).expect("an fp16 file")
}

/// What a file of the network in this precision says of itself.
pub(crate) fn metadata(shape: &Shape, weights: &Weights, precision: Precision) -> Metadata {
    Metadata::of_shape(shape).in_precision(precision, model_id(&model(shape, weights)))
}

/// What the activations are on these positions, as the reference computes them.
pub(crate) fn ranges(shape: &Shape, weights: &Weights, planes: &[u8]) -> ActivationRanges {
    let mut ranges = ActivationRanges::new();
    for position in planes.chunks(shape.planes_len()) {
        observed(shape, weights, position, |activation, values| {
            let end =
                |choose: fn(f64, f64) -> f64| values.iter().copied().reduce(choose).expect("no board is empty") as f32;
            let seen = ActivationRange {
                min: end(f64::min),
                // A network of a single map may be all zero behind a ReLU.
                max: end(f64::max).max(1e-3),
            };
            ranges.include(activation, seen);
        });
    }
    ranges
}
