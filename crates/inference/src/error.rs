//! Everything that can fail between finding ONNX Runtime and reading a batch's outputs.

use std::path::PathBuf;

use crate::device::Device;
use crate::session::Signature;

/// Why there is no runtime, no session or no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InferenceError {
    /// ONNX Runtime's library is in none of the places it may be.
    #[error(
        "ONNX Runtime was not found; looked at {}. Run scripts/fetch-runtimes (--openvino for the device openvino), or \
         name the library with ORT_DYLIB_PATH",
        tried.join(", ")
    )]
    RuntimeNotFound {
        /// Every place that was looked at.
        tried: Vec<String>,
    },
    /// The library would report to its makers.
    #[error(
        "ONNX Runtime would send usage reports to its makers: set ORT_DISABLE_TELEMETRY=1 before it is loaded (our \
         programs do so themselves)"
    )]
    Telemetry,
    /// The library is there and does not load.
    #[error("failed to load ONNX Runtime from {path}: {message}. scripts/fetch-runtimes fetches the version that fits")]
    RuntimeLoad {
        /// The library.
        path: PathBuf,
        /// What the loader or the runtime said.
        message: String,
    },
    /// The process has loaded one runtime and now another is wanted.
    #[error("ONNX Runtime is already loaded from {loaded} and cannot be loaded again from {wanted}")]
    OtherRuntime {
        /// The library in use.
        loaded: PathBuf,
        /// The other one.
        wanted: PathBuf,
    },
    /// A session was wanted before the runtime was loaded.
    #[error("ONNX Runtime is not loaded yet (`init` comes first)")]
    NotInitialised,
    /// Options that no session can have.
    #[error("session option {option} = {value} is not at least 1")]
    Option {
        /// The field of [`SessionOptions`](crate::SessionOptions).
        option: &'static str,
        /// Its value.
        value: usize,
    },
    /// A named device that this build, this machine or the loaded runtime does not have.
    #[error("device {device} cannot be used: {message}")]
    Device {
        /// The device asked for.
        device: Device,
        /// Why not.
        message: String,
    },
    /// Bytes that ONNX Runtime does not accept as a model.
    #[error("failed to load the model: {0}")]
    Load(String),
    /// A model whose inputs or outputs are not those of `docs/networks.md`.
    #[error("the model's {name} is {actual}, and {expected} is wanted")]
    Contract {
        /// Input, output, or a count of them.
        name: String,
        /// What the network contract says.
        expected: String,
        /// What the model has.
        actual: String,
    },
    /// A model for another game or another form of it.
    #[error("the model has {actual}, and the game has {expected}")]
    Signature {
        /// What the game wants.
        expected: Signature,
        /// What the model has.
        actual: Signature,
    },
    /// Planes whose length is not that of the batch.
    #[error("a batch of {n} has {len} bytes of planes, and {expected} are wanted")]
    PlanesLen {
        /// Positions in the batch.
        n: usize,
        /// Bytes given.
        len: usize,
        /// Bytes wanted.
        expected: usize,
    },
    /// ONNX Runtime failed in the middle of a batch.
    #[error("failed to run the model: {0}")]
    Run(String),
    /// An output that is infinite or not a number.
    #[error("the model's output {output} has {value} at index {index} of position {position}")]
    NotFinite {
        /// `policy` or `wdl`.
        output: &'static str,
        /// Which position of the batch.
        position: usize,
        /// Which of its values.
        index: usize,
        /// The value.
        value: f32,
    },
    /// A probe that does not fit the session.
    #[error("probe {index} has {what} of length {len}, and {expected} is wanted")]
    ProbeShape {
        /// Which probe.
        index: usize,
        /// Its planes or its policy.
        what: &'static str,
        /// Length it has.
        len: usize,
        /// Length it should have.
        expected: usize,
    },
    /// A session that computes something else than the model's author did.
    #[error(
        "probe {index} differs by {difference} from what the model's author computed; at most {tolerance} is allowed"
    )]
    ProbeDiffers {
        /// The probe with the greatest difference.
        index: usize,
        /// Greatest difference of a probability or value.
        difference: f32,
        /// Greatest difference allowed.
        tolerance: f32,
    },
}
