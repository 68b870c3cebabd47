//! Writing a network as an ONNX file: the graph of [`architecture`](crate::architecture) in standard operators.
//!
//! The same shape, weights and metadata always give the same bytes.

use prost::Message;
use tengen_games::{ActionBlock, triangle_cells};

use super::graph::{Attribute, GraphBuilder};
use super::proto::tensor_proto::DataType;
use super::proto::{ModelProto, OperatorSetIdProto, StringStringEntryProto};
use super::{INPUT_NAME, POLICY_NAME, SCALE_NAME, WDL_NAME};
use crate::metadata::{Metadata, MetadataError};
use crate::shape::Shape;
use crate::weights::{Tensor, Weights, WeightsError};

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
}

/// The ONNX file of this network: input `planes` u8 `[N, C, H, W]`, outputs `policy` f32 `[N, A]` and `wdl` f32
/// `[N, 3]`, dynamic `N`, with `metadata` as properties.
pub fn write_onnx(shape: &Shape, weights: &Weights, metadata: &Metadata) -> Result<Vec<u8>, WriteError> {
    weights.check(shape)?;
    metadata.check(shape)?;

    let mut writer = Writer {
        graph: GraphBuilder::new("tengen"),
        shape,
    };
    writer.constants(weights)?;
    let tower = writer.tower();
    writer.policy(&tower);
    writer.value(&tower);

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
        graph: Some(writer.graph.finish()),
        metadata_props: metadata.properties().into_iter().map(property).collect(),
        ..ModelProto::default()
    };
    Ok(model.encode_to_vec())
}

/// A graph under construction and the shape it follows.
struct Writer<'a> {
    graph: GraphBuilder,
    shape: &'a Shape,
}

impl Writer<'_> {
    /// Declares input and outputs and adds the weights, then the plane scales.
    fn constants(&mut self, weights: &Weights) -> Result<(), WeightsError> {
        let shape = self.shape;
        self.graph
            .input(INPUT_NAME, DataType::Uint8, &[shape.planes, shape.rows, shape.cols]);
        self.graph.output(POLICY_NAME, DataType::Float, &[shape.actions()]);
        self.graph.output(WDL_NAME, DataType::Float, &[3]);
        for (name, tensor) in weights.iter() {
            self.graph.initializer(name, tensor);
        }
        let scales = Tensor::new(vec![shape.planes, 1, 1], shape.plane_scales.clone())?;
        self.graph.initializer(SCALE_NAME, &scales);
        Ok(())
    }

    /// Cast, scale, stem and blocks. Returns the name of the tower's output.
    fn tower(&mut self) -> String {
        let float = Attribute::Int("to", DataType::Float as i64);
        let bytes = self.graph.node("Cast", "input.cast", &[INPUT_NAME], &[float]);
        let input = self.graph.node("Mul", "input.scaled", &[&bytes, SCALE_NAME], &[]);
        let stem = self.conv("stem", &input, 3);
        let mut tower = self.relu("stem", &stem);
        for block in 0..self.shape.blocks {
            let first = self.conv(&format!("blocks.{block}.conv1"), &tower, 3);
            let first = self.relu(&format!("blocks.{block}.conv1"), &first);
            let second = self.conv(&format!("blocks.{block}.conv2"), &first, 3);
            let sum = self
                .graph
                .node("Add", &format!("blocks.{block}.sum"), &[&second, &tower], &[]);
            tower = self.relu(&format!("blocks.{block}"), &sum);
        }
        tower
    }

    /// The policy parts in the order of the action blocks, joined as the output `policy`.
    fn policy(&mut self, tower: &str) {
        let mut parts = Vec::new();
        for (index, block) in self.shape.action_blocks.iter().enumerate() {
            let name = format!("policy.{index}");
            let part = match block {
                ActionBlock::Cells { .. } => {
                    let maps = self.conv(&name, tower, 1);
                    self.flatten(&name, &maps)
                }
                ActionBlock::Columns => {
                    let map = self.conv(&name, tower, 1);
                    // Over the single map and the rows: [N, 1, H, W] to [N, W].
                    let axes = [Attribute::Ints("axes", &[1, 2]), Attribute::Int("keepdims", 0)];
                    self.graph.node("ReduceMean", &format!("{name}.mean"), &[&map], &axes)
                }
                ActionBlock::Triangle => {
                    let map = self.conv(&name, tower, 1);
                    let flat = self.flatten(&name, &map);
                    let cells: Vec<i64> = triangle_cells(self.shape.rows).map(|cell| cell as i64).collect();
                    let values = [Attribute::Ints("value_ints", &cells)];
                    let cells = self.graph.node("Constant", &format!("{name}.cells"), &[], &values);
                    let axis = [Attribute::Int("axis", 1)];
                    self.graph
                        .node("Gather", &format!("{name}.triangle"), &[&flat, &cells], &axis)
                }
                ActionBlock::Global { .. } => {
                    let pooled = self.pool(&name, tower);
                    self.linear(&name, &format!("{name}.gemm"), &pooled)
                }
            };
            parts.push(part);
        }
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        self.graph
            .node("Concat", POLICY_NAME, &parts, &[Attribute::Int("axis", 1)]);
    }

    /// The value head, ending in the output `wdl`.
    fn value(&mut self, tower: &str) {
        let maps = self.conv("value.conv", tower, 1);
        let maps = self.relu("value.conv", &maps);
        let pooled = self.pool("value", &maps);
        let hidden = self.linear("value.hidden", "value.hidden.gemm", &pooled);
        let hidden = self.relu("value.hidden", &hidden);
        self.linear("value.out", WDL_NAME, &hidden);
    }

    fn conv(&mut self, name: &str, input: &str, kernel: i64) -> String {
        let pad = kernel / 2;
        let attributes = [
            Attribute::Ints("kernel_shape", &[kernel, kernel]),
            Attribute::Ints("pads", &[pad, pad, pad, pad]),
        ];
        let (weight, bias) = (format!("{name}.weight"), format!("{name}.bias"));
        self.graph
            .node("Conv", &format!("{name}.conv"), &[input, &weight, &bias], &attributes)
    }

    fn linear(&mut self, name: &str, output: &str, input: &str) -> String {
        let (weight, bias) = (format!("{name}.weight"), format!("{name}.bias"));
        // Weights are [out, in].
        self.graph
            .node("Gemm", output, &[input, &weight, &bias], &[Attribute::Int("transB", 1)])
    }

    fn relu(&mut self, name: &str, input: &str) -> String {
        self.graph.node("Relu", &format!("{name}.relu"), &[input], &[])
    }

    fn flatten(&mut self, name: &str, input: &str) -> String {
        self.graph.node(
            "Flatten",
            &format!("{name}.flat"),
            &[input],
            &[Attribute::Int("axis", 1)],
        )
    }

    /// Mean and max over the board, means first: `[N, X, H, W]` to `[N, 2 X]`.
    fn pool(&mut self, name: &str, input: &str) -> String {
        let mean = self
            .graph
            .node("GlobalAveragePool", &format!("{name}.mean"), &[input], &[]);
        let max = self.graph.node("GlobalMaxPool", &format!("{name}.max"), &[input], &[]);
        let both = self.graph.node(
            "Concat",
            &format!("{name}.pool"),
            &[&mean, &max],
            &[Attribute::Int("axis", 1)],
        );
        self.flatten(&format!("{name}.pool"), &both)
    }
}
