//! Which leases have games in flight: a short list, so that a question to every lease is not one to every game.

use std::sync::Arc;

use crate::order::Lease;

/// Leases with games in flight, each with how many.
#[derive(Debug, Default)]
pub(crate) struct Leases(Vec<(Arc<Lease>, usize)>);

impl Leases {
    /// Counts a game of this lease.
    pub(crate) fn add(&mut self, lease: &Arc<Lease>) {
        match self.0.iter_mut().find(|(known, _)| Arc::ptr_eq(known, lease)) {
            Some((_, games)) => *games += 1,
            None => self.0.push((Arc::clone(lease), 1)),
        }
    }

    /// Counts one of its games no longer, and with the last one lets go of the lease.
    pub(crate) fn remove(&mut self, lease: &Arc<Lease>) {
        let Some(at) = self.0.iter().position(|(known, _)| Arc::ptr_eq(known, lease)) else {
            return;
        };
        self.0[at].1 -= 1;
        if self.0[at].1 == 0 {
            self.0.swap_remove(at);
        }
    }

    /// Whether it holds for one of them.
    pub(crate) fn any(&self, holds: impl Fn(&Lease) -> bool) -> bool {
        self.0.iter().any(|(lease, _)| holds(lease))
    }
}
