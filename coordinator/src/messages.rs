//! Rows as wire messages.

mod gate;

use prost::Message;
use rusqlite::Connection;
use tengen_proto::v1;

use crate::store::actors::ActorRow;
use crate::store::models::{ModelRow, ModelState};
use crate::store::{StoreError, progress};

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

/// A network with its configuration and, where the row has them, its probes.
pub(crate) fn model(connection: &Connection, run_id: &str, row: &ModelRow) -> Result<v1::Model, StoreError> {
    let run_toml = progress::settings(connection, row.settings_revision)?.unwrap_or_default();
    let probes = v1::Model::decode(&row.probes[..])
        .map_err(|error| StoreError::corrupt("probes", error))?
        .probes;
    Ok(v1::Model {
        run_toml,
        probes,
        ..bare_model(run_id, row)
    })
}

/// A network without configuration and probes.
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
    }
}
