//! A small builder of ONNX graphs: nodes are added in order, each returning the name of its output.

use half::f16;

use super::proto::attribute_proto::AttributeType;
use super::proto::tensor_proto::DataType;
use super::proto::tensor_shape_proto::{Dimension, dimension};
use super::proto::{
    AttributeProto, GraphProto, NodeProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto, type_proto,
};
use crate::weights::Tensor;

/// The elements of a constant, in row-major order.
pub(super) enum Elements<'a> {
    /// 32-bit floats.
    F32(&'a [f32]),
    /// 16-bit floats.
    F16(&'a [f16]),
    /// Unsigned bytes.
    U8(&'a [u8]),
    /// Signed bytes.
    I8(&'a [i8]),
    /// 32-bit integers.
    I32(&'a [i32]),
}

impl Elements<'_> {
    fn kind(&self) -> DataType {
        match self {
            Elements::F32(_) => DataType::Float,
            Elements::F16(_) => DataType::Float16,
            Elements::U8(_) => DataType::Uint8,
            Elements::I8(_) => DataType::Int8,
            Elements::I32(_) => DataType::Int32,
        }
    }

    /// Little-endian, as the format defines its `raw_data`.
    fn bytes(&self) -> Vec<u8> {
        match self {
            Elements::F32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Elements::F16(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Elements::U8(values) => values.to_vec(),
            Elements::I8(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Elements::I32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        }
    }
}

/// An attribute of a node.
pub(super) enum Attribute<'a> {
    /// One integer.
    Int(&'static str, i64),
    /// A list of integers.
    Ints(&'static str, &'a [i64]),
}

/// A graph under construction.
#[derive(Default)]
pub(super) struct GraphBuilder(GraphProto);

impl GraphBuilder {
    /// An empty graph of this name.
    pub(super) fn new(name: &str) -> GraphBuilder {
        GraphBuilder(GraphProto {
            name: Some(name.to_owned()),
            ..GraphProto::default()
        })
    }

    /// Declares the graph's input with a dynamic first dimension `N`.
    pub(super) fn input(&mut self, name: &str, kind: DataType, dims: &[usize]) {
        self.0.input.push(value_info(name, kind, dims));
    }

    /// Declares a graph output with a dynamic first dimension `N`.
    pub(super) fn output(&mut self, name: &str, kind: DataType, dims: &[usize]) {
        self.0.output.push(value_info(name, kind, dims));
    }

    /// Adds a constant of this shape.
    pub(super) fn constant(&mut self, name: &str, shape: &[usize], elements: &Elements<'_>) {
        self.0.initializer.push(TensorProto {
            name: Some(name.to_owned()),
            dims: shape.iter().map(|dim| *dim as i64).collect(),
            data_type: Some(elements.kind() as i32),
            raw_data: Some(elements.bytes()),
            ..TensorProto::default()
        });
    }

    /// Adds a constant of 32-bit floats.
    pub(super) fn floats(&mut self, name: &str, tensor: &Tensor) {
        self.constant(name, tensor.shape(), &Elements::F32(tensor.data()));
    }

    /// Adds a node with one output, which bears the node's name, and returns that name.
    pub(super) fn node(&mut self, op: &str, name: &str, inputs: &[&str], attributes: &[Attribute<'_>]) -> String {
        self.0.node.push(NodeProto {
            name: Some(name.to_owned()),
            op_type: Some(op.to_owned()),
            input: inputs.iter().map(|input| (*input).to_owned()).collect(),
            output: vec![name.to_owned()],
            attribute: attributes.iter().map(attribute).collect(),
            ..NodeProto::default()
        });
        name.to_owned()
    }

    /// The finished graph.
    pub(super) fn finish(self) -> GraphProto {
        self.0
    }
}

fn attribute(attribute: &Attribute<'_>) -> AttributeProto {
    match attribute {
        Attribute::Int(name, value) => AttributeProto {
            name: Some((*name).to_owned()),
            r#type: Some(AttributeType::Int as i32),
            i: Some(*value),
            ..AttributeProto::default()
        },
        Attribute::Ints(name, values) => AttributeProto {
            name: Some((*name).to_owned()),
            r#type: Some(AttributeType::Ints as i32),
            ints: values.to_vec(),
            ..AttributeProto::default()
        },
    }
}

/// A tensor of the type and shape `[N, dims...]`.
fn value_info(name: &str, kind: DataType, dims: &[usize]) -> ValueInfoProto {
    let batch = dimension::Value::DimParam("N".to_owned());
    let fixed = dims.iter().map(|dim| dimension::Value::DimValue(*dim as i64));
    let dim = std::iter::once(batch)
        .chain(fixed)
        .map(|value| Dimension {
            value: Some(value),
            ..Dimension::default()
        })
        .collect();
    let tensor = type_proto::Tensor {
        elem_type: Some(kind as i32),
        shape: Some(TensorShapeProto { dim }),
    };
    ValueInfoProto {
        name: Some(name.to_owned()),
        r#type: Some(TypeProto {
            value: Some(type_proto::Value::TensorType(tensor)),
            ..TypeProto::default()
        }),
        ..ValueInfoProto::default()
    }
}
