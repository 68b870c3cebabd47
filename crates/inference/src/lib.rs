//! Running networks in ONNX Runtime: sessions, batching, the probes that prove a session right, and the comparisons that
//! prove a reduced precision faithful, and faster.
//!
//! [`init`] loads the runtime once per process; a [`Session`] is one loaded model, which one thread at a time feeds with
//! batches of feature planes and reads [`Outputs`] of logits from. Masking, softmax over legal actions and all
//! search are the caller's.
//!
//! **This is the only crate that names `ort`**; no type of it appears in the interface, so errors carry text.

mod batch;
mod device;
mod devices;
mod error;
mod fidelity;
mod load;
mod probe;
mod providers;
mod runtime;
mod session;
mod speed;
mod telemetry;

pub use batch::bucket_sizes;
pub use device::{Device, ParseDeviceError};
pub use devices::{Devices, ParseDevicesError};
pub use error::InferenceError;
pub use fidelity::{FAITHFUL_KL_MAX, FAITHFUL_VALUE_ERROR_MAX, Fidelity, compare_precisions};
pub use load::Optimisations;
pub use probe::{PARITY_TOLERANCE, Probe, REPRODUCTION_TOLERANCE, answered, run_probes, softmax};
pub use runtime::{RuntimeInfo, init, init_for, runtime};
pub use session::{Outputs, Session, SessionOptions, Signature};
pub use speed::{TIMED_BATCH_MAX, batch_times};
pub use telemetry::forbid_telemetry;

/// The crate's results.
pub type Result<T> = std::result::Result<T, InferenceError>;
