//! Finished games that have no verdict yet: kept until the coordinator has decided, sent again after every reconnect.
//!
//! Bounded in games and bytes. The bound is soft by what the playing threads hold when it is reached: the event loop
//! stops taking games from them while [`Outbox::is_full`].

use std::collections::{HashMap, VecDeque};

use tengen_records::RecordId;
use tokio::time::{Duration, Instant};

/// Most games without a verdict.
const GAMES_MAX: usize = 4_096;
/// Most bytes of such games.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long a game waits that the coordinator could not decide.
const RETRY: Duration = Duration::from_secs(1);

struct Entry {
    bytes: Vec<u8>,
    sent: bool,
}

/// The games.
#[derive(Default)]
pub(crate) struct Outbox {
    games: HashMap<RecordId, Entry>,
    /// Those to send now, oldest first.
    unsent: VecDeque<RecordId>,
    /// Those to send later, earliest first.
    later: VecDeque<(Instant, RecordId)>,
    bytes: usize,
}

impl Outbox {
    pub(crate) fn len(&self) -> usize {
        self.games.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.games.len() >= GAMES_MAX || self.bytes >= BYTES_MAX
    }

    /// Games of leases for which `of` holds.
    pub(crate) fn count(&self, of: impl Fn(&RecordId) -> bool) -> usize {
        self.games.keys().filter(|id| of(id)).count()
    }

    /// Adds a finished game.
    pub(crate) fn push(&mut self, id: RecordId, bytes: Vec<u8>) {
        self.bytes += bytes.len();
        if let Some(old) = self.games.insert(id, Entry { bytes, sent: false }) {
            // The same game twice (a lease that was given out again after a restart): the newer bytes go.
            self.bytes -= old.bytes.len();
        } else {
            self.unsent.push_back(id);
        }
    }

    /// Whether a game waits to be sent now.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// The bytes of the next game to send, which from now on counts as sent.
    pub(crate) fn next_unsent(&mut self) -> Option<Vec<u8>> {
        loop {
            let id = self.unsent.pop_front()?;
            if let Some(entry) = self.games.get_mut(&id) {
                entry.sent = true;
                return Some(entry.bytes.clone());
            }
        }
    }

    /// Forgets a game that has a verdict; false when it was not here.
    pub(crate) fn settle(&mut self, id: RecordId) -> bool {
        match self.games.remove(&id) {
            Some(entry) => {
                self.bytes -= entry.bytes.len();
                true
            }
            None => false,
        }
    }

    /// Sends a game again after a while.
    pub(crate) fn retry(&mut self, id: RecordId, now: Instant) {
        if let Some(entry) = self.games.get_mut(&id).filter(|entry| entry.sent) {
            entry.sent = false;
            self.later.push_back((now + RETRY, id));
        }
    }

    /// When the next game that waits is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.later.front().map(|&(at, _)| at)
    }

    /// Queues the games that have waited long enough.
    pub(crate) fn wake(&mut self, now: Instant) {
        while let Some((_, id)) = self.later.pop_front_if(|(at, _)| *at <= now) {
            self.unsent.push_back(id);
        }
    }

    /// The stream is gone, and with it every verdict that was on its way: everything is to be sent again.
    pub(crate) fn resend(&mut self) {
        self.unsent.clear();
        self.later.clear();
        for (id, entry) in &mut self.games {
            entry.sent = false;
            self.unsent.push_back(*id);
        }
    }
}

#[cfg(test)]
mod tests {
    use tengen_records::LeaseId;

    use super::*;

    fn id(index: u32) -> RecordId {
        RecordId {
            lease: LeaseId(1),
            index,
        }
    }

    #[test]
    fn a_game_is_kept_until_it_is_settled() {
        let mut outbox = Outbox::default();
        outbox.push(id(0), vec![1, 2]);
        assert_eq!(outbox.next_unsent(), Some(vec![1, 2]));
        assert_eq!(outbox.next_unsent(), None);
        assert_eq!(outbox.len(), 1);
        assert!(outbox.settle(id(0)));
        assert!(!outbox.settle(id(0)));
        assert_eq!((outbox.len(), outbox.bytes), (0, 0));
    }

    #[test]
    fn everything_unsettled_is_sent_again_after_a_reconnect() {
        let mut outbox = Outbox::default();
        (0..3).for_each(|index| outbox.push(id(index), vec![index as u8]));
        outbox.next_unsent();
        outbox.next_unsent();
        outbox.settle(id(0));
        outbox.resend();
        let mut again: Vec<u8> = std::iter::from_fn(|| outbox.next_unsent()).flatten().collect();
        again.sort_unstable();
        assert_eq!(again, [1, 2]);
    }

    #[test]
    fn an_undecided_game_waits_before_it_is_sent_again() {
        let mut outbox = Outbox::default();
        outbox.push(id(0), vec![7]);
        outbox.next_unsent();
        let now = Instant::now();
        outbox.retry(id(0), now);
        outbox.wake(now);
        assert!(!outbox.has_unsent());
        assert_eq!(outbox.due(), Some(now + RETRY));
        outbox.wake(now + RETRY);
        assert_eq!(outbox.next_unsent(), Some(vec![7]));
    }

    #[test]
    fn the_outbox_is_full_by_games_or_by_bytes() {
        let mut outbox = Outbox::default();
        outbox.push(id(0), vec![0; BYTES_MAX]);
        assert!(outbox.is_full());
        outbox.settle(id(0));
        assert!(!outbox.is_full());
        (0..GAMES_MAX as u32).for_each(|index| outbox.push(id(index), Vec::new()));
        assert!(outbox.is_full());
    }
}
