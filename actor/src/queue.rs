//! Games that wait to be started: filled by the event loop, emptied by the playing threads.
//!
//! Holds leases, not games: a lease of a million games costs no more than one of ten.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tengen_records::{Kind, LeaseId};
use tengen_selfplay::{GameOrder, Lease};
use tokio::sync::Notify;

/// Games by which one thread may be ahead of another when they share out what is queued.
const LEAD_MAX: usize = 2;

/// Whether games may be started, go on, or must be given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Games are started and played.
    Open,
    /// No game is started; those in flight go on.
    Draining,
    /// Everything is given up.
    Closed,
}

/// Which games may be started while the queue is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Starting {
    /// Every game.
    Everything,
    /// Those of matches: self-play pauses.
    Matches,
}

/// What a thread that has nothing to do should do.
pub(crate) enum Next {
    /// Start this game.
    Start(GameOrder),
    /// End.
    End,
}

/// The queue.
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    low: Notify,
    low_mark: u64,
}

struct State {
    phase: Phase,
    starting: Starting,
    leases: VecDeque<Cursor>,
    /// Games in flight by thread.
    playing: Vec<usize>,
}

/// The games of a lease that have not been started: indexes `next..end`.
struct Cursor {
    lease: Arc<Lease>,
    next: u32,
    end: u32,
}

impl Cursor {
    fn unstarted(&self) -> u64 {
        u64::from(self.end.saturating_sub(self.next))
    }

    fn may_start(&self, starting: Starting) -> bool {
        starting == Starting::Everything || self.lease.order().plan.kind() == Kind::Match
    }
}

