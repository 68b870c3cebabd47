//! Folding batch norm into the convolution before it.

use crate::weights::{Tensor, WeightsError};

/// What is added to a variance before its root is taken, here and in training (the value of the batch-norm paper's
/// implementations: Ioffe and Szegedy 2015, 1e-5 in every common library).
pub const BATCH_NORM_EPSILON: f32 = 1e-5;

/// Batch norm over `channels` in evaluation: `gamma * (x - mean) / sqrt(variance + epsilon) + beta`.
#[derive(Clone, Copy, Debug)]
pub struct BatchNorm<'a> {
    /// Learned factor, length `channels`.
    pub gamma: &'a [f32],
    /// Learned offset, length `channels`.
    pub beta: &'a [f32],
    /// Running mean, length `channels`.
    pub mean: &'a [f32],
    /// Running variance, length `channels`, not negative.
    pub variance: &'a [f32],
    /// Added to the variance.
    pub epsilon: f32,
}

/// Why batch norm cannot be folded.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FoldError {
    /// The statistics are not one per output channel.
    #[error("batch norm has {len} values of {what}, and the convolution has {channels} output channels")]
    Length {
        /// Which values.
        what: &'static str,
        /// How many of them.
        len: usize,
        /// How many there should be.
        channels: usize,
    },
    /// A variance that has no root, or an epsilon that leaves nothing to divide by.
    #[error("the variance {variance} of channel {channel} plus epsilon is not a positive finite number")]
    Variance {
        /// The output channel.
        channel: usize,
        /// Its running variance.
        variance: f32,
    },
    /// A convolution without output channels.
    #[error("the convolution weight has the shape {shape:?}")]
    Weight {
        /// The weight's shape.
        shape: Vec<usize>,
    },
    /// A tensor that could not be made.
    #[error(transparent)]
    Tensor(#[from] WeightsError),
}

/// The weight `[out, in, k, k]` and bias `[out]` of the convolution that equals the bias-free convolution with
/// `weight` followed by `norm` in evaluation.
pub fn fold_batch_norm(weight: &Tensor, norm: &BatchNorm<'_>) -> Result<(Tensor, Tensor), FoldError> {
    let channels = weight.shape().first().copied().unwrap_or(0);
    if channels == 0 || weight.data().is_empty() {
        return Err(FoldError::Weight {
            shape: weight.shape().to_vec(),
        });
    }
    let statistics = [
        ("gamma", norm.gamma),
        ("beta", norm.beta),
        ("mean", norm.mean),
        ("variance", norm.variance),
    ];
    for (what, values) in statistics {
        if values.len() != channels {
            return Err(FoldError::Length {
                what,
                len: values.len(),
                channels,
            });
        }
    }

    let mut folded = weight.clone();
    let mut bias = Tensor::zeros(vec![channels]);
    let per_channel = weight.data().len() / channels;
    for (channel, kernel) in folded.data_mut().chunks_exact_mut(per_channel).enumerate() {
        // In f64, so that folding adds no error of its own to what the parity check measures.
        let spread = f64::from(norm.variance[channel]) + f64::from(norm.epsilon);
        if !spread.is_finite() || spread <= 0.0 {
            return Err(FoldError::Variance {
                channel,
                variance: norm.variance[channel],
            });
        }
        let factor = f64::from(norm.gamma[channel]) / spread.sqrt();
        for value in kernel {
            *value = (f64::from(*value) * factor) as f32;
        }
        bias.data_mut()[channel] = (f64::from(norm.beta[channel]) - f64::from(norm.mean[channel]) * factor) as f32;
    }
    Ok((folded, bias))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A 1x1 convolution over one cell is a matrix product, which keeps the reference to a line.
    fn apply(weight: &Tensor, bias: &[f32], input: &[f32]) -> Vec<f32> {
        let rows = weight.data().chunks_exact(input.len());
        rows.zip(bias)
            .map(|(row, bias)| row.iter().zip(input).map(|(w, x)| w * x).sum::<f32>() + bias)
            .collect()
    }

    fn norm() -> BatchNorm<'static> {
        BatchNorm {
            gamma: &[2.0, -0.5],
            beta: &[0.25, 1.0],
            mean: &[-1.0, 3.0],
            variance: &[4.0, 0.0],
            epsilon: BATCH_NORM_EPSILON,
        }
    }

    #[test]
    fn a_folded_convolution_equals_convolution_then_norm() {
        let weight = Tensor::new(vec![2, 3, 1, 1], vec![1.0, -2.0, 0.5, 0.001, 0.002, -0.003]).expect("six elements");
        let input = [0.3, 1.7, -0.9];
        let norm = norm();
        let (folded, bias) = fold_batch_norm(&weight, &norm).expect("the statistics fit");

        let plain = apply(&weight, &[0.0, 0.0], &input);
        let actual = apply(&folded, bias.data(), &input);
        for channel in 0..2 {
            let spread = (norm.variance[channel] + norm.epsilon).sqrt();
            let expected = norm.gamma[channel] * (plain[channel] - norm.mean[channel]) / spread + norm.beta[channel];
            let error = (actual[channel] - expected).abs() / expected.abs().max(1.0);
            assert!(error < 1e-5, "channel {channel}: {} is not {expected}", actual[channel]);
        }
        assert_eq!(folded.shape(), weight.shape());
    }

    #[test]
    fn the_documented_start_of_training_folds_back_to_itself() {
        let weight = Tensor::new(vec![1, 2, 1, 1], vec![0.75, -1.5]).expect("two elements");
        let norm = BatchNorm {
            gamma: &[1.0],
            beta: &[0.5],
            mean: &[0.0],
            variance: &[1.0],
            epsilon: 0.0,
        };
        let (folded, bias) = fold_batch_norm(&weight, &norm).expect("the statistics fit");
        assert_eq!((folded.data(), bias.data()), (weight.data(), &[0.5][..]));
    }

    #[test]
    fn statistics_of_another_width_are_refused() {
        let weight = Tensor::zeros(vec![3, 1, 1, 1]);
        let error = fold_batch_norm(&weight, &norm()).expect_err("three channels, two statistics");
        assert_eq!(
            error,
            FoldError::Length {
                what: "gamma",
                len: 2,
                channels: 3
            }
        );
    }

    #[test]
    fn a_negative_variance_is_refused() {
        let weight = Tensor::zeros(vec![2, 1, 1, 1]);
        let bad = BatchNorm {
            variance: &[1.0, -1.0],
            ..norm()
        };
        let error = fold_batch_norm(&weight, &bad).expect_err("no root");
        assert_eq!(
            error,
            FoldError::Variance {
                channel: 1,
                variance: -1.0
            }
        );
    }
}
