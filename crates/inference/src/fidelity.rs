//! Fidelity: whether a network in a reduced precision is still the network.
//!
//! The learner measures it on many positions before it offers a file. Whoever is to play with the file, or to hold a game
//! against it, measures it again where it runs: an instruction set that adds 8-bit products in 16 bits, or a kernel with a
//! fault, shows there and nowhere else.

use std::fmt;

use crate::Result;
use crate::probe::softmax;
use crate::session::{Outputs, Session};

/// Greatest mean Kullback-Leibler divergence of the policies that hardware may show, nats. A trained gomoku network in int8
/// with its heads in fp32 shows 0.0003, so that a network far harder to quantise passes; sums that overflow show whole nats.
pub const FAITHFUL_KL_MAX: f64 = 0.02;
/// Greatest mean difference of win minus loss that hardware may show, of 2. The same network shows 0.011; sums that overflow
/// show some tenths.
pub const FAITHFUL_VALUE_ERROR_MAX: f64 = 0.05;

/// An action is as good as the preferred one when its probability is lower by no more than this...
const NEAR_TIE: f64 = 1e-3;
/// ... or by no more than this share of the other's. Among actions so near to each other any rounding picks another, and
/// no search cares: an untrained network has nothing but near ties.
const NEAR_TIE_SHARE: f64 = 0.02;

/// How near a reduced precision is to fp32, over some positions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fidelity {
    /// Positions compared.
    pub positions: u32,
    /// Mean Kullback-Leibler divergence of the policies over all actions, legal or not, fp32 to reduced, nats.
    pub policy_kl: f64,
    /// Share of positions where the reduced file prefers the action that fp32 prefers, or one that fp32 takes for as good.
    pub policy_agreement: f64,
    /// Mean absolute difference of win minus loss, 0 to 2.
    pub value_error: f64,
}

impl Fidelity {
    /// Compares what two files answer for the same positions, in the same order.
    pub fn of(fp32: &Outputs, reduced: &Outputs) -> Fidelity {
        let positions = fp32.len().min(reduced.len());
        let (mut divergence, mut agreed, mut value_error) = (0.0, 0u32, 0.0);
        for index in 0..positions {
            let ((policy, wdl), (reduced_policy, reduced_wdl)) = (fp32.position(index), reduced.position(index));
            let (logs, reduced_logs) = (log_probabilities(policy), log_probabilities(reduced_policy));
            let terms = logs
                .iter()
                .zip(&reduced_logs)
                .map(|(log, other)| log.exp() * (log - other));
            divergence += terms.sum::<f64>();
            agreed += u32::from(agree(&logs, &reduced_logs));
            value_error += (value(&wdl) - value(&reduced_wdl)).abs();
        }
        let mean = |sum: f64| sum / positions.max(1) as f64;
        Fidelity {
            positions: u32::try_from(positions).unwrap_or(u32::MAX),
            // Equal policies may come out a rounding below zero.
            policy_kl: mean(divergence).max(0.0),
            policy_agreement: mean(f64::from(agreed)),
            value_error: mean(value_error),
        }
    }

    /// Whether the reduced precision may stand for the network on this hardware. What was compared on nothing may not.
    pub fn is_faithful(&self) -> bool {
        // A figure that is not a number is below no limit.
        self.positions > 0 && self.policy_kl <= FAITHFUL_KL_MAX && self.value_error <= FAITHFUL_VALUE_ERROR_MAX
    }
}

impl fmt::Display for Fidelity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "policy {:.5} nats from fp32, {:.1} % of its choices, value error {:.4}, over {} positions",
            self.policy_kl,
            100.0 * self.policy_agreement,
            self.value_error,
            self.positions
        )
    }
}

/// Runs both sessions on `n` positions, `planes` being u8 `[n, C, H, W]`, and compares what they say.
///
/// # Errors
/// When `reduced` has other sizes than `fp32`, and when one of them cannot be run or gives what is not finite.
pub fn compare_precisions(fp32: &mut Session, reduced: &mut Session, planes: &[u8], n: usize) -> Result<Fidelity> {
    reduced.check(fp32.signature())?;
    let (mut whole, mut coarse) = (Outputs::default(), Outputs::default());
    fp32.run(planes, n, &mut whole)?;
    reduced.run(planes, n, &mut coarse)?;
    Ok(Fidelity::of(&whole, &coarse))
}

