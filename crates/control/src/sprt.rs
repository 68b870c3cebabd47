//! The sequential test of a match: a pentanomial GSPRT, decided as soon as one of two strengths is likely enough.
//!
//! A pair of games with one opening is one observation with five outcomes, 0 to 4 half points; the games within a pair
//! are not independent, pairs are. The test compares two hypotheses about the mean outcome by the log-likelihood ratio of
//! the distributions that fit the tally best under each (Van den Bergh, "The Generalized Sequential Probability Ratio
//! Test", cantate.be/Fishtest/GSPRT_approximation.pdf; the same as fishtest's `LLRcalc.py`). `docs/gates.md` writes the
//! formulas out. Each hypothesis is a strength in one of three [`Unit`]s.

use crate::fixed::{RuleError, pairs_of};
use crate::log::{Decision, Tally};

/// What a strength is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Points a game, in (0, 1).
    Score,
    /// Elo difference: the score is 1 / (1 + 10^(-elo / 400)).
    Elo,
    /// Normalised Elo: the distance of the score from 1/2 in standard deviations of a game, times 800 / ln 10
    /// (Van den Bergh, "Comments on Normalized Elo"). The length of a test then depends neither on draws nor on openings.
    NormalizedElo,
}

impl Unit {
    /// Its name in sentences.
    pub const fn as_str(self) -> &'static str {
        match self {
            Unit::Score => "points a game",
            Unit::Elo => "Elo",
            Unit::NormalizedElo => "normalised Elo",
        }
    }

    /// What is allowed of a hypothesis. Beyond 1000 Elo a score differs from 0 or 1 by less than a pair in 150; beyond 200
    /// normalised Elo the equations below need not have a solution.
    fn check(self, strength: f64) -> Result<(), &'static str> {
        let (fits, need) = match self {
            Unit::Score => (strength > 0.0 && strength < 1.0, "a score is above 0 and below 1"),
            Unit::Elo => (strength.abs() <= 1_000.0, "an Elo difference is from -1000 to 1000"),
            Unit::NormalizedElo => (
                strength.abs() <= 200.0,
                "a normalised Elo difference is from -200 to 200",
            ),
        };
        if fits { Ok(()) } else { Err(need) }
    }
}

/// A match that goes on until its tally tells two strengths apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SprtRule {
    /// Most pairs; undecided after them keeps the champion.
    pub pairs_max: u32,
    /// What `lower` and `upper` are counted in.
    pub unit: Unit,
    /// Strength of a candidate that is not wanted.
    pub lower: f64,
    /// Strength of one that is.
    pub upper: f64,
    /// How often a candidate of strength `lower` may pass, in (0, 0.5).
    pub alpha: f64,
    /// How often one of strength `upper` may fail, in (0, 0.5).
    pub beta: f64,
}

impl SprtRule {
    /// Checks a rule for at most `games_max` games.
    pub fn new(
        games_max: u32,
        unit: Unit,
        [lower, upper]: [f64; 2],
        [alpha, beta]: [f64; 2],
    ) -> Result<SprtRule, RuleError> {
        let pairs_max = pairs_of(games_max)?;
        let hypotheses = |need| RuleError::Hypotheses {
            lower,
            upper,
            unit: unit.as_str(),
            need,
        };
        for strength in [lower, upper] {
            unit.check(strength).map_err(hypotheses)?;
        }
        if lower >= upper {
            return Err(hypotheses("the first must be below the second"));
        }
        for rate in [alpha, beta] {
            if !(rate > 0.0 && rate < 0.5) {
                return Err(RuleError::ErrorRate(rate));
            }
        }
        Ok(SprtRule {
            pairs_max,
            unit,
            lower,
            upper,
            alpha,
            beta,
        })
    }

    /// The log-likelihood ratios at which the test ends: (the champion stays, the candidate passes), by Wald (1945).
    pub fn bounds(&self) -> (f64, f64) {
        let SprtRule { alpha, beta, .. } = self;
        ((beta / (1.0 - alpha)).ln(), ((1.0 - beta) / alpha).ln())
    }

    /// The log-likelihood ratio of `upper` to `lower`, natural logarithm; positive speaks for the candidate.
    pub fn llr(&self, tally: &Tally) -> f64 {
        log_likelihood_ratio(tally.pairs_by_half_points, self.unit, self.lower, self.upper)
    }

    pub(crate) fn decide(&self, tally: &Tally) -> Option<Decision> {
        let (lower, upper) = self.bounds();
        let llr = self.llr(tally);
        if llr >= upper {
            Some(Decision::Promote)
        } else if llr <= lower || tally.pairs >= self.pairs_max {
            Some(Decision::Reject)
        } else {
            None
        }
    }
}

