//! What the files of every precision hold, node by node.

use std::collections::BTreeMap;

use half::f16;
use prost::Message;
use tengen_games::ActionBlock;

use super::proto::tensor_proto::DataType;
use super::proto::{GraphProto, ModelProto, NodeProto, TensorProto};
use super::{SCALE_NAME, write_onnx, write_onnx_fp16, write_onnx_int8};
use crate::activation::{ActivationRange, ActivationRanges};
use crate::metadata::{Metadata, Precision};
use crate::random::random_weights;
use crate::shape::Shape;
use crate::weights::Weights;

fn shape() -> Shape {
    Shape {
        blocks: 2,
        channels: 8,
        value_channels: 4,
        value_hidden: 6,
        planes: 3,
        rows: 5,
        cols: 4,
        plane_scales: vec![1.0, 0.5, 0.1],
        action_blocks: vec![ActionBlock::Cells { planes: 2 }, ActionBlock::Global { count: 3 }],
    }
}

/// Random weights with biases.
fn weights() -> Weights {
    let mut weights = random_weights(&shape(), 7);
    for layer in shape().layers() {
        let bias = weights.get_mut(&layer.bias_name()).expect("every layer has a bias");
        bias.data_mut()
            .iter_mut()
            .zip(1..)
            .for_each(|(bias, index)| *bias = 0.1 * index as f32);
    }
    weights
}

fn ranges() -> ActivationRanges {
    let mut ranges = ActivationRanges::new();
    for (activation, size) in shape().activations().zip(1..) {
        let max = size as f32;
        let min = if activation.is_signed() { -0.5 * max } else { 0.0 };
        ranges.include(activation, ActivationRange { min, max });
    }
    ranges
}

fn metadata(precision: Precision) -> Metadata {
    Metadata::of_shape(&shape()).in_precision(precision, [0xab; 32])
}

/// A written graph, its constants and nodes by name.
struct Graph {
    proto: GraphProto,
    constants: BTreeMap<String, TensorProto>,
    nodes: BTreeMap<String, NodeProto>,
}

impl Graph {
    fn of(file: &[u8]) -> Graph {
        let proto = ModelProto::decode(file).expect("a model").graph.expect("a graph");
        let constants = proto
            .initializer
            .iter()
            .map(|tensor| (tensor.name.clone().unwrap_or_default(), tensor.clone()));
        let nodes = proto
            .node
            .iter()
            .map(|node| (node.name.clone().unwrap_or_default(), node.clone()));
        Graph {
            constants: constants.collect(),
            nodes: nodes.collect(),
            proto,
        }
    }

    fn int8() -> Graph {
        Graph::of(&write_onnx_int8(&shape(), &weights(), &ranges(), &metadata(Precision::Int8)).expect("a file"))
    }

    fn fp16() -> Graph {
        Graph::of(&write_onnx_fp16(&shape(), &weights(), &metadata(Precision::Fp16)).expect("a file"))
    }

    fn kind(&self, constant: &str) -> Option<i32> {
        self.constants[constant].data_type
    }

    fn bytes(&self, constant: &str) -> &[u8] {
        self.constants[constant]
            .raw_data
            .as_deref()
            .expect("constants are raw data")
    }

    fn floats(&self, constant: &str) -> Vec<f32> {
        assert_eq!(self.kind(constant), Some(DataType::Float as i32), "{constant}");
        let (words, _) = self.bytes(constant).as_chunks::<4>();
        words.iter().map(|word| f32::from_le_bytes(*word)).collect()
    }

    fn op(&self, node: &str) -> &str {
        self.nodes[node].op_type.as_deref().expect("nodes have operators")
    }

    /// The node that computes input `index` of `node`, and its operator.
    fn before(&self, node: &str, index: usize) -> (&str, &str) {
        let name = &self.nodes[node].input[index];
        (name.as_str(), self.op(name))
    }

    fn count(&self, op: &str) -> usize {
        self.nodes.keys().filter(|name| self.op(name) == op).count()
    }
}

/// The tower's layers, each with the activation that it reads.
const TOWER: [(&str, &str); 5] = [
    ("stem", "input"),
    ("blocks.0.conv1", "stem"),
    ("blocks.0.conv2", "blocks.0.conv1"),
    ("blocks.1.conv1", "blocks.0"),
    ("blocks.1.conv2", "blocks.1.conv1"),
];

/// The layers of the heads that read the tower, and the node that does it.
const HEADS: [&str; 4] = ["policy.0.conv", "policy.1.mean", "policy.1.max", "value.conv.conv"];

#[test]
fn every_convolution_of_an_int8_tower_stands_between_bytes() {
    let graph = Graph::int8();
    for (layer, input) in TOWER {
        let conv = format!("{layer}.conv");
        let dequantised = format!("{input}.dequantised");
        assert_eq!(graph.before(&conv, 0), (dequantised.as_str(), "DequantizeLinear"));
        assert_eq!(graph.before(&dequantised, 0).1, "QuantizeLinear");
        for (index, part) in [(1, "weight"), (2, "bias")] {
            let name = format!("{layer}.{part}");
            assert_eq!(graph.before(&conv, index).1, "DequantizeLinear");
            assert_eq!(
                graph.nodes[&format!("{name}.dequantised")].input,
                [name.clone(), format!("{name}.scale")]
            );
        }
        // What follows it is turned into bytes, at once or behind a ReLU or an addition.
        let after = graph
            .nodes
            .values()
            .find(|node| node.input.first() == Some(&conv))
            .expect("it is used");
        let after = after.op_type.as_deref();
        assert_eq!(
            after,
            Some(if layer.ends_with("conv2") {
                "QuantizeLinear"
            } else {
                "Relu"
            }),
            "{layer}"
        );
    }
    for block in 0..2 {
        let sum = format!("blocks.{block}.sum");
        assert_eq!([0, 1].map(|index| graph.before(&sum, index).1), ["DequantizeLinear"; 2]);
        assert_eq!(graph.before(&format!("blocks.{block}.relu"), 0), (sum.as_str(), "Add"));
        assert_eq!(graph.before(&format!("blocks.{block}.quantised"), 0).1, "Relu");
    }
    // An activation each, and two constants a layer.
    assert_eq!(
        (graph.count("QuantizeLinear"), graph.count("DequantizeLinear")),
        (8, 8 + 2 * 5)
    );
}

