//! The values that the tower hands from layer to layer, by name, and the ranges they were seen in: what an 8-bit network
//! must know beside its weights.

use std::collections::BTreeMap;
use std::fmt;

use crate::quantisation::Affine;
use crate::shape::Shape;

/// A value of the tower that later layers read. Displayed as the name of the layer, or of the block, that it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Activation {
    /// The scaled planes, never negative (`input`).
    Input,
    /// After the stem and its ReLU (`stem`).
    Stem,
    /// After a block's first convolution and its ReLU (`blocks.N.conv1`).
    BlockFirst(usize),
    /// After a block's second convolution, before the addition (`blocks.N.conv2`). The one kind with negative values.
    BlockSecond(usize),
    /// After a block's addition and its ReLU (`blocks.N`).
    Block(usize),
}

impl Activation {
    /// Whether there are values below zero.
    pub const fn is_signed(self) -> bool {
        matches!(self, Activation::BlockSecond(_))
    }
}

impl fmt::Display for Activation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Activation::Input => f.write_str("input"),
            Activation::Stem => f.write_str("stem"),
            Activation::BlockFirst(block) => write!(f, "blocks.{block}.conv1"),
            Activation::BlockSecond(block) => write!(f, "blocks.{block}.conv2"),
            Activation::Block(block) => write!(f, "blocks.{block}"),
        }
    }
}

impl Shape {
    /// Every activation of the tower, in the order in which they are computed.
    pub fn activations(&self) -> impl Iterator<Item = Activation> + use<> {
        let of_block = |block| {
            [
                Activation::BlockFirst(block),
                Activation::BlockSecond(block),
                Activation::Block(block),
            ]
        };
        [Activation::Input, Activation::Stem]
            .into_iter()
            .chain((0..self.blocks).flat_map(of_block))
    }
}

/// The least and the greatest value of an activation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ActivationRange {
    /// The least value.
    pub min: f32,
    /// The greatest value.
    pub max: f32,
}

impl ActivationRange {
    /// The range that holds both. What is not a number stays so, for [`ActivationRanges::check`] to find.
    fn joined(self, other: ActivationRange) -> ActivationRange {
        let join = |one: f32, other: f32, choose: fn(f32, f32) -> f32| {
            if one.is_nan() || other.is_nan() {
                f32::NAN
            } else {
                choose(one, other)
            }
        };
        ActivationRange {
            min: join(self.min, other.min, f32::min),
            max: join(self.max, other.max, f32::max),
        }
    }
}

/// Why ranges are no basis of an 8-bit network.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RangeError {
    /// An activation of the network's shape has no range.
    #[error("activation {activation} has no range")]
    Missing {
        /// Which.
        activation: Activation,
    },
    /// A range of an activation that the network's shape does not have.
    #[error("activation {activation} does not belong to this network")]
    Unknown {
        /// Which.
        activation: Activation,
    },
    /// A range with an end that is infinite or not a number.
    #[error("activation {activation} has the range {min} to {max}, which is not finite")]
    NotFinite {
        /// Which.
        activation: Activation,
        /// The least value.
        min: f32,
        /// The greatest value.
        max: f32,
    },
    /// A range that runs backwards, or that has no room for values other than zero.
    #[error("activation {activation} has the range {min} to {max}, which holds nothing to tell apart")]
    Empty {
        /// Which.
        activation: Activation,
        /// The least value.
        min: f32,
        /// The greatest value.
        max: f32,
    },
}

/// The ranges of a tower's activations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActivationRanges(BTreeMap<Activation, ActivationRange>);

impl ActivationRanges {
    /// No ranges yet.
    pub fn new() -> ActivationRanges {
        ActivationRanges::default()
    }

    /// One range for every activation of `shape`, up to `greatest` and, where there are values below zero, down to its
    /// negative: for networks that are known to stay within it, as random ones do within 6.
    pub fn within(shape: &Shape, greatest: f32) -> ActivationRanges {
        let range = |activation: Activation| ActivationRange {
            min: if activation.is_signed() { -greatest } else { 0.0 },
            max: greatest,
        };
        ActivationRanges(
            shape
                .activations()
                .map(|activation| (activation, range(activation)))
                .collect(),
        )
    }

    /// Widens the range of `activation`, so that it holds what was `seen` too.
    pub fn include(&mut self, activation: Activation, seen: ActivationRange) {
        self.0
            .entry(activation)
            .and_modify(|range| *range = range.joined(seen))
            .or_insert(seen);
    }

    /// The range of `activation`.
    pub fn get(&self, activation: Activation) -> Option<ActivationRange> {
        self.0.get(&activation).copied()
    }

    /// The greatest distance from zero, 0 without ranges.
    pub fn greatest(&self) -> f32 {
        let ends = self.0.values().flat_map(|range| [range.min, range.max]);
        ends.map(f32::abs).fold(0.0, f32::max)
    }

