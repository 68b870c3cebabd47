//! A gate's evidence as JSON: with it anybody can count the match again.

use serde_json::{Value, json};
use tengen_proto::v1::{GateState, MatchEvidence};

/// What `gate.json` says.
pub(super) fn json(evidence: &MatchEvidence) -> Value {
    let gate = evidence.gate.clone().unwrap_or_default();
    let state = match gate.state() {
        GateState::Open | GateState::Unspecified => "open",
        GateState::Promoted => "promoted",
        GateState::Passed => "passed",
        GateState::Rejected => "rejected",
        GateState::Void => "void",
    };
    let openings = evidence
        .openings
        .iter()
        .map(|opening| json!({ "plies": opening.plies, "sampled_plies": opening.sampled_plies }));
    let log = evidence.log.iter().map(|entry| {
        json!({
            "lease": hex::encode(&entry.lease_id),
            "pair": entry.pair,
            "seat_0": if entry.champion_first { "champion" } else { "candidate" },
            "score": entry.score,
            "counts": entry.counts,
        })
    });
    json!({
        "gate": gate.gate_id,
        "candidate_id": hex::encode(&gate.candidate_id),
        "champion_id": hex::encode(&gate.champion_id),
        "iteration": gate.iteration,
        "state": state,
        "reason": gate.reason,
        "pairs": gate.pairs,
        "pairs_target": gate.pairs_target,
        "wins": gate.wins,
        "draws": gate.draws,
        "losses": gate.losses,
        "score": gate.score,
        "rule": gate.rule,
        "threshold": gate.threshold,
        "llr": gate.llr,
        "pairs_by_half_points": gate.pairs_by_half_points,
        "strict": evidence.strict,
        "elo": gate.elo,
        "elo_error": gate.elo_error,
        "opened_unix_ms": gate.opened_unix_ms,
        "decided_unix_ms": gate.decided_unix_ms,
        "seed": evidence.seed,
        "openings": openings.collect::<Vec<_>>(),
        "log": log.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use tengen_proto::v1::{Gate, MatchLogEntry, MatchOpening};

    use super::*;

    #[test]
    fn every_game_says_who_sat_where_and_whether_it_counts() {
        let evidence = MatchEvidence {
            gate: Some(Gate {
                gate_id: 3,
                state: GateState::Promoted.into(),
                ..Gate::default()
            }),
            openings: vec![MatchOpening {
                plies: vec![4, 0],
                sampled_plies: 2,
            }],
            log: vec![MatchLogEntry {
                lease_id: vec![0xab; 16],
                champion_first: true,
                score: 0.5,
                counts: true,
                ..MatchLogEntry::default()
            }],
            ..MatchEvidence::default()
        };
        let json = json(&evidence);
        assert_eq!((&json["gate"], &json["state"]), (&3.into(), &"promoted".into()));
        assert_eq!(json["openings"], json!([{ "plies": [4, 0], "sampled_plies": 2 }]));
        let game = &json["log"][0];
        assert_eq!(
            (&game["seat_0"], &game["score"], &game["counts"]),
            (&"champion".into(), &0.5.into(), &true.into())
        );
    }
}
