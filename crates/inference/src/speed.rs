//! Which of two files of a network is faster on this machine.

use std::time::{Duration, Instant};

use crate::Result;
use crate::session::{Outputs, Session};

/// Batches that each is timed with at most, after one in which the runtime makes its plans.
const TIMED_BATCHES: usize = 5;
/// Positions in them at most: beyond that no size changes which of the two is faster.
pub const TIMED_BATCH_MAX: usize = 64;
/// No further batch is timed after this long: somebody waits for it.
const TIMING_BUDGET: Duration = Duration::from_secs(1);

/// The median time that each session takes for a batch of `batch` positions, [`TIMED_BATCH_MAX`] at most: those in `planes`, u8
/// `[n, C, H, W]`, over and over. They take turns, so that whatever else the machine does meets both. It takes about a second
/// in all, or two batches of each where those take longer.
///
/// # Errors
/// When a session cannot be run, and when `planes` holds no whole position.
pub fn batch_times(mut sessions: [&mut Session; 2], planes: &[u8], batch: usize) -> Result<[Duration; 2]> {
    let batch = batch.min(TIMED_BATCH_MAX);
    let len = batch * sessions[0].planes_len();
    let planes: Vec<u8> = planes.iter().copied().cycle().take(len).collect();
    let mut outputs = Outputs::default();
    let mut taken = [Vec::new(), Vec::new()];
    let timing = Instant::now();
    for round in 0..=TIMED_BATCHES {
        if round > 1 && timing.elapsed() >= TIMING_BUDGET {
            break;
        }
        for (session, taken) in sessions.iter_mut().zip(&mut taken) {
            let begun = Instant::now();
            session.run(&planes, batch, &mut outputs)?;
            if round > 0 {
                taken.push(begun.elapsed());
            }
        }
    }
    Ok(taken.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    }))
}
