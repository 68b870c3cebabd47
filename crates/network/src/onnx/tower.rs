//! The tower: from the planes to what the heads read, in the arithmetic of a precision.

use std::collections::BTreeSet;

use super::graph::{Attribute, GraphBuilder};
use super::proto::tensor_proto::DataType;
use super::write::WriteError;
use super::{INPUT_NAME, SCALE_NAME};
use crate::activation::Activation;
use crate::architecture::Layer;
use crate::metadata::Precision;
use crate::shape::Shape;
use crate::weights::{Tensor, Weights, WeightsError};

/// Height and width of every kernel in the tower.
pub(super) const KERNEL: i64 = 3;

/// How a tower computes: what becomes of its weights, of a convolution, and of a value between two layers.
pub(super) trait Arithmetic {
    /// A value of the tower: the name under which the next layers read it, and what else they must know of it.
    type Value: AsRef<str>;

    /// The precision of the files written with it.
    fn precision(&self) -> Precision;

    /// The floats that the planes are turned into.
    fn floats(&self) -> DataType;

    /// Adds the constants that are known before the first layer: the heads' weights and the plane scales at least.
    fn constants(&self, graph: &mut GraphBuilder, shape: &Shape, weights: &Weights) -> Result<(), WriteError>;

    /// The convolution `layer` over `input`. Returns the name of its result.
    fn conv(&self, graph: &mut GraphBuilder, layer: &str, input: &Self::Value) -> Result<String, WriteError>;

    /// What was `computed`, as later layers read it.
    fn value(
        &self,
        graph: &mut GraphBuilder,
        activation: Activation,
        computed: String,
    ) -> Result<Self::Value, WriteError>;

    /// The tower's output as 32-bit floats. Returns their name.
    fn for_heads(&self, graph: &mut GraphBuilder, tower: Self::Value) -> String;
}

/// Cast, scale, stem and blocks. Returns the name of the tower's output.
pub(super) fn tower<A: Arithmetic>(
    graph: &mut GraphBuilder,
    shape: &Shape,
    arithmetic: &A,
) -> Result<String, WriteError> {
    let floats = Attribute::Int("to", arithmetic.floats() as i64);
    let bytes = graph.node("Cast", "input.cast", &[INPUT_NAME], &[floats]);
    let scaled = graph.node("Mul", "input.scaled", &[&bytes, SCALE_NAME], &[]);
    let input = arithmetic.value(graph, Activation::Input, scaled)?;
    let mut tower = rectified(graph, arithmetic, Activation::Stem, &input)?;
    for block in 0..shape.blocks {
        let first = rectified(graph, arithmetic, Activation::BlockFirst(block), &tower)?;
        let second = Activation::BlockSecond(block);
        let conv = arithmetic.conv(graph, &second.to_string(), &first)?;
        let second = arithmetic.value(graph, second, conv)?;
        let name = format!("blocks.{block}");
        let terms = [second.as_ref(), tower.as_ref()];
        let sum = graph.node("Add", &format!("{name}.sum"), &terms, &[]);
        let sum = graph.relu(&name, &sum);
        tower = arithmetic.value(graph, Activation::Block(block), sum)?;
    }
    Ok(arithmetic.for_heads(graph, tower))
}

/// The layer that `activation` is named after, and its ReLU.
fn rectified<A: Arithmetic>(
    graph: &mut GraphBuilder,
    arithmetic: &A,
    activation: Activation,
    input: &A::Value,
) -> Result<A::Value, WriteError> {
    let layer = activation.to_string();
    let conv = arithmetic.conv(graph, &layer, input)?;
    let computed = graph.relu(&layer, &conv);
    arithmetic.value(graph, activation, computed)
}

/// The names of the tower's weights and biases.
pub(super) fn tensors(shape: &Shape) -> BTreeSet<String> {
    shape
        .layers()
        .iter()
        .filter(|layer| layer.in_tower())
        .flat_map(|layer: &Layer| [layer.weight_name(), layer.bias_name()])
        .collect()
}

/// What the planes are multiplied by, `[C, 1, 1]`.
pub(super) fn plane_scales(shape: &Shape) -> Result<Tensor, WeightsError> {
    Tensor::new(vec![shape.planes, 1, 1], shape.plane_scales.clone())
}
