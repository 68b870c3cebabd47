//! A rate as a bucket that fills evenly and holds two fillings' worth: bursts pass, floods do not.

use std::time::Duration;

/// What is left of a rate; time is an argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bucket {
    per_ms: f64,
    capacity: f64,
    level: f64,
    at_ms: u64,
}

impl Bucket {
    /// A full bucket of `count` a `period`; a count of 0 means that there is no limit.
    pub(crate) fn new(count: u32, period: Duration) -> Bucket {
        let count = f64::from(count);
        let capacity = count * 2.0;
        Bucket {
            per_ms: count / (period.as_secs_f64() * 1_000.0),
            capacity,
            level: capacity,
            at_ms: 0,
        }
    }

    /// Takes one, or tells after what time there will be one.
    pub(crate) fn take(&mut self, now_ms: u64) -> Result<(), Duration> {
        if self.per_ms == 0.0 {
            return Ok(());
        }
        let passed = now_ms.saturating_sub(self.at_ms) as f64;
        self.level = (self.level + passed * self.per_ms).min(self.capacity);
        self.at_ms = self.at_ms.max(now_ms);
        if self.level >= 1.0 {
            self.level -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - self.level) / self.per_ms / 1_000.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_then_the_rate_holds() {
        let mut bucket = Bucket::new(10, Duration::from_secs(1));
        assert!((0..20).all(|_| bucket.take(0).is_ok()));
        let wait = bucket.take(0).unwrap_err();
        assert!((wait.as_secs_f64() - 0.1).abs() < 1e-9, "{wait:?}");
        let passed = (0..10_000).filter(|ms| bucket.take(*ms).is_ok()).count();
        assert!((99..=101).contains(&passed), "{passed}");
    }

    #[test]
    fn a_clock_that_jumps_back_gives_nothing_and_zero_is_no_limit() {
        let mut bucket = Bucket::new(1, Duration::from_secs(60));
        assert!(bucket.take(1_000_000).is_ok() && bucket.take(1_000_000).is_ok());
        assert!(bucket.take(0).is_err() && bucket.take(1_000_000).is_err());
        let mut open = Bucket::new(0, Duration::from_secs(1));
        assert!((0..1_000).all(|_| open.take(0).is_ok()));
    }
}
