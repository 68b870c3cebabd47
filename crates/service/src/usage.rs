//! What this process takes of its machine: cores kept busy and memory held, read from the system, and how its GPU stands,
//! asked from the driver.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tengen_proto::v1;

use crate::gpu::{GpuGauge, GpuUse};
use crate::metrics;

/// Over how long the busy cores are taken, at least.
const STRETCH: Duration = Duration::from_secs(2);

/// Reads the use; cheap to ask often.
#[derive(Debug)]
pub struct UsageMeter {
    cores: u32,
    last: Mutex<Reading>,
    watched: Mutex<Watched>,
}

/// The GPU that the process computes on.
#[derive(Debug, Default)]
struct Watched {
    /// Its number among those that CUDA shows; `None` on the CPU.
    cuda: Option<u32>,
    gpu: Option<GpuGauge>,
}

impl Watched {
    /// How the GPU stands now; `None` where none has answered.
    fn told(&self) -> Option<GpuUse> {
        self.gpu.as_ref().and_then(|gpu| gpu.told(Instant::now()))
    }
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    at: Instant,
    busy: Duration,
    cpu_cores: f32,
}

impl UsageMeter {
    /// Begins to measure now, and takes the process for one that computes on the CPU alone.
    pub fn start() -> UsageMeter {
        UsageMeter {
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32),
            last: Mutex::new(Reading {
                at: Instant::now(),
                busy: busy(),
                cpu_cores: 0.0,
            }),
            watched: Mutex::default(),
        }
    }

    /// From now on the process computes on the GPU that CUDA calls `cuda`, or on none. To be said again it costs nothing;
    /// after a change, the GPU is told of once its driver has answered.
    pub fn computes_on(&self, cuda: Option<u32>) {
        let mut watched = self.watched();
        if watched.cuda == cuda {
            return;
        }
        let gpu = cuda.and_then(GpuGauge::start);
        let before = std::mem::replace(&mut *watched, Watched { cuda, gpu });
        drop(watched);
        if before.told().is_some() {
            // Until the new one is shown, the gauges say nothing rather than what the old one did.
            metrics::show_gpu(GpuUse::default());
        }
    }

    /// Shows how the GPU stands to whoever scrapes this process; nothing where none has answered.
    pub fn show_gpu(&self) {
        if let Some(told) = self.watched().told() {
            metrics::show_gpu(told);
        }
    }

    /// What the process takes now. The busy cores are those of the last two seconds or so, 0 before.
    pub fn usage(&self) -> v1::Usage {
        let gpu = self.watched().told().unwrap_or_default();
        v1::Usage {
            cpu_cores: self.cpu_cores(),
            cpu_cores_available: self.cores,
            resident_bytes: resident_bytes().unwrap_or(0),
            gpu_busy: gpu.busy,
            gpu_memory_bytes: gpu.memory_bytes,
        }
    }

    /// A change is one assignment, so whoever panicked left it whole.
    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
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
    use crate::gpu::fake::FakeDriver;

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

    fn gpu_of(usage: &v1::Usage) -> GpuUse {
        GpuUse {
            busy: usage.gpu_busy,
            memory_bytes: usage.gpu_memory_bytes,
        }
    }

    #[test]
    fn a_gpu_is_told_of_while_the_process_computes_on_one_that_has_answered() {
        let meter = UsageMeter::start();
        assert_eq!(gpu_of(&meter.usage()), GpuUse::default());
        let (driver, gauge) = FakeDriver::start();
        *meter.watched() = Watched {
            cuda: Some(0),
            gpu: Some(gauge),
        };
        driver.wait_until_asked();
        let told = GpuUse {
            busy: Some(0.5),
            memory_bytes: Some(1 << 30),
        };
        driver.answer(told);
        driver.wait_until_asked();
        // Said again, it changes nothing.
        meter.computes_on(Some(0));
        assert_eq!(gpu_of(&meter.usage()), told);
        meter.computes_on(None);
        assert_eq!(gpu_of(&meter.usage()), GpuUse::default());
        // No machine has that many.
        meter.computes_on(Some(u32::MAX));
        assert_eq!(gpu_of(&meter.usage()), GpuUse::default());
    }

    #[test]
    fn a_driver_that_hangs_holds_neither_a_report_nor_a_change_of_the_gpu() {
        let meter = UsageMeter::start();
        let (driver, gauge) = FakeDriver::start();
        *meter.watched() = Watched {
            cuda: Some(0),
            gpu: Some(gauge),
        };
        driver.wait_until_asked();
        let usage = meter.usage();
        assert_eq!(gpu_of(&usage), GpuUse::default());
        assert!(usage.resident_bytes > 0, "the rest is told all the same");
        meter.show_gpu();
        meter.computes_on(None);
        assert_eq!(meter.watched().cuda, None);
    }
}
