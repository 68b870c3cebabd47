//! The ONNX file format: writing a network as a graph, reading metadata and weights back.
//!
//! The types of the format are compiled from the ONNX project's own `onnx.proto`. Nothing here runs a graph.

mod floats;
mod graph;
mod heads;
mod int8;
mod operators;
mod read;
#[cfg(test)]
mod tests;
mod tower;
mod write;

pub use read::{ReadError, read_metadata, read_weights};
pub use write::{WriteError, write_onnx, write_onnx_as_stated, write_onnx_fp16, write_onnx_int8};

/// Name of the graph's input: `u8 [N, C, H, W]`.
pub const INPUT_NAME: &str = "planes";
/// Name of the output with the policy logits: `f32 [N, A]`.
pub const POLICY_NAME: &str = "policy";
/// Name of the output with the logits of win, draw and loss of the acting seat: `f32 [N, 3]`.
pub const WDL_NAME: &str = "wdl";
/// Name of the constant with the plane scales: `[C, 1, 1]`. In 32-bit files the one initialiser that is no weight.
const SCALE_NAME: &str = "scale";

/// The messages of `proto/onnx.proto`.
#[allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::all,
    reason = "generated from onnx.proto"
)]
mod proto {
    include!(concat!(env!("OUT_DIR"), "/onnx.rs"));
}
