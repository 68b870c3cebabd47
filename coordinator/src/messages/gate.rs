//! Gates as wire messages.

use tengen_control::{
    Decision, Elo, Evidence, GameScore, Gate, Leg, LogEntry, MatchEvidence, MatchPlan, MatchRule, Standing, Tally,
    elo_of, elo_of_pairs,
};
use tengen_proto::v1;

use crate::store::gates::{GateRow, GateState, StoredMatch};

/// The gate that is being played, from memory; `streak` is how many have passed in a row, and how many must.
pub(crate) fn gate_in_progress(gate: &Gate, streak: (u32, u32), opened_ms: i64, games_per_minute: f32) -> v1::Gate {
    let message = of_gate(gate);
    let games_left = message.pairs_target.saturating_sub(message.pairs) * 2;
    v1::Gate {
        opened_unix_ms: opened_ms,
        streak: streak.0,
        streak_needed: streak.1,
        state: v1::GateState::Open.into(),
        seconds_left_max: (games_per_minute > 0.0).then(|| f64::from(games_left) * 60.0 / f64::from(games_per_minute)),
        ..message
    }
}

/// A stored gate: as it was decided, or by its log while it is played.
pub(crate) fn stored_gate(row: &GateRow, log: &[LogEntry]) -> v1::Gate {
    match row.state {
        GateState::Open => open_gate(row, &row.restore(log)),
        GateState::Promoted | GateState::Rejected | GateState::Void => decided_gate(row),
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
        gate: Some(stored_gate(row, log)),
        seed: row.seed,
        openings: openings.collect(),
        log: entries.collect(),
        strict: matches!(row.rule, MatchRule::Fixed(rule) if rule.strict),
    }
}

/// A stored gate that is being played, with its log counted.
fn open_gate(row: &GateRow, gate: &Gate) -> v1::Gate {
    v1::Gate {
        opened_unix_ms: row.opened_ms,
        streak: row.streak,
        streak_needed: row.in_a_row,
        state: v1::GateState::Open.into(),
        ..of_gate(gate)
    }
}

/// A decided gate.
fn decided_gate(row: &GateRow) -> v1::Gate {
    let evidence = Evidence {
        tally: row.tally,
        llr: row.llr,
        elo: row.elo,
        pool: row.pool.iter().map(decided_match).collect(),
    };
    let plan = MatchPlan {
        opponent: tengen_control::ModelId(row.champion.0),
        rule: row.rule,
        openings: row.drawn,
    };
    let state = match row.state {
        GateState::Open => v1::GateState::Open,
        GateState::Promoted => v1::GateState::Promoted,
        GateState::Rejected if row.streak > 0 => v1::GateState::Passed,
        GateState::Rejected => v1::GateState::Rejected,
        GateState::Void => v1::GateState::Void,
    };
    v1::Gate {
        gate_id: row.id,
        candidate_id: row.candidate.0.to_vec(),
        iteration: row.iteration,
        state: state.into(),
        reason: row.reason.clone(),
        opened_unix_ms: row.opened_ms,
        decided_unix_ms: row.decided_ms.unwrap_or_default(),
        streak: row.streak,
        streak_needed: row.in_a_row,
        ..of_match(plan, &evidence)
    }
}

fn of_gate(gate: &Gate) -> v1::Gate {
    v1::Gate {
        gate_id: gate.id().0,
        candidate_id: gate.candidate().model.0.to_vec(),
        iteration: gate.candidate().iteration,
        ..of_match(gate.champion_match().plan(), &gate.evidence())
    }
}

/// What is said of the match with the champion, and of those with the pool.
fn of_match(plan: MatchPlan, evidence: &Evidence) -> v1::Gate {
    let tally = evidence.tally;
    let rule = plan.rule.shortened_to(plan.openings.pairs);
    let elo = evidence.elo.or_else(|| elo_of_pairs(tally.pairs_by_half_points));
    let elo = elo.or_else(|| unpaired_elo(tally));
    let (llr_lower, llr_upper) = match rule {
        MatchRule::Sprt(rule) => rule.bounds(),
        MatchRule::Fixed(_) => (0.0, 0.0),
    };
    v1::Gate {
        champion_id: plan.opponent.0.to_vec(),
        pairs: tally.pairs,
        pairs_target: rule.pairs(),
        wins: tally.wins,
        draws: tally.draws,
        losses: tally.losses,
        score: tally.score() as f32,
        threshold: threshold(&rule),
        elo: elo.map_or(0.0, |elo| elo.difference as f32),
        elo_error: elo.map_or(0.0, |elo| elo.error() as f32),
        elo_low: elo.map_or(0.0, |elo| elo.low as f32),
        elo_high: elo.map_or(0.0, |elo| elo.high as f32),
        llr: evidence.llr,
        llr_lower,
        llr_upper,
        pairs_by_half_points: tally.pairs_by_half_points.to_vec(),
        rule: plan.rule.to_string(),
        openings_repeated: plan.openings.repeated,
        pool: evidence.pool.iter().map(pool_match).collect(),
        ..v1::Gate::default()
    }
}

/// A gate of before schema 8: what its pairs brought was not noted. Nothing is known before the first pair, and the wire
/// has no infinite intervals.
fn unpaired_elo(tally: Tally) -> Option<Elo> {
    (tally.games() > 0).then(|| elo_of(tally.points(), tally.games()))
}

fn threshold(rule: &MatchRule) -> f32 {
    match rule {
        MatchRule::Fixed(rule) => rule.threshold() as f32,
        MatchRule::Sprt(_) => 0.0,
    }
}

fn decided_match(stored: &StoredMatch) -> MatchEvidence {
    MatchEvidence {
        plan: stored.plan(),
        tally: stored.tally(),
        decision: stored.decision(),
    }
}

fn pool_match(evidence: &MatchEvidence) -> v1::PoolMatch {
    let tally = evidence.tally;
    let rule = evidence.plan.rule.shortened_to(evidence.plan.openings.pairs);
    let state = match evidence.decision {
        None => v1::GateState::Open,
        Some(Decision::Promote) => v1::GateState::Passed,
        Some(Decision::Reject) => v1::GateState::Rejected,
    };
    v1::PoolMatch {
        opponent_id: evidence.plan.opponent.0.to_vec(),
        pairs: tally.pairs,
        pairs_target: rule.pairs(),
        wins: tally.wins,
        draws: tally.draws,
        losses: tally.losses,
        score: tally.score() as f32,
        threshold: threshold(&rule),
        state: state.into(),
    }
}
