//! Fidelity: how near a file in a reduced precision is to the fp32 file that it was made from.

use std::fmt;

use tengen_inference::{Outputs, softmax};
use tengen_service::run_config::ExportSection;

/// An action is as good as the preferred one when its probability is lower by no more than this...
const NEAR_TIE: f64 = 1e-3;
/// ... or by no more than this share of the other's. Among actions so near to each other any rounding picks another, and
/// no search cares: an untrained network has nothing but near ties.
const NEAR_TIE_SHARE: f64 = 0.02;

/// How near two files are, over positions that the reduced one was not calibrated on.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// Compares what two files answer for the same positions, in the same order. `None` where there are none.
    pub fn of(fp32: &Outputs, reduced: &Outputs) -> Option<Fidelity> {
        let positions = fp32.len().min(reduced.len());
        if positions == 0 {
            return None;
        }
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
        let mean = |sum: f64| sum / positions as f64;
        Some(Fidelity {
            positions: u32::try_from(positions).unwrap_or(u32::MAX),
            // Equal policies may come out a rounding below zero.
            policy_kl: mean(divergence).max(0.0),
            policy_agreement: mean(f64::from(agreed)),
            value_error: mean(value_error),
        })
    }

    /// What keeps it from being near enough, each with its limit; none when it is.
    pub fn faults(&self, limits: &ExportSection) -> Vec<String> {
        let checks = [
            (
                self.policy_kl <= limits.policy_kl_max,
                "policy_kl",
                self.policy_kl,
                "above export.policy_kl_max",
                limits.policy_kl_max,
            ),
            (
                self.policy_agreement >= limits.policy_agreement_min,
                "policy_agreement",
                self.policy_agreement,
                "below export.policy_agreement_min",
                limits.policy_agreement_min,
            ),
            (
                self.value_error <= limits.value_error_max,
                "value_error",
                self.value_error,
                "above export.value_error_max",
                limits.value_error_max,
            ),
        ];
        let broken = checks.into_iter().filter(|(holds, ..)| !holds);
        broken
            .map(|(_, what, found, side, limit)| format!("{what} {found:.5} is {side} = {limit}"))
            .collect()
    }

    /// The figures under keys of a file's metadata.
    pub fn properties(&self) -> [(&'static str, String); 4] {
        [
            ("fidelity_positions", self.positions.to_string()),
            ("fidelity_policy_kl", self.policy_kl.to_string()),
            ("fidelity_policy_agreement", self.policy_agreement.to_string()),
            ("fidelity_value_error", self.value_error.to_string()),
        ]
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
        let found = Fidelity::of(&same, &same).unwrap();
        assert_eq!((found.positions, found.policy_agreement), (2, 1.0));
        near(found.policy_kl, 0.0);
        near(found.value_error, 0.0);
        assert!(found.faults(&ExportSection::default()).is_empty());
        assert_eq!(Fidelity::of(&Outputs::default(), &Outputs::default()), None);
    }

    #[test]
    fn the_figures_are_means_over_positions() {
        let fp32 = outputs(&[[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]]);
        let mut reduced = outputs(&[[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]);
        // Logits of win and loss that make their probabilities 1/2 and 1/4 instead of a third each.
        reduced.wdl[..3].copy_from_slice(&[2f32.ln(), 0.0, 0.0]);
        let found = Fidelity::of(&fp32, &reduced).unwrap();
        near(found.policy_kl, (0.5 * 2f64.ln() - 0.25 * 2f64.ln()) / 2.0);
        near(found.policy_agreement, 0.5);
        near(found.value_error, 0.25 / 2.0);
        let faults = found.faults(&ExportSection::default());
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert_eq!(
            faults[1],
            "policy_agreement 0.50000 is below export.policy_agreement_min = 0.95"
        );
    }

    #[test]
    fn another_choice_counts_unless_it_is_as_good() {
        let agrees = |fp32: [f32; 3], reduced: [f32; 3]| {
            let found = Fidelity::of(&outputs(&[fp32]), &outputs(&[reduced])).unwrap();
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
        let found = Fidelity::of(&one, &other).unwrap();
        near(found.policy_kl, 500.0);
        assert_eq!(found.policy_agreement, 0.0);
    }
}
