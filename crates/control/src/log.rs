//! The log of a gate and what it amounts to.
//!
//! The log is everything: [`count`] reads it in order, counts complete pairs until the outcome can no longer change, and
//! is frozen there. Nothing here knows who plays.

use crate::ids::LeaseId;

/// A gate with a fixed number of pairs and a score to reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedRule {
    /// Pairs to play; two games each.
    pub pairs: u32,
    /// Score to reach, in millionths of the points: exact where a float of 0.55 is not.
    pub threshold_millionths: u32,
    /// Whether the threshold itself is not enough.
    pub strict: bool,
}

/// A gate that cannot be played.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum RuleError {
    /// An odd number of games, or none.
    #[error("a gate of {0} games cannot be played in pairs: it needs an even number from 2 to 100000")]
    Games(u32),
    /// A score nobody can reach or everybody has.
    #[error("a gate's threshold of {0} is not above 0 and at most 1")]
    Threshold(f64),
    /// A strict threshold of 1 cannot be passed.
    #[error("a strict threshold of 1 can never be passed")]
    Unreachable,
}

impl FixedRule {
    /// A rule for `games` match games (two a pair) and a `threshold` in (0, 1].
    pub fn new(games: u32, threshold: f64, strict: bool) -> Result<FixedRule, RuleError> {
        if games == 0 || !games.is_multiple_of(2) || games > 100_000 {
            return Err(RuleError::Games(games));
        }
        if !(threshold > 0.0 && threshold <= 1.0) {
            return Err(RuleError::Threshold(threshold));
        }
        let threshold_millionths = (threshold * 1e6).round() as u32;
        if strict && threshold_millionths == 1_000_000 {
            return Err(RuleError::Unreachable);
        }
        Ok(FixedRule {
            pairs: games / 2,
            threshold_millionths,
            strict,
        })
    }

    /// The score to reach, in (0, 1].
    pub fn threshold(&self) -> f64 {
        f64::from(self.threshold_millionths) / 1e6
    }

    /// Fewest half points that promote; a pair is worth up to four.
    fn half_points_needed(&self) -> u64 {
        let scaled = u64::from(self.threshold_millionths) * u64::from(self.pairs) * 4;
        if self.strict {
            scaled / 1_000_000 + 1
        } else {
            scaled.div_ceil(1_000_000)
        }
    }
}

/// Result of one match game from the candidate's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GameScore {
    /// The candidate won.
    Win,
    /// Nobody won.
    Draw,
    /// The champion won.
    Loss,
}

/// Which game of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leg {
    /// The candidate has seat 0.
    CandidateFirst,
    /// The champion has seat 0.
    ChampionFirst,
}

impl Leg {
    /// Both games of a pair, in the order they are handed out.
    pub const BOTH: [Leg; 2] = [Leg::CandidateFirst, Leg::ChampionFirst];
}

/// Whether a match game was delivered in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// By the lease that held the pair, before the decision.
    Counts,
    /// Later: kept, not counted.
    Late,
}

/// One match game in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The lease that played it.
    pub lease: LeaseId,
    /// Its pair, from 0.
    pub pair: u32,
    /// Which game of the pair.
    pub leg: Leg,
    /// The result.
    pub score: GameScore,
    /// Whether it arrived in time.
    pub standing: Standing,
}

/// What the counted pairs add up to, from the candidate's view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Complete pairs counted.
    pub pairs: u32,
    /// Games won.
    pub wins: u32,
    /// Games drawn.
    pub draws: u32,
    /// Games lost.
    pub losses: u32,
}

impl Tally {
    /// Games counted.
    pub fn games(&self) -> u32 {
        self.wins + self.draws + self.losses
    }

    /// Wins and half the draws.
    pub fn points(&self) -> f64 {
        f64::from(self.wins) + f64::from(self.draws) / 2.0
    }

    /// Points a game in [0, 1]; 0 without games.
    pub fn score(&self) -> f64 {
        if self.games() == 0 {
            0.0
        } else {
            self.points() / f64::from(self.games())
        }
    }

    fn half_points(&self) -> u64 {
        u64::from(self.wins) * 2 + u64::from(self.draws)
    }

    fn add(&mut self, score: GameScore) {
        match score {
            GameScore::Win => self.wins += 1,
            GameScore::Draw => self.draws += 1,
            GameScore::Loss => self.losses += 1,
        }
    }
}

/// How a gate ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The candidate becomes champion.
    Promote,
    /// The champion stays.
    Reject,
}

/// What a log amounts to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) tally: Tally,
    pub(crate) decision: Option<Decision>,
    /// By pair: counted already.
    pub(crate) counted: Vec<bool>,
}

/// Reads a log in order: a pair counts once, when both its games came in time from one lease (half pairs are void),
/// and nothing counts after the decision.
pub(crate) fn count(rule: &FixedRule, log: &[LogEntry]) -> Count {
    let pairs = rule.pairs as usize;
    let mut count = Count {
        tally: Tally::default(),
        decision: None,
        counted: vec![false; pairs],
    };
    let mut halves: Vec<Option<LogEntry>> = vec![None; pairs];
    count.decision = decide(rule, &count.tally);
    for entry in log.iter().filter(|entry| entry.standing == Standing::Counts) {
        let pair = entry.pair as usize;
        if count.decision.is_some() {
            break;
        }
        if count.counted.get(pair).is_none_or(|&done| done) {
            continue;
        }
        match halves[pair] {
            Some(half) if half.lease == entry.lease => {
                if half.leg != entry.leg {
                    count.counted[pair] = true;
                    count.tally.pairs += 1;
                    count.tally.add(half.score);
                    count.tally.add(entry.score);
                    count.decision = decide(rule, &count.tally);
                }
            }
            _ => halves[pair] = Some(*entry),
        }
    }
    count
}

/// The decision that `tally` forces: as soon as the pairs still to come cannot change the outcome.
fn decide(rule: &FixedRule, tally: &Tally) -> Option<Decision> {
    let needed = rule.half_points_needed();
    let to_come = u64::from(rule.pairs - tally.pairs.min(rule.pairs)) * 4;
    if rule.pairs > 0 && tally.half_points() >= needed {
        Some(Decision::Promote)
    } else if tally.half_points() + to_come < needed || to_come == 0 {
        Some(Decision::Reject)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_met_exactly_where_floats_would_miss() {
        // 0.55 * 120 half points is 66.00000000000001 in floats.
        assert_eq!(FixedRule::new(60, 0.55, false).unwrap().half_points_needed(), 66);
        assert_eq!(FixedRule::new(60, 0.55, true).unwrap().half_points_needed(), 67);
        assert_eq!(FixedRule::new(10, 0.56, false).unwrap().half_points_needed(), 12);
        assert_eq!(FixedRule::new(2, 1.0, false).unwrap().half_points_needed(), 4);
    }

    #[test]
    fn unplayable_rules_are_refused() {
        assert_eq!(FixedRule::new(7, 0.55, false), Err(RuleError::Games(7)));
        assert_eq!(FixedRule::new(0, 0.55, false), Err(RuleError::Games(0)));
        assert_eq!(FixedRule::new(8, 0.0, false), Err(RuleError::Threshold(0.0)));
        assert_eq!(FixedRule::new(8, 1.0, true), Err(RuleError::Unreachable));
    }
}
