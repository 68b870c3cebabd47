//! The networks in hand: fetched by id, checked against hash and fingerprints, proven on this hardware, kept on
//! disk for the next start and in memory while they are played with.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use tengen_inference::{InferenceError, PARITY_TOLERANCE, Probe, Session, SessionOptions, Signature, run_probes};
use tengen_network::{Precision, ReadError, read_metadata};
use tengen_proto::v1;
use tengen_proto::v1::model_service_client::ModelServiceClient;
use tengen_records::ModelId;
use tengen_selfplay::ModelBytes;
use tengen_service::backoff::Backoff;
use tengen_service::channel::{Channel, MESSAGE_BYTES_MAX};
use tengen_service::files::{WriteError, write_atomic};
use tengen_service::usage::UsageMeter;
use tokio::time::timeout;
use tonic::Status;

use crate::handshake::{CALL_TIMEOUT, Run};

/// Networks kept in memory beside those that games in flight hold.
const IN_MEMORY_MAX: usize = 3;
/// Networks kept on disk.
const ON_DISK_MAX: usize = 16;
/// Largest file that is taken.
const MODEL_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Streams that may break one after the other without a byte in between before a download is given up.
const DOWNLOAD_TRIES: u32 = 5;
/// Downloads of one network that may arrive whole with the wrong hash: what is wrong then does not pass by itself.
const MISMATCHES_MAX: u32 = 3;
/// Greatest difference to a probe. Wider than what the publisher allowed itself: other instruction sets and GPUs round
/// otherwise.
const PROBE_TOLERANCE: f32 = 5.0 * PARITY_TOLERANCE;

/// A network cannot be had or must not be used.
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

/// The networks in hand. One that finds no room on the disk is played with all the same, and written with a later lease.
pub(crate) struct Models {
    folder: PathBuf,
    channel: Channel,
    run: Run,
    /// How they are loaded, for each device.
    sessions: Vec<SessionOptions>,
    usage: Arc<UsageMeter>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Checked networks, newest use last.
    held: Vec<Arc<ModelBytes>>,
    /// Those of them that found no room on the disk.
    unwritten: HashSet<ModelId>,
    proven: Option<Proven>,
}

/// How the network that was checked last computes here.
#[derive(Clone)]
struct Proven {
    provider: String,
    precision: Precision,
}

impl Models {
    /// `usage` is told where the networks that are checked really compute: of several devices, the first.
    pub(crate) fn new(
        data: &Path,
        channel: Channel,
        run: Run,
        sessions: Vec<SessionOptions>,
        usage: Arc<UsageMeter>,
    ) -> Models {
        Models {
            folder: data.join("models"),
            channel,
            run,
            sessions,
            usage,
            state: Mutex::default(),
        }
    }

    /// The execution providers that the last checked network really used; `None` before the first.
    pub(crate) fn provider(&self) -> Option<String> {
        self.lock().proven.as_ref().map(|proven| proven.provider.clone())
    }

    /// The precision that the last checked network computes in; `None` before the first.
    pub(crate) fn precision(&self) -> Option<Precision> {
        self.lock().proven.as_ref().map(|proven| proven.precision)
    }

    /// The network with this id, checked.
    pub(crate) async fn fetch(&self, id: ModelId) -> Result<Arc<ModelBytes>, ModelError> {
        if let Some(model) = self.held(id) {
            if self.lock().unwritten.contains(&id) {
                self.write(&model).await?;
            }
            return Ok(model);
        }
        let description = self.describe(id).await?;
        let model = match self.read_cached(id).await {
            Some(model) => model,
            None => self.download(id, description.size_bytes).await?,
        };
        let precision = self.check_metadata(&model)?;
        let provider = self.prove(&model, description.probes).await?;
        let mut state = self.lock();
        state.proven = Some(Proven { provider, precision });
        state.held.push(Arc::clone(&model));
        if state.held.len() > IN_MEMORY_MAX {
            let gone = state.held.remove(0);
            state.unwritten.remove(&gone.id());
        }
        Ok(model)
    }

    fn held(&self, id: ModelId) -> Option<Arc<ModelBytes>> {
        let mut state = self.lock();
        let at = state.held.iter().position(|model| model.id() == id)?;
        let model = state.held.remove(at);
        state.held.push(Arc::clone(&model));
        Some(model)
    }

    async fn describe(&self, id: ModelId) -> Result<v1::Model, ModelError> {
        let mut request = tonic::Request::new(v1::GetModelRequest { name: id.to_string() });
        request.set_timeout(CALL_TIMEOUT);
        let answer = self.client().get_model(request).await;
        Ok(answer
            .map_err(|status| ModelError::Call {
                id,
                status: Box::new(status),
            })?
            .into_inner())
    }