#[test]
fn only_what_has_a_sign_has_its_zero_elsewhere_than_at_byte_0() {
    let graph = Graph::int8();
    for (activation, size) in shape().activations().zip(1..) {
        let zero = graph.bytes(&format!("{activation}.zero"));
        assert_eq!(zero, [if activation.is_signed() { 85 } else { 0 }], "{activation}");
        let width = size as f32 * if activation.is_signed() { 1.5 } else { 1.0 };
        let scale = graph.floats(&format!("{activation}.scale"))[0];
        assert!((scale - width / 255.0).abs() < 1e-6 * width, "{activation}: {scale}");
        for constant in ["zero", "scale"] {
            assert!(graph.constants[&format!("{activation}.{constant}")].dims.is_empty());
        }
    }
}

#[test]
fn weights_are_seven_bits_in_the_scale_of_their_channel_and_biases_in_that_of_the_products() {
    let (graph, weights) = (Graph::int8(), weights());
    for (layer, input) in TOWER {
        let name = format!("{layer}.weight");
        let floats = weights.get(&name).expect("it is there");
        assert_eq!(graph.kind(&name), Some(DataType::Int8 as i32));
        let dims: Vec<i64> = floats.shape().iter().map(|dim| *dim as i64).collect();
        assert_eq!(graph.constants[&name].dims, dims);
        let scales = graph.floats(&format!("{name}.scale"));
        assert_eq!(scales.len(), 8);
        let per_channel = floats.data().len() / 8;
        for (index, (&byte, &float)) in graph.bytes(&name).iter().zip(floats.data()).enumerate() {
            let (integer, scale) = (i8::from_le_bytes([byte]), scales[index / per_channel]);
            assert!((-64..=63).contains(&integer), "{layer}: {integer}");
            assert!(
                (scale * f32::from(integer) - float).abs() <= 0.501 * scale,
                "{layer}: {integer} for {float}"
            );
        }

        let name = format!("{layer}.bias");
        assert_eq!(graph.kind(&name), Some(DataType::Int32 as i32));
        let input_scale = graph.floats(&format!("{input}.scale"))[0];
        let products: Vec<f32> = scales.iter().map(|scale| input_scale * scale).collect();
        assert_eq!(graph.floats(&format!("{name}.scale")), products);
        let (words, _) = graph.bytes(&name).as_chunks::<4>();
        let biases = weights.get(&name).expect("it is there").data();
        for ((word, scale), bias) in words.iter().zip(products).zip(biases) {
            assert!(
                (scale * i32::from_le_bytes(*word) as f32 - bias).abs() < 1e-3,
                "{layer}"
            );
        }
    }
}

#[test]
fn the_heads_are_the_same_floats_in_every_precision() {
    let fp32 = write_onnx(&shape(), &weights(), &Metadata::of_shape(&shape())).expect("a file");
    let fp32 = Graph::of(&fp32);
    for (graph, tower) in [(Graph::int8(), "blocks.1.dequantised"), (Graph::fp16(), "tower")] {
        for node in HEADS {
            assert_eq!(graph.nodes[node].input[0], tower);
            assert_eq!(graph.nodes[node].input[1..], fp32.nodes[node].input[1..]);
        }
        let head = |name: &&String| name.starts_with("policy") || name.starts_with("value");
        let names: Vec<&String> = fp32.constants.keys().filter(head).collect();
        assert_eq!(names.len(), 2 * 5);
        for name in names {
            assert_eq!(graph.constants[name], fp32.constants[name], "{name}");
        }
        assert_eq!(
            (&graph.proto.input, &graph.proto.output),
            (&fp32.proto.input, &fp32.proto.output)
        );
    }
}

#[test]
fn an_fp16_tower_is_the_fp32_one_with_halves_for_floats() {
    let (graph, weights) = (Graph::fp16(), weights());
    let to = |node: &str| graph.nodes[node].attribute[0].i;
    assert_eq!(to("input.cast"), Some(DataType::Float16 as i64));
    assert_eq!(
        (graph.before("tower", 0).1, to("tower")),
        ("Relu", Some(DataType::Float as i64))
    );
    assert_eq!(graph.kind(SCALE_NAME), Some(DataType::Float16 as i32));
    for (layer, _) in TOWER {
        for name in [format!("{layer}.weight"), format!("{layer}.bias")] {
            assert_eq!(graph.kind(&name), Some(DataType::Float16 as i32));
            let (words, _) = graph.bytes(&name).as_chunks::<2>();
            let floats = weights.get(&name).expect("it is there").data();
            assert_eq!(words.len(), floats.len());
            for (word, float) in words.iter().zip(floats) {
                let half = f16::from_le_bytes(*word).to_f32();
                assert!(
                    (half - float).abs() <= float.abs() / 2048.0,
                    "{name}: {half} for {float}"
                );
            }
        }
    }
    assert_eq!(graph.count("QuantizeLinear"), 0);
}
