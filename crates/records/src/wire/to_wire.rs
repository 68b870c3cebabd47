//! A record as the wire types say it.

use tengen_games::{Action, Outcome, Roles, Seat};
use tengen_proto::v1;

use super::{SCHEMA_VERSION, players_to_wire};
use crate::record::{Kind, PlyRecord, Precision, Record, SearchBlock};

pub(super) fn record(record: &Record) -> v1::GameRecord {
    v1::GameRecord {
        schema_version: SCHEMA_VERSION,
        lease_id: record.id.lease.to_bytes().to_vec(),
        game_index: record.id.index,
        run_id: record.run_id.as_str().to_owned(),
        game: record.game_id.clone(),
        rules_fingerprint: record.rules_fingerprint.0.to_vec(),
        kind: kind(record.kind).into(),
        model_ids: record.models.iter().map(|model| model.to_bytes().to_vec()).collect(),
        seat_models: record.seat_models.iter().map(|model| u32::from(model.0)).collect(),
        settings_revision: record.settings_revision,
        seed: record.seed,
        opening: record.opening.iter().map(|&action| number(action)).collect(),
        plies: record.plies.iter().map(ply).collect(),
        result: Some(result(record.outcome)),
        roles: Some(roles(record.roles)),
        created_unix_ms: record.created_unix_ms,
        duration_ms: record.duration_ms,
        match_pair: record.match_pair,
        players: record
            .players
            .as_ref()
            .map_or_else(Vec::new, |players| players_to_wire(players, &record.models)),
    }
}

fn number(action: Action) -> u32 {
    u32::from(action.0)
}

fn seat(seat: Seat) -> u32 {
    seat.index() as u32
}

fn kind(kind: Kind) -> v1::WorkKind {
    match kind {
        Kind::SelfPlay => v1::WorkKind::SelfPlay,
        Kind::Match => v1::WorkKind::Match,
    }
}

/// A precision as the wire says it.
pub fn precision_to_wire(precision: Precision) -> v1::Precision {
    match precision {
        Precision::Fp32 => v1::Precision::Fp32,
        Precision::Fp16 => v1::Precision::Fp16,
        Precision::Int8 => v1::Precision::Int8,
    }
}

fn result(outcome: Outcome) -> v1::Result {
    v1::Result {
        winner: outcome.winner.map(seat),
        reason: outcome.reason.as_str().to_owned(),
    }
}

fn roles(roles: Roles) -> v1::Roles {
    v1::Roles {
        opener: roles.opener.map(seat),
        chooser: roles.chooser.map(seat),
        first_colour: roles.first_colour.map(seat),
    }
}

fn ply(ply: &PlyRecord) -> v1::Ply {
    v1::Ply {
        seat: seat(ply.seat),
        action: number(ply.action),
        model: u32::from(ply.model.0),
        search: ply.search.as_ref().map(search),
    }
}

fn search(search: &SearchBlock) -> v1::SearchBlock {
    let (policy_target_actions, policy_target_probabilities) = columns(&search.policy_target);
    let (visit_actions, visit_counts) = columns(&search.visits);
    let (net_policy_top_actions, net_policy_top_probabilities) = columns(&search.net_policy_top);
    v1::SearchBlock {
        policy_target_actions,
        policy_target_probabilities,
        visit_actions,
        visit_counts,
        net_policy_top_actions,
        net_policy_top_probabilities,
        weight: search.weight,
        root_wdl: search.root_wdl.to_vec(),
        net_wdl: search.net_wdl.to_vec(),
        prior_kl: search.prior_kl,
        visits_total: search.visits_total,
        visits_reused: search.visits_reused,
        temperature: search.temperature,
        precision: precision_to_wire(search.precision).into(),
        symmetry: u32::from(search.symmetry),
        // The lists of schema version 1.
        policy_target: Vec::new(),
        visits: Vec::new(),
        net_policy_top: Vec::new(),
    }
}

/// The actions of a list, and what it says of each.
fn columns<T: Copy>(entries: &[(Action, T)]) -> (Vec<u32>, Vec<T>) {
    entries.iter().map(|&(action, value)| (number(action), value)).unzip()
}
