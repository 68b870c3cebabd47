//! What tests of several parts share: a disk that forgets, and a disk that fills up.
//!
//! Not for programs: everything here panics when it meets an error.

pub mod power_cut;
pub mod small_disk;

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since the Unix epoch, as recorded calls are stamped.
///
/// # Panics
/// When the clock is before that.
pub fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = since.map(|since| u64::try_from(since.as_micros()));
    micros.expect("the clock is right").expect("the clock is right")
}
