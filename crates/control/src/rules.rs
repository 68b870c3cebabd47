//! What a run's configuration tells the state machine, checked.

use crate::lease::LeaseRules;
use crate::log::{FixedRule, RuleError};
use crate::rating::{RATING_SHARE_MAX, RatingRules};
use crate::schedule::{Schedule, ScheduleError};

/// How candidates become champions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateRule {
    /// Every candidate is promoted.
    None,
    /// A match of fixed length.
    Fixed(FixedRule),
}

/// Everything the state machine goes by.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Games and simulations by iteration.
    pub schedule: Schedule,
    /// A candidate is due after every so many iterations, at least 1.
    pub candidate_every: u32,
    /// How candidates become champions.
    pub gate: GateRule,
    /// Part of the games handed out that a match may take while self-play wants work, in (0, 1].
    pub gate_share: f64,
    /// Sizes and time limits of leases.
    pub leases: LeaseRules,
    /// How rating matches are played.
    pub ratings: RatingRules,
}

/// Rules that cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum RulesError {
    /// The schedule is faulty.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The gate is faulty.
    #[error(transparent)]
    Gate(#[from] RuleError),
    /// The share of rating matches is out of range.
    #[error("the ratings' share {0} is not from 0 to {RATING_SHARE_MAX}")]
    RatingShare(f64),
    /// Candidates would never be cut.
    #[error("candidate_every is 0: a candidate is due after at least 1 iteration")]
    CandidateEvery,
    /// The share is out of range.
    #[error("gate_share {0} is not above 0 and at most 1")]
    GateShare(f64),
}

impl Rules {
    /// Checks what the types do not.
    pub fn validate(&self) -> Result<(), RulesError> {
        if !(0.0..=RATING_SHARE_MAX).contains(&self.ratings.share) {
            return Err(RulesError::RatingShare(self.ratings.share));
        }
        if self.candidate_every == 0 {
            return Err(RulesError::CandidateEvery);
        }
        if !(self.gate_share > 0.0 && self.gate_share <= 1.0) {
            return Err(RulesError::GateShare(self.gate_share));
        }
        Ok(())
    }
}
