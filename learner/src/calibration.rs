//! Calibration: what a network's activations are on real positions, for its file in 8-bit integers.

use tch::TchError;
use tengen_network::{ActivationRange, ActivationRanges};

use crate::network::{Mode, Network};

/// Positions of one forward pass.
const BATCH: usize = 64;
/// End of the range of an activation that is never greater, such as one of a block that does nothing. It only makes sure
/// that there are steps at all.
const GREATEST_MIN: f64 = 1e-3;

/// The least and greatest values of every activation on `planes`, u8 `[n, C, H, W]`, in evaluation.
///
/// Nothing is clipped: a network's greatest values belong to the positions that it is surest about, and cutting them off to
/// win finer steps would spend precision where the answer is plain to lose it where the search relies on it.
pub fn calibrate(network: &Network, planes: &[u8]) -> Result<ActivationRanges, TchError> {
    let _guard = tch::no_grad_guard();
    let mut ranges = ActivationRanges::new();
    for planes in planes.chunks(BATCH * network.shape().planes_len()) {
        network.forward_observed(&network.planes(planes)?, Mode::Evaluate, |activation, values| {
            let (least, greatest) = (
                values.f_min()?.f_double_value(&[])?,
                values.f_max()?.f_double_value(&[])?,
            );
            let seen = ActivationRange {
                min: least as f32,
                max: greatest.max(GREATEST_MIN) as f32,
            };
            ranges.include(activation, seen);
            Ok(())
        })?;
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use tch::Device;
    use tengen_games::AnyGame;
    use tengen_network::{Activation, Config, Shape, random_weights};

    use super::*;

    fn network() -> Network {
        tch::set_num_threads(1);
        let game = AnyGame::parse("tic-tac-toe").unwrap();
        let config = Config {
            blocks: 2,
            channels: 8,
            ..Config::default()
        };
        let shape = Shape::new(game.spec(), &config).unwrap();
        Network::new(&shape, &random_weights(&shape, 3), Device::Cpu).unwrap()
    }

    #[test]
    fn every_activation_has_a_range_and_only_sums_reach_below_zero() {
        let network = network();
        let planes: Vec<u8> = (0..130 * network.shape().planes_len())
            .map(|index| u8::from(index % 3 == 0))
            .collect();
        let ranges = calibrate(&network, &planes).unwrap();
        ranges.check(network.shape()).unwrap();
        for activation in network.shape().activations() {
            let range = ranges.get(activation).unwrap();
            assert_eq!(range.min < 0.0, activation.is_signed(), "{activation}: {range:?}");
            assert!(range.max > 0.01, "{activation}: {range:?}");
        }
        assert_eq!(ranges.get(Activation::Input).map(|range| range.max), Some(1.0));
    }

    #[test]
    fn more_positions_only_widen_the_ranges() {
        let network = network();
        let len = network.shape().planes_len();
        let planes: Vec<u8> = (0..80 * len).map(|index| u8::from(index % 7 < index % 5)).collect();
        let (few, all) = (
            calibrate(&network, &planes[..len]).unwrap(),
            calibrate(&network, &planes).unwrap(),
        );
        for activation in network.shape().activations() {
            let (few, all) = (few.get(activation).unwrap(), all.get(activation).unwrap());
            // The last digits depend on the size of a batch.
            assert!(
                all.min <= few.min + 1e-5 && few.max <= all.max + 1e-5,
                "{activation}: {few:?}, {all:?}"
            );
        }
        let width = |ranges: &ActivationRanges| {
            ranges
                .get(Activation::BlockSecond(1))
                .map(|range| range.max - range.min)
        };
        assert!(width(&few) < width(&all));
    }

    #[test]
    fn a_network_that_does_nothing_has_ranges_all_the_same() {
        let network = network();
        let planes = vec![0; network.shape().planes_len()];
        calibrate(&network, &planes).unwrap().check(network.shape()).unwrap();
    }
}
