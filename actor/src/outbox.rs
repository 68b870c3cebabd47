//! The send window over the spool: the oldest games that have no verdict, sent again after every reconnect.
//!
//! The spool bounds it, by games and by bytes. It holds no game that is not durable.

use std::collections::{BTreeMap, BTreeSet};

use tengen_records::RecordId;
use tengen_service::backoff::Backoff;
use tokio::time::Instant;

use crate::spool::{Ticket, Unsent};

/// The games.
#[derive(Default)]
pub(crate) struct Outbox {
    games: BTreeMap<Ticket, (RecordId, Vec<u8>)>,
    /// Those that are not on their way, oldest first.
    unsent: BTreeSet<Ticket>,
    /// Nothing is sent before then: the coordinator could not store a game.
    hold_until: Option<Instant>,
    backoff: Backoff,
}

impl Outbox {
    /// Adds a game.
    pub(crate) fn push(&mut self, Unsent { ticket, id, game }: Unsent) {
        self.games.insert(ticket, (id, game));
        self.unsent.insert(ticket);
    }

    /// Whether a game waits to be sent now.
    pub(crate) fn has_unsent(&self) -> bool {
        self.hold_until.is_none() && !self.unsent.is_empty()
    }

    /// The next game to send, which from now on counts as sent.
    pub(crate) fn next_unsent(&mut self) -> Option<(Ticket, Vec<u8>)> {
        let ticket = self.unsent.pop_first()?;
        let (_, game) = self.games.get(&ticket)?;
        Some((ticket, game.clone()))
    }

    /// Takes out a game that has a verdict; `None` when there is no such game.
    pub(crate) fn settle(&mut self, ticket: Ticket) -> Option<(RecordId, Vec<u8>)> {
        self.unsent.remove(&ticket);
        self.backoff = Backoff::default();
        self.games.remove(&ticket)
    }

    /// The coordinator could not decide about a game: it goes again, and nothing goes for a while.
    pub(crate) fn retry(&mut self, ticket: Ticket, now: Instant) {
        if self.games.contains_key(&ticket) && self.unsent.insert(ticket) && self.hold_until.is_none() {
            self.hold_until = Some(now + self.backoff.next_delay());
        }
    }

    /// When sending goes on.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.hold_until
    }

    /// Goes on when it has waited long enough.
    pub(crate) fn wake(&mut self, now: Instant) {
        self.hold_until.take_if(|until| *until <= now);
    }

    /// The stream is gone, and with it every verdict that was on its way: everything is to be sent again.
    pub(crate) fn resend(&mut self) {
        self.unsent = self.games.keys().copied().collect();
    }
}

#[cfg(test)]
mod tests {
    use tengen_records::LeaseId;
    use tokio::time::Duration;

    use super::*;

    fn outbox(games: u64) -> Outbox {
        let mut outbox = Outbox::default();
        for number in 0..games {
            outbox.push(Unsent {
                ticket: Ticket(number),
                id: RecordId {
                    lease: LeaseId(1),
                    index: number as u32,
                },
                game: vec![number as u8],
            });
        }
        outbox
    }

    fn sent(outbox: &mut Outbox) -> Vec<u8> {
        std::iter::from_fn(|| outbox.next_unsent())
            .flat_map(|(_, game)| game)
            .collect()
    }

    #[test]
    fn a_game_is_kept_until_it_is_settled() {
        let mut outbox = outbox(1);
        assert_eq!(sent(&mut outbox), [0]);
        assert!(!outbox.has_unsent());
        assert!(outbox.settle(Ticket(0)).is_some());
        assert!(outbox.settle(Ticket(0)).is_none());
        outbox.resend();
        assert!(!outbox.has_unsent());
    }

    #[test]
    fn everything_unsettled_is_sent_again_after_a_reconnect_oldest_first() {
        let mut outbox = outbox(4);
        outbox.next_unsent();
        outbox.next_unsent();
        outbox.settle(Ticket(0));
        outbox.resend();
        assert_eq!(sent(&mut outbox), [1, 2, 3]);
    }

    #[test]
    fn an_undecided_game_holds_everything_for_a_while_and_goes_again() {
        let mut outbox = outbox(3);
        outbox.next_unsent();
        outbox.next_unsent();
        let now = Instant::now();
        outbox.retry(Ticket(0), now);
        outbox.retry(Ticket(1), now);
        let due = outbox.due().unwrap();
        assert!(now < due && due < now + Duration::from_secs(1), "one wait for both");
        outbox.wake(now);
        assert!(!outbox.has_unsent());
        outbox.wake(due);
        assert_eq!(sent(&mut outbox), [0, 1, 2]);
    }

    #[test]
    fn a_coordinator_that_cannot_store_is_asked_less_and_less() {
        let mut outbox = outbox(1);
        let mut now = Instant::now();
        let mut waits = Vec::new();
        for _ in 0..8 {
            outbox.next_unsent();
            outbox.retry(Ticket(0), now);
            let due = outbox.due().unwrap();
            waits.push(due - now);
            outbox.wake(due);
            now = due;
        }
        assert!(waits[0] < Duration::from_secs(1), "{waits:?}");
        assert!(waits[7] > Duration::from_secs(4), "{waits:?}");
    }
}