/// Whether what the second prefers is the first's choice, or as good to it.
fn agree(logs: &[f64], reduced: &[f64]) -> bool {
    let greatest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max).exp();
    let chosen = reduced.iter().zip(logs).max_by(|one, other| one.0.total_cmp(other.0));
    chosen.is_some_and(|(_, log)| log.exp() >= greatest - NEAR_TIE.max(NEAR_TIE_SHARE * greatest))
}

/// Win minus loss.
fn value(wdl: &[f32; 3]) -> f64 {
    let probabilities = softmax(wdl);
    f64::from(probabilities[0]) - f64::from(probabilities[2])
}

/// Logarithms of the probabilities of these logits: finite even where a probability is too small for a float.
fn log_probabilities(logits: &[f32]) -> Vec<f64> {
    let greatest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let above = |logit: &f32| f64::from(*logit) - f64::from(greatest);
    let sum: f64 = logits.iter().map(|logit| above(logit).exp()).sum();
    logits.iter().map(|logit| above(logit) - sum.ln()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outputs of positions with these probabilities of three actions, all of them undecided.
    fn outputs(policies: &[[f32; 3]]) -> Outputs {
        Outputs {
            policy: policies.iter().flatten().map(|probability| probability.ln()).collect(),
            wdl: vec![0.0; 3 * policies.len()],
        }
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
    }

    #[test]
    fn a_file_is_nothing_away_from_itself() {
        let same = outputs(&[[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]);
        let found = Fidelity::of(&same, &same);
        assert_eq!((found.positions, found.policy_agreement), (2, 1.0));
        near(found.policy_kl, 0.0);
        near(found.value_error, 0.0);
        assert!(found.is_faithful());
        let nothing = Fidelity::of(&Outputs::default(), &Outputs::default());
        assert!(!nothing.is_faithful() && nothing == Fidelity::default());
    }

    #[test]
    fn the_figures_are_means_over_positions() {
        let fp32 = outputs(&[[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]]);
        let mut reduced = outputs(&[[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]);
        // Logits of win and loss that make their probabilities 1/2 and 1/4 instead of a third each.
        reduced.wdl[..3].copy_from_slice(&[2f32.ln(), 0.0, 0.0]);
        let found = Fidelity::of(&fp32, &reduced);
        near(found.policy_kl, (0.5 * 2f64.ln() - 0.25 * 2f64.ln()) / 2.0);
        near(found.policy_agreement, 0.5);
        near(found.value_error, 0.25 / 2.0);
    }

    #[test]
    fn another_choice_counts_unless_it_is_as_good() {
        let agrees = |fp32: [f32; 3], reduced: [f32; 3]| {
            let found = Fidelity::of(&outputs(&[fp32]), &outputs(&[reduced]));
            found.policy_agreement == 1.0
        };
        let second = [0.3, 0.4, 0.3];
        assert!(agrees([0.335, 0.333, 0.332], second));
        assert!(!agrees([0.345, 0.333, 0.322], second));
        assert!(!agrees([0.9, 0.05, 0.05], second));
        // Of many actions, all of them improbable.
        let logs = |least: f64| [0.0048, least].map(f64::ln);
        assert!(agree(&logs(0.0039), &[0.0, 1.0]));
        assert!(!agree(&logs(0.0037), &[0.0, 1.0]));
    }

    #[test]
    fn probabilities_too_small_for_a_float_are_finite_figures() {
        let one = Outputs {
            policy: vec![0.0, 500.0],
            wdl: vec![0.0; 3],
        };
        let other = Outputs {
            policy: vec![500.0, 0.0],
            wdl: vec![0.0; 3],
        };
        let found = Fidelity::of(&one, &other);
        near(found.policy_kl, 500.0);
        assert_eq!(found.policy_agreement, 0.0);
    }

    #[test]
    fn what_is_beyond_a_limit_or_no_number_is_not_faithful() {
        let at = |policy_kl, value_error| Fidelity {
            positions: 4,
            policy_kl,
            policy_agreement: 1.0,
            value_error,
        };
        assert!(at(FAITHFUL_KL_MAX, FAITHFUL_VALUE_ERROR_MAX).is_faithful());
        for far in [at(0.021, 0.0), at(0.0, 0.051), at(f64::NAN, 0.0), at(0.0, f64::NAN)] {
            assert!(!far.is_faithful(), "{far}");
        }
    }
}
