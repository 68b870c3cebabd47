//! What the async side and the training thread know of each other: the newest inputs one way, the newest status the
//! other. Both are values that are overwritten, not queues, so nothing here can fill up.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tengen_proto::v1::LearnerStatus;

use crate::config::LearnerConfig;
use crate::plan::Inputs;

/// Shared between the training thread and the async tasks.
#[derive(Debug, Default)]
pub struct Signals {
    inputs: Mutex<Versioned>,
    changed: Condvar,
    status: Mutex<LearnerStatus>,
    /// Settings that were changed while training goes on, until the training thread takes them.
    settings: Mutex<Option<LearnerConfig>>,
}

#[derive(Debug, Default)]
struct Versioned {
    inputs: Inputs,
    version: u64,
}

/// Inputs as they were read; goes into [`Signals::wait_after`].
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The inputs.
    pub inputs: Inputs,
    version: u64,
}

impl Signals {
    /// Changes the inputs and wakes the training thread.
    pub fn update(&self, change: impl FnOnce(&mut Inputs)) {
        let mut guard = lock(&self.inputs);
        change(&mut guard.inputs);
        guard.version += 1;
        drop(guard);
        self.changed.notify_all();
    }

    /// The newest inputs.
    pub fn inputs(&self) -> Seen {
        let guard = lock(&self.inputs);
        Seen {
            inputs: guard.inputs,
            version: guard.version,
        }
    }

    /// Blocks until the inputs were updated after `seen` was read.
    pub fn wait_after(&self, seen: &Seen) -> Seen {
        let guard = lock(&self.inputs);
        let guard = self
            .changed
            .wait_while(guard, |now| now.version == seen.version)
            .unwrap_or_else(PoisonError::into_inner);
        Seen {
            inputs: guard.inputs,
            version: guard.version,
        }
    }

    /// Blocks until the process is asked to stop, for `time` at most; tells whether it was.
    pub fn stopped_within(&self, time: Duration) -> bool {
        let guard = lock(&self.inputs);
        let waited = self.changed.wait_timeout_while(guard, time, |now| !now.inputs.stop);
        let (guard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        guard.inputs.stop
    }

    /// Has the training thread go by other settings from its next step on.
    pub fn offer_settings(&self, config: LearnerConfig) {
        *lock(&self.settings) = Some(config);
        self.update(|_| {});
    }

    /// The settings to go by from now on, when there are others.
    pub fn take_settings(&self) -> Option<LearnerConfig> {
        lock(&self.settings).take()
    }

    /// Changes the status that is reported.
    pub fn set_status(&self, change: impl FnOnce(&mut LearnerStatus)) {
        change(&mut lock(&self.status));
    }

    /// The status to report.
    pub fn status(&self) -> LearnerStatus {
        lock(&self.status).clone()
    }
}

/// Locks even after another thread panicked while it held the lock: every value here is whole after each assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_waiting_thread_wakes_with_the_newest_inputs() {
        let signals = Arc::new(Signals::default());
        let seen = signals.inputs();
        let waiting = Arc::clone(&signals);
        let thread = std::thread::spawn(move || waiting.wait_after(&seen).inputs);
        signals.update(|inputs| inputs.published_iteration = 7);
        assert_eq!(thread.join().unwrap().published_iteration, 7);
    }

    #[test]
    fn a_wait_for_the_end_lasts_no_longer_than_it_should() {
        let signals = Arc::new(Signals::default());
        signals.update(|inputs| inputs.published_iteration = 7);
        assert!(!signals.stopped_within(Duration::from_millis(1)));
        let waiting = Arc::clone(&signals);
        let thread = std::thread::spawn(move || waiting.stopped_within(Duration::MAX));
        signals.update(|inputs| inputs.stop = true);
        assert!(thread.join().unwrap());
    }

    #[test]
    fn an_update_between_reading_and_waiting_is_not_missed() {
        let signals = Signals::default();
        let seen = signals.inputs();
        signals.update(|inputs| inputs.stop = true);
        assert!(signals.wait_after(&seen).inputs.stop);
    }
}