impl Queue {
    /// An empty queue for this many threads that asks for more below `low_mark` games.
    pub(crate) fn new(threads: usize, low_mark: u64) -> Queue {
        let state = State {
            phase: Phase::Open,
            starting: Starting::Everything,
            leases: VecDeque::new(),
            playing: vec![0; threads],
        };
        Queue {
            state: Mutex::new(state),
            changed: Condvar::new(),
            low: Notify::new(),
            low_mark,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.lock().phase
    }

    /// Adds the games of a lease that have these indexes.
    pub(crate) fn push(&self, lease: Arc<Lease>, games: Range<u32>) {
        self.lock().leases.push_back(Cursor {
            lease,
            next: games.start,
            end: games.end,
        });
        self.changed.notify_all();
    }

    /// Below how many unstarted games the queue counts as low.
    pub(crate) fn low_mark(&self) -> u64 {
        self.low_mark
    }

    /// Whether too few games wait to keep the threads busy for long.
    pub(crate) fn is_low(&self) -> bool {
        self.lock().unstarted() < self.low_mark
    }

    /// Returns when games were taken and few are left.
    pub(crate) async fn became_low(&self) {
        self.low.notified().await;
    }

    /// The next game for thread `worker`, which now has `playing` in flight; `None` when none waits or the others
    /// should start theirs first.
    pub(crate) fn take(&self, worker: usize, playing: usize) -> Option<GameOrder> {
        let mut state = self.lock();
        state.playing[worker] = playing;
        self.take_locked(&mut state, worker)
    }

    /// Waits until thread `worker`, which has nothing in flight, has something to do.
    pub(crate) fn wait(&self, worker: usize) -> Next {
        let mut state = self.lock();
        state.playing[worker] = 0;
        loop {
            if state.phase != Phase::Open {
                return Next::End;
            }
            if let Some(order) = self.take_locked(&mut state, worker) {
                return Next::Start(order);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Forgets the games of cancelled leases.
    pub(crate) fn drop_cancelled(&self) {
        self.lock().leases.retain(|cursor| !cursor.lease.is_cancelled());
        self.low.notify_one();
    }

    /// Forgets the games of this lease that have not been started; returns how many they were.
    pub(crate) fn take_back(&self, lease: LeaseId) -> u64 {
        let mut state = self.lock();
        let before = state.unstarted();
        state.leases.retain(|cursor| cursor.lease.id() != lease);
        self.low.notify_one();
        before - state.unstarted()
    }

    /// Which games may be started from now on.
    pub(crate) fn set_starting(&self, starting: Starting) {
        self.lock().starting = starting;
        self.changed.notify_all();
    }

    /// Starts no more games.
    pub(crate) fn drain(&self) {
        self.enter(Phase::Draining);
    }

    /// Has every thread give up its games and end.
    pub(crate) fn close(&self) {
        self.enter(Phase::Closed);
    }

    fn enter(&self, phase: Phase) {
        let mut state = self.lock();
        state.phase = phase;
        state.leases.clear();
        self.changed.notify_all();
    }

    fn take_locked(&self, state: &mut State, worker: usize) -> Option<GameOrder> {
        let fewest = state.playing.iter().copied().min().unwrap_or(0);
        if state.phase != Phase::Open || state.playing[worker] > fewest + LEAD_MAX {
            return None;
        }
        state
            .leases
            .retain(|cursor| cursor.unstarted() > 0 && !cursor.lease.is_cancelled());
        let starting = state.starting;
        let cursor = state.leases.iter_mut().find(|cursor| cursor.may_start(starting))?;
        let order = GameOrder {
            lease: Arc::clone(&cursor.lease),
            index: cursor.next,
        };
        cursor.next += 1;
        state.playing[worker] += 1;
        if state.unstarted() < self.low_mark {
            self.low.notify_one();
        }
        Some(order)
    }

    /// A panic elsewhere leaves the queue whole: every change under the lock is complete in itself.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn unstarted(&self) -> u64 {
        self.leases.iter().map(Cursor::unstarted).sum()
    }
}

#[cfg(test)]
mod tests {
    use tengen_games::Action;
    use tengen_records::RunId;
    use tengen_search::Settings;
    use tengen_selfplay::{MatchGame, ModelBytes, Order, Plan};

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

    fn match_lease(id: u128) -> Arc<Lease> {
        let models: Vec<Arc<ModelBytes>> = [1, 2].map(|byte| ModelBytes::new(vec![byte])).into();
        let game = MatchGame {
            pair: 0,
            opening: vec![Action(0)],
            sampled_plies: 0,
            seat0_model: 0,
        };
        let order = Order {
            models: models.iter().map(|model| model.id()).collect(),
            plan: Plan::Match { games: vec![game] },
            ..lease(id, 1).order().clone()
        };
        Lease::new(RunId::new("test").unwrap(), order, models).unwrap()
    }

    fn taken(queue: &Queue, worker: usize, playing: usize) -> Option<(u128, u32)> {
        queue
            .take(worker, playing)
            .map(|order| (order.lease.id().0, order.index))
    }

    #[test]
    fn games_come_lease_by_lease_in_order() {
        let queue = Queue::new(1, 1);
        queue.push(lease(1, 2), 0..2);
        queue.push(lease(2, 1), 0..1);
        assert_eq!(
            [0, 0, 0, 0].map(|playing| taken(&queue, 0, playing)),
            [Some((1, 0)), Some((1, 1)), Some((2, 0)), None]
        );
    }

    #[test]
    fn no_thread_runs_far_ahead_of_another() {
        let queue = Queue::new(2, 1);
        queue.push(lease(1, 100), 0..100);
        let first = (0..100).take_while(|&playing| queue.take(0, playing).is_some()).count();
        assert_eq!(first, LEAD_MAX + 1);
        assert!(queue.take(1, 0).is_some());
        assert!(queue.take(0, first).is_some());
    }

    #[test]
    fn the_queue_is_low_before_it_is_empty() {
        let queue = Queue::new(1, 2);
        assert!(queue.is_low());
        queue.push(lease(1, 3), 0..3);
        assert!(!queue.is_low());
        queue.take(0, 0);
        assert!(!queue.is_low());
        queue.take(0, 0);
        assert!(queue.is_low());
    }

    #[test]
    fn cancelled_leases_and_closed_queues_start_nothing() {
        let queue = Queue::new(1, 1);
        let cancelled = lease(1, 5);
        queue.push(Arc::clone(&cancelled), 0..5);
        queue.push(lease(2, 5), 0..5);
        cancelled.cancel();
        assert_eq!(taken(&queue, 0, 0), Some((2, 0)));
        queue.drain();
        assert_eq!(taken(&queue, 0, 0), None);
        assert!(matches!(queue.wait(0), Next::End));
    }

    #[test]
    fn paused_self_play_lets_matches_pass() {
        let queue = Queue::new(1, 1);
        queue.push(lease(1, 1), 0..1);
        queue.push(match_lease(2), 0..1);
        queue.set_starting(Starting::Matches);
        assert_eq!([0, 0].map(|playing| taken(&queue, 0, playing)), [Some((2, 0)), None]);
        queue.set_starting(Starting::Everything);
        assert_eq!(taken(&queue, 0, 0), Some((1, 0)));
    }

    #[test]
    fn games_that_were_not_started_are_taken_back() {
        let queue = Queue::new(1, 1);
        queue.push(lease(1, 5), 0..5);
        queue.push(lease(2, 1), 0..1);
        assert_eq!(taken(&queue, 0, 0), Some((1, 0)));
        assert_eq!(queue.take_back(LeaseId(1)), 4);
        assert_eq!(queue.take_back(LeaseId(1)), 0);
        assert_eq!(taken(&queue, 0, 0), Some((2, 0)));
    }
}
