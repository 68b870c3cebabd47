//! The networks in hand: fetched by id, checked against hash and fingerprints, proven on this hardware, kept on
//! disk for the next start and in memory while they are played with.
//!
//! A network may come in a reduced precision, too. That is played only where it answers as it did where it was made, and
//! agrees with fp32, on this hardware; what fails to is no reason not to play. What could not be had or run is tried again
//! after a while.

mod download;
mod error;
mod reduced;
mod setbacks;
mod together;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tengen_inference::{PARITY_TOLERANCE, Probe, Session, Signature, run_probes};
use tengen_network::{Metadata, read_metadata};
use tengen_proto::v1;
use tengen_proto::v1::model_service_client::ModelServiceClient;
use tengen_records::{ModelId, Precision};
use tengen_selfplay::ModelBytes;
use tengen_selfplay::feeding::Feeding;
use tengen_service::channel::{Channel, MESSAGE_BYTES_MAX};
use tengen_service::run_config::WantedPrecision;
use tengen_service::usage::UsageMeter;

use crate::handshake::{CALL_TIMEOUT, Run};
use crate::options::Clock;
use download::RemoteFile;
use reduced::{FellBack, Proven, Reduced, Speed};
use setbacks::Setbacks;
use together::in_one_precision;

pub(crate) use error::ModelError;

/// Networks kept in memory beside those that games in flight hold.
const IN_MEMORY_MAX: usize = 3;
/// Greatest difference to a probe. Wider than what the publisher allowed itself: other instruction sets and GPUs round
/// otherwise.
const PROBE_TOLERANCE: f32 = 5.0 * PARITY_TOLERANCE;

/// The networks in hand. One that finds no room on the disk is played with all the same, and written with a later lease.
pub(crate) struct Models {
    folder: PathBuf,
    channel: Channel,
    run: Run,
    /// Knows how they are loaded, for each device, and takes the sessions that they were proven with.
    feeding: Arc<Feeding>,
    precision: WantedPrecision,
    usage: Arc<UsageMeter>,
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Checked networks, newest use last.
    held: Vec<Arc<Network>>,
    /// Files of theirs that found no room on the disk.
    unwritten: HashSet<ModelId>,
    /// The execution provider that the network which was checked last really uses.
    provider: Option<String>,
    /// What the networks that were asked for last are played in, and why that is no reduced precision.
    playing: Playing,
    /// Which precision was faster, by the shape of the network.
    speeds: Vec<Speed>,
    /// Networks whose reduced precision could not be had or run.
    setbacks: Setbacks,
    /// Networks of which it was told why they are played in fp32.
    told: HashSet<ModelId>,
    /// Whether it was told that networks do not come in the precision that is wanted.
    told_not_offered: bool,
}

/// How networks are played.
#[derive(Clone, Debug, Default)]
struct Playing {
    precision: Option<Precision>,
    fell_back: String,
}

/// A checked network.
struct Network {
    /// Its file in fp32.
    whole: Arc<ModelBytes>,
    /// Its file in a reduced precision, if that is to be played.
    reduced: Option<Arc<ModelBytes>>,
    /// Why it has none although there is one, or one was asked for; else empty.
    fell_back: String,
}

impl Network {
    fn files(&self) -> impl Iterator<Item = &Arc<ModelBytes>> {
        std::iter::once(&self.whole).chain(&self.reduced)
    }
}

impl Models {
    /// `usage` is told where the networks that are checked really compute: of several devices, the first. `clock` tells when
    /// what failed is tried again.
    pub(crate) fn new(
        data: &Path,
        channel: Channel,
        run: Run,
        feeding: Arc<Feeding>,
        precision: WantedPrecision,
        usage: Arc<UsageMeter>,
        clock: Clock,
    ) -> Models {
        Models {
            folder: data.join("models"),
            channel,
            run,
            feeding,
            precision,
            usage,
            clock,
            state: Mutex::default(),
        }
    }

