//! How many steps the data allows: the samples-per-position limit, as arithmetic.
//!
//! A step samples `batch` positions. Averaged over the run no position may be sampled more often than
//! `samples_per_position` times, so `P` positions allow `floor(P * samples_per_position / batch)` steps. All positions of
//! the run count, those of validation games too: with a share kept out, the others are sampled that much more often.
//!
//! Both numbers may change between starts. What was trained under the old ones stays as it is: the new ones count from
//! there on ([`StepLimit::continued`]).

use serde::{Deserialize, Serialize};

/// The samples-per-position limit of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepLimit {
    /// Positions in one step; at least 1.
    pub batch: u32,
    /// How often each position may be sampled on average; positive.
    pub samples_per_position: f64,
    /// Step from which these numbers hold.
    pub from_step: u64,
    /// Positions of the run that the steps before it have used up.
    pub from_positions: u64,
}

impl StepLimit {
    /// A limit that holds from the first step.
    pub fn new(batch: u32, samples_per_position: f64) -> StepLimit {
        StepLimit {
            batch,
            samples_per_position,
            from_step: 0,
            from_positions: 0,
        }
    }

    /// Steps allowed in all after `positions_total` trainable positions of the run.
    pub fn steps(&self, positions_total: u64) -> u64 {
        let positions = positions_total.saturating_sub(self.from_positions);
        // Exact below 2^53 samples, far beyond any run; the cast saturates.
        let steps = (positions as f64 * self.samples_per_position / f64::from(self.batch)).floor() as u64;
        self.from_step.saturating_add(steps)
    }

    /// Fewest positions in all that allow `step` steps.
    pub fn positions_for(&self, step: u64) -> u64 {
        let steps = step.saturating_sub(self.from_step);
        let positions = (steps as f64 * f64::from(self.batch) / self.samples_per_position).ceil() as u64;
        let total = self.from_positions.saturating_add(positions);
        // The two roundings may disagree by one at the edge.
        total + u64::from(self.steps(total) < step)
    }

    /// The limit with other numbers, after `step` steps under these.
    pub fn continued(&self, batch: u32, samples_per_position: f64, step: u64) -> StepLimit {
        if (batch, samples_per_position) == (self.batch, self.samples_per_position) {
            return *self;
        }
        StepLimit {
            batch,
            samples_per_position,
            from_step: step,
            from_positions: self.positions_for(step),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_positions_times_samples_by_batch_rounded_down() {
        let steps = |batch, samples, positions| StepLimit::new(batch, samples).steps(positions);
        assert_eq!(steps(256, 4.0, 0), 0);
        assert_eq!(steps(256, 4.0, 63), 0);
        assert_eq!(steps(256, 4.0, 64), 1);
        assert_eq!(steps(256, 4.0, 127), 1);
        assert_eq!(steps(256, 4.0, 128), 2);
        assert_eq!(steps(256, 0.5, 511), 0);
        assert_eq!(steps(256, 0.5, 512), 1);
        assert_eq!(steps(1, 1000.0, 1_000_000_000), 1_000_000_000_000);
    }

    #[test]
    fn positions_for_is_the_inverse() {
        for samples in [0.3, 1.0, 2.7, 4.0, 13.0] {
            let first = StepLimit::new(192, samples);
            for limit in [first, first.continued(100, samples * 1.5, 7)] {
                for step in [8, 9, 10, 77, 12_345] {
                    let positions = limit.positions_for(step);
                    assert!(limit.steps(positions) >= step, "{limit:?} {step} {positions}");
                    assert!(limit.steps(positions - 1) < step, "{limit:?} {step} {positions}");
                }
            }
        }
    }

    #[test]
    fn changed_numbers_leave_what_was_trained_as_it_is() {
        let old = StepLimit::new(100, 2.0);
        // After 1,000 positions 20 steps were allowed and 15 done: they used up 750 positions.
        let twice = old.continued(100, 4.0, 15);
        assert_eq!((twice.from_step, twice.from_positions), (15, 750));
        assert_eq!(twice.steps(1_000), 15 + 10);
        let larger_batch = twice.continued(400, 4.0, 25);
        assert_eq!(larger_batch.from_positions, 1_000);
        assert_eq!(larger_batch.steps(1_400), 25 + 4);
        assert_eq!(old.continued(100, 2.0, 15), old);
    }
}
