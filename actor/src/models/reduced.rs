//! The reduced precision of a network: which is wanted here, whether it is still the network here, and whether it is faster.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tengen_inference::{
    Device, Fidelity, InferenceError, Probe, Session, SessionOptions, TIMED_BATCH_MAX, batch_times, compare_precisions,
};
use tengen_network::{Metadata, read_metadata};
use tengen_proto::v1;
use tengen_records::{ModelId, Precision, precision_from_wire};
use tengen_selfplay::{ModelBytes, check_variant};
use tengen_service::run_config::WantedPrecision;

use super::Models;
use super::download::RemoteFile;

/// A network that computes in fp32 here what its author computed.
pub(super) struct Proven {
    pub(super) id: ModelId,
    /// What its file says.
    pub(super) metadata: Metadata,
    /// Its file, loaded on each device.
    pub(super) sessions: Vec<Session>,
    pub(super) probes: Vec<Probe>,
}

impl Proven {
    /// The execution providers really used, each once.
    pub(super) fn provider(&self) -> String {
        let mut providers: Vec<&str> = self.sessions.iter().map(Session::provider).collect();
        providers.dedup();
        providers.join(", ")
    }
}

/// Which precision was faster.
pub(super) struct Speed {
    /// Of networks of this shape.
    shape: String,
    precision: Precision,
    is_faster: bool,
}

/// Why a network is played in fp32 although it comes in a reduced precision, or should.
#[derive(Debug, thiserror::Error)]
pub(super) enum FellBack {
    /// What was asked for is not there.
    #[error("network {} does not come in {precision}", id.short())]
    NotOffered { id: ModelId, precision: Precision },
    /// Its file cannot be had, is something else, or does not run here.
    #[error("network {} cannot be played in {precision}: {source}", id.short())]
    Unusable {
        id: ModelId,
        precision: Precision,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The file computes something else here.
    #[error("network {} is another one in {precision} here: {found}", id.short())]
    Unfaithful {
        id: ModelId,
        precision: Precision,
        found: Fidelity,
    },
}

/// What a trial found.
struct Trial {
    found: Fidelity,
    /// Median times of a full batch, in fp32 and in the reduced precision, where they were to be measured.
    times: Option<[Duration; 2]>,
}

impl Models {
    /// The network in the reduced precision that is to be played here; `None` where fp32 is.
    pub(super) async fn reduced(
        &self,
        proven: Proven,
        variants: &[v1::ModelVariant],
    ) -> Result<Option<Arc<ModelBytes>>, FellBack> {
        let id = proven.id;
        // All devices of an actor are of one kind.
        let device = self.sessions.first().map_or(Device::Cpu, |options| options.device);
        let Some(precision) = wanted(self.precision, device) else {
            return Ok(None);
        };
        let of_precision = |variant: &&v1::ModelVariant| precision_from_wire(variant.precision) == Some(precision);
        let by_speed = self.precision == WantedPrecision::Auto;
        let Some(offered) = variants.iter().find(of_precision) else {
            return match by_speed {
                true => Ok(None),
                false => Err(FellBack::NotOffered { id, precision }),
            };
        };
        let shape = shape(&proven.metadata);
        let known = if by_speed {
            self.is_faster(&shape, precision)
        } else {
            Some(true)
        };
        if known == Some(false) {
            return Ok(None);
        }
        let unusable = |source| FellBack::Unusable { id, precision, source };
        let model = self.variant(id, &proven.metadata, offered, precision).await;
        let model = model.map_err(unusable)?;
        let trial = self.try_out(proven, &model, known.is_none()).await.map_err(unusable)?;
        let Trial { found, times } = trial;
        if !found.is_faithful() {
            return Err(FellBack::Unfaithful { id, precision, found });
        }
        tracing::info!(model = %id.short(), %precision, %found, "a reduced precision is faithful here");
        let is_faster = times.is_none_or(|times| self.note_speed(shape, precision, times));
        Ok(is_faster.then_some(model))
    }

    /// The file, if it says that it is the network in this precision.
    async fn variant(
        &self,
        id: ModelId,
        network: &Metadata,
        offered: &v1::ModelVariant,
        precision: Precision,
    ) -> Result<Arc<ModelBytes>, Box<dyn Error + Send + Sync>> {
        let file = RemoteFile {
            network: id,
            precision,
            id: ModelId::from_bytes(&offered.file_id)?,
            size: offered.size_bytes,
        };
        let model = self.file(&file).await?;
        let metadata = read_metadata(model.bytes())?;
        check_variant(&metadata, precision, id, network)?;
        Ok(model)
    }

