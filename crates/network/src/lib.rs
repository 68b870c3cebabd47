//! The network as data: its [`Shape`], its [`Weights`] in inference form, the ONNX files that carry them in one
//! [`Precision`] or another, and the seeded random network that every run starts from.
//!
//! The module [`architecture`] is the one description of what the network computes; the ONNX writer here, the
//! learner's training form and the tests' reference all follow it.
//!
//! **This crate names neither a training nor an inference library**, runs no network and does no IO: files are byte
//! vectors.

mod activation;
pub mod architecture;
mod batch_norm;
mod metadata;
mod onnx;
mod quantisation;
mod random;
mod shape;
mod weights;

pub use activation::{Activation, ActivationRange, ActivationRanges, RangeError};
pub use architecture::{Layer, LayerKind, Role};
pub use batch_norm::{BATCH_NORM_EPSILON, BatchNorm, FoldError, fold_batch_norm};
pub use metadata::{FP32_MODEL, Metadata, MetadataError, Precision};
pub use onnx::{
    INPUT_NAME, POLICY_NAME, ReadError, WDL_NAME, WriteError, read_metadata, read_weights, write_onnx,
    write_onnx_as_stated, write_onnx_fp16, write_onnx_int8,
};
pub use random::random_weights;
pub use shape::{Config, Shape, ShapeError};
pub use weights::{Tensor, Weights, WeightsError};

/// The id of a model: the BLAKE3 hash of its file's bytes.
pub fn model_id(model: &[u8]) -> [u8; 32] {
    *blake3::hash(model).as_bytes()
}
