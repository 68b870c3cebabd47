//! Floats as 8-bit integers: activations with one step for the whole tensor, convolutions with one for each output channel.
//!
//! A convolution of such numbers is a sum of integers, and its result is a float only once, when it is scaled. Which
//! tensors are written so is said by the writer of int8 files; here are the numbers alone.

use crate::weights::Tensor;

/// Least integer of a weight. See [`WEIGHT_MAX`].
const WEIGHT_MIN: f64 = -64.0;
/// Greatest integer of a weight: **7 of the 8 bits are used.** CPUs without VNNI instructions multiply pairs of bytes and
/// add them in 16 bits, cutting off what does not fit; two products of a byte (at most 255) and such a weight always fit
/// (`2 * 255 * 64 = 32,640 < 32,768`), so every CPU computes the same integer sums.
const WEIGHT_MAX: f64 = 63.0;
/// Least scale of a weight: what is below it adds nothing to values of order 1, and a product of two scales stays a normal
/// float.
const WEIGHT_SCALE_MIN: f64 = 1e-12;
/// Greatest integer of a bias: half of the 32 bits' range, so that the products have room beside it.
const BIAS_MAX: f64 = (1 << 30) as f64;
/// Least difference between the ends of an activation's range, for the same reasons as [`WEIGHT_SCALE_MIN`].
const RANGE_MIN: f64 = 1e-9;
/// Steps between the least and the greatest byte.
const STEPS: f64 = 255.0;

/// Floats as bytes: `value = scale * (byte - zero)`. Zero itself is exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Affine {
    /// What one step is worth; positive.
    pub(crate) scale: f32,
    /// The byte of zero.
    pub(crate) zero: u8,
}

impl Affine {
    /// The finest steps that cover `min..=max` and zero; `None` where that is no room at all.
    pub(crate) fn covering(min: f32, max: f32) -> Option<Affine> {
        let (min, max) = (f64::from(min.min(0.0)), f64::from(max.max(0.0)));
        if max - min < RANGE_MIN {
            return None;
        }
        let scale = (max - min) / STEPS;
        Some(Affine {
            scale: scale as f32,
            zero: (-min / scale).round() as u8,
        })
    }
}

/// A convolution in integers. Integers times their channel's scale are the floats they stand for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IntegerConv {
    /// `[out, in, k, k]`, each within -64..=63.
    pub(crate) weight: Vec<i8>,
    /// `[out]`.
    pub(crate) weight_scales: Vec<f32>,
    /// `[out]`.
    pub(crate) bias: Vec<i32>,
    /// `[out]`: the input's scale times the weight's, so that a bias adds to the sum of products as it is.
    pub(crate) bias_scales: Vec<f32>,
}

impl IntegerConv {
    /// The convolution with `weight` `[out, in, k, k]` and `bias` `[out]` over an input in bytes.
    pub(crate) fn new(weight: &Tensor, bias: &Tensor, input: Affine) -> IntegerConv {
        let outputs = bias.data().len();
        let mut conv = IntegerConv {
            weight: Vec::with_capacity(weight.data().len()),
            weight_scales: Vec::with_capacity(outputs),
            bias: Vec::with_capacity(outputs),
            bias_scales: Vec::with_capacity(outputs),
        };
        let per_channel = (weight.data().len() / outputs.max(1)).max(1);
        for (kernel, &bias) in weight.data().chunks_exact(per_channel).zip(bias.data()) {
            let scale = weight_scale(kernel, bias, input.scale);
            let bias_scale = input.scale * scale;
            let integer = |value: &f32| {
                let steps = (f64::from(*value) / f64::from(scale)).round();
                steps.clamp(WEIGHT_MIN, WEIGHT_MAX) as i8
            };
            conv.weight.extend(kernel.iter().map(integer));
            conv.weight_scales.push(scale);
            conv.bias.push((f64::from(bias) / f64::from(bias_scale)).round() as i32);
            conv.bias_scales.push(bias_scale);
        }
        conv
    }
}

