//! How fast the actor is: counts over the recent past. Time is an argument.

use std::collections::VecDeque;

use tokio::time::{Duration, Instant};

/// How far back a rate looks.
const WINDOW: Duration = Duration::from_secs(60);
/// Shortest stretch that says anything.
const STRETCH_MIN: Duration = Duration::from_secs(1);

/// Samples of the counters, oldest first.
pub(crate) struct Rates {
    samples: VecDeque<(Instant, u64, u64)>,
}

impl Rates {
    pub(crate) fn new(now: Instant) -> Rates {
        Rates {
            samples: VecDeque::from([(now, 0, 0)]),
        }
    }

    /// Notes the counters.
    pub(crate) fn note(&mut self, now: Instant, evaluations: u64, games: u64) {
        // Samples closer than this add nothing; the window then holds at most 240 of them.
        let fresh = self.samples.back().is_none_or(|&(at, ..)| now - at >= WINDOW / 240);
        if fresh {
            self.samples.push_back((now, evaluations, games));
        }
        while self.samples.len() > 2 && self.samples.get(1).is_some_and(|&(at, ..)| now - at >= WINDOW) {
            self.samples.pop_front();
        }
    }

    /// Network evaluations per second.
    pub(crate) fn evaluations_per_second(&self) -> f32 {
        self.per_second(|(_, evaluations, _)| evaluations)
    }

    /// Games per minute; 0 while unknown.
    pub(crate) fn games_per_minute(&self) -> f32 {
        self.per_second(|(_, _, games)| games) * 60.0
    }

    fn per_second(&self, counter: impl Fn((Instant, u64, u64)) -> u64) -> f32 {
        let (Some(&first), Some(&last)) = (self.samples.front(), self.samples.back()) else {
            return 0.0;
        };
        let stretch = last.0 - first.0;
        if stretch < STRETCH_MIN {
            return 0.0;
        }
        (counter(last).saturating_sub(counter(first)) as f64 / stretch.as_secs_f64()) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_unknown_at_first_and_then_that_of_the_last_minute() {
        let start = Instant::now();
        let mut rates = Rates::new(start);
        assert_eq!(rates.games_per_minute(), 0.0);
        for second in 1..=120 {
            let games = if second <= 60 { 0 } else { (second - 60) * 2 };
            rates.note(start + Duration::from_secs(second), second * 100, games);
        }
        assert!((rates.evaluations_per_second() - 100.0).abs() < 0.1);
        assert!(
            (rates.games_per_minute() - 120.0).abs() < 3.0,
            "{}",
            rates.games_per_minute()
        );
        assert!(rates.samples.len() < 250);
    }
}