    /// Runs both precisions here.
    async fn try_out(
        &self,
        network: Proven,
        model: &Arc<ModelBytes>,
        is_timed: bool,
    ) -> Result<Trial, Box<dyn Error + Send + Sync>> {
        let (model, sessions) = (Arc::clone(model), self.sessions.clone());
        let trial = tokio::task::spawn_blocking(move || trial(network, &model, &sessions, is_timed));
        Ok(trial.await??)
    }

    /// Whether this precision was found faster than fp32 here, if it was measured.
    fn is_faster(&self, shape: &str, precision: Precision) -> Option<bool> {
        let state = self.lock();
        let same = |speed: &&Speed| speed.shape == shape && speed.precision == precision;
        state.speeds.iter().find(same).map(|speed| speed.is_faster)
    }

    /// Notes which precision is faster, for as long as this process runs.
    fn note_speed(&self, shape: String, precision: Precision, times: [Duration; 2]) -> bool {
        let is_faster = times[1] < times[0];
        let [fp32_ms, reduced_ms] = times.map(|time| time.as_secs_f64() * 1e3);
        let (batch, chosen) = (
            self.sessions.first().map(|options| options.batch_max),
            if is_faster { precision } else { Precision::Fp32 },
        );
        tracing::info!(%shape, batch, %precision, fp32_ms, reduced_ms, %chosen, "precision chosen by the time of a batch");
        self.lock().speeds.push(Speed {
            shape,
            precision,
            is_faster,
        });
        is_faster
    }
}

/// The reduced precision that is wanted on this device.
fn wanted(choice: WantedPrecision, device: Device) -> Option<Precision> {
    match choice {
        WantedPrecision::Fp32 => None,
        WantedPrecision::Int8 => Some(Precision::Int8),
        WantedPrecision::Fp16 => Some(Precision::Fp16),
        WantedPrecision::Auto if device.is_gpu() => Some(Precision::Fp16),
        WantedPrecision::Auto => Some(Precision::Int8),
    }
}

/// Everything that a network's speed depends on.
fn shape(metadata: &Metadata) -> String {
    let Metadata {
        blocks,
        channels,
        heads,
        ..
    } = metadata;
    format!("{blocks}x{channels} {heads}")
}

/// Compares the two on every device; they are timed on the first.
fn trial(
    network: Proven,
    model: &ModelBytes,
    devices: &[SessionOptions],
    is_timed: bool,
) -> Result<Trial, InferenceError> {
    let Proven { sessions, probes, .. } = network;
    let planes: Vec<u8> = probes.iter().flat_map(|probe| &probe.planes).copied().collect();
    let mut trial = Trial {
        found: Fidelity::default(),
        times: None,
    };
    for (at, (mut whole, options)) in sessions.into_iter().zip(devices).enumerate() {
        let mut reduced = Session::load(model.bytes(), options)?;
        trial.found = compare_precisions(&mut whole, &mut reduced, &planes, probes.len())?;
        if !trial.found.is_faithful() {
            trial.times = None;
            break;
        }
        if at == 0 && is_timed {
            trial.times = Some(batch_times(
                [&mut whole, &mut reduced],
                &planes,
                options.batch_max.min(TIMED_BATCH_MAX),
            )?);
        }
    }
    Ok(trial)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_takes_the_reduced_precision_of_the_device() {
        let (cpu, cuda) = (Device::Cpu, Device::Cuda(0));
        for (choice, device, expected) in [
            (WantedPrecision::Auto, cpu, Some(Precision::Int8)),
            (WantedPrecision::Auto, Device::OpenVino, Some(Precision::Int8)),
            (WantedPrecision::Auto, cuda, Some(Precision::Fp16)),
            (WantedPrecision::Auto, Device::TensorRt(1), Some(Precision::Fp16)),
            (WantedPrecision::Fp32, cuda, None),
            (WantedPrecision::Int8, cuda, Some(Precision::Int8)),
            (WantedPrecision::Fp16, cpu, Some(Precision::Fp16)),
        ] {
            assert_eq!(wanted(choice, device), expected, "{choice:?} on {device}");
        }
    }
}
