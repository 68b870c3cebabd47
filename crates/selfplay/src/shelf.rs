//! Sessions that are loaded before a thread needs them, so that a new network stops no game.
//!
//! Whoever prepares a lease puts as many sessions of its networks here as threads will want; a thread that meets a network
//! for the first time takes one and plays on. One that finds none loads it by itself, as where nobody prepares anything.
//!
//! Bounded: of a file there are never more sessions, waiting here and held by threads, than threads that may want one, and
//! none waits of a network that no lease names when the next one is prepared.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tengen_inference::{Device, Session};
use tengen_records::ModelId;

use crate::order::Lease;

/// The sessions that wait. All of one device are loaded with the same options.
#[derive(Default)]
pub(crate) struct Shelf {
    kinds: Mutex<Vec<Kind>>,
}

/// The sessions of one file on one device.
struct Kind {
    file: ModelId,
    device: Device,
    /// One clone is here, and one with each session that a thread holds.
    held: Arc<()>,
    waiting: Vec<Session>,
    /// The leases that name the file, and such that have ended.
    leases: Vec<Weak<Lease>>,
}

/// A session's part in the count of those that threads hold, for as long as this is kept.
pub(crate) struct Counted {
    _one: Arc<()>,
}

impl Kind {
    fn held(&self) -> usize {
        Arc::strong_count(&self.held) - 1
    }

    fn is_named(&self) -> bool {
        self.leases.iter().any(|lease| lease.strong_count() > 0)
    }
}

impl Shelf {
    /// A session of this file on this device, if one waits. Whoever asks is counted as one that holds one: it loads what it
    /// does not get.
    pub(crate) fn take(&self, file: ModelId, device: Device) -> (Option<Session>, Counted) {
        let mut kinds = self.lock();
        let kind = kind_of(&mut kinds, file, device);
        let counted = Counted {
            _one: Arc::clone(&kind.held),
        };
        (kind.waiting.pop(), counted)
    }

    /// Keeps a session for whoever wants one first, unless there are as many as `threads` threads can want.
    pub(crate) fn put(&self, file: ModelId, device: Device, session: Session, threads: usize) {
        let mut kinds = self.lock();
        let kind = kind_of(&mut kinds, file, device);
        if kind.held() + kind.waiting.len() < threads {
            kind.waiting.push(session);
        }
    }

    /// From now on sessions of the networks of `lease` wait until nobody plays it, and those of networks that no lease names
    /// any more are gone.
    pub(crate) fn keep_for(&self, lease: &Arc<Lease>, devices: &[Device]) {
        let mut gone = Vec::new();
        {
            let mut kinds = self.lock();
            for model in lease.models() {
                for &device in devices {
                    let leases = &mut kind_of(&mut kinds, model.file_id(), device).leases;
                    leases.retain(|lease| lease.strong_count() > 0);
                    leases.push(Arc::downgrade(lease));
                }
            }
            for kind in kinds.iter_mut().filter(|kind| !kind.is_named()) {
                gone.append(&mut kind.waiting);
            }
        }
        // Nobody waits for the lock while they end.
        drop(gone);
    }

    /// Whether so many games may want a further session of this file on this device, where `threads` threads play.
    pub(crate) fn wants(&self, file: ModelId, device: Device, games: usize, threads: usize) -> bool {
        let mut kinds = self.lock();
        let kind = kind_of(&mut kinds, file, device);
        kind.waiting.len() < games.min(threads.saturating_sub(kind.held()))
    }

    /// Whether a thread holds a session of any network.
    pub(crate) fn is_in_use(&self) -> bool {
        self.lock().iter().any(|kind| kind.held() > 0)
    }

    /// Sessions that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().iter().map(|kind| kind.waiting.len()).sum()
    }

    /// Every change under the lock is complete in itself.
    fn lock(&self) -> MutexGuard<'_, Vec<Kind>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sessions of this file on this device. Kinds that nobody knows any more make room for a new one.
fn kind_of(kinds: &mut Vec<Kind>, file: ModelId, device: Device) -> &mut Kind {
    let known = kinds.iter().position(|kind| kind.file == file && kind.device == device);
    let at = known.unwrap_or_else(|| {
        kinds.retain(|kind| kind.is_named() || kind.held() + kind.waiting.len() > 0);
        kinds.push(Kind {
            file,
            device,
            held: Arc::default(),
            waiting: Vec::new(),
            leases: Vec::new(),
        });
        kinds.len() - 1
    });
    &mut kinds[at]
}
