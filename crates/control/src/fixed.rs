//! A match of fixed length with a score to reach: what decides it, and when that is certain.

use crate::log::{Decision, Tally};

/// A match with a fixed number of pairs and a score to reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedRule {
    /// Pairs to play; two games each.
    pub pairs: u32,
    /// Score to reach, in millionths of the points: exact where a float of 0.55 is not.
    pub threshold_millionths: u32,
    /// Whether the threshold itself is not enough.
    pub strict: bool,
}

/// The score that passes; the threshold is in (0, 1].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Needed {
    /// The threshold is enough.
    AtLeast(f64),
    /// The threshold itself is not enough.
    MoreThan(f64),
}

/// Most games of a match, whatever decides it.
pub const MATCH_GAMES_MAX: u32 = 100_000;

/// A match that cannot be played.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum RuleError {
    /// An odd number of games, or none.
    #[error("a match of {0} games cannot be played in pairs: it needs an even number from 2 to 100000")]
    Games(u32),
    /// A score nobody can reach or everybody has.
    #[error("a threshold of {0} is not above 0 and at most 1")]
    Threshold(f64),
    /// A strict threshold of 1 cannot be passed.
    #[error("a strict threshold of 1 can never be passed")]
    Unreachable,
    /// The two strengths that a sequential test compares are out of range, or not in ascending order.
    #[error("an sprt between {lower} and {upper} {unit} is not possible: {need}")]
    Hypotheses {
        /// Strength of a candidate that is not wanted.
        lower: f64,
        /// Strength of one that is.
        upper: f64,
        /// What they are counted in.
        unit: &'static str,
        /// What is allowed.
        need: &'static str,
    },
    /// An error rate out of range.
    #[error("an error rate of {0} is not above 0 and below 0.5")]
    ErrorRate(f64),
}

/// Pairs of a match of `games` games.
pub(crate) fn pairs_of(games: u32) -> Result<u32, RuleError> {
    if games == 0 || !games.is_multiple_of(2) || games > MATCH_GAMES_MAX {
        return Err(RuleError::Games(games));
    }
    Ok(games / 2)
}

impl FixedRule {
    /// A rule for `games` match games (two a pair).
    pub fn new(games: u32, needed: Needed) -> Result<FixedRule, RuleError> {
        let pairs = pairs_of(games)?;
        let (threshold, strict) = match needed {
            Needed::AtLeast(threshold) => (threshold, false),
            Needed::MoreThan(threshold) => (threshold, true),
        };
        if !(threshold > 0.0 && threshold <= 1.0) {
            return Err(RuleError::Threshold(threshold));
        }
        let threshold_millionths = (threshold * 1e6).round() as u32;
        if strict && threshold_millionths == 1_000_000 {
            return Err(RuleError::Unreachable);
        }
        Ok(FixedRule {
            pairs,
            threshold_millionths,
            strict,
        })
    }

    /// The score to reach, in (0, 1].
    pub fn threshold(&self) -> f64 {
        f64::from(self.threshold_millionths) / 1e6
    }

    /// Fewest half points that pass; a pair is worth up to four.
    fn half_points_needed(&self) -> u64 {
        let scaled = u64::from(self.threshold_millionths) * u64::from(self.pairs) * 4;
        if self.strict {
            scaled / 1_000_000 + 1
        } else {
            scaled.div_ceil(1_000_000)
        }
    }

    /// The decision that `tally` forces: as soon as the pairs still to come cannot change the outcome.
    pub(crate) fn decide(&self, tally: &Tally) -> Option<Decision> {
        let needed = self.half_points_needed();
        let to_come = u64::from(self.pairs - tally.pairs.min(self.pairs)) * 4;
        if self.pairs > 0 && tally.half_points() >= needed {
            Some(Decision::Promote)
        } else if tally.half_points() + to_come < needed || to_come == 0 {
            Some(Decision::Reject)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_met_exactly_where_floats_would_miss() {
        // 0.55 * 120 half points is 66.00000000000001 in floats.
        assert_eq!(
            FixedRule::new(60, Needed::AtLeast(0.55)).unwrap().half_points_needed(),
            66
        );
        assert_eq!(
            FixedRule::new(60, Needed::MoreThan(0.55)).unwrap().half_points_needed(),
            67
        );
        assert_eq!(
            FixedRule::new(10, Needed::AtLeast(0.56)).unwrap().half_points_needed(),
            12
        );
        assert_eq!(FixedRule::new(2, Needed::AtLeast(1.0)).unwrap().half_points_needed(), 4);
    }

    #[test]
    fn unplayable_rules_are_refused() {
        assert_eq!(FixedRule::new(7, Needed::AtLeast(0.55)), Err(RuleError::Games(7)));
        assert_eq!(FixedRule::new(0, Needed::AtLeast(0.55)), Err(RuleError::Games(0)));
        assert_eq!(FixedRule::new(8, Needed::AtLeast(0.0)), Err(RuleError::Threshold(0.0)));
        assert_eq!(FixedRule::new(8, Needed::MoreThan(1.0)), Err(RuleError::Unreachable));
    }
}