    /// The execution providers that the last checked network really used; `None` before the first.
    pub(crate) fn provider(&self) -> Option<String> {
        self.lock().provider.clone()
    }

    /// The precision that the networks which were asked for last are played in; `None` before the first.
    pub(crate) fn precision(&self) -> Option<Precision> {
        self.lock().playing.precision
    }

    /// Why they are played in fp32 although one of them comes in a reduced precision, or should; else empty.
    pub(crate) fn fell_back(&self) -> String {
        self.lock().playing.fell_back.clone()
    }

    /// The networks with these ids, checked, all in one precision.
    pub(crate) async fn fetch(&self, ids: &[ModelId]) -> Result<Vec<Arc<ModelBytes>>, ModelError> {
        let mut networks = Vec::with_capacity(ids.len());
        for &id in ids {
            networks.push(self.fetch_one(id).await?);
        }
        let models = in_one_precision(&networks);
        if let Some(model) = models.first() {
            let mut reasons = networks.iter().map(|network| &network.fell_back);
            let fell_back = reasons.find(|why| !why.is_empty());
            self.lock().playing = Playing {
                precision: Some(model.precision()),
                fell_back: fell_back.cloned().unwrap_or_default(),
            };
        }
        Ok(models)
    }

    async fn fetch_one(&self, id: ModelId) -> Result<Arc<Network>, ModelError> {
        let is_due_again = self.lock().setbacks.is_due(id, self.clock.now());
        match self.held(id) {
            Some(network) if is_due_again => Ok(self.fetch_again(network).await),
            Some(network) => {
                self.write_again(&network).await?;
                Ok(network)
            }
            None => self.fetch_anew(id).await,
        }
    }

    /// A network whose reduced precision failed and is due again. In fp32 it can be played, whatever happens.
    async fn fetch_again(&self, network: Arc<Network>) -> Arc<Network> {
        let id = network.whole.id();
        self.fetch_anew(id).await.unwrap_or_else(|error| {
            tracing::warn!(model = %id.short(), %error, "a network was not fetched again and is played as before");
            let why = error.to_string();
            self.lock().setbacks.note(id, why, self.clock.now());
            network
        })
    }

    async fn fetch_anew(&self, id: ModelId) -> Result<Arc<Network>, ModelError> {
        let description = self.describe(id).await?;
        let file = RemoteFile {
            network: id,
            precision: Precision::Fp32,
            id,
            size: description.size_bytes,
        };
        let whole = self.file(&file).await?;
        let metadata = self.check_metadata(&whole)?;
        let mut proven = self.prove(&whole, metadata, description.probes).await?;
        self.lock().provider = Some(proven.provider());
        let (reduced, fell_back) = match self.why_not_reduced(id) {
            Some(why) => (None, why),
            None => self.try_reduced(&mut proven, &description.variants).await,
        };
        // What it was proven with is what it is played with first.
        let reduced = reduced.map(|Reduced { model, sessions }| {
            self.feeding.offer(&model, sessions);
            model
        });
        if reduced.is_none() {
            self.feeding.offer(&whole, proven.sessions);
        }
        let network = Arc::new(Network {
            whole,
            reduced,
            fell_back,
        });
        self.hold(&network);
        Ok(network)
    }

    /// Why the network's reduced precision is not tried now, if it failed lately.
    fn why_not_reduced(&self, id: ModelId) -> Option<String> {
        let state = self.lock();
        state.setbacks.why_not(id, self.clock.now()).map(str::to_owned)
    }

    /// The network in the reduced precision that is to be played, if there is one, or else why not although it should be.
    async fn try_reduced(&self, proven: &mut Proven, variants: &[v1::ModelVariant]) -> (Option<Reduced>, String) {
        let id = proven.id;
        match self.reduced(proven, variants).await {
            Ok(reduced) => {
                self.lock().setbacks.settle(id);
                (reduced, String::new())
            }
            Err(why) => {
                self.note(id, &why);
                (None, why.to_string())
            }
        }
    }

