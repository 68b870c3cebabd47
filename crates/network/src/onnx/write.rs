//! Writing a network as an ONNX file: the graph of [`architecture`](crate::architecture) in standard operators, its tower
//! in the arithmetic of a precision.
//!
//! The same network, metadata and ranges always give the same bytes.

use prost::Message;

use super::floats::Floats;
use super::graph::GraphBuilder;
use super::int8::Integers;
use super::proto::tensor_proto::DataType;
use super::proto::{GraphProto, ModelProto, OperatorSetIdProto, StringStringEntryProto};
use super::tower::{Arithmetic, tower};
use super::{INPUT_NAME, POLICY_NAME, WDL_NAME, heads};
use crate::activation::{ActivationRanges, RangeError};
use crate::metadata::{Metadata, MetadataError, Precision};
use crate::shape::Shape;
use crate::weights::{Weights, WeightsError};

/// The format's version: the newest that every ONNX Runtime since 1.13 reads.
const IR_VERSION: i64 = 8;
/// The operators' version; `ReduceMean` still has its axes as an attribute in it.
const OPSET: i64 = 17;

/// Why a network cannot be written.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WriteError {
    /// The weights are not those of the shape.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The metadata speaks of another network.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The metadata speaks of another precision.
    #[error("the metadata says precision {stated}, and the file is in {written}")]
    Precision {
        /// What the metadata says.
        stated: Precision,
        /// What would be written.
        written: Precision,
    },
    /// The ranges are not those of the shape.
    #[error(transparent)]
    Ranges(#[from] RangeError),
    /// A weight beyond the greatest 16-bit float.
    #[error("element {index} of tensor {name} is {value}, which no 16-bit float can hold")]
    TooLarge {
        /// The tensor.
        name: String,
        /// Index in row-major order.
        index: usize,
        /// The element.
        value: f32,
    },
}

/// The ONNX file of this network in 32-bit floats: input `planes` u8 `[N, C, H, W]`, outputs `policy` f32 `[N, A]` and
/// `wdl` f32 `[N, 3]`, dynamic `N`, with `metadata` as properties.
pub fn write_onnx(shape: &Shape, weights: &Weights, metadata: &Metadata) -> Result<Vec<u8>, WriteError> {
    write(shape, weights, metadata, &Floats::Single)
}

/// The same with planes, weights and values of the tower in 16-bit floats, rounded to the nearest. The heads compute in
/// 32 bits.
pub fn write_onnx_fp16(shape: &Shape, weights: &Weights, metadata: &Metadata) -> Result<Vec<u8>, WriteError> {
    write(shape, weights, metadata, &Floats::Half)
}

/// The same with the convolutions of the tower in 8-bit integers, values between them in bytes that cover their
/// `ranges`. What lies beyond a range is cut off at its end. The heads compute in 32-bit floats.
///
/// **Weights use 7 of their 8 bits** (-64..=63), so that two products of a byte and a weight always fit into the 16 bits
/// in which CPUs without VNNI instructions add them: every CPU computes the same integer sums.
pub fn write_onnx_int8(
    shape: &Shape,
    weights: &Weights,
    ranges: &ActivationRanges,
    metadata: &Metadata,
) -> Result<Vec<u8>, WriteError> {
    ranges.check(shape)?;
    write(shape, weights, metadata, &Integers { weights, ranges })
}

/// The same in the precision that `metadata` states; `ranges` matter to int8 alone.
pub fn write_onnx_as_stated(
    shape: &Shape,
    weights: &Weights,
    ranges: &ActivationRanges,
    metadata: &Metadata,
) -> Result<Vec<u8>, WriteError> {
    match metadata.precision {
        Precision::Fp32 => write_onnx(shape, weights, metadata),
        Precision::Fp16 => write_onnx_fp16(shape, weights, metadata),
        Precision::Int8 => write_onnx_int8(shape, weights, ranges, metadata),
    }
}

fn write<A: Arithmetic>(
    shape: &Shape,
    weights: &Weights,
    metadata: &Metadata,
    arithmetic: &A,
) -> Result<Vec<u8>, WriteError> {
    weights.check(shape)?;
    metadata.check(shape)?;
    let (stated, written) = (metadata.precision, arithmetic.precision());
    if stated != written {
        return Err(WriteError::Precision { stated, written });
    }

    let mut graph = GraphBuilder::new("tengen");
    graph.input(INPUT_NAME, DataType::Uint8, &[shape.planes, shape.rows, shape.cols]);
    graph.output(POLICY_NAME, DataType::Float, &[shape.actions()]);
    graph.output(WDL_NAME, DataType::Float, &[3]);
    arithmetic.constants(&mut graph, shape, weights)?;
    let tower = tower(&mut graph, shape, arithmetic)?;
    heads::policy(&mut graph, shape, &tower);
    heads::value(&mut graph, &tower);
    Ok(file(graph.finish(), metadata))
}

/// The file's bytes.
fn file(graph: GraphProto, metadata: &Metadata) -> Vec<u8> {
    let property = |(key, value)| StringStringEntryProto {
        key: Some(key),
        value: Some(value),
    };
    let model = ModelProto {
        ir_version: Some(IR_VERSION),
        opset_import: vec![OperatorSetIdProto {
            domain: Some(String::new()),
            version: Some(OPSET),
        }],
        producer_name: Some("tengen".to_owned()),
        graph: Some(graph),
        metadata_props: metadata.properties().into_iter().map(property).collect(),
        ..ModelProto::default()
    };
    model.encode_to_vec()
}
