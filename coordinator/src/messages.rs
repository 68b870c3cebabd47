//! Rows as wire messages.

mod gate;

use prost::Message;
use rusqlite::Connection;
use tengen_control::Activity;
use tengen_proto::v1;
use tengen_records::precision_to_wire;

use crate::settings::{Change, changes};
use crate::store::actors::ActorRow;
use crate::store::models::{ModelRow, ModelState};
use crate::store::settings::SettingsRow;
use crate::store::steering::SteeringRow;
use crate::store::variants::{self, VariantRow};
use crate::store::{StoreError, settings};

pub(crate) use gate::{evidence, gate_in_progress, stored_gate};

/// An actor as it is remembered.
pub(crate) fn actor(row: ActorRow) -> v1::Actor {
    v1::Actor {
        actor_id: row.actor,
        host: row.host,
        build: row.build,
        provider: row.provider,
        registered_unix_ms: row.registered_ms,
        strikes: row.strikes,
        suspended_unix_ms: row.suspended_ms.unwrap_or_default(),
        token_id: row.token.unwrap_or_default(),
    }
}

/// A key whose value was changed.
pub(crate) fn setting_change(change: Change) -> v1::SettingChange {
    v1::SettingChange {
        key: change.key,
        old: change.old,
        new: change.new,
    }
}

/// A revision of the settings, compared with the one before it.
pub(crate) fn settings(row: SettingsRow, before: Option<&SettingsRow>) -> v1::Settings {
    let changes = before.map_or_else(Vec::new, |before| changes(&before.toml, &row.toml));
    v1::Settings {
        revision: row.revision,
        created_unix_ms: row.created_ms,
        who: row.who,
        run_toml: row.toml,
        changes: changes.into_iter().map(setting_change).collect(),
        live_keys: Vec::new(),
    }
}

/// An activity that can be paused.
pub(crate) fn activity(activity: Activity) -> v1::Activity {
    match activity {
        Activity::SelfPlay => v1::Activity::SelfPlay,
        Activity::Training => v1::Activity::Training,
        Activity::Gating => v1::Activity::Gating,
    }
}

/// What people have set.
pub(crate) fn steering(row: &SteeringRow) -> v1::Steering {
    let paused = row.steering.paused.iter();
    v1::Steering {
        paused: paused.map(|&paused| activity(paused).into()).collect(),
        pinned: row.steering.pinned,
        ended_unix_ms: row.ended_ms.unwrap_or_default(),
    }
}

/// A network with its configuration, the other precisions it comes in and, where the row has them, its probes with what its
/// files in those answered.
pub(crate) fn model(connection: &Connection, run_id: &str, row: &ModelRow) -> Result<v1::Model, StoreError> {
    let run_toml = settings::toml(connection, row.settings_revision)?.unwrap_or_default();
    let probes = v1::Model::decode(&row.probes[..])
        .map_err(|error| StoreError::corrupt("probes", error))?
        .probes;
    let variants = match probes.is_empty() {
        true => variants::of(connection, row.id)?,
        false => variants::with_answers(connection, row.id)?,
    };
    Ok(v1::Model {
        run_toml,
        probes,
        variants: variants.into_iter().map(variant).collect::<Result<_, _>>()?,
        ..bare_model(run_id, row)
    })
}

fn variant(row: VariantRow) -> Result<v1::ModelVariant, StoreError> {
    let answers = answers(&row)?;
    Ok(v1::ModelVariant {
        precision: precision_to_wire(row.precision).into(),
        file_id: row.file.0.to_vec(),
        size_bytes: row.size_bytes,
        sha256: row.sha256,
        fidelity: Some(v1::Fidelity {
            positions: row.fidelity.positions,
            policy_kl: row.fidelity.policy_kl,
            policy_agreement: row.fidelity.policy_agreement,
            value_error: row.fidelity.value_error,
        }),
        answers,
    })
}

/// What a file in a reduced precision answered where it was made.
pub(crate) fn answers(row: &VariantRow) -> Result<Vec<v1::ProbeAnswer>, StoreError> {
    let variant = v1::ModelVariant::decode(&row.answers[..]).map_err(|error| StoreError::corrupt("answers", error))?;
    Ok(variant.answers)
}

/// A network without configuration, probes and other precisions.
pub(crate) fn bare_model(run_id: &str, row: &ModelRow) -> v1::Model {
    v1::Model {
        model_id: row.id.0.to_vec(),
        run_id: run_id.to_owned(),
        iteration: row.iteration,
        generation: row.generation,
        step: row.step,
        parent_id: row.parent.map(|parent| parent.0.to_vec()).unwrap_or_default(),
        state: model_state(row.state).into(),
        created_unix_ms: row.created_ms,
        size_bytes: row.size_bytes,
        sha256: row.sha256.clone(),
        metadata_json: row.metadata_json.clone(),
        run_toml: String::new(),
        verdict: row.verdict.clone(),
        probes: Vec::new(),
        variants: Vec::new(),
    }
}

fn model_state(state: ModelState) -> v1::ModelState {
    match state {
        ModelState::Candidate => v1::ModelState::Candidate,
        ModelState::Gating => v1::ModelState::Gating,
        ModelState::Champion => v1::ModelState::Champion,
        ModelState::FormerChampion => v1::ModelState::FormerChampion,
        ModelState::Rejected => v1::ModelState::Rejected,
        ModelState::Superseded => v1::ModelState::Superseded,
        ModelState::Held => v1::ModelState::Held,
    }
}