    /// The network from the disk, if it is there whole.
    async fn read_cached(&self, id: ModelId) -> Option<Arc<ModelBytes>> {
        let path = self.path(id);
        let model = ModelBytes::new(tokio::fs::read(&path).await.ok()?);
        if model.id() == id {
            return Some(model);
        }
        tracing::warn!(path = %path.display(), "a cached network is damaged and will be fetched again");
        None
    }

    /// The network from the coordinator, on disk when this returns if there is room.
    async fn download(&self, id: ModelId, size: u64) -> Result<Arc<ModelBytes>, ModelError> {
        let model = self.download_right(id, size).await?;
        tracing::info!(model = %id.short(), bytes = model.bytes().len(), "network fetched");
        self.write(&model).await?;
        Ok(model)
    }

    /// Puts a network into the cache on disk. That there is no room is noted, and no error: it is here.
    async fn write(&self, model: &Arc<ModelBytes>) -> Result<(), ModelError> {
        let (id, bytes) = (model.id(), model.bytes().len());
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
    async fn download_right(&self, id: ModelId, size: u64) -> Result<Arc<ModelBytes>, ModelError> {
        let mut backoff = Backoff::default();
        let mut times = 0;
        loop {
            let model = ModelBytes::new(self.download_whole(id, size).await?);
            if model.id() == id {
                return Ok(model);
            }
            let actual = model.id();
            times += 1;
            if times == MISMATCHES_MAX {
                return Err(ModelError::Corrupt { id, times, actual });
            }
            tracing::warn!(model = %id, %actual, times, "a network arrived damaged and is fetched again");
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// As many bytes as the network has, over as many streams as that takes.
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

    /// Checks what the network was made for; returns the precision it computes in.
    fn check_metadata(&self, model: &ModelBytes) -> Result<Precision, ModelError> {
        let id = model.id();
        let metadata = read_metadata(model.bytes()).map_err(|source| ModelError::Read {
            id,
            source: Box::new(source),
        })?;
        let pairs = [
            ("game", metadata.game, self.run.game.spec().id.clone()),
            (
                "rules",
                metadata.rules_fingerprint.to_string(),
                self.run.rules.to_string(),
            ),
            (
                "features",
                metadata.feature_fingerprint.to_string(),
                self.run.features.to_string(),
            ),
        ];
        match pairs.into_iter().find(|(_, theirs, ours)| theirs != ours) {
            Some((what, theirs, ours)) => Err(ModelError::Foreign { id, what, theirs, ours }),
            None => Ok(metadata.precision),
        }
    }

    /// Loads the network on every device here and compares it with what its author computed; returns the execution
    /// providers really used, each once.
    async fn prove(&self, model: &Arc<ModelBytes>, probes: Vec<v1::Probe>) -> Result<String, ModelError> {
        let id = model.id();
        let probes = probes
            .into_iter()
            .map(|probe| read_probe(id, probe))
            .collect::<Result<Vec<_>, _>>()?;
        let spec = self.run.game.spec();
        let expected = Signature {
            planes: [spec.planes.len(), spec.rows, spec.cols],
            actions: spec.actions.len(),
        };
        let (model, sessions, usage) = (Arc::clone(model), self.sessions.clone(), Arc::clone(&self.usage));
        let proof = tokio::task::spawn_blocking(move || {
            let (mut providers, mut difference) = (Vec::new(), 0.0f32);
            for (at, options) in sessions.iter().enumerate() {
                let mut session = Session::load(model.bytes(), options)?;
                session.check(expected)?;
                difference = difference.max(run_probes(&mut session, &probes, PROBE_TOLERANCE)?);
                let provider = session.provider().to_owned();
                if !providers.contains(&provider) {
                    providers.push(provider);
                }
                if at == 0 {
                    usage.computes_on(session.cuda());
                }
            }
            Ok((providers.join(", "), probes.len(), difference))
        });
        let proven = proof.await.map_err(|error| ModelError::Broken {
            id,
            reason: error.to_string(),
        })?;
        let (provider, probes, difference) = proven.map_err(|source| ModelError::Inference { id, source })?;
        tracing::info!(model = %id.short(), provider, probes, difference, "network ready");
        Ok(provider)
    }

    fn path(&self, id: ModelId) -> PathBuf {
        self.folder.join(format!("{id}.onnx"))
    }

    fn client(&self) -> ModelServiceClient<Channel> {
        ModelServiceClient::new(self.channel.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX)
    }

    /// A panic elsewhere leaves the state whole: every change under the lock is complete in itself.
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_probe(id: ModelId, probe: v1::Probe) -> Result<Probe, ModelError> {
    let values = probe.wdl.len();
    let wdl = probe.wdl.try_into().map_err(|_| ModelError::Probe { id, values })?;
    Ok(Probe {
        planes: probe.planes,
        policy: probe.policy,
        wdl,
    })
}

/// Removes the oldest networks from the cache until few enough are left.
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
