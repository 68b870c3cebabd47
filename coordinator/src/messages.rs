//! Rows as wire messages.

use prost::Message;
use rusqlite::Connection;
use tengen_control::{Elo, GameScore, Leg, LogEntry, Standing, Tally, elo_of};
use tengen_proto::v1;

use crate::store::actors::ActorRow;
use crate::store::gates::{GateRow, GateState};
use crate::store::models::{ModelRow, ModelState};
use crate::store::{StoreError, progress};

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

/// What a gate's message shows.
#[derive(Debug)]
pub(crate) struct GateView {
    pub(crate) id: u32,
    pub(crate) candidate: [u8; 32],
    pub(crate) champion: [u8; 32],
    pub(crate) iteration: u32,
    pub(crate) pairs_target: u32,
    pub(crate) threshold: f64,
    pub(crate) tally: Tally,
    pub(crate) state: GateState,
    pub(crate) reason: String,
    pub(crate) opened_ms: i64,
    pub(crate) decided_ms: Option<i64>,
}

/// A gate.
pub(crate) fn gate(view: &GateView) -> v1::Gate {
    // Nothing is known before the first pair; the wire has no infinite intervals.
    let elo = if view.tally.games() == 0 {
        Elo {
            difference: 0.0,
            low: 0.0,
            high: 0.0,
        }
    } else {
        elo_of(view.tally.points(), view.tally.games())
    };
    let state = match view.state {
        GateState::Open => v1::GateState::Open,
        GateState::Promoted => v1::GateState::Promoted,
        GateState::Rejected => v1::GateState::Rejected,
    };
    v1::Gate {
        gate_id: view.id,
        candidate_id: view.candidate.to_vec(),
        champion_id: view.champion.to_vec(),
        iteration: view.iteration,
        pairs: view.tally.pairs,
        pairs_target: view.pairs_target,
        wins: view.tally.wins,
        draws: view.tally.draws,
        losses: view.tally.losses,
        score: view.tally.score() as f32,
        threshold: view.threshold as f32,
        state: state.into(),
        reason: view.reason.clone(),
        elo: elo.difference as f32,
        elo_error: elo.error() as f32,
        opened_unix_ms: view.opened_ms,
        decided_unix_ms: view.decided_ms.unwrap_or_default(),
        // A rate is needed for that; the status of a run that goes on has one.
        seconds_left_max: None,
    }
}

/// A stored gate; one in progress is counted from its log.
pub(crate) fn stored_gate(row: &GateRow, tally: Tally) -> v1::Gate {
    gate(&GateView {
        id: row.id,
        candidate: row.candidate.0,
        champion: row.champion.0,
        iteration: row.iteration,
        pairs_target: row.pairs_target,
        threshold: row.rule.threshold(),
        tally,
        state: row.state,
        reason: row.reason.clone(),
        opened_ms: row.opened_ms,
        decided_ms: row.decided_ms,
    })
}

/// What counts of a gate: as it was decided, or by its log while it is open.
pub(crate) fn tally(row: &GateRow, log: &[LogEntry]) -> Tally {
    match row.state {
        GateState::Open => row.restore(log).tally(),
        GateState::Promoted | GateState::Rejected => row.tally,
    }
}

/// A gate with what its decision can be computed from again.
pub(crate) fn evidence(row: &GateRow, log: &[LogEntry]) -> v1::MatchEvidence {
    let openings = row.openings.iter().map(|opening| v1::MatchOpening {
        plies: opening.plies.iter().copied().map(u32::from).collect(),
        sampled_plies: opening.sampled_plies,
    });
    let entries = log.iter().map(|entry| v1::MatchLogEntry {
        lease_id: entry.lease.0.to_vec(),
        pair: entry.pair,
        champion_first: entry.leg == Leg::ChampionFirst,
        score: match entry.score {
            GameScore::Win => 1.0,
            GameScore::Draw => 0.5,
            GameScore::Loss => 0.0,
        },
        counts: entry.standing == Standing::Counts,
    });
    v1::MatchEvidence {
        gate: Some(stored_gate(row, tally(row, log))),
        seed: row.seed,
        openings: openings.collect(),
        log: entries.collect(),
        strict: row.rule.strict,
    }
}
