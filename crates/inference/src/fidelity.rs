//! Whether a network in a reduced precision is still the network, on this machine.
//!
//! The learner measures it once, on its own hardware. Whoever is to play with the file, or to hold a game against it,
//! measures it again where it runs: an instruction set that adds 8-bit products in 16 bits, or a kernel with a fault, shows
//! here and nowhere else.

use std::fmt;

use crate::Result;
use crate::probe::softmax;
use crate::session::{Outputs, Session};

/// Greatest mean Kullback-Leibler divergence of the policies, nats. A trained gomoku network in int8 with its heads in fp32
/// shows 0.0003, so that a network far harder to quantise passes; sums that overflow show whole nats.
pub const FAITHFUL_KL_MAX: f32 = 0.02;

/// Greatest mean difference of win minus loss, of 2. The same network shows 0.011; sums that overflow show some tenths.
pub const FAITHFUL_VALUE_ERROR_MAX: f32 = 0.05;

/// How far one network's answers in two precisions are apart, over some positions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Divergence {
    /// Positions compared.
    pub positions: usize,
    /// Mean Kullback-Leibler divergence of the policies over all actions, fp32 to reduced, nats.
    pub policy_kl: f32,
    /// Mean absolute difference of win minus loss, in `[0, 2]`.
    pub value_error: f32,
}

impl Divergence {
    /// Whether the reduced precision may stand for the network. What was compared on nothing may not.
    pub fn is_faithful(&self) -> bool {
        // A figure that is not a number is below no limit.
        self.positions > 0 && self.policy_kl <= FAITHFUL_KL_MAX && self.value_error <= FAITHFUL_VALUE_ERROR_MAX
    }
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "policies {:.4} nats (at most {FAITHFUL_KL_MAX}) and values {:.4} (at most {FAITHFUL_VALUE_ERROR_MAX}) apart on \
             {} positions",
            self.policy_kl, self.value_error, self.positions
        )
    }
}

/// Runs both sessions on `n` positions, `planes` being u8 `[n, C, H, W]`, and compares what they say.
///
/// # Errors
/// When `reduced` has other sizes than `fp32`, and when one of them cannot be run or gives what is not finite.
pub fn compare_precisions(fp32: &mut Session, reduced: &mut Session, planes: &[u8], n: usize) -> Result<Divergence> {
    reduced.check(fp32.signature())?;
    let (mut whole, mut coarse) = (Outputs::default(), Outputs::default());
    fp32.run(planes, n, &mut whole)?;
    reduced.run(planes, n, &mut coarse)?;
    let (mut policy_kl, mut value_error) = (0.0f64, 0.0f64);
    for index in 0..n {
        let ((policy, wdl), (policy_seen, wdl_seen)) = (whole.position(index), coarse.position(index));
        policy_kl += divergence(policy, policy_seen);
        value_error += f64::from((expected_score(wdl) - expected_score(wdl_seen)).abs());
    }
    let positions = n.max(1) as f64;
    Ok(Divergence {
        positions: n,
        policy_kl: (policy_kl / positions) as f32,
        value_error: (value_error / positions) as f32,
    })
}

/// Kullback-Leibler divergence of the probabilities of two rows of logits, nats.
fn divergence(logits: &[f32], seen: &[f32]) -> f64 {
    let (log, log_seen) = (log_softmax(logits), log_softmax(seen));
    let terms = log.iter().zip(&log_seen).map(|(log, seen)| log.exp() * (log - seen));
    // Rounding alone can bring the sum below nothing.
    terms.sum::<f64>().max(0.0)
}

/// The logarithms of the probabilities of these logits.
fn log_softmax(logits: &[f32]) -> Vec<f64> {
    let greatest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let shifted: Vec<f64> = logits.iter().map(|logit| f64::from(logit - greatest)).collect();
    let log_sum = shifted.iter().map(|logit| logit.exp()).sum::<f64>().ln();
    shifted.into_iter().map(|logit| logit - log_sum).collect()
}

/// Win minus loss of these logits.
fn expected_score(wdl: [f32; 3]) -> f32 {
    let wdl = softmax(&wdl);
    wdl[0] - wdl[2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_divergence_is_that_of_the_probabilities() {
        // One half each against three quarters and a quarter.
        let (even, odd) = ([2.0f32, 2.0], [3.0f32.ln(), 0.0]);
        let expected = 0.5 * (0.5f64 / 0.75).ln() + 0.5 * (0.5f64 / 0.25).ln();
        assert!((divergence(&even, &odd) - expected).abs() < 1e-6);
        assert_eq!(divergence(&odd, &odd), 0.0);
        // Logits whose powers no float holds.
        assert!(divergence(&[500.0, -500.0], &[-500.0, 500.0]).is_finite());
    }

    #[test]
    fn what_is_beyond_a_limit_or_no_number_is_not_faithful() {
        let at = |policy_kl, value_error| Divergence {
            positions: 4,
            policy_kl,
            value_error,
        };
        assert!(at(FAITHFUL_KL_MAX, FAITHFUL_VALUE_ERROR_MAX).is_faithful());
        for far in [at(0.021, 0.0), at(0.0, 0.051), at(f32::NAN, 0.0), at(0.0, f32::NAN)] {
            assert!(!far.is_faithful(), "{far}");
        }
        let nothing = Divergence {
            positions: 0,
            ..at(0.0, 0.0)
        };
        assert!(!nothing.is_faithful());
    }
}
