//! Asks a GPU from a thread of its own and keeps the newest answer, so that whoever tells how the GPU stands waits for no
//! driver. One that hangs only makes the answer old, and an old answer is told as none.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Gpu, GpuUse};

/// How often a GPU is asked.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// An answer of this age no longer says how the GPU stands.
const ANSWER_AGE_MAX: Duration = Duration::from_secs(10);

/// What a GPU told last. The thread that asks it ends once this is dropped, and at once where there is no GPU to ask;
/// nobody waits for its end.
#[derive(Debug)]
pub(crate) struct GpuGauge {
    newest: Arc<Newest>,
    _lifeline: SyncSender<()>,
}

#[derive(Debug, Default)]
struct Newest(Mutex<Option<Answer>>);

#[derive(Clone, Copy, Debug)]
struct Answer {
    told: GpuUse,
    /// When it was asked for: of which moment since then it speaks, the driver does not say.
    asked_at: Instant,
}

impl GpuGauge {
    /// Begins to ask the GPU that this process has from CUDA as number `cuda`, and waits for nothing. `None`: the system has
    /// no thread to give.
    pub(crate) fn start(cuda: u32) -> Option<GpuGauge> {
        GpuGauge::asking(ASK_EVERY, move || opened(cuda))
    }

    /// Begins to read every so often what `open` opens. Both may block for as long as they like.
    pub(super) fn asking<R: FnMut() -> GpuUse + 'static>(
        every: Duration,
        open: impl FnOnce() -> Option<R> + Send + 'static,
    ) -> Option<GpuGauge> {
        let newest = Arc::new(Newest::default());
        let (lifeline, dropped) = sync_channel(1);
        let kept = Arc::clone(&newest);
        let thread = std::thread::Builder::new()
            .name("gpu-gauge".to_owned())
            .spawn(move || ask(every, open, &kept, &dropped));
        match thread {
            Ok(_) => Some(GpuGauge {
                newest,
                _lifeline: lifeline,
            }),
            Err(error) => {
                tracing::warn!(%error, "the use of the gpu is not measured: no thread could be started");
                None
            }
        }
    }

    /// How the GPU stands `now`; nothing is known where the newest answer is old. `None`: no GPU has answered yet.
    pub(crate) fn told(&self, now: Instant) -> Option<GpuUse> {
        let answer = (*self.newest.lock())?;
        let age = now.saturating_duration_since(answer.asked_at);
        Some(if age < ANSWER_AGE_MAX {
            answer.told
        } else {
            GpuUse::default()
        })
    }
}

impl Newest {
    /// A change is one assignment, so whoever panicked left it whole.
    fn lock(&self) -> MutexGuard<'_, Option<Answer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn opened(cuda: u32) -> Option<impl FnMut() -> GpuUse> {
    Gpu::open(cuda).map(|gpu| move || gpu.read())
}

/// What the thread does, until the gauge is dropped.
fn ask<R: FnMut() -> GpuUse>(
    every: Duration,
    open: impl FnOnce() -> Option<R>,
    newest: &Newest,
    dropped: &Receiver<()>,
) {
    let Some(mut read) = open() else {
        return;
    };
    loop {
        let asked_at = Instant::now();
        let told = read();
        *newest.lock() = Some(Answer { told, asked_at });
        if !matches!(dropped.recv_timeout(every), Err(RecvTimeoutError::Timeout)) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::fake::FakeDriver;

    const BUSY: GpuUse = GpuUse {
        busy: Some(0.9),
        memory_bytes: Some(5 << 30),
    };
    const IDLE: GpuUse = GpuUse {
        busy: Some(0.0),
        memory_bytes: Some(1 << 30),
    };

    #[test]
    fn a_driver_that_hangs_makes_its_last_answer_old_and_an_old_one_is_no_answer() {
        let begun = Instant::now();
        let (driver, gauge) = FakeDriver::start();
        driver.wait_until_asked();
        assert_eq!(gauge.told(begun), None, "it hangs from the beginning");
        driver.answer(BUSY);
        driver.wait_until_asked();
        assert_eq!(gauge.told(begun), Some(BUSY), "it hangs now");
        let later = Instant::now() + ANSWER_AGE_MAX;
        assert_eq!(gauge.told(later), Some(GpuUse::default()));
        driver.answer(IDLE);
        driver.wait_until_asked();
        assert_eq!(gauge.told(begun), Some(IDLE), "it goes on");
    }

    #[test]
    fn nobody_waits_for_a_driver_that_hangs_and_it_is_asked_no_more_once_it_goes_on() {
        let (driver, gauge) = FakeDriver::start();
        driver.wait_until_asked();
        drop(gauge);
        driver.answer(BUSY);
        driver.wait_until_gone();
    }

    /// The thread's own work, with a gauge that is dropped already: the GPU is asked once, if there is one.
    fn asked_once<R: FnMut() -> GpuUse>(open: impl FnOnce() -> Option<R>) -> Option<GpuUse> {
        let newest = Newest::default();
        let (lifeline, dropped) = sync_channel(1);
        drop(lifeline);
        ask(ASK_EVERY, open, &newest, &dropped);
        let answer = *newest.lock();
        answer.map(|answer| answer.told)
    }

    /// Holds on a machine with a GPU and on one without, where the thread ends.
    #[test]
    fn a_gpu_that_can_be_asked_is_and_without_one_there_is_no_answer() {
        let wanted = Gpu::open(0).as_ref().map(Gpu::read);
        let told = asked_once(|| opened(0));
        let known = |told: GpuUse| (told.busy.is_some(), told.memory_bytes.is_some());
        assert_eq!(told.map(known), wanted.map(known));
        // No machine has that many.
        assert_eq!(asked_once(|| opened(u32::MAX)), None);
    }
}
