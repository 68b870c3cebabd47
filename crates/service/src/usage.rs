//! What this process takes of its machine: cores kept busy and memory held, read from the system.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tengen_proto::v1;

/// Over how long the busy cores are taken, at least.
const STRETCH: Duration = Duration::from_secs(2);

/// Reads the use; cheap to ask often.
#[derive(Debug)]
pub struct UsageMeter {
    cores: u32,
    last: Mutex<Reading>,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    at: Instant,
    busy: Duration,
    cpu_cores: f32,
}

impl UsageMeter {
    /// Begins to measure now.
    pub fn start() -> UsageMeter {
        UsageMeter {
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32),
            last: Mutex::new(Reading {
                at: Instant::now(),
                busy: busy(),
                cpu_cores: 0.0,
            }),
        }
    }

    /// What the process takes now. The busy cores are those of the last two seconds or so, 0 before.
    pub fn usage(&self) -> v1::Usage {
        v1::Usage {
            cpu_cores: self.cpu_cores(),
            cpu_cores_available: self.cores,
            resident_bytes: resident_bytes().unwrap_or(0),
            ..v1::Usage::default()
        }
    }

    fn cpu_cores(&self) -> f32 {
        // Every reading is whole in itself, whoever panicked meanwhile.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = last.at.elapsed();
        if passed >= STRETCH {
            let now = busy();
            let share = now.saturating_sub(last.busy).as_secs_f32() / passed.as_secs_f32();
            *last = Reading {
                at: Instant::now(),
                busy: now,
                cpu_cores: share,
            };
        }
        last.cpu_cores
    }
}

/// Time that all threads of this process have computed.
pub fn busy() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// Memory that this process holds; `None` where the system does not tell.
pub fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_computing_time_are_those_of_this_process() {
        let before = busy();
        let work: u64 = (0..20_000_000_u64).fold(0, |sum, n| std::hint::black_box(sum ^ n));
        std::hint::black_box(work);
        assert!(busy() > before);
        let resident = resident_bytes().unwrap();
        assert!((1 << 20..1 << 40).contains(&resident), "{resident}");
        let meter = UsageMeter::start();
        // Too short a stretch says nothing yet.
        assert_eq!(meter.usage().cpu_cores, 0.0);
        assert!(meter.usage().cpu_cores_available >= 1);
    }
}