    fn held(&self, id: ModelId) -> Option<Arc<Network>> {
        let mut state = self.lock();
        let at = state.held.iter().position(|network| network.whole.id() == id)?;
        let network = state.held.remove(at);
        state.held.push(Arc::clone(&network));
        Some(network)
    }

    fn hold(&self, network: &Arc<Network>) {
        let mut state = self.lock();
        // One whose reduced precision was tried again takes its own place.
        state.held.retain(|held| held.whole.id() != network.whole.id());
        state.held.push(Arc::clone(network));
        if state.held.len() > IN_MEMORY_MAX {
            let gone = state.held.remove(0);
            for file in gone.files() {
                state.unwritten.remove(&file.file_id());
            }
        }
    }

    /// Notes why a network is played in fp32 and whether that is tried again, and says why, once.
    fn note(&self, id: ModelId, why: &FellBack) {
        let mut state = self.lock();
        match why {
            FellBack::Unusable { .. } => state.setbacks.note(id, why.to_string(), self.clock.now()),
            _ => state.setbacks.settle(id),
        }
        let is_news = match why {
            FellBack::NotOffered { .. } => !std::mem::replace(&mut state.told_not_offered, true),
            _ => state.told.insert(id),
        };
        if is_news {
            tracing::warn!(model = %id.short(), %why, "a network is played in fp32");
        }
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

    /// Checks what the network was made for; returns what its file says.
    fn check_metadata(&self, model: &ModelBytes) -> Result<Metadata, ModelError> {
        let id = model.id();
        let metadata = read_metadata(model.bytes()).map_err(|source| ModelError::Read {
            id,
            source: Box::new(source),
        })?;
        let pairs = [
            ("game", metadata.game.clone(), self.run.game.spec().id.clone()),
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
            (
                "precision",
                metadata.precision.to_string(),
                model.precision().to_string(),
            ),
        ];
        match pairs.into_iter().find(|(_, theirs, ours)| theirs != ours) {
            Some((what, theirs, ours)) => Err(ModelError::Foreign { id, what, theirs, ours }),
            None => Ok(metadata),
        }
    }

    /// Loads the network on every device here and compares it with what its author computed.
    async fn prove(
        &self,
        model: &Arc<ModelBytes>,
        metadata: Metadata,
        probes: Vec<v1::Probe>,
    ) -> Result<Proven, ModelError> {
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
        let (model, sessions, usage) = (Arc::clone(model), self.feeding.sessions(), Arc::clone(&self.usage));
        let proof = tokio::task::spawn_blocking(move || {
            let (mut loaded, mut difference) = (Vec::with_capacity(sessions.len()), 0.0f32);
            for options in &sessions {
                let mut session = Session::load(model.bytes(), options)?;
                session.check(expected)?;
                difference = difference.max(run_probes(&mut session, &probes, PROBE_TOLERANCE)?);
                loaded.push(session);
            }
            usage.computes_on(loaded.first().and_then(Session::cuda));
            Ok((loaded, probes, difference))
        });
        let proven = proof.await.map_err(|error| ModelError::Broken {
            id,
            reason: error.to_string(),
        })?;
        let (sessions, probes, difference) = proven.map_err(|source| ModelError::Inference { id, source })?;
        let proven = Proven {
            id,
            metadata,
            sessions,
            probes,
        };
        let (provider, count) = (proven.provider(), proven.probes.len());
        tracing::info!(model = %id.short(), provider, probes = count, difference, "network ready");
        Ok(proven)
    }

    fn path(&self, file: ModelId) -> PathBuf {
        self.folder.join(format!("{file}.onnx"))
    }

    fn client(&self) -> ModelServiceClient<Channel> {
        ModelServiceClient::new(self.channel.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX)
    }

    /// A panic elsewhere leaves the state whole: every change under the lock is complete in itself.
    fn lock(&self) -> MutexGuard<'_, State> {
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
