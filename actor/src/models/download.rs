//! Files of networks: from the disk, or from the coordinator over as many streams as it takes, and kept on the disk.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use tengen_proto::v1;
use tengen_records::{ModelId, Precision};
use tengen_selfplay::ModelBytes;
use tengen_service::backoff::Backoff;
use tengen_service::files::{WriteError, write_atomic};
use tokio::time::timeout;
use tonic::Status;

use super::error::{MODEL_BYTES_MAX, ModelError};
use super::{Models, Network};
use crate::handshake::CALL_TIMEOUT;

/// Files kept on disk: sixteen networks, each in fp32 and in a reduced precision.
const ON_DISK_MAX: usize = 32;
/// Streams that may break one after the other without a byte in between before a download is given up.
const DOWNLOAD_TRIES: u32 = 5;
/// Downloads of one file that may arrive whole with the wrong hash: what is wrong then does not pass by itself.
const MISMATCHES_MAX: u32 = 3;

/// A file that the coordinator has.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemoteFile {
    /// The network that it is.
    pub(super) network: ModelId,
    /// What it computes in.
    pub(super) precision: Precision,
    /// Its hash; in fp32 the network's id.
    pub(super) id: ModelId,
    /// Its size, bytes.
    pub(super) size: u64,
}

impl RemoteFile {
    /// What these bytes are if they are this file's.
    fn of(&self, bytes: Vec<u8>) -> Arc<ModelBytes> {
        match self.precision {
            Precision::Fp32 => ModelBytes::new(bytes),
            Precision::Fp16 | Precision::Int8 => ModelBytes::variant(self.network, self.precision, bytes),
        }
    }
}

impl Models {
    /// The file, from the disk or from the coordinator.
    pub(super) async fn file(&self, file: &RemoteFile) -> Result<Arc<ModelBytes>, ModelError> {
        match self.read_cached(file).await {
            Some(model) => Ok(model),
            None => self.download(file).await,
        }
    }

    /// Writes those files of a network that found no room on the disk.
    pub(super) async fn write_again(&self, network: &Network) -> Result<(), ModelError> {
        for file in network.files() {
            let is_unwritten = self.lock().unwritten.contains(&file.file_id());
            if is_unwritten {
                self.write(file).await?;
            }
        }
        Ok(())
    }

    /// The file from the disk, if it is there whole.
    async fn read_cached(&self, file: &RemoteFile) -> Option<Arc<ModelBytes>> {
        let path = self.path(file.id);
        let model = file.of(tokio::fs::read(&path).await.ok()?);
        if model.file_id() == file.id {
            return Some(model);
        }
        tracing::warn!(path = %path.display(), "a cached network is damaged and will be fetched again");
        None
    }

    /// The file from the coordinator, on disk when this returns if there is room.
    async fn download(&self, file: &RemoteFile) -> Result<Arc<ModelBytes>, ModelError> {
        let model = self.download_right(file).await?;
        let (network, precision) = (file.network.short(), file.precision);
        tracing::info!(model = %network, %precision, bytes = model.bytes().len(), "network fetched");
        self.write(&model).await?;
        Ok(model)
    }

