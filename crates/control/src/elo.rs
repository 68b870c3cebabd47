//! Elo differences from match scores.

/// An Elo difference with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elo {
    /// The difference the score suggests; positive when the first side is stronger.
    pub difference: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
}

impl Elo {
    /// Half the width of the interval.
    pub fn error(self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// 97.5 % quantile of the standard normal distribution.
pub(crate) const Z: f64 = 1.959_963_984_540_054;

/// The Elo difference behind `points` (wins + draws / 2) out of `games`.
///
/// The logistic model with scale 400 (Elo 1978). The interval is Wilson's for a proportion (Wilson 1927), which stays
/// inside (0, 1) for one-sided scores; draws make the true interval narrower, so this one errs on the wide side. A
/// perfect score is taken as half a point short of it, because its Elo is infinite. Without games nothing is known:
/// the difference is 0 and the interval infinite.
pub fn elo_of(points: f64, games: u32) -> Elo {
    if games == 0 {
        return Elo {
            difference: 0.0,
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
        };
    }
    let n = f64::from(games);
    let score = points / n;
    let centre = (score + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (score * (1.0 - score) / n + Z * Z / (4.0 * n * n)).sqrt();
    let floor = 0.5 / n / 2.0;
    Elo {
        difference: logistic(score.clamp(0.5 / n, 1.0 - 0.5 / n)),
        low: logistic((centre - half).max(floor)),
        high: logistic((centre + half).min(1.0 - floor)),
    }
}

/// The Elo difference behind pairs that brought 0 to 4 half points; nothing without a pair.
///
/// As [`elo_of`], with one difference: the two games of a pair share an opening and are not independent, so the interval
/// goes by how the pairs scatter, Wilson's with the pairs' variance in the place of `p (1 - p)`. A test that stops when
/// it is sure stops at a good moment for whoever won: after one the difference errs on the great side.
pub fn elo_of_pairs(pairs_by_half_points: [u32; 5]) -> Option<Elo> {
    let counts = pairs_by_half_points.map(f64::from);
    let n: f64 = counts.iter().sum();
    if n == 0.0 {
        return None;
    }
    let outcome = |half_points: usize| half_points as f64 / 4.0;
    let score = (0..5).map(|i| counts[i] * outcome(i)).sum::<f64>() / n;
    let squares: f64 = (0..5).map(|i| counts[i] * (outcome(i) - score).powi(2)).sum();
    let variance = squares / (n - 1.0).max(1.0);
    let centre = (score + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (variance / n + Z * Z / (4.0 * n * n)).sqrt();
    let least = 0.25 / n;
    Some(Elo {
        difference: logistic(score.clamp(least, 1.0 - least)),
        low: logistic((centre - half).max(least / 2.0)),
        high: logistic((centre + half).min(1.0 - least / 2.0)),
    })
}

fn logistic(score: f64) -> f64 {
    // Adding 0 turns the -0 of an even score into a plain 0.
    -400.0 * (1.0 / score - 1.0).log10() + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_scores_are_zero_and_three_quarters_are_191() {
        assert_eq!(elo_of(30.0, 60).difference, 0.0);
        assert!((elo_of(75.0, 100).difference - 190.85).abs() < 0.01);
    }

    #[test]
    fn swapping_the_sides_mirrors_the_interval() {
        let (a, b) = (elo_of(41.5, 60), elo_of(18.5, 60));
        assert!((a.difference + b.difference).abs() < 1e-9);
        assert!((a.low + b.high).abs() < 1e-9);
    }

    #[test]
    fn wilson_interval_matches_the_textbook() {
        // 33 of 60: the score interval is [0.4250, 0.6691].
        let elo = elo_of(33.0, 60);
        assert!((elo.low - logistic(0.4250)).abs() < 0.2, "{elo:?}");
        assert!((elo.high - logistic(0.6691)).abs() < 0.2, "{elo:?}");
    }

    #[test]
    fn pairs_that_split_say_more_than_games_alone_and_lone_luck_says_the_same() {
        // 40 pairs, each won once and lost once: even for sure. The same points as games would leave doubt.
        let split = elo_of_pairs([0, 0, 40, 0, 0]).unwrap();
        let games = elo_of(40.0, 80);
        assert_eq!(split.difference, 0.0);
        assert!(split.error() < games.error() * 0.75, "{split:?} {games:?}");
        // Pairs as independent games would make them: a quarter won, half split, a quarter lost.
        let lone = elo_of_pairs([10, 0, 20, 0, 10]).unwrap();
        assert!((lone.error() / games.error() - 1.0).abs() < 0.05, "{lone:?} {games:?}");
        assert_eq!(elo_of_pairs([0; 5]), None);
        let sweep = elo_of_pairs([0, 0, 0, 0, 30]).unwrap();
        assert!(sweep.difference.is_finite() && sweep.high.is_finite() && sweep.low < sweep.difference);
    }

    #[test]
    fn perfect_scores_stay_finite() {
        let elo = elo_of(20.0, 20);
        assert!(elo.difference.is_finite() && elo.high.is_finite() && elo.low < elo.difference);
        assert!(elo_of(0.0, 0).error().is_infinite());
    }
}
