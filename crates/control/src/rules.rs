//! What a run's configuration tells the state machine, checked.

use crate::fixed::{FixedRule, RuleError};
use crate::lease::LeaseRules;
use crate::match_rule::MatchRule;
use crate::rating::{RATING_SHARE_MAX, RatingRules};
use crate::schedule::{Schedule, ScheduleError};

/// How candidates become champions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GateRule {
    /// Every candidate is promoted.
    None,
    /// A candidate plays for it.
    Play(GatePlay),
}

/// What a candidate must pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GatePlay {
    /// The match with the champion.
    pub rule: MatchRule,
    /// So many successive candidates must pass against the same champion; the last of them is promoted. At least 1.
    pub in_a_row: u32,
    /// Earlier champions that it must not lose to either.
    pub pool: Option<PoolRule>,
}

/// Earlier champions that a candidate must not lose to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolRule {
    /// How many of them, the newest first; fewer while there are fewer.
    pub champions: u32,
    /// What a match with one of them must bring.
    pub rule: FixedRule,
}

impl<R: Into<MatchRule>> From<R> for GateRule {
    /// A single match with the champion.
    fn from(rule: R) -> GateRule {
        GateRule::Play(GatePlay {
            rule: rule.into(),
            in_a_row: 1,
            pool: None,
        })
    }
}

/// What becomes of a candidate that comes while others wait for their gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// It takes the place of the one that waits.
    Replace,
    /// It waits behind them; beyond [`Queue::WAITING_MAX`] the one that has waited longest gives way.
    Wait,
}

impl Queue {
    /// Most candidates that wait: the learner is never held up by gates, so something must give.
    pub const WAITING_MAX: usize = 16;

    /// Most candidates that wait under this policy.
    pub fn waiting_max(self) -> usize {
        match self {
            Queue::Replace => 1,
            Queue::Wait => Queue::WAITING_MAX,
        }
    }
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
    /// Candidates while a gate is being played.
    pub queue: Queue,
    /// Part of the games handed out that a match may take while self-play wants work, in (0, 1].
    pub gate_share: f64,
    /// With three or more actors at hand, the greatest part of a gate's pairs that one of them plays, in
    /// [[`ACTOR_SHARE_MIN`], 1].
    pub actor_share: f64,
    /// Sizes and time limits of leases.
    pub leases: LeaseRules,
    /// How rating matches are played.
    pub ratings: RatingRules,
}

/// Smallest `actor_share`: with less, three actors that are all at their limit would leave pairs that nobody may take.
pub const ACTOR_SHARE_MIN: f64 = 0.4;

/// Actors at hand from which on none plays more than its share.
pub const ACTORS_WITH_SHARES: u32 = 3;

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
    /// The share is out of range.
    #[error("actor_share {0} is not from 0.4 to 1")]
    ActorShare(f64),
    /// No candidate would ever be promoted, or none has to pass.
    #[error("a row of 0 candidates is not possible: at least 1 must pass")]
    InARow,
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
        if !(ACTOR_SHARE_MIN..=1.0).contains(&self.actor_share) {
            return Err(RulesError::ActorShare(self.actor_share));
        }
        match self.gate {
            GateRule::Play(GatePlay { in_a_row: 0, .. }) => Err(RulesError::InARow),
            GateRule::Play(_) | GateRule::None => Ok(()),
        }
    }
}
