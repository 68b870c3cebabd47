//! The network files under `models/`: one a network and precision, named by its hash, written once.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use tengen_records::ModelId;
use tengen_service::files::{WriteError, write_atomic};

/// Largest network file, bytes.
pub(crate) const MODEL_BYTES_MAX: u64 = 1 << 30;

/// The folder of network files.
#[derive(Clone, Debug)]
pub(crate) struct ModelFiles {
    folder: PathBuf,
}

impl ModelFiles {
    /// The files of this data folder.
    pub(crate) fn new(data: &Path) -> ModelFiles {
        ModelFiles {
            folder: data.join("models"),
        }
    }

    /// The name of the file with this hash: a network's, or that of one of its reduced precisions.
    pub(crate) fn name(id: ModelId) -> String {
        format!("{id}.onnx")
    }

    /// Writes the file with this hash durably. Blocks.
    pub(crate) fn write(&self, id: ModelId, bytes: &[u8]) -> Result<(), WriteError> {
        write_atomic(&self.folder.join(ModelFiles::name(id)), bytes)
    }

    /// Reads up to `len` bytes from `offset`; fewer only at the end. Blocks.
    pub(crate) fn read(&self, file_name: &str, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(self.folder.join(file_name))?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::with_capacity(len);
        file.take(len as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads the whole file with this hash. Blocks.
    pub(crate) fn read_whole(&self, id: ModelId) -> io::Result<Vec<u8>> {
        std::fs::read(self.folder.join(ModelFiles::name(id)))
    }

    /// Removes the file with this hash, of a network that was not taken.
    pub(crate) fn remove(&self, id: ModelId) -> io::Result<()> {
        self.remove_named(&ModelFiles::name(id))
    }

    /// Removes a file by its name.
    pub(crate) fn remove_named(&self, file_name: &str) -> io::Result<()> {
        std::fs::remove_file(self.folder.join(file_name))
    }

    /// The names of all files, but for those that are being written.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let entries = std::fs::read_dir(&self.folder)?;
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| !name.starts_with('.'))
            .collect();
        names.sort();
        Ok(names)
    }

    /// Whether a file holds the bytes with this hash. Blocks.
    pub(crate) fn verify(&self, id: ModelId, file_name: &str) -> io::Result<bool> {
        let bytes = std::fs::read(self.folder.join(file_name))?;
        Ok(tengen_network::model_id(&bytes) == id.0)
    }
}
