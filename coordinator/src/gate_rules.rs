//! The section `[gate]` as the state machine's rules.

use tengen_control::{
    ACTOR_SHARE_MIN, FixedRule, GatePlay, GateRule, MatchRule, Needed, PoolRule, Queue, RuleError, SprtRule, Unit,
};
use tengen_service::run_config::{GateKind, GateSection, PoolSection, QueuePolicy, SprtSection, SprtUnit};

/// What a candidate must pass.
pub(crate) fn rule(gate: &GateSection) -> Result<GateRule, RuleError> {
    let rule: MatchRule = match gate.kind {
        GateKind::None => return Ok(GateRule::None),
        GateKind::Fixed => FixedRule::new(gate.games, needed(gate))?.into(),
        GateKind::Sprt => sprt(&gate.sprt)?.into(),
    };
    Ok(GateRule::Play(GatePlay {
        rule,
        in_a_row: gate.consecutive,
        pool: pool(&gate.pool)?,
    }))
}

fn needed(gate: &GateSection) -> Needed {
    let threshold = f64::from(gate.threshold);
    if gate.strict {
        Needed::MoreThan(threshold)
    } else {
        Needed::AtLeast(threshold)
    }
}

fn sprt(sprt: &SprtSection) -> Result<SprtRule, RuleError> {
    let unit = match sprt.unit {
        SprtUnit::Score => Unit::Score,
        SprtUnit::Elo => Unit::Elo,
        SprtUnit::NormalizedElo => Unit::NormalizedElo,
    };
    SprtRule::new(sprt.games_max, unit, [sprt.lower, sprt.upper], [sprt.alpha, sprt.beta])
}

fn pool(pool: &PoolSection) -> Result<Option<PoolRule>, RuleError> {
    if pool.champions == 0 {
        return Ok(None);
    }
    let rule = FixedRule::new(pool.games, Needed::AtLeast(f64::from(pool.threshold)))?;
    Ok(Some(PoolRule {
        champions: pool.champions,
        rule,
    }))
}

/// What becomes of candidates while a gate is being played.
pub(crate) fn queue(gate: &GateSection) -> Queue {
    match gate.queue {
        QueuePolicy::Replace => Queue::Replace,
        QueuePolicy::Wait => Queue::Wait,
    }
}

/// The greatest share of a gate that one of three or more actors plays.
pub(crate) fn actor_share(gate: &GateSection) -> f64 {
    // 0.4 of the file is a little more as a wider number, and must stay what is allowed.
    f64::from(gate.actor_share).max(ACTOR_SHARE_MIN)
}
