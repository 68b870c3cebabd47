//! The reduced precision of a network: which is wanted here, whether it is still the network here and computes what it did
//! where it was made, and whether it is faster.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tengen_inference::{
    Device, Fidelity, InferenceError, Probe, REPRODUCTION_TOLERANCE, Session, SessionOptions, TIMED_BATCH_MAX,
    batch_times, compare_precisions, run_probes,
};
use tengen_network::{Metadata, read_metadata};
use tengen_proto::v1;
use tengen_records::{ModelId, Precision, precision_from_wire};
use tengen_selfplay::wire::own_probes;
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

/// A network's file in the reduced precision that is to be played, and its sessions, one for each device.
pub(super) struct Reduced {
    pub(super) model: Arc<ModelBytes>,
    pub(super) sessions: Vec<Session>,
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
    /// The file computes something else here than where it was made.
    #[error("network {} computes something else in {precision} here than where it was made: {source}", id.short())]
    Elsewhere {
        id: ModelId,
        precision: Precision,
        #[source]
        source: InferenceError,
    },
    /// The file is not the network here.
    #[error("network {} is another one in {precision} here: {found}", id.short())]
    Unfaithful {
        id: ModelId,
        precision: Precision,
        found: Fidelity,
    },
}

/// Whether a trial finds out which precision is faster.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Timing {
    /// It does.
    Wanted,
    /// That is known, or does not matter.
    Settled,
}

/// What a trial found.
enum Trial {
    /// The file does not give here what it gave where it was made.
    Elsewhere(InferenceError),
    /// It is too far from fp32 here.
    Unfaithful(Fidelity),
    /// It is the network here.
    Faithful {
        found: Fidelity,
        /// Greatest difference from what it gave where it was made.
        difference: f32,
        /// Median times of a full batch, in fp32 and in the reduced precision, where they were to be measured.
        times: Option<[Duration; 2]>,
        /// The file, loaded on each device.
        sessions: Vec<Session>,
    },
}

impl Models {
    /// The network in the reduced precision that is to be played here; `None` where fp32 is.
    pub(super) async fn reduced(
        &self,
        proven: &mut Proven,
        variants: &[v1::ModelVariant],
    ) -> Result<Option<Reduced>, FellBack> {
        let id = proven.id;
        // All devices of an actor are of one kind.
        let devices = self.feeding.division().devices().as_slice();
        let device = devices.first().copied().unwrap_or(Device::Cpu);
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
        let timing = match known {
            None => Timing::Wanted,
            Some(_) => Timing::Settled,
        };
        let planes = proven.probes.iter().map(|probe| probe.planes.as_slice());
        let own = own_probes(planes, &offered.answers).map_err(|error| unusable(error.into()))?;
        let trial = self.try_out(proven, own, &model, timing).await;
        match trial.map_err(unusable)? {
            Trial::Elsewhere(source) => Err(FellBack::Elsewhere { id, precision, source }),
            Trial::Unfaithful(found) => Err(FellBack::Unfaithful { id, precision, found }),
            Trial::Faithful {
                found,
                difference,
                times,
                sessions,
            } => {
                let model_id = id.short();
                tracing::info!(model = %model_id, %precision, difference, %found, "a reduced precision is faithful here");
                let is_faster = times.is_none_or(|times| self.note_speed(shape, precision, times));
                Ok(is_faster.then_some(Reduced { model, sessions }))
            }
        }
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
        network: &mut Proven,
        own: Vec<Probe>,
        model: &Arc<ModelBytes>,
        timing: Timing,
    ) -> Result<Trial, Box<dyn Error + Send + Sync>> {
        let (model, devices) = (Arc::clone(model), self.feeding.sessions());
        let (mut whole, probes) = (std::mem::take(&mut network.sessions), network.probes.clone());
        let trying = tokio::task::spawn_blocking(move || {
            let found = trial(&mut whole, &probes, &own, &model, &devices, timing);
            (found, whole)
        });
        let (found, whole) = trying.await?;
        network.sessions = whole;
        Ok(found?)
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
            self.feeding.sessions().first().map(|options| options.batch_max),
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

/// Whether this provider computes as the one did that made the file: ONNX Runtime's own for the CPU. Others round at other
/// places, and what a file is there only the comparison with fp32 tells.
fn is_comparable(provider: &str) -> bool {
    provider == "CPUExecutionProvider"
}

/// Compares the file on every device with what it answered where it was made (`own`) and with fp32, whose sessions are `whole`;
/// the two are timed on the first.
fn trial(
    whole: &mut [Session],
    probes: &[Probe],
    own: &[Probe],
    model: &ModelBytes,
    devices: &[SessionOptions],
    timing: Timing,
) -> Result<Trial, InferenceError> {
    let mut sessions = Vec::with_capacity(devices.len());
    let planes: Vec<u8> = probes.iter().flat_map(|probe| &probe.planes).copied().collect();
    let (mut found, mut difference, mut times) = (Fidelity::default(), 0.0f32, None);
    for (at, (whole, options)) in whole.iter_mut().zip(devices).enumerate() {
        let mut reduced = Session::load(model.bytes(), options)?;
        if is_comparable(reduced.provider()) {
            match run_probes(&mut reduced, own, REPRODUCTION_TOLERANCE) {
                Ok(here) => difference = difference.max(here),
                Err(error @ InferenceError::ProbeDiffers { .. }) => return Ok(Trial::Elsewhere(error)),
                Err(error) => return Err(error),
            }
        }
        found = compare_precisions(whole, &mut reduced, &planes, probes.len())?;
        if !found.is_faithful() {
            break;
        }
        if at == 0 && timing == Timing::Wanted {
            times = Some(batch_times(
                [whole, &mut reduced],
                &planes,
                options.batch_max.min(TIMED_BATCH_MAX),
            )?);
        }
        sessions.push(reduced);
    }
    Ok(match found.is_faithful() {
        true => Trial::Faithful {
            found,
            difference,
            times,
            sessions,
        },
        false => Trial::Unfaithful(found),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_held_against_where_they_were_made_on_the_same_kind_of_provider_alone() {
        for (provider, expected) in [
            ("CPUExecutionProvider", true),
            ("OpenVINOExecutionProvider", false),
            ("CUDAExecutionProvider", false),
        ] {
            assert_eq!(is_comparable(provider), expected, "{provider}");
        }
    }

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
