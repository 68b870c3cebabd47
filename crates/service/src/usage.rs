//! What this process takes of its machine: cores kept busy and lacked, and memory held, read from the system, and how its GPU
//! stands, asked from the driver.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tengen_proto::v1;

use crate::gpu::{GpuGauge, GpuUse};
use crate::metrics;
use crate::waits::Waits;

/// Over how long the busy cores are taken, at least.
const STRETCH: Duration = Duration::from_secs(2);
/// A process that has work for fewer cores hardly computes: how long it waits for one then says nothing.
const WANTED_CORES_MIN: f32 = 0.1;

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

/// What the system told last, and what follows from it and from what it told before.
#[derive(Debug)]
struct Reading {
    at: Instant,
    busy: Duration,
    waits: Option<Waits>,
    cores: Cores,
}

/// Cores, on average over a stretch.
#[derive(Clone, Copy, Debug, Default)]
struct Cores {
    busy: f32,
    /// Threads that waited for one; `None` where the system does not tell.
    lacking: Option<f32>,
}

impl Reading {
    /// What the system tells now. Nothing follows from it yet.
    fn first() -> Reading {
        Reading {
            at: Instant::now(),
            busy: busy(),
            waits: Waits::read(),
            cores: Cores::default(),
        }
    }

    /// What the system tells now, and what follows for the stretch since this reading.
    fn next(&self) -> Reading {
        self.followed_by(Reading::first())
    }

    fn followed_by(&self, next: Reading) -> Reading {
        let passed = next.at.duration_since(self.at).as_secs_f32();
        let cores = |time: Duration| time.as_secs_f32() / passed;
        let waits = next.waits.as_ref().zip(self.waits.as_ref());
        Reading {
            cores: Cores {
                busy: cores(next.busy.saturating_sub(self.busy)),
                lacking: waits.map(|(now, earlier)| cores(now.since(earlier))),
            },
            ..next
        }
    }
}

impl UsageMeter {
    /// Begins to measure now, and takes the process for one that computes on the CPU alone.
    pub fn start() -> UsageMeter {
        UsageMeter {
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32),
            last: Mutex::new(Reading::first()),
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

    /// Shows whoever scrapes this process the cores that it lacks and how its GPU stands, each where it is told.
    pub fn show(&self) {
        if let Some(lacking) = self.lately().lacking {
            metrics::show_lacking_cores(lacking);
        }
        if let Some(told) = self.watched().told() {
            metrics::show_gpu(told);
        }
    }

    /// What the process takes now. The cores are those of the last two seconds or so; before, 0 are busy and of those lacking
    /// nothing is told.
    pub fn usage(&self) -> v1::Usage {
        let gpu = self.watched().told().unwrap_or_default();
        let cores = self.lately();
        v1::Usage {
            cpu_cores: cores.busy,
            cpu_cores_available: self.cores,
            resident_bytes: resident_bytes().unwrap_or(0),
            gpu_busy: gpu.busy,
            gpu_memory_bytes: gpu.memory_bytes,
            cpu_cores_lacking: cores.lacking,
        }
    }

    /// A change is one assignment, so whoever panicked left it whole.
    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lately(&self) -> Cores {
        // Every reading is whole in itself, whoever panicked meanwhile.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.at.elapsed() >= STRETCH {
            *last = last.next();
        }
        last.cores
    }
}

/// Of the time in which threads of a process had something to compute, the share in which they waited for a core, from 0 to 1.
/// `None` where that is not told, and where they had next to nothing to compute.
pub fn wait_share(usage: &v1::Usage) -> Option<f32> {
    let lacking = usage.cpu_cores_lacking?;
    let wanted = usage.cpu_cores + lacking;
    (wanted >= WANTED_CORES_MIN).then(|| lacking / wanted)
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
        assert_eq!(meter.usage().cpu_cores_lacking, None);
        assert!(meter.usage().cpu_cores_available >= 1);
    }

    #[test]
    fn cores_are_told_of_the_stretch_between_two_readings() {
        let stretch = Duration::from_secs(10);
        let earlier = |waits| Reading {
            at: Instant::now(),
            busy: Duration::ZERO,
            waits,
            cores: Cores::default(),
        };
        let later = || {
            let now = Reading::first();
            Reading {
                at: now.at + stretch,
                ..now
            }
        };
        let told = earlier(Waits::read()).followed_by(later());
        assert!(told.cores.busy > 0.0 && told.cores.busy < 1e3, "{told:?}");
        // Some systems tell of no waits: then both readings have none.
        assert_eq!(told.cores.lacking.is_some(), told.waits.is_some());
        assert_eq!(earlier(None).followed_by(later()).cores.lacking, None);
    }

    #[test]
    fn a_process_waits_for_the_share_of_its_work_that_has_no_core() {
        let share = |cpu_cores, cpu_cores_lacking| {
            wait_share(&v1::Usage {
                cpu_cores,
                cpu_cores_lacking,
                ..v1::Usage::default()
            })
        };
        assert_eq!(share(1.5, Some(0.5)), Some(0.25));
        assert_eq!(share(2.0, Some(0.0)), Some(0.0));
        assert_eq!(share(0.0, Some(3.0)), Some(1.0));
        assert_eq!(share(1.5, None), None);
        assert_eq!(share(0.03, Some(0.05)), None, "it hardly computes");
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
        meter.show();
        meter.computes_on(None);
        assert_eq!(meter.watched().cuda, None);
    }
}
