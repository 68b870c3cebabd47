//! What is made durable together: how much that is, how long it waits for more, and what is told once it is durable.

use std::time::{Duration, Instant};

use tengen_records::RecordId;

use super::SpoolEvent;

/// Games that are made durable together at most.
pub(super) const GAMES_MAX: usize = 256;
/// Bytes that are made durable together at most, but for the last game.
const BYTES_MAX: usize = 8 << 20;

/// Games that were taken in and are not durable yet, and the words that came between them.
#[derive(Default)]
pub(super) struct Batch {
    events: Vec<SpoolEvent>,
    games: usize,
    bytes: usize,
    /// When it waits no longer although there is room for more.
    due: Option<Instant>,
    /// Whether somebody waits for something in it.
    urgent: bool,
}

impl Batch {
    /// Adds a game of so many bytes; the first one says how long the batch lingers.
    pub(super) fn add(&mut self, id: RecordId, bytes: usize, linger: Duration) {
        self.games += 1;
        self.bytes += bytes;
        self.due.get_or_insert_with(|| Instant::now() + linger);
        match self.events.last_mut() {
            Some(SpoolEvent::Kept(ids)) => ids.push(id),
            _ => self.events.push(SpoolEvent::Kept(vec![id])),
        }
    }

    /// Adds something that is told after the games before it, and soon.
    pub(super) fn add_word(&mut self, event: SpoolEvent) {
        self.events.push(event);
        self.urgent = true;
    }

    /// No more games are going to come.
    pub(super) fn hurry(&mut self) {
        self.urgent = true;
    }

    /// When it stops waiting by itself; `None` while there is no game in it.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn is_full(&self) -> bool {
        self.games >= GAMES_MAX || self.bytes >= BYTES_MAX
    }

    /// Whether it can wait for more.
    pub(super) fn lingers(&self) -> bool {
        self.due.is_some_and(|due| Instant::now() < due) && !self.urgent && !self.is_full()
    }

    /// What is to be told, in order.
    pub(super) fn into_events(self) -> Vec<SpoolEvent> {
        self.events
    }
}
