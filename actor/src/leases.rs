//! The leases in hand: which have games without a verdict, and which one may be overrun.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use tengen_records::{Kind, LeaseId, RecordId};
use tengen_selfplay::Lease;

/// Most games that are played beyond those a lease asked for.
const OVERRUN_GAMES_MAX: u32 = 100_000;

struct Held {
    lease: Arc<Lease>,
    /// Games that are not finished.
    unplayed: u32,
    /// Games that have no verdict, played or not.
    open: u32,
}

/// The leases in hand.
#[derive(Default)]
pub(crate) struct Leases {
    held: HashMap<LeaseId, Held>,
    /// Leases to hand back with the next report.
    returned: Vec<LeaseId>,
    /// The newest self-play lease, and the first index that nobody has played of it.
    newest: Option<(Arc<Lease>, u32)>,
}

impl Leases {
    /// A new lease.
    pub(crate) fn take(&mut self, lease: Arc<Lease>) {
        let open = lease.order().plan.games();
        if lease.order().plan.kind() == Kind::SelfPlay {
            self.newest = Some((Arc::clone(&lease), open));
        }
        let held = Held {
            unplayed: open,
            open,
            lease,
        };
        self.held.insert(held.lease.id(), held);
    }

    /// Up to `games` further games of the newest self-play lease, beyond those it asked for: what an actor plays while
    /// it cannot get a lease. `None` when there is no such lease or it was overrun far enough.
    pub(crate) fn overrun(&mut self, games: u32) -> Option<(Arc<Lease>, Range<u32>)> {
        let (lease, next) = self.newest.as_mut().filter(|(lease, _)| !lease.is_cancelled())?;
        let end = next
            .saturating_add(games)
            .min(lease.order().plan.games().saturating_add(OVERRUN_GAMES_MAX));
        let indexes = *next..end;
        if indexes.is_empty() {
            return None;
        }
        *next = end;
        let held = self.held.entry(lease.id()).or_insert_with(|| Held {
            lease: Arc::clone(lease),
            unplayed: 0,
            open: 0,
        });
        held.unplayed += indexes.len() as u32;
        held.open += indexes.len() as u32;
        Some((Arc::clone(lease), indexes))
    }

    /// A game of a lease is finished, or will never be.
    pub(crate) fn played(&mut self, id: RecordId) {
        if let Some(held) = self.held.get_mut(&id.lease) {
            held.unplayed = held.unplayed.saturating_sub(1);
        }
    }

    /// A game of a lease has its verdict, or will never have one.
    pub(crate) fn close_game(&mut self, id: RecordId) {
        if let Some(held) = self.held.get_mut(&id.lease) {
            held.open = held.open.saturating_sub(1);
            if held.open == 0 {
                self.held.remove(&id.lease);
            }
        }
    }

    /// The coordinator wants no more of this lease's games.
    pub(crate) fn cancel(&mut self, id: LeaseId) -> bool {
        self.held.remove(&id).is_some_and(|held| {
            held.lease.cancel();
            true
        })
    }

    /// A lease that cannot be played goes back with the next report.
    pub(crate) fn hand_back(&mut self, id: LeaseId) {
        if let Some(held) = self.held.remove(&id) {
            held.lease.cancel();
        }
        self.returned.push(id);
    }

    /// The coordinator wants the games of this lease that were not started: it goes back with the next report, while
    /// those in flight go on.
    pub(crate) fn hand_back_unstarted(&mut self, id: LeaseId) {
        if self.held.remove(&id).is_some() {
            self.returned.push(id);
        }
    }

    /// Play has ended: every lease with games that were not finished goes back.
    pub(crate) fn hand_back_unplayed(&mut self) {
        let unplayed = |(id, held): (&LeaseId, &Held)| (held.unplayed > 0).then_some(*id);
        let ids: Vec<LeaseId> = self.held.iter().filter_map(unplayed).collect();
        ids.into_iter().for_each(|id| self.hand_back(id));
    }

    /// Leases being worked on.
    pub(crate) fn ids(&self) -> Vec<LeaseId> {
        self.held.keys().copied().collect()
    }

    /// Leases to hand back.
    pub(crate) fn returned(&self) -> &[LeaseId] {
        &self.returned
    }

    /// These were handed back.
    pub(crate) fn handed_back(&mut self, ids: &[LeaseId]) {
        self.returned.retain(|id| !ids.contains(id));
    }
}

#[cfg(test)]
mod tests {
    use tengen_records::RunId;
    use tengen_search::Settings;
    use tengen_selfplay::{ModelBytes, Order, Plan};

    use super::*;

    fn lease(id: u128, games: u32) -> Arc<Lease> {
        let model = ModelBytes::new(vec![1]);
        let order = Order {
            lease: LeaseId(id),
            models: vec![model.id()],
            settings: Settings::default(),
            settings_revision: 0,
            seed: 1,
            plan: Plan::SelfPlay {
                games,
                random_plies_max: 0,
            },
        };
        Lease::new(RunId::new("test").unwrap(), order, vec![model]).unwrap()
    }

    fn game(lease: u128, index: u32) -> RecordId {
        RecordId {
            lease: LeaseId(lease),
            index,
        }
    }

    #[test]
    fn a_lease_is_held_until_each_of_its_games_is_closed() {
        let mut leases = Leases::default();
        leases.take(lease(1, 2));
        leases.close_game(game(1, 0));
        leases.close_game(game(9, 0));
        assert_eq!(leases.ids(), [LeaseId(1)]);
        leases.close_game(game(1, 1));
        assert!(leases.ids().is_empty());
    }

    #[test]
    fn only_leases_with_unplayed_games_go_back() {
        let mut leases = Leases::default();
        leases.take(lease(1, 2));
        leases.take(lease(2, 2));
        for id in [game(1, 0), game(1, 1), game(2, 0)] {
            leases.played(id);
        }
        leases.hand_back_unplayed();
        assert_eq!(leases.returned(), [LeaseId(2)]);
        leases.handed_back(&[LeaseId(2)]);
        assert!(leases.returned().is_empty());
    }

    #[test]
    fn a_lease_whose_games_are_wanted_back_goes_without_being_cancelled() {
        let mut leases = Leases::default();
        let wanted = lease(1, 3);
        leases.take(Arc::clone(&wanted));
        leases.hand_back_unstarted(LeaseId(1));
        leases.hand_back_unstarted(LeaseId(1));
        assert_eq!(leases.returned(), [LeaseId(1)]);
        assert!(leases.ids().is_empty() && !wanted.is_cancelled());
        // The verdict on a game that was in flight finds nothing to do.
        leases.close_game(game(1, 0));
    }

    #[test]
    fn the_newest_lease_is_overrun_even_after_its_own_games() {
        let mut leases = Leases::default();
        assert!(leases.overrun(5).is_none());
        leases.take(lease(1, 1));
        leases.close_game(game(1, 0));
        let indexes = |overrun: Option<(Arc<Lease>, Range<u32>)>| overrun.map(|(_, indexes)| indexes);
        assert_eq!(indexes(leases.overrun(5)), Some(1..6));
        assert_eq!(leases.ids(), [LeaseId(1)]);
        assert_eq!(indexes(leases.overrun(u32::MAX)), Some(6..1 + OVERRUN_GAMES_MAX));
        assert_eq!(indexes(leases.overrun(1)), None);
        let next = lease(2, 3);
        leases.take(Arc::clone(&next));
        next.cancel();
        assert_eq!(indexes(leases.overrun(1)), None, "a cancelled lease is not overrun");
    }
}