/// Mean points a game of each outcome of a pair.
const OUTCOMES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// Taken for an outcome that was not seen, so that every hypothesis has a distribution that fits it (fishtest's value).
const UNSEEN: f64 = 1e-3;

/// Normalised Elo of one standard deviation of a game.
const NORMALIZED_ELO_PER_DEVIATION: f64 = 800.0 / std::f64::consts::LN_10;

/// The log-likelihood ratio of strength `upper` to strength `lower` after pairs with 0 to 4 half points.
pub fn log_likelihood_ratio(pairs_by_half_points: [u32; 5], unit: Unit, lower: f64, upper: f64) -> f64 {
    if pairs_by_half_points == [0; 5] {
        return 0.0;
    }
    let seen = pairs_by_half_points.map(|pairs| if pairs == 0 { UNSEEN } else { f64::from(pairs) });
    let total: f64 = seen.iter().sum();
    let observed = seen.map(|pairs| pairs / total);
    let fit = |strength: f64| match unit {
        Unit::Score => fit_mean(&observed, strength),
        Unit::Elo => fit_mean(&observed, 1.0 / (1.0 + 10f64.powf(-strength / 400.0))),
        // Two games a pair: the mean of a pair deviates by 1/sqrt(2) of what a game does.
        Unit::NormalizedElo => fit_deviations(
            &observed,
            strength / NORMALIZED_ELO_PER_DEVIATION * std::f64::consts::SQRT_2,
        ),
    };
    let (low, high) = (fit(lower), fit(upper));
    let ratios = (0..5).map(|i| observed[i] * (high[i] / low[i]).ln());
    total * ratios.sum::<f64>()
}

/// The distribution with mean `score` under which `observed` is likeliest.
fn fit_mean(observed: &[f64; 5], score: f64) -> [f64; 5] {
    fit_balanced(observed, &OUTCOMES.map(|outcome| outcome - score))
}

/// The likeliest distribution under which `weights` have the mean 0: p / (1 + x w) with the x that makes it so. The weights
/// must have both signs. The sum falls as x grows: Newton's steps, halved where they would leave the bracket. No
/// probability is above 1, so 1 + x w is nowhere below p, which keeps the bracket away from the poles of the sum: on one,
/// Newton's step is too small to be told from having arrived.
fn fit_balanced(observed: &[f64; 5], weights: &[f64; 5]) -> [f64; 5] {
    let (mut low, mut high) = (f64::MIN, f64::MAX);
    for (p, w) in observed.iter().zip(weights) {
        let end = (p - 1.0) / w;
        if *w > 0.0 {
            low = low.max(end);
        } else if *w < 0.0 {
            high = high.min(end);
        }
    }
    let mut x = 0.0;
    for _ in 0..STEPS_MAX {
        let (mut value, mut slope) = (0.0, 0.0);
        for (p, w) in observed.iter().zip(weights) {
            let share = w / (1.0 + x * w);
            value += p * share;
            slope -= p * share * share;
        }
        if value > 0.0 {
            low = x;
        } else {
            high = x;
        }
        let newton = x - value / slope;
        let next = if newton > low && newton < high {
            newton
        } else {
            low.midpoint(high)
        };
        if (next - x).abs() <= f64::EPSILON * x.abs() {
            break;
        }
        x = next;
    }
    std::array::from_fn(|i| observed[i] / (1.0 + x * weights[i]))
}

/// Steps of either solver; far more than it takes (measured: at most 46 over random tallies).
const STEPS_MAX: u32 = 200;

/// Change of a probability below which the fit stands still.
const SETTLED: f64 = 1e-14;