/// The finest scale with which one output channel's weights fit into 7 bits and its bias into 31.
fn weight_scale(kernel: &[f32], bias: f32, input_scale: f32) -> f32 {
    let greatest = kernel
        .iter()
        .fold(0.0, |greatest: f32, value| greatest.max(value.abs()));
    let for_weights = f64::from(greatest) / WEIGHT_MAX;
    let for_bias = f64::from(bias.abs()) / (f64::from(input_scale) * BIAS_MAX);
    for_weights.max(for_bias).max(WEIGHT_SCALE_MIN) as f32
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    fn there_and_back(affine: Affine, value: f32) -> f32 {
        let byte = (value / affine.scale).round() + f32::from(affine.zero);
        affine.scale * (byte.clamp(0.0, 255.0) - f32::from(affine.zero))
    }

    #[test]
    fn no_value_of_the_range_moves_by_more_than_half_a_step() {
        for (min, max) in [
            (0.0, 1.0),
            (-1.0, 1.0),
            (-0.3, 7.5),
            (-5.0, 0.01),
            (2.0, 3.0),
            (-1e-6, 1e-5),
            (-1e30, 1e30),
        ] {
            let affine = Affine::covering(min, max).expect("there is room");
            for step in 0..=1000 {
                let value = min + (max - min) * step as f32 / 1000.0;
                let error = (there_and_back(affine, value) - value).abs();
                assert!(
                    error <= 0.5001 * affine.scale,
                    "{value} of {min}..{max}: {error} of {affine:?}"
                );
            }
            assert_eq!(there_and_back(affine, 0.0), 0.0);
        }
    }

    #[test]
    fn a_range_without_negative_values_has_its_zero_at_byte_0() {
        let affine = Affine::covering(0.0, 25.5).expect("there is room");
        assert_eq!(affine, Affine { scale: 0.1, zero: 0 });
        assert_eq!(Affine::covering(3.0, 25.5), Some(affine));
        assert_eq!(Affine::covering(-1.0, 0.0).map(|affine| affine.zero), Some(255));
        assert_eq!(Affine::covering(0.0, 0.0), None);
        assert_eq!(Affine::covering(-1e-12, 1e-12), None);
    }

    const INPUT: Affine = Affine { scale: 0.02, zero: 0 };

    /// Channels of very different sizes: the second in thousandths, the third all zero.
    fn conv() -> (Tensor, Tensor) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut weight = Tensor::zeros(vec![3, 4, 3, 3]);
        for (channel, kernel) in weight.data_mut().chunks_exact_mut(36).enumerate() {
            let size: f32 = [1.0, 0.001, 0.0][channel];
            kernel.fill_with(|| size * rng.random_range(-1.0f32..1.0));
        }
        let bias = Tensor::new(vec![3], vec![-0.75, 0.5, 0.3]).expect("three elements");
        (weight, bias)
    }

    #[test]
    fn weights_move_by_half_a_step_of_their_own_channel_at_most() {
        let (weight, bias) = conv();
        let integers = IntegerConv::new(&weight, &bias, INPUT);
        let rows = weight.data().chunks_exact(36).zip(integers.weight.chunks_exact(36));
        for (channel, (floats, integers_of_it)) in rows.enumerate() {
            let scale = integers.weight_scales[channel];
            for (float, integer) in floats.iter().zip(integers_of_it) {
                assert!((-64..=63).contains(integer), "{integer}");
                let error = (scale * f32::from(*integer) - float).abs();
                assert!(
                    error <= 0.5001 * scale,
                    "channel {channel}: {float} is {integer} times {scale}"
                );
            }
        }
        let greatest = |channel: usize| {
            integers.weight[36 * channel..][..36]
                .iter()
                .map(|integer| integer.abs())
                .max()
        };
        assert_eq!([0, 1, 2].map(greatest), [Some(63), Some(63), Some(0)]);
        assert!(integers.weight_scales[1] < 0.01 * integers.weight_scales[0]);
    }

    #[test]
    fn biases_are_whole_numbers_of_the_products_steps() {
        let (weight, bias) = conv();
        let integers = IntegerConv::new(&weight, &bias, INPUT);
        for channel in 0..3 {
            let step = integers.bias_scales[channel];
            assert_eq!(step, INPUT.scale * integers.weight_scales[channel]);
            let error = (f64::from(step) * f64::from(integers.bias[channel]) - f64::from(bias.data()[channel])).abs();
            assert!(
                error <= 0.5001 * f64::from(step) && error < 1e-3,
                "channel {channel}: {error}"
            );
        }
    }

    #[test]
    fn a_channel_of_zeros_is_its_bias_and_one_without_bias_is_zero() {
        let (weight, bias) = (Tensor::zeros(vec![2, 1, 1, 1]), [0.3, 0.0]);
        let integers = IntegerConv::new(
            &weight,
            &Tensor::new(vec![2], bias.to_vec()).expect("two elements"),
            INPUT,
        );
        assert_eq!(integers.weight, [0, 0]);
        for (channel, expected) in bias.into_iter().enumerate() {
            assert!(integers.weight_scales[channel].is_normal() && integers.bias_scales[channel].is_normal());
            let value = f64::from(integers.bias_scales[channel]) * f64::from(integers.bias[channel]);
            assert!((value - f64::from(expected)).abs() < 1e-7, "{value}");
        }
        // As fine as it may be: only the scales' own rounding lies between it and half of the range.
        assert!((integers.bias[0] - (1 << 30)).abs() < 1000, "{}", integers.bias[0]);
    }

    #[test]
    fn two_products_of_the_greatest_numbers_fit_into_sixteen_bits() {
        let pair = |weight: f64| 2.0 * 255.0 * weight;
        assert!(pair(WEIGHT_MAX) <= f64::from(i16::MAX) && pair(WEIGHT_MIN) >= f64::from(i16::MIN));
    }
}
