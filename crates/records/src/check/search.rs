//! A search block against the position it belongs to.
//!
//! It cannot be recomputed without the model, so this checks its shape: finite numbers in their ranges, legal actions,
//! sums.

use tengen_games::Action;

use crate::record::{NET_POLICY_TOP_MAX, SearchBlock};
use crate::rejection::ReasonCode;

/// How far a sum of probabilities may be from one: wide enough for several hundred 32-bit roundings, far below what
/// would show in training.
pub const TOLERANCE: f32 = 1e-3;

/// Largest training weight of a position.
pub const WEIGHT_MAX: f32 = 16.0;

type Fault = (ReasonCode, String);
type Verdict = Result<(), Fault>;

/// Checks `block` in a position with these `legal` actions (ascending) of a game with this many symmetries.
pub(super) fn check(block: &SearchBlock, legal: &[Action], symmetries: usize) -> Verdict {
    number(ReasonCode::Weight, "weight", block.weight, 0.0, WEIGHT_MAX)?;
    policy_target(&block.policy_target, block.weight, legal)?;
    visits(block, legal)?;
    wdl("root_wdl", block.root_wdl)?;
    wdl("net_wdl", block.net_wdl)?;
    net_policy(&block.net_policy_top, legal)?;
    // A divergence is never negative; its sum in 32 bits may be, by a rounding.
    number(ReasonCode::PriorKl, "prior_kl", block.prior_kl, -TOLERANCE, f32::MAX)?;
    number(ReasonCode::Temperature, "temperature", block.temperature, 0.0, f32::MAX)?;
    if usize::from(block.symmetry) >= symmetries {
        return Err((
            ReasonCode::Symmetry,
            format!("symmetry {} of {symmetries}", block.symmetry),
        ));
    }
    Ok(())
}

/// `value` is a number within the bounds; NaN is in no bounds.
fn number(code: ReasonCode, what: &str, value: f32, least: f32, greatest: f32) -> Verdict {
    if (least..=greatest).contains(&value) {
        return Ok(());
    }
    Err((code, format!("{what} is {value}, not in {least}..={greatest}")))
}

fn sum_to_one(code: ReasonCode, what: &str, values: impl Iterator<Item = f32>) -> Verdict {
    let sum: f64 = values.map(f64::from).sum();
    if (sum - 1.0).abs() <= f64::from(TOLERANCE) {
        Ok(())
    } else {
        Err((code, format!("{what} sums to {sum}")))
    }
}

fn policy_target(target: &[(Action, f32)], weight: f32, legal: &[Action]) -> Verdict {
    for &(action, probability) in target {
        if !probability.is_finite() {
            let detail = format!("target of action {action} is {probability}");
            return Err((ReasonCode::PolicyNotFinite, detail));
        }
        number(ReasonCode::PolicyRange, "target", probability, 0.0, 1.0 + TOLERANCE)?;
        if legal.binary_search(&action).is_err() {
            return Err((
                ReasonCode::PolicyIllegal,
                format!("the target names illegal action {action}"),
            ));
        }
    }
    ascending(ReasonCode::PolicyOrder, "target", target)?;
    if target.is_empty() && weight == 0.0 {
        return Ok(());
    }
    sum_to_one(
        ReasonCode::PolicySum,
        "target",
        target.iter().map(|&(_, probability)| probability),
    )
}

fn ascending<T>(code: ReasonCode, what: &str, entries: &[(Action, T)]) -> Verdict {
    match entries.array_windows().find(|[(left, _), (right, _)]| left >= right) {
        None => Ok(()),
        Some([(left, _), (right, _)]) => Err((code, format!("{what} has action {right} after {left}"))),
    }
}

fn visits(block: &SearchBlock, legal: &[Action]) -> Verdict {
    let refuse = |detail| Err((ReasonCode::Visits, detail));
    for &(action, visits) in &block.visits {
        if visits == 0 {
            return refuse(format!("action {action} is listed with 0 visits"));
        }
        if legal.binary_search(&action).is_err() {
            return refuse(format!("visits name illegal action {action}"));
        }
    }
    ascending(ReasonCode::Visits, "visits", &block.visits)?;
    let sum: u64 = block.visits.iter().map(|&(_, visits)| u64::from(visits)).sum();
    let total = block.visits_total;
    if total == 0 {
        return refuse("a search has no root visit".to_owned());
    }
    if sum > u64::from(total) {
        return refuse(format!("children have {sum} visits, their root {total}"));
    }
    if block.visits_reused > total {
        return refuse(format!("{} of {total} visits are reused", block.visits_reused));
    }
    Ok(())
}

fn wdl(what: &str, values: [f32; 3]) -> Verdict {
    for value in values {
        number(ReasonCode::Wdl, what, value, 0.0, 1.0 + TOLERANCE)?;
    }
    sum_to_one(ReasonCode::Wdl, what, values.into_iter())
}

fn net_policy(top: &[(Action, f32)], legal: &[Action]) -> Verdict {
    let refuse = |detail| Err((ReasonCode::NetPolicy, detail));
    if top.len() > NET_POLICY_TOP_MAX {
        return refuse(format!("{} largest priors, at most {NET_POLICY_TOP_MAX}", top.len()));
    }
    for (n, &(action, prior)) in top.iter().enumerate() {
        number(ReasonCode::NetPolicy, "prior", prior, 0.0, 1.0 + TOLERANCE)?;
        if legal.binary_search(&action).is_err() {
            return refuse(format!("the largest priors name illegal action {action}"));
        }
        if top[..n].iter().any(|&(other, _)| other == action) {
            return refuse(format!("the largest priors name action {action} twice"));
        }
    }
    let sum: f64 = top.iter().map(|&(_, prior)| f64::from(prior)).sum();
    if sum > 1.0 + f64::from(TOLERANCE) {
        refuse(format!("the largest priors sum to {sum}"))
    } else {
        Ok(())
    }
}
