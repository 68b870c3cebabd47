//! A driver whose answers a test gives; until then it hangs.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use super::{GpuGauge, GpuUse};

/// The test's end of the driver.
pub(crate) struct FakeDriver {
    asked: Receiver<()>,
    answers: SyncSender<GpuUse>,
}

impl FakeDriver {
    /// A driver, and the gauge that asks it.
    pub(crate) fn start() -> (FakeDriver, GpuGauge) {
        let (ask, asked) = sync_channel(0);
        let (answers, given) = sync_channel::<GpuUse>(0);
        let read = move || {
            // Without its test there is nobody left to ask.
            let _ = ask.send(());
            given.recv().unwrap_or_default()
        };
        let gauge = GpuGauge::asking(Duration::from_millis(1), || Some(read)).expect("a thread starts");
        (FakeDriver { asked, answers }, gauge)
    }

    /// Returns once the driver is asked; what it answered before is kept by then.
    pub(crate) fn wait_until_asked(&self) {
        self.asked.recv().expect("the thread asks");
    }

    /// Answers what was asked.
    pub(crate) fn answer(&self, told: GpuUse) {
        self.answers.send(told).expect("the thread waits for an answer");
    }

    /// Returns once nobody will ask any more.
    pub(crate) fn wait_until_gone(&self) {
        self.asked.recv().expect_err("the thread ends");
    }
}
