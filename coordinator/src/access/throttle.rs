//! Lines of the log that a stranger can provoke: at most one in a few seconds, with the number of those left out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::Uptime;

/// Distance of two lines, milliseconds.
const EVERY_MS: u64 = 5_000;

/// Lets one line through in a while and counts the others.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    /// When the next line may come.
    next_ms: AtomicU64,
    left_out: AtomicU64,
}

impl Throttle {
    /// Whether a line may be written now, and how many were left out before it.
    pub(crate) fn pass(&self, now_ms: u64) -> Option<u64> {
        let next = self.next_ms.load(Ordering::Relaxed);
        let turn = now_ms >= next
            && self
                .next_ms
                .compare_exchange(next, now_ms + EVERY_MS, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if turn {
            return Some(self.left_out.swap(0, Ordering::Relaxed));
        }
        self.left_out.fetch_add(1, Ordering::Relaxed);
        None
    }
}

/// A throttle with its clock, for a line that many may want to write; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct SharedThrottle(Arc<(Uptime, Throttle)>);

impl SharedThrottle {
    /// Its first line passes.
    pub(crate) fn new() -> SharedThrottle {
        SharedThrottle(Arc::new((Uptime::start(), Throttle::default())))
    }

    /// As [`Throttle::pass`], now.
    pub(crate) fn pass(&self) -> Option<u64> {
        let (uptime, throttle) = &*self.0;
        throttle.pass(uptime.ms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_passes_and_the_next_one_tells_how_many_did_not() {
        let throttle = Throttle::default();
        assert_eq!(throttle.pass(0), Some(0));
        assert!((1..=9).all(|ms| throttle.pass(ms).is_none()));
        assert_eq!(throttle.pass(EVERY_MS), Some(9));
    }
}
