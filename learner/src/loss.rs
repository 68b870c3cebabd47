//! The loss: policy cross-entropy and win-draw-loss cross-entropy, each position times its weight.
//!
//! The policy's cross-entropy runs over **all** logits, illegal actions included, so that the network learns what is
//! legal; the L2 penalty is applied by the optimiser.

use tch::{Kind, TchError, Tensor};

use crate::network::Logits;

/// What a batch should have been answered with. Rows are positions.
#[derive(Debug)]
pub struct Targets {
    /// Search policy, `f32 [B, A]`; each row sums to 1.
    pub policy: Tensor,
    /// Win, draw and loss of the acting seat, `f32 [B, 3]`; each row sums to 1.
    pub wdl: Tensor,
    /// Weight of each position, `f32 [B]`.
    pub weight: Tensor,
}

/// The parts of a batch's loss: scalars on the device, means over the batch in nats.
#[derive(Debug)]
pub struct Losses {
    /// Cross-entropy of the policy against the search's.
    pub policy: Tensor,
    /// Cross-entropy of win, draw, loss against the result.
    pub value: Tensor,
}

impl Losses {
    /// Compares answers with targets.
    pub fn of(logits: &Logits, targets: &Targets) -> Result<Losses, TchError> {
        Ok(Losses {
            policy: cross_entropy(&logits.policy, &targets.policy, &targets.weight)?,
            value: cross_entropy(&logits.wdl, &targets.wdl, &targets.weight)?,
        })
    }

    /// What is differentiated: `policy + value_weight * value`.
    pub fn total(&self, value_weight: f64) -> Result<Tensor, TchError> {
        self.policy.f_add(&self.value.f_mul_scalar(value_weight)?)
    }
}

/// Mean over rows of `weight * -sum(target * log_softmax(logits))`.
fn cross_entropy(logits: &Tensor, target: &Tensor, weight: &Tensor) -> Result<Tensor, TchError> {
    let products = logits.f_log_softmax(-1, Kind::Float)?.f_mul(target)?;
    let rows = products.f_sum_dim_intlist(-1, false, Kind::Float)?;
    rows.f_mul(weight)?.f_mean(Kind::Float)?.f_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(policy_logits: &[f32], policy: &[f32], weight: f32) -> (f64, f64) {
        let actions = policy.len() as i64;
        let logits = Logits {
            policy: Tensor::from_slice(policy_logits).view([1, actions]),
            wdl: Tensor::from_slice(&[0.0_f32, 0.0, 0.0]).view([1, 3]),
        };
        let targets = Targets {
            policy: Tensor::from_slice(policy).view([1, actions]),
            wdl: Tensor::from_slice(&[0.0_f32, 0.0, 1.0]).view([1, 3]),
            weight: Tensor::from_slice(&[weight]),
        };
        let losses = Losses::of(&logits, &targets).unwrap();
        (losses.policy.double_value(&[]), losses.value.double_value(&[]))
    }

    #[test]
    fn even_logits_cost_the_logarithm_of_their_number() {
        let (policy, value) = losses(&[0.0; 4], &[0.5, 0.5, 0.0, 0.0], 1.0);
        assert!((policy - 4.0_f64.ln()).abs() < 1e-6, "{policy}");
        assert!((value - 3.0_f64.ln()).abs() < 1e-6, "{value}");
    }

    #[test]
    fn the_right_answer_costs_the_entropy_of_the_target() {
        let (policy, _) = losses(&[0.0, 0.0, -100.0, -100.0], &[0.5, 0.5, 0.0, 0.0], 1.0);
        assert!((policy - 2.0_f64.ln()).abs() < 1e-6, "{policy}");
    }

    #[test]
    fn weight_scales_both_parts() {
        let (policy, value) = losses(&[0.0; 4], &[1.0, 0.0, 0.0, 0.0], 0.25);
        assert!((policy - 0.25 * 4.0_f64.ln()).abs() < 1e-6, "{policy}");
        assert!((value - 0.25 * 3.0_f64.ln()).abs() < 1e-6, "{value}");
    }
}
