//! The tower in 8-bit integers, in the form that quantising runtimes look for: floats throughout, with a
//! `QuantizeLinear` and a `DequantizeLinear` wherever a value becomes bytes.
//!
//! ONNX Runtime fuses these into `QLinearConv` and `QLinearAdd` over bytes. For that every convolution stands between
//! values in bytes: the scaled planes, what follows each ReLU (whose zero is byte 0, so that the step to bytes cuts off
//! what is negative, and the ReLU falls away), and the second convolution of a block, whose sign is kept until the
//! addition. Weights are signed with one scale for each output channel, biases are 32-bit integers in the scale of the
//! products; both have their zero at 0, which is what a missing zero point means.

use super::SCALE_NAME;
use super::graph::{Attribute, Elements, GraphBuilder};
use super::proto::tensor_proto::DataType;
use super::tower::{Arithmetic, KERNEL, plane_scales, tensors};
use super::write::WriteError;
use crate::activation::{Activation, ActivationRanges};
use crate::metadata::Precision;
use crate::quantisation::{Affine, IntegerConv};
use crate::shape::Shape;
use crate::weights::{Weights, WeightsError};

/// Integers: activations in the steps of their ranges.
pub(super) struct Integers<'a> {
    /// The network.
    pub(super) weights: &'a Weights,
    /// What its activations were seen to be.
    pub(super) ranges: &'a ActivationRanges,
}

/// A value that was in bytes: the name of its floats, and what they were in bytes.
pub(super) struct Stepped {
    name: String,
    bytes: Affine,
}

impl AsRef<str> for Stepped {
    fn as_ref(&self) -> &str {
        &self.name
    }
}

impl Arithmetic for Integers<'_> {
    type Value = Stepped;

    fn precision(&self) -> Precision {
        Precision::Int8
    }

    fn floats(&self) -> DataType {
        DataType::Float
    }

    /// Without the tower's weights: their integers depend on what a convolution reads.
    fn constants(&self, graph: &mut GraphBuilder, shape: &Shape, weights: &Weights) -> Result<(), WriteError> {
        let of_tower = tensors(shape);
        for (name, tensor) in weights.iter().filter(|(name, _)| !of_tower.contains(*name)) {
            graph.floats(name, tensor);
        }
        graph.floats(SCALE_NAME, &plane_scales(shape)?);
        Ok(())
    }

    fn conv(&self, graph: &mut GraphBuilder, layer: &str, input: &Stepped) -> Result<String, WriteError> {
        let tensor = |name: String| self.weights.get(&name).ok_or(WeightsError::Missing { name });
        let (weight, bias) = (format!("{layer}.weight"), format!("{layer}.bias"));
        let (weights, biases) = (tensor(weight.clone())?, tensor(bias.clone())?);
        let integers = IntegerConv::new(weights, biases, input.bytes);

        graph.constant(&weight, weights.shape(), &Elements::I8(&integers.weight));
        graph.constant(&bias, biases.shape(), &Elements::I32(&integers.bias));
        let weight = by_channel(graph, &weight, &integers.weight_scales);
        let bias = by_channel(graph, &bias, &integers.bias_scales);
        Ok(graph.conv(layer, [&input.name, &weight, &bias], KERNEL))
    }

    fn value(&self, graph: &mut GraphBuilder, activation: Activation, computed: String) -> Result<Stepped, WriteError> {
        let bytes = self.ranges.affine(activation)?;
        let (scale, zero) = (format!("{activation}.scale"), format!("{activation}.zero"));
        graph.constant(&scale, &[], &Elements::F32(&[bytes.scale]));
        graph.constant(&zero, &[], &Elements::U8(&[bytes.zero]));
        let quantised = format!("{activation}.quantised");
        let quantised = graph.node("QuantizeLinear", &quantised, &[&computed, &scale, &zero], &[]);
        let name = format!("{activation}.dequantised");
        Ok(Stepped {
            name: graph.node("DequantizeLinear", &name, &[&quantised, &scale, &zero], &[]),
            bytes,
        })
    }

    fn for_heads(&self, _: &mut GraphBuilder, tower: Stepped) -> String {
        tower.name
    }
}

/// The integers of the constant `name` as floats, with one scale for each of the first dimension.
fn by_channel(graph: &mut GraphBuilder, name: &str, scales: &[f32]) -> String {
    let scale = format!("{name}.scale");
    graph.constant(&scale, &[scales.len()], &Elements::F32(scales));
    let axis = [Attribute::Int("axis", 0)];
    graph.node(
        "DequantizeLinear",
        &format!("{name}.dequantised"),
        &[name, &scale],
        &axis,
    )
}
