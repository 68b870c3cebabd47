//! What decides a gate, and its matches with earlier champions, as the table `gates` keeps them.

use serde::{Deserialize, Serialize};
use tengen_control::{
    Decision, FixedRule, MatchEvidence, MatchPlan, MatchRule, ModelId, Openings, SprtRule, Tally, Unit,
};

use super::StoreError;

/// A rule as JSON. The numbers of a fixed one have columns of their own.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum StoredRule {
    /// In `threshold_millionths` and `strict`.
    Fixed,
    /// A sequential test.
    Sprt {
        /// `score`, `elo` or `normalized-elo`.
        unit: StoredUnit,
        lower: f64,
        upper: f64,
        alpha: f64,
        beta: f64,
    },
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StoredUnit {
    Score,
    Elo,
    NormalizedElo,
}

/// A fixed rule from its columns.
pub(super) fn fixed_rule(pairs: u32, threshold_millionths: u32, strict: bool) -> MatchRule {
    MatchRule::Fixed(FixedRule {
        pairs,
        threshold_millionths,
        strict,
    })
}

/// The columns `threshold_millionths`, `strict` and `rule`.
pub(super) fn rule_columns(rule: &MatchRule) -> Result<(u32, bool, String), StoreError> {
    let (threshold_millionths, strict, stored) = match rule {
        MatchRule::Fixed(rule) => (rule.threshold_millionths, rule.strict, StoredRule::Fixed),
        MatchRule::Sprt(rule) => {
            let unit = match rule.unit {
                Unit::Score => StoredUnit::Score,
                Unit::Elo => StoredUnit::Elo,
                Unit::NormalizedElo => StoredUnit::NormalizedElo,
            };
            let stored = StoredRule::Sprt {
                unit,
                lower: rule.lower,
                upper: rule.upper,
                alpha: rule.alpha,
                beta: rule.beta,
            };
            (0, false, stored)
        }
    };
    let json = serde_json::to_string(&stored).map_err(|error| StoreError::corrupt("rule", error))?;
    Ok((threshold_millionths, strict, json))
}

/// The rule behind the column `rule`; `fixed` is what the other columns make of a fixed one.
pub(super) fn rule_of(json: &str, fixed: MatchRule) -> Result<MatchRule, StoreError> {
    let stored: StoredRule = serde_json::from_str(json).map_err(|error| StoreError::corrupt("rule", error))?;
    let (unit, lower, upper, alpha, beta) = match stored {
        StoredRule::Fixed => return Ok(fixed),
        StoredRule::Sprt {
            unit,
            lower,
            upper,
            alpha,
            beta,
        } => (unit, lower, upper, alpha, beta),
    };
    let unit = match unit {
        StoredUnit::Score => Unit::Score,
        StoredUnit::Elo => Unit::Elo,
        StoredUnit::NormalizedElo => Unit::NormalizedElo,
    };
    SprtRule::new(fixed.pairs() * 2, unit, [lower, upper], [alpha, beta])
        .map(MatchRule::Sprt)
        .map_err(|error| StoreError::corrupt("rule", error))
}

/// A match with an earlier champion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredMatch {
    /// The earlier champion, hexadecimal.
    opponent: String,
    /// Pairs wanted.
    pairs_wanted: u32,
    /// Pairs that have an opening.
    pairs_target: u32,
    /// Those of them whose opening an earlier one has too.
    repeated: u32,
    /// Score to reach.
    threshold_millionths: u32,
    /// Whether the threshold itself is not enough.
    strict: bool,
    /// Pairs that brought 0 to 4 half points; empty until the gate is decided.
    pair_scores: [u32; 5],
    /// Games won, drawn and lost.
    games: [u32; 3],
    /// Whether the candidate passed; none while it was not decided.
    passed: Option<bool>,
}

/// The column `pool`.
pub(super) fn pool_of(json: &str) -> Result<Vec<StoredMatch>, StoreError> {
    let pool: Vec<StoredMatch> = serde_json::from_str(json).map_err(|error| StoreError::corrupt("pool", error))?;
    match pool.iter().find(|stored| stored.id().is_none()) {
        Some(stored) => Err(StoreError::corrupt("pool", &stored.opponent)),
        None => Ok(pool),
    }
}

impl StoredMatch {
    /// A match that is yet to be played.
    pub fn planned(opponent: ModelId, rule: FixedRule, openings: Openings) -> StoredMatch {
        StoredMatch {
            opponent: blake3::Hash::from_bytes(opponent.0).to_hex().to_string(),
            pairs_wanted: rule.pairs,
            pairs_target: openings.pairs,
            repeated: openings.repeated,
            threshold_millionths: rule.threshold_millionths,
            strict: rule.strict,
            pair_scores: [0; 5],
            games: [0; 3],
            passed: None,
        }
    }

    /// A match with what came of it.
    pub(super) fn decided(evidence: &MatchEvidence) -> StoredMatch {
        let MatchPlan {
            opponent,
            rule,
            openings,
        } = evidence.plan;
        let rule = match rule {
            MatchRule::Fixed(rule) => rule,
            // A pool is made of fixed matches alone.
            MatchRule::Sprt(rule) => FixedRule {
                pairs: rule.pairs_max,
                threshold_millionths: 0,
                strict: false,
            },
        };
        let Tally {
            wins, draws, losses, ..
        } = evidence.tally;
        StoredMatch {
            pair_scores: evidence.tally.pairs_by_half_points,
            games: [wins, draws, losses],
            passed: evidence.decision.map(|decision| decision == Decision::Promote),
            ..StoredMatch::planned(opponent, rule, openings)
        }
    }

    pub(super) fn to_json(pool: &[StoredMatch]) -> Result<String, StoreError> {
        serde_json::to_string(pool).map_err(|error| StoreError::corrupt("pool", error))
    }

    fn id(&self) -> Option<[u8; 32]> {
        let hash = blake3::Hash::from_hex(&self.opponent).ok()?;
        Some(*hash.as_bytes())
    }

    /// The earlier champion.
    pub fn opponent(&self) -> ModelId {
        // Checked where it is read.
        ModelId(self.id().unwrap_or_default())
    }

    /// The match as it was set up.
    pub fn plan(&self) -> MatchPlan {
        MatchPlan {
            opponent: self.opponent(),
            rule: fixed_rule(self.pairs_wanted, self.threshold_millionths, self.strict),
            openings: Openings {
                pairs: self.pairs_target,
                repeated: self.repeated,
            },
        }
    }

    /// Its decision, once there is one.
    pub fn decision(&self) -> Option<Decision> {
        self.passed
            .map(|passed| if passed { Decision::Promote } else { Decision::Reject })
    }

    /// What came of it; empty until the gate is decided.
    pub fn tally(&self) -> Tally {
        let [wins, draws, losses] = self.games;
        Tally {
            pairs: self.pair_scores.iter().sum(),
            wins,
            draws,
            losses,
            pairs_by_half_points: self.pair_scores,
        }
    }
}
