//! What orders look like on the wire: their parts parsed, their refusals as rich errors.

use tengen_control::Activity;
use tengen_proto::v1;
use tengen_records::ModelId;
use tonic::{Code, Status};

use super::errors;
use crate::run::orders::{Expected, SteerRefused};
use crate::run::settings::SettingsRefused;
use crate::settings::SettingsFault;

/// The activity that is meant.
pub(super) fn activity(number: i32) -> Result<Activity, Status> {
    match v1::Activity::try_from(number) {
        Ok(v1::Activity::SelfPlay) => Ok(Activity::SelfPlay),
        Ok(v1::Activity::Training) => Ok(Activity::Training),
        Ok(v1::Activity::Gating) => Ok(Activity::Gating),
        Ok(v1::Activity::Unspecified) | Err(_) => Err(errors::bad_field(
            "activity",
            format!("{number} is none: 1 is self-play, 2 training, 3 gating"),
        )),
    }
}

/// The network that is meant.
pub(super) fn model(id: &[u8]) -> Result<ModelId, Status> {
    ModelId::from_bytes(id).map_err(|error| errors::bad_field("model_id", error))
}

/// What the order was based on, which it must say.
pub(super) fn expected(expected: Option<v1::Expected>) -> Result<Expected, Status> {
    let v1::Expected { champion_id, gate_id } = expected.ok_or_else(|| {
        let fault = "it is missing: an order about the champion names the champion it was based on";
        errors::bad_field("expected", fault)
    })?;
    let champion =
        ModelId::from_bytes(&champion_id).map_err(|error| errors::bad_field("expected.champion_id", error))?;
    Ok(Expected {
        champion,
        gate: gate_id,
    })
}

impl From<SteerRefused> for Status {
    fn from(error: SteerRefused) -> Status {
        match &error {
            SteerRefused::Stale { .. } => errors::refusal(Code::Aborted, "STALE", error),
            SteerRefused::NoSuchModel(_) => errors::refusal(Code::NotFound, "NO_SUCH_MODEL", error),
            SteerRefused::IsChampion(_) => errors::precondition("IS_CHAMPION", "model_id", error),
            SteerRefused::WasChampion { .. } => errors::precondition("WAS_CHAMPION", "model_id", error),
            SteerRefused::NeverChampion(_) => errors::precondition("NEVER_CHAMPION", "model_id", error),
            SteerRefused::FileGone(_) => errors::precondition("MODEL_REMOVED", "model_id", error),
            SteerRefused::NoCandidate { .. } => errors::precondition("NO_CANDIDATE", "model_id", error),
            SteerRefused::Ended => errors::precondition("RUN_ENDED", "run", error),
            SteerRefused::OtherRun { .. } => errors::precondition("OTHER_RUN", "run_id", error),
        }
    }
}

impl From<SettingsRefused> for Status {
    fn from(error: SettingsRefused) -> Status {
        match &error {
            SettingsRefused::Stale { .. } => errors::refusal(Code::Aborted, "STALE", error),
            SettingsRefused::Ended => errors::precondition("RUN_ENDED", "run", error),
            SettingsRefused::Fault(SettingsFault::Fixed(key)) => errors::precondition("FIXED_KEY", key, &error),
            SettingsRefused::Fault(SettingsFault::AtStart(key)) => errors::precondition("START_KEY", key, &error),
            SettingsRefused::Fault(_) | SettingsRefused::Rules(_) => errors::bad_field("assignments", error),
        }
    }
}
