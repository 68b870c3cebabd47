//! How quickly training goes, and how much of its time it waits for batches.

use std::time::{Duration, Instant};

/// Measures from one reading of the losses to the next; waiting for games is left out.
#[derive(Debug)]
pub(crate) struct Pace {
    since: Instant,
    /// Time that had been waited for batches in all when it began.
    waited: Duration,
    steps: u32,
}

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figures {
    pub(crate) steps_per_second: f32,
    /// Share of the time, 0 to 1.
    pub(crate) waited_for_batches: f32,
}

impl Pace {
    /// Begins now; `waited` is the time that has been waited for batches in all.
    pub(crate) fn begin(waited: Duration) -> Pace {
        Pace {
            since: Instant::now(),
            waited,
            steps: 0,
        }
    }

    /// Counts a step.
    pub(crate) fn note_step(&mut self) {
        self.steps += 1;
    }

    /// What was measured until now.
    pub(crate) fn figures(&self, waited: Duration) -> Figures {
        figures(self.steps, waited.saturating_sub(self.waited), self.since.elapsed())
    }
}

fn figures(steps: u32, waited: Duration, time: Duration) -> Figures {
    let seconds = time.as_secs_f32().max(f32::EPSILON);
    Figures {
        steps_per_second: steps as f32 / seconds,
        waited_for_batches: (waited.as_secs_f32() / seconds).min(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_waiting_are_shares_of_the_time() {
        let expected = Figures {
            steps_per_second: 10.0,
            waited_for_batches: 0.25,
        };
        assert_eq!(
            figures(20, Duration::from_millis(500), Duration::from_secs(2)),
            expected
        );
        let none = figures(0, Duration::ZERO, Duration::ZERO);
        assert_eq!((none.steps_per_second, none.waited_for_batches), (0.0, 0.0));
    }

    #[test]
    fn what_was_waited_before_does_not_count() {
        let pace = Pace::begin(Duration::from_secs(1_000_000));
        assert_eq!(pace.figures(Duration::from_secs(1_000_000)).waited_for_batches, 0.0);
        assert_eq!(pace.figures(Duration::from_secs(2_000_000)).waited_for_batches, 1.0);
    }
}
