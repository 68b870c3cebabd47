//! How many steps the data allows: the samples-per-position limit, as arithmetic.
//!
//! A step samples `batch` positions. Averaged over the run no position may be sampled more often than
//! `samples_per_position` times, so `P` positions allow `floor(P * samples_per_position / batch)` steps. All positions of
//! the run count, those of validation games too: with a share kept out, the others are sampled that much more often.

/// The samples-per-position limit of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepLimit {
    /// Positions in one step; at least 1.
    pub batch: u32,
    /// How often each position may be sampled on average; positive.
    pub samples_per_position: f64,
    /// No step before the window holds this many positions.
    pub window_min_positions: u64,
}

impl StepLimit {
    /// Steps allowed in all after `positions_total` trainable positions of the run.
    pub fn steps(&self, positions_total: u64) -> u64 {
        // Exact below 2^53 samples, far beyond any run; the cast saturates.
        (positions_total as f64 * self.samples_per_position / f64::from(self.batch)).floor() as u64
    }

    /// Positions the window must hold before the first step: the configured number, but never more than the window
    /// can hold at all, or a small window would wait forever.
    pub fn window_min(&self, capacity_positions: u64) -> u64 {
        self.window_min_positions.clamp(1, capacity_positions.max(1))
    }

    /// Fewest positions in all that allow `step` steps.
    pub fn positions_for(&self, step: u64) -> u64 {
        let positions = (step as f64 * f64::from(self.batch) / self.samples_per_position).ceil() as u64;
        // The two roundings may disagree by one at the edge.
        if self.steps(positions) < step {
            positions + 1
        } else {
            positions
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(batch: u32, samples_per_position: f64) -> StepLimit {
        StepLimit {
            batch,
            samples_per_position,
            window_min_positions: 2_000,
        }
    }

    #[test]
    fn steps_are_positions_times_samples_by_batch_rounded_down() {
        assert_eq!(limit(256, 4.0).steps(0), 0);
        assert_eq!(limit(256, 4.0).steps(63), 0);
        assert_eq!(limit(256, 4.0).steps(64), 1);
        assert_eq!(limit(256, 4.0).steps(127), 1);
        assert_eq!(limit(256, 4.0).steps(128), 2);
        assert_eq!(limit(256, 0.5).steps(511), 0);
        assert_eq!(limit(256, 0.5).steps(512), 1);
        assert_eq!(limit(1, 1000.0).steps(1_000_000_000), 1_000_000_000_000);
    }

    #[test]
    fn positions_for_is_the_inverse() {
        for samples in [0.3, 1.0, 2.7, 4.0, 13.0] {
            let limit = limit(192, samples);
            for step in [1, 2, 3, 10, 77, 12_345] {
                let positions = limit.positions_for(step);
                assert!(limit.steps(positions) >= step, "{samples} {step} {positions}");
                assert!(limit.steps(positions - 1) < step, "{samples} {step} {positions}");
            }
        }
    }

    #[test]
    fn the_first_step_never_waits_for_more_than_the_window_can_hold() {
        assert_eq!(limit(256, 4.0).window_min(500_000), 2_000);
        assert_eq!(limit(256, 4.0).window_min(500), 500);
        assert_eq!(
            StepLimit {
                window_min_positions: 0,
                ..limit(256, 4.0)
            }
            .window_min(500),
            1
        );
    }
}