    /// Puts a file into the cache on disk. That there is no room is noted, and no error: it is here.
    async fn write(&self, model: &Arc<ModelBytes>) -> Result<(), ModelError> {
        let (id, bytes) = (model.file_id(), model.bytes().len());
        let (path, kept, folder) = (self.path(id), Arc::clone(model), self.folder.clone());
        let written = tokio::task::spawn_blocking(move || {
            write_atomic(&path, kept.bytes())?;
            if let Err(error) = prune(&folder) {
                tracing::warn!(%error, "old networks could not be removed from the cache");
            }
            Ok::<(), WriteError>(())
        });
        let written = written.await.map_err(|error| ModelError::Broken {
            id,
            reason: error.to_string(),
        })?;
        let mut state = self.lock();
        match written {
            Ok(()) => {
                state.unwritten.remove(&id);
                Ok(())
            }
            Err(error) if error.is_out_of_room() => {
                if state.unwritten.insert(id) {
                    tracing::error!(%error, bytes, "the disk is full: a network is kept in memory until there is room");
                }
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Fetches until the bytes have the hash they should have, or have not for too many times.
    async fn download_right(&self, file: &RemoteFile) -> Result<Arc<ModelBytes>, ModelError> {
        let id = file.id;
        let mut backoff = Backoff::default();
        let mut times = 0;
        loop {
            let model = file.of(self.download_whole(id, file.size).await?);
            if model.file_id() == id {
                return Ok(model);
            }
            let actual = model.file_id();
            times += 1;
            if times == MISMATCHES_MAX {
                return Err(ModelError::Corrupt { id, times, actual });
            }
            tracing::warn!(model = %id, %actual, times, "a network arrived damaged and is fetched again");
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// As many bytes as the file has, over as many streams as that takes.
    async fn download_whole(&self, id: ModelId, size: u64) -> Result<Vec<u8>, ModelError> {
        if size > MODEL_BYTES_MAX as u64 {
            return Err(ModelError::TooLarge { id });
        }
        let mut bytes = Vec::new();
        let mut backoff = Backoff::default();
        let mut tries = 0;
        loop {
            let before = bytes.len();
            let Err(status) = self.download_from(id, size, &mut bytes).await? else {
                return Ok(bytes);
            };
            tries = if bytes.len() > before { 1 } else { tries + 1 };
            if tries == DOWNLOAD_TRIES {
                return Err(ModelError::Call {
                    id,
                    status: Box::new(status),
                });
            }
            // What has arrived stays: the next stream goes on from there.
            tracing::debug!(model = %id, at = bytes.len(), error = status.message(), "a download broke");
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// Appends what one stream gives; the inner error may be tried again.
    async fn download_from(
        &self,
        id: ModelId,
        size: u64,
        bytes: &mut Vec<u8>,
    ) -> Result<Result<(), Status>, ModelError> {
        let request = v1::DownloadModelRequest {
            model_id: id.to_bytes().to_vec(),
            offset: bytes.len() as u64,
        };
        let mut chunks = match self.client().download_model(request).await {
            Ok(answer) => answer.into_inner(),
            Err(status) => return Ok(Err(status)),
        };
        loop {
            let chunk = match timeout(CALL_TIMEOUT, chunks.message()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) if bytes.len() as u64 == size => return Ok(Ok(())),
                Ok(Ok(None)) => return Ok(Err(Status::unavailable("the download ended early"))),
                Ok(Err(status)) => return Ok(Err(status)),
                Err(_) => return Ok(Err(Status::deadline_exceeded("the download stands still"))),
            };
            let expected = bytes.len() as u64;
            if chunk.offset != expected {
                return Err(ModelError::Gap {
                    id,
                    actual: chunk.offset,
                    expected,
                });
            }
            if expected + chunk.data.len() as u64 > size {
                return Err(ModelError::Overlong { id, size });
            }
            bytes.extend_from_slice(&chunk.data);
        }
    }
}

/// Removes the oldest files from the cache until few enough are left.
fn prune(folder: &Path) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|extension| extension == "onnx") {
            let written = entry.metadata()?.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            files.push((written, entry.path()));
        }
    }
    files.sort();
    let surplus = files.len().saturating_sub(ON_DISK_MAX);
    files
        .into_iter()
        .take(surplus)
        .try_for_each(|(_, path)| std::fs::remove_file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_on_disk_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        for index in 0..ON_DISK_MAX + 3 {
            write_atomic(&folder.path().join(format!("{index:02}.onnx")), b"x").unwrap();
        }
        write_atomic(&folder.path().join("note.txt"), b"x").unwrap();
        prune(folder.path()).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), ON_DISK_MAX + 1);
    }
}
