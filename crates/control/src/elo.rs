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
    fn perfect_scores_stay_finite() {
        let elo = elo_of(20.0, 20);
        assert!(elo.difference.is_finite() && elo.high.is_finite() && elo.low < elo.difference);
        assert!(elo_of(0.0, 0).error().is_infinite());
    }
}
