//! What decides one match: a rule of either kind, and what it says of a tally.

use std::fmt;

use crate::fixed::FixedRule;
use crate::log::{Decision, Tally};
use crate::sprt::SprtRule;

/// What decides one match.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MatchRule {
    /// So many pairs, and a score to reach.
    Fixed(FixedRule),
    /// As many pairs as it takes to tell two strengths apart.
    Sprt(SprtRule),
}

impl From<FixedRule> for MatchRule {
    fn from(rule: FixedRule) -> MatchRule {
        MatchRule::Fixed(rule)
    }
}

impl From<SprtRule> for MatchRule {
    fn from(rule: SprtRule) -> MatchRule {
        MatchRule::Sprt(rule)
    }
}

impl fmt::Display for MatchRule {
    /// What decides, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MatchRule::Fixed(rule) => write!(
                f,
                "{} {:.1} % of {} games",
                if rule.strict { "more than" } else { "at least" },
                rule.threshold() * 100.0,
                rule.pairs * 2
            ),
            MatchRule::Sprt(rule) => write!(
                f,
                "sprt of {} to {} {} (alpha {}, beta {}), at most {} games",
                rule.upper,
                rule.lower,
                rule.unit.as_str(),
                rule.alpha,
                rule.beta,
                rule.pairs_max * 2
            ),
        }
    }
}

impl MatchRule {
    /// Most pairs of the match.
    pub fn pairs(&self) -> u32 {
        match self {
            MatchRule::Fixed(rule) => rule.pairs,
            MatchRule::Sprt(rule) => rule.pairs_max,
        }
    }

    /// The same rule over at most `pairs` pairs.
    #[must_use]
    pub fn shortened_to(self, pairs: u32) -> MatchRule {
        let pairs = pairs.min(self.pairs());
        match self {
            MatchRule::Fixed(rule) => MatchRule::Fixed(FixedRule { pairs, ..rule }),
            MatchRule::Sprt(rule) => MatchRule::Sprt(SprtRule {
                pairs_max: pairs,
                ..rule
            }),
        }
    }

    /// The log-likelihood ratio of a tally, where the rule goes by one.
    pub fn llr(&self, tally: &Tally) -> Option<f64> {
        match self {
            MatchRule::Fixed(_) => None,
            MatchRule::Sprt(rule) => Some(rule.llr(tally)),
        }
    }

    /// The decision that `tally` brings.
    pub(crate) fn decide(&self, tally: &Tally) -> Option<Decision> {
        match self {
            MatchRule::Fixed(rule) => rule.decide(tally),
            MatchRule::Sprt(rule) => rule.decide(tally),
        }
    }
}
