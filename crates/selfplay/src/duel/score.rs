//! What a duel's results say, with how surely they say it.

/// Games of one player.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Games won.
    pub wins: u32,
    /// Games drawn.
    pub draws: u32,
    /// Games lost.
    pub losses: u32,
}

impl Tally {
    /// The tally of these scores (0, 0.5 or 1 each).
    pub fn of(scores: &[f32]) -> Tally {
        let mut tally = Tally::default();
        scores.iter().for_each(|&score| tally.add(score));
        tally
    }

    /// Counts one game.
    pub fn add(&mut self, score: f32) {
        match score {
            0.0 => self.losses += 1,
            1.0 => self.wins += 1,
            _ => self.draws += 1,
        }
    }

    /// Games in all.
    pub fn games(self) -> u32 {
        self.wins + self.draws + self.losses
    }
}

/// A score in [0, 1] with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Points a game: a win is 1, a draw 0.5.
    pub mean: f32,
    /// Lower end of the interval.
    pub low: f32,
    /// Upper end.
    pub high: f32,
}

impl Score {
    /// The score of games that come in pairs: `scores[2 * p]` and `scores[2 * p + 1]` share an opening.
    ///
    /// The two games of a pair are not independent (an opening may favour a seat, and then favours both players once),
    /// so the variance is that of the pairs' means. The interval is Wilson's (1927) with that variance in the place of
    /// `p (1 - p)`: unlike the plain normal one it stays inside [0, 1] and does not shrink to nothing when every pair
    /// ended alike.
    pub fn of_pairs(scores: &[f32]) -> Score {
        let pairs: Vec<f64> = scores.chunks(2).map(mean).collect();
        let count = pairs.len() as f64;
        if pairs.is_empty() {
            return Score {
                mean: 0.5,
                low: 0.0,
                high: 1.0,
            };
        }
        let mean = pairs.iter().sum::<f64>() / count;
        let squares: f64 = pairs.iter().map(|pair| (pair - mean).powi(2)).sum();
        let variance = squares / (count - 1.0).max(1.0);
        // 97.5 % quantile of the normal distribution.
        let z = 1.959_963_985_f64;
        let shrink = 1.0 + z * z / count;
        let centre = (mean + z * z / (2.0 * count)) / shrink;
        let half = z / shrink * (variance / count + z * z / (4.0 * count * count)).sqrt();
        Score {
            mean: mean as f32,
            low: (centre - half).clamp(0.0, 1.0) as f32,
            high: (centre + half).clamp(0.0, 1.0) as f32,
        }
    }
}

fn mean(scores: &[f32]) -> f64 {
    scores.iter().map(|&score| f64::from(score)).sum::<f64>() / scores.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpaired_luck_gives_wilsons_interval() {
        // 80 of 100 pairs won outright: Wilson's interval for 80 of 100 is 0.7112 to 0.8666.
        let scores: Vec<f32> = (0..200).map(|game| if game < 160 { 1.0 } else { 0.0 }).collect();
        let score = Score::of_pairs(&scores);
        assert_eq!(score.mean, 0.8);
        assert!(
            (score.low - 0.7112).abs() < 2e-3 && (score.high - 0.8666).abs() < 2e-3,
            "{score:?}"
        );
    }

    #[test]
    fn pairs_that_always_split_say_more_than_as_many_lone_games() {
        let split: Vec<f32> = (0..200).map(|game| (game % 2) as f32).collect();
        let lone: Vec<f32> = (0..200).map(|game| (game / 2 % 2) as f32).collect();
        let (split, lone) = (Score::of_pairs(&split), Score::of_pairs(&lone));
        assert_eq!((split.mean, lone.mean), (0.5, 0.5));
        assert!(
            split.high - split.low < (lone.high - lone.low) / 2.0,
            "{split:?} {lone:?}"
        );
    }

    #[test]
    fn a_clean_sweep_still_leaves_doubt() {
        let score = Score::of_pairs(&[1.0; 20]);
        assert_eq!(score.mean, 1.0);
        assert!(
            (score.high - 1.0).abs() < 1e-6 && score.low > 0.6 && score.low < 0.95,
            "{score:?}"
        );
    }
}
