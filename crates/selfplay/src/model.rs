//! A network as the players hold it: its file's bytes and the id that follows from them.

use std::fmt;
use std::sync::Arc;

use tengen_records::ModelId;

/// A network's file in memory. Shared between threads; an evaluator keeps a session only as long as somebody holds the
/// model.
pub struct ModelBytes {
    id: ModelId,
    bytes: Vec<u8>,
}

impl ModelBytes {
    /// The model whose file is `bytes`; its id is computed here and nowhere taken on trust.
    pub fn new(bytes: Vec<u8>) -> Arc<ModelBytes> {
        Arc::new(ModelBytes {
            id: ModelId(tengen_network::model_id(&bytes)),
            bytes,
        })
    }

    /// Hash of the file.
    pub fn id(&self) -> ModelId {
        self.id
    }

    /// The file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for ModelBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelBytes")
            .field("id", &self.id)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}