/// The likeliest distribution whose mean lies `deviations` of its standard deviations above 1/2.
///
/// That is no linear condition; it is made one around the last fit, again and again (Van den Bergh, "Normalized Elo in
/// practice", cantate.be/Fishtest/normalized_elo_practical.pdf).
fn fit_deviations(observed: &[f64; 5], deviations: f64) -> [f64; 5] {
    let mut fit = [0.2; 5];
    for _ in 0..STEPS_MAX {
        let mean: f64 = (0..5).map(|i| OUTCOMES[i] * fit[i]).sum();
        let variance: f64 = (0..5).map(|i| (OUTCOMES[i] - mean).powi(2) * fit[i]).sum();
        let deviation = variance.sqrt();
        let weights = OUTCOMES.map(|outcome| {
            let distance = (mean - outcome) / deviation;
            outcome - 0.5 - deviations * deviation * (1.0 + distance * distance) / 2.0
        });
        let next = fit_balanced(observed, &weights);
        let change = (0..5).map(|i| (next[i] - fit[i]).abs()).fold(0.0, f64::max);
        fit = next;
        if change <= SETTLED {
            break;
        }
    }
    fit
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [f64; 2] = [0.05, 0.05];

    #[test]
    fn the_bounds_are_walds() {
        let rule = SprtRule::new(2, Unit::Elo, [0.0, 35.0], [0.05, 0.1]).unwrap();
        let (lower, upper) = rule.bounds();
        assert!((lower - (0.1f64 / 0.95).ln()).abs() < 1e-15, "{lower}");
        assert!((upper - 18f64.ln()).abs() < 1e-15, "{upper}");
    }

    #[test]
    fn a_fit_has_the_mean_it_was_asked_for() {
        let observed = [0.1, 0.2, 0.4, 0.2, 0.1];
        for score in [0.01, 0.3, 0.5, 0.55, 0.99] {
            let fit = fit_mean(&observed, score);
            let mean: f64 = (0..5).map(|i| fit[i] * OUTCOMES[i]).sum();
            assert!((mean - score).abs() < 1e-13, "{mean} for {score}");
            assert!((fit.iter().sum::<f64>() - 1.0).abs() < 1e-13);
        }
    }

    /// Every way to divide up to `pairs` pairs among the five outcomes.
    fn all_tallies(pairs: u32) -> Vec<[u32; 5]> {
        let mut all = vec![[0; 5]];
        for outcome in 0..5 {
            let more = |tally: &[u32; 5]| {
                let room = pairs - tally.iter().sum::<u32>();
                let tally = *tally;
                (0..=room).map(move |n| {
                    let mut tally = tally;
                    tally[outcome] = n;
                    tally
                })
            };
            all = all.iter().flat_map(more).collect();
        }
        all
    }

    #[test]
    fn no_small_tally_misleads_the_solver() {
        // Newton's first step for this one ends exactly on a pole of the sum for an even score.
        let pole = log_likelihood_ratio([1, 1, 9, 11, 8], Unit::Elo, 0.0, 35.0);
        assert!((pole - 2.404_331_2).abs() < 1e-6, "{pole}");
        for tally in all_tallies(10).into_iter().filter(|tally| *tally != [0; 5]) {
            let total: f64 = tally.iter().map(|&n| f64::from(n).max(UNSEEN)).sum();
            let observed = tally.map(|n| f64::from(n).max(UNSEEN) / total);
            for score in [0.3, 0.5, 0.55, 0.7] {
                let fit = fit_mean(&observed, score);
                let mean: f64 = (0..5).map(|i| fit[i] * OUTCOMES[i]).sum();
                let sum: f64 = fit.iter().sum();
                assert!(
                    (mean - score).abs() < 1e-9 && (sum - 1.0).abs() < 1e-9,
                    "{tally:?} for {score}: {fit:?}"
                );
            }
            for deviations in [-0.2, 0.05, 0.2] {
                let fit = fit_deviations(&observed, deviations);
                let mean: f64 = (0..5).map(|i| fit[i] * OUTCOMES[i]).sum();
                let variance: f64 = (0..5).map(|i| fit[i] * (OUTCOMES[i] - mean).powi(2)).sum();
                let off = mean - 0.5 - deviations * variance.sqrt();
                assert!(off.abs() < 1e-8, "{tally:?} for {deviations} deviations: {fit:?}");
            }
        }
    }

    #[test]
    fn swapping_sides_and_hypotheses_turns_the_sign() {
        for unit in [Unit::Elo, Unit::NormalizedElo] {
            let there = log_likelihood_ratio([3, 8, 20, 14, 6], unit, 0.0, 35.0);
            let back = log_likelihood_ratio([6, 14, 20, 8, 3], unit, -35.0, 0.0);
            assert!((there + back).abs() < 1e-10, "{there} and {back}");
            assert!(there > 0.0);
        }
    }

    #[test]
    fn impossible_tests_are_refused() {
        let refused = |unit, hypotheses| SprtRule::new(100, unit, hypotheses, BOTH).is_err();
        assert!(refused(Unit::Elo, [5.0, 5.0]) && refused(Unit::Elo, [0.0, f64::NAN]));
        assert!(refused(Unit::Score, [0.5, 1.0]) && refused(Unit::NormalizedElo, [0.0, 250.0]));
        assert_eq!(
            SprtRule::new(100, Unit::Elo, [0.0, 5.0], [0.5, 0.05]),
            Err(RuleError::ErrorRate(0.5))
        );
        assert_eq!(SprtRule::new(5, Unit::Elo, [0.0, 5.0], BOTH), Err(RuleError::Games(5)));
    }
}
