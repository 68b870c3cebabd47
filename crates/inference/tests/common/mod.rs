//! What the tests of sessions share: small games by hand, weights that exercise every tensor, random positions.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod reduced;
pub(crate) mod reference;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{ActionBlock, ActionLayout, OpeningRule, Plane, Spec};
use tengen_inference::{Device, Session, SessionOptions};
use tengen_network::{Config, Metadata, Shape, Weights, random_weights, write_onnx};

/// A spec with planes of these scales; only what the network depends on is real.
fn spec(id: &str, rows: usize, cols: usize, scales: &[f32], blocks: &[ActionBlock]) -> Spec {
    Spec {
        id: id.to_owned(),
        rows,
        cols,
        planes: scales
            .iter()
            .map(|scale| Plane {
                name: "test",
                scale: *scale,
            })
            .collect(),
        actions: ActionLayout::new(blocks.to_vec(), rows, cols),
        symmetries: Vec::new(),
        opening: OpeningRule::None,
        plies_max: rows * cols,
    }
}

pub(crate) fn config(blocks: usize, channels: usize) -> Config {
    Config {
        blocks,
        channels,
        value_channels: 8,
        value_hidden: 16,
    }
}

/// Connect Four's sizes.
pub(crate) fn columns(config: &Config) -> Shape {
    Shape::new(&spec("columns", 6, 7, &[1.0; 3], &[ActionBlock::Columns]), config).expect("a valid shape")
}

/// One shape for every way in which action blocks and boards can differ.
pub(crate) fn shapes() -> Vec<Shape> {
    use ActionBlock::{Cells, Columns, Global, Triangle};
    let thirteen = [1.0, 1.0, 1.0, 1.0, 0.5, 1.0, 0.0625, 1.0, 1.0, 1.0, 1.0, 0.01, 1.0];
    let specs = [
        spec("cells", 3, 3, &[1.0; 2], &[Cells { planes: 1 }]),
        spec("columns", 6, 7, &[1.0; 3], &[Columns]),
        spec(
            "cells and global",
            9,
            5,
            &thirteen,
            &[Cells { planes: 1 }, Global { count: 5 }],
        ),
        spec(
            "everything",
            4,
            6,
            &[1.0, 0.25],
            &[Global { count: 2 }, Cells { planes: 3 }, Columns, Global { count: 1 }],
        ),
        spec("triangle", 6, 6, &[1.0, 0.1], &[Triangle, Global { count: 1 }]),
        spec("one cell", 1, 1, &[1.0], &[Global { count: 3 }]),
    ];
    let configs = [
        config(1, 4),
        config(2, 16),
        config(3, 8),
        config(2, 12),
        config(2, 8),
        config(1, 1),
    ];
    specs
        .iter()
        .zip(&configs)
        .map(|(spec, config)| Shape::new(spec, config).expect("a valid shape"))
        .collect()
}

/// Weights in which every tensor matters: biases are not zero and logits not small.
pub(crate) fn lively_weights(shape: &Shape, seed: u64) -> Weights {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut weights = random_weights(shape, seed);
    for layer in shape.layers() {
        let bias = weights.get_mut(&layer.bias_name()).expect("every layer has a bias");
        bias.data_mut().fill_with(|| rng.random_range(-0.5..0.5));
        if layer.name.starts_with("policy") || layer.name == "value.out" {
            let weight = weights.get_mut(&layer.weight_name()).expect("every layer has a weight");
            weight.data_mut().iter_mut().for_each(|value| *value *= 30.0);
        }
    }
    weights
}

pub(crate) fn model(shape: &Shape, weights: &Weights) -> Vec<u8> {
    write_onnx(shape, weights, &Metadata::of_shape(shape)).expect("weights fit the shape")
}

pub(crate) fn options(batch_max: usize) -> SessionOptions {
    SessionOptions {
        device: Device::Cpu,
        intra_threads: 1,
        batch_max,
    }
}

/// A session on the CPU.
pub(crate) fn session(model: &[u8], batch_max: usize) -> Session {
    tengen_inference::init(None).expect("ONNX Runtime is laid out");
    Session::load(model, &options(batch_max)).expect("the model loads")
}

/// `n` positions of sparse bytes, mostly small, some up to 255.
pub(crate) fn positions(shape: &Shape, n: usize, seed: u64) -> Vec<u8> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let byte = |rng: &mut Xoshiro256PlusPlus| match rng.random_range(0..20) {
        0..12 => 0,
        12..19 => 1,
        _ => rng.random_range(0..=255),
    };
    (0..n * shape.planes_len()).map(|_| byte(&mut rng)).collect()
}
