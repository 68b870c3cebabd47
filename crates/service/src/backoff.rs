//! The one retry policy of the house: exponential with jitter, bounded.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// First wait.
const DELAY_MIN: Duration = Duration::from_millis(100);
/// Longest wait between tries.
const DELAY_MAX: Duration = Duration::from_secs(5);

/// An endless series of waits: 0.1 s doubling up to 5 s, each with jitter. Build a new one after every success.
#[derive(Debug)]
pub struct Backoff(ExponentialBackoff);

impl Default for Backoff {
    fn default() -> Self {
        Backoff::up_to(DELAY_MAX)
    }
}

impl Backoff {
    /// The same with another longest wait, before jitter.
    pub fn up_to(delay_max: Duration) -> Backoff {
        Backoff::between(DELAY_MIN, delay_max)
    }

    /// The same with another first and another longest wait, before jitter.
    pub fn between(delay_min: Duration, delay_max: Duration) -> Backoff {
        Backoff(
            ExponentialBuilder::default()
                .with_min_delay(delay_min)
                .with_max_delay(delay_max)
                .with_jitter()
                .without_max_times()
                .build(),
        )
    }

    /// How long to wait before the next try.
    pub fn next_delay(&mut self) -> Duration {
        self.0.next().unwrap_or(DELAY_MAX)
    }

    /// Waits before the next try, or returns `false` at once when `stop` is cancelled.
    pub async fn wait(&mut self, stop: &tokio_util::sync::CancellationToken) -> bool {
        let delay = self.next_delay();
        tokio::select! {
            () = stop.cancelled() => false,
            () = tokio::time::sleep(delay) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_stay_bounded() {
        let mut backoff = Backoff::default();
        let delays: Vec<Duration> = (0..20).map(|_| backoff.next_delay()).collect();
        assert!(delays[0] < Duration::from_millis(250), "{delays:?}");
        assert!(delays.iter().all(|&delay| delay <= DELAY_MAX * 2), "{delays:?}");
        assert!(delays[19] >= DELAY_MAX, "{delays:?}");
    }

    /// Whoever lost the same coordinator does not come back to it at the same moments.
    #[test]
    fn two_series_wait_differently_and_so_do_two_of_the_longest_waits() {
        let series = || {
            let mut backoff = Backoff::default();
            (0..20).map(|_| backoff.next_delay()).collect::<Vec<_>>()
        };
        let (one, other) = (series(), series());
        assert_ne!(one, other);
        // Without jitter they would all be the longest.
        let mut longest = one[10..].to_vec();
        longest.dedup();
        assert!(longest.len() > 1, "{one:?}");
    }
}