    /// Checks that these are exactly the ranges of `shape`'s activations, each finite and with room for other values than
    /// zero.
    pub fn check(&self, shape: &Shape) -> Result<(), RangeError> {
        let unknown = self
            .0
            .keys()
            .find(|&&activation| !shape.activations().any(|known| known == activation));
        if let Some(&activation) = unknown {
            return Err(RangeError::Unknown { activation });
        }
        shape
            .activations()
            .try_for_each(|activation| self.affine(activation).map(|_| ()))
    }

    /// How `activation` is written in bytes. What is never negative has its zero at byte 0, whatever was seen.
    pub(crate) fn affine(&self, activation: Activation) -> Result<Affine, RangeError> {
        let ActivationRange { min, max } = self.get(activation).ok_or(RangeError::Missing { activation })?;
        if !(min.is_finite() && max.is_finite()) {
            return Err(RangeError::NotFinite { activation, min, max });
        }
        let least = if activation.is_signed() { min } else { 0.0 };
        Affine::covering(least, max)
            .filter(|_| min <= max)
            .ok_or(RangeError::Empty { activation, min, max })
    }
}

#[cfg(test)]
mod tests {
    use tengen_games::ActionBlock;

    use super::*;

    fn shape() -> Shape {
        Shape {
            blocks: 2,
            channels: 4,
            value_channels: 2,
            value_hidden: 2,
            planes: 1,
            rows: 3,
            cols: 3,
            plane_scales: vec![1.0],
            action_blocks: vec![ActionBlock::Cells { planes: 1 }],
        }
    }

    fn range(min: f32, max: f32) -> ActivationRange {
        ActivationRange { min, max }
    }

    fn ranges() -> ActivationRanges {
        let mut ranges = ActivationRanges::new();
        for activation in shape().activations() {
            ranges.include(activation, range(0.0, 1.0));
        }
        ranges
    }

    #[test]
    fn activations_are_named_after_what_computes_them() {
        let names: Vec<String> = shape().activations().map(|activation| activation.to_string()).collect();
        assert_eq!(
            names,
            [
                "input",
                "stem",
                "blocks.0.conv1",
                "blocks.0.conv2",
                "blocks.0",
                "blocks.1.conv1",
                "blocks.1.conv2",
                "blocks.1"
            ]
        );
        let signed: Vec<Activation> = shape()
            .activations()
            .filter(|activation| activation.is_signed())
            .collect();
        assert_eq!(signed, [Activation::BlockSecond(0), Activation::BlockSecond(1)]);
    }

    #[test]
    fn a_range_holds_everything_that_was_included() {
        let mut ranges = ActivationRanges::new();
        assert_eq!(ranges.get(Activation::Stem), None);
        for seen in [range(0.5, 1.0), range(0.25, 0.75), range(0.5, 2.0)] {
            ranges.include(Activation::Stem, seen);
        }
        assert_eq!(ranges.get(Activation::Stem), Some(range(0.25, 2.0)));
    }

    #[test]
    fn ranges_of_another_network_are_refused() {
        assert_eq!(ranges().check(&shape()), Ok(()));
        let deeper = Shape { blocks: 3, ..shape() };
        let missing = RangeError::Missing {
            activation: Activation::BlockFirst(2),
        };
        assert_eq!(ranges().check(&deeper), Err(missing));
        let flatter = Shape { blocks: 1, ..shape() };
        let unknown = ranges().check(&flatter).unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "activation blocks.1.conv1 does not belong to this network"
        );
    }

    #[test]
    fn ranges_that_are_not_finite_or_empty_are_refused_by_name() {
        let with = |activation: Activation, min: f32, max: f32| {
            let mut ranges = ranges();
            ranges.0.insert(activation, range(min, max));
            ranges.check(&shape())
        };
        let (stem, sum) = (Activation::Stem, Activation::BlockSecond(1));
        assert_eq!(with(sum, -3.0, -1.0), Ok(()), "zero is covered as well");
        for (activation, min, max) in [
            (stem, 0.0, f32::INFINITY),
            (sum, f32::NEG_INFINITY, 1.0),
            (sum, f32::NAN, 1.0),
            (stem, 0.0, f32::NAN),
        ] {
            let error = with(activation, min, max).unwrap_err();
            assert!(
                matches!(error, RangeError::NotFinite { activation: at, .. } if at == activation),
                "{error}"
            );
        }
        for (activation, min, max) in [
            (stem, 0.0, 0.0),
            (stem, -2.0, -1.0),
            (sum, 0.0, 0.0),
            (sum, 1.0, -1.0),
            (stem, 0.0, 1e-30),
        ] {
            let error = with(activation, min, max).unwrap_err();
            assert_eq!(error, RangeError::Empty { activation, min, max });
        }
    }

    #[test]
    fn what_is_not_a_number_is_not_hidden_by_what_is_seen_later() {
        let mut ranges = ranges();
        for seen in [range(f32::NAN, f32::NAN), range(0.0, 1.0)] {
            ranges.include(Activation::Stem, seen);
        }
        assert!(matches!(ranges.check(&shape()), Err(RangeError::NotFinite { .. })));
    }
}
