//! Why a network cannot be had, or must not be used.

use tengen_inference::InferenceError;
use tengen_network::ReadError;
use tengen_records::ModelId;
use tengen_service::files::WriteError;
use tonic::Status;

/// Largest file that is taken.
pub(super) const MODEL_BYTES_MAX: usize = 512 * 1024 * 1024;

/// A network cannot be had or must not be used. `id` is that of the file: a network's, or that of a reduced precision.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ModelError {
    /// The coordinator did not answer or refused.
    #[error("failed to fetch model {id}: {}", status.message())]
    Call { id: ModelId, status: Box<Status> },
    /// The bytes are never those of the id.
    #[error(
        "model {id} was fetched {times} times and arrived with another hash each time, last {actual}: the coordinator's \
         file or the way to it is damaged; compare the file's hash with its name in the coordinator's data folder"
    )]
    Corrupt { id: ModelId, times: u32, actual: ModelId },
    /// More bytes than we take.
    #[error("model {id} is larger than {MODEL_BYTES_MAX} bytes")]
    TooLarge { id: ModelId },
    /// More bytes than the coordinator said.
    #[error("model {id} should have {size} bytes, and more arrived")]
    Overlong { id: ModelId, size: u64 },
    /// A chunk that does not follow the one before.
    #[error("model {id}: a chunk starts at byte {actual} where {expected} was expected")]
    Gap { id: ModelId, actual: u64, expected: u64 },
    /// The file is not one of ours.
    #[error("model {id}: {source}")]
    Read {
        id: ModelId,
        #[source]
        source: Box<ReadError>,
    },
    /// The network was made for something else.
    #[error("model {id} is for {what} {theirs}, this run has {ours}")]
    Foreign {
        id: ModelId,
        what: &'static str,
        theirs: String,
        ours: String,
    },
    /// The network does not run here, or computes something else here than where it was made.
    #[error("model {id}: {source}")]
    Inference {
        id: ModelId,
        #[source]
        source: InferenceError,
    },
    /// A probe that is none.
    #[error("model {id} has a probe with {values} values instead of win, draw and loss")]
    Probe { id: ModelId, values: usize },
    /// The cache cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The check could not run.
    #[error("the check of model {id} was broken off: {reason}")]
    Broken { id: ModelId, reason: String },
}
