//! What tests of several parts share: a disk that forgets, a disk that fills up, and how long fault tests are.
//!
//! Not for programs: everything here panics when it meets an error.

pub mod power_cut;
pub mod small_disk;

use std::time::{SystemTime, UNIX_EPOCH};

/// The short count of a fault test, or the long one when the variable `FAULTS` is `long` (`make faults`).
pub fn scaled(short: usize, long: usize) -> usize {
    let asked = std::env::var_os("FAULTS");
    if asked.is_some_and(|value| value == "long") {
        long
    } else {
        short
    }
}

/// Microseconds since the Unix epoch, as recorded calls are stamped.
///
/// # Panics
/// When the clock is before that.
pub fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = since.map(|since| u64::try_from(since.as_micros()));
    micros.expect("the clock is right").expect("the clock is right")
}
