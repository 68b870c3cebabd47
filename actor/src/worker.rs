//! A thread that plays: one driver, fed from the queue, until it is told to end. Whether its sessions are its own is
//! settled elsewhere. What it has to say goes through the spool, so that its words never overtake its games.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};

use crate::queue::{Next, Phase, Queue};
use crossbeam_channel::Sender;
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_records::{Record, RecordId, encode};
use tengen_selfplay::feeding::Feeding;
use tengen_selfplay::{Driver, DriverError, EvaluationCache, Evaluator, GameOrder, Lease};

/// What a playing thread hands to the spool.
#[derive(Debug)]
pub(crate) enum WorkerEvent {
    /// A game ended.
    Finished {
        id: RecordId,
        /// The encoded record.
        game: Vec<u8>,
    },
    /// A word for the event loop.
    Notice(Notice),
}

/// What a playing thread tells the event loop.
#[derive(Debug)]
pub(crate) enum Notice {
    /// A game that cannot be started.
    Refused { id: RecordId, reason: String },
    /// The thread has ended.
    Ended {
        worker: usize,
        result: Result<(), WorkerError>,
    },
}

/// Why a thread ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkerError {
    /// Play cannot go on.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// A fault of ours.
    #[error("thread selfplay-{0} panicked")]
    Panicked(usize),
}

/// What a thread has done, for reports. Written by the thread alone.
#[derive(Default)]
pub(crate) struct Gauges {
    pub(crate) evaluations: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) cache_hits: AtomicU64,
    pub(crate) terminal_visits: AtomicU64,
    pub(crate) reused_visits: AtomicU64,
    pub(crate) games: AtomicU64,
    pub(crate) plies_in_flight: AtomicU64,
}

/// A thread's part in things.
pub(crate) struct Worker {
    pub(crate) index: usize,
    pub(crate) game: AnyGame,
    pub(crate) feeding: Arc<Feeding>,
    pub(crate) cache: Option<Arc<EvaluationCache>>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) events: Sender<WorkerEvent>,
    pub(crate) gauges: Arc<Gauges>,
}

/// The spool does not listen any more: nothing is left to play for.
struct Deaf;

impl Worker {
    /// Starts the thread. Its last event is [`Notice::Ended`].
    pub(crate) fn spawn(self) -> std::io::Result<JoinHandle<()>> {
        Builder::new().name(format!("selfplay-{}", self.index)).spawn(move || {
            let (worker, events) = (self.index, self.events.clone());
            let result = catch_unwind(AssertUnwindSafe(|| self.game.clone().visit(Playing(self))))
                .unwrap_or(Err(WorkerError::Panicked(worker)));
            // Nobody listens only when the process is ending anyway.
            let _ = events.send(WorkerEvent::Notice(Notice::Ended { worker, result }));
        })
    }

    /// Plays until told to end, beginning with this game.
    fn play<G: Game, E: Evaluator>(&self, mut driver: Driver<G, E>, first: GameOrder) -> Result<(), WorkerError> {
        let mut records = Vec::new();
        if self.begin(&mut driver, first).is_err() {
            return Ok(());
        }
        loop {
            let heard = match self.queue.phase() {
                Phase::Closed => return Ok(()),
                Phase::Draining if driver.is_idle() => return Ok(()),
                Phase::Draining => Ok(()),
                Phase::Open => self.fill(&mut driver),
            };
            driver.give_up(Lease::is_cancelled);
            driver.tick(&mut records)?;
            self.show(&driver);
            if heard.and_then(|()| self.hand_over(&mut records)).is_err() {
                return Ok(());
            }
        }
    }

    /// Starts games while there are places; waits when there is nothing else to do.
    fn fill<G: Game, E: Evaluator>(&self, driver: &mut Driver<G, E>) -> Result<(), Deaf> {
        while driver.free() > 0 {
            let order = if driver.is_idle() {
                match self.queue.wait(self.index) {
                    Next::Start(order) => order,
                    Next::End => return Ok(()),
                }
            } else {
                match self.queue.take(self.index, driver.games()) {
                    Some(order) => order,
                    None => return Ok(()),
                }
            };
            self.begin(driver, order)?;
        }
        Ok(())
    }

    /// Starts a game, or says why it cannot be.
    fn begin<G: Game, E: Evaluator>(&self, driver: &mut Driver<G, E>, order: GameOrder) -> Result<(), Deaf> {
        let id = RecordId {
            lease: order.lease.id(),
            index: order.index,
        };
        match driver.start(order) {
            Ok(()) => Ok(()),
            Err(error) => {
                let reason = error.to_string();
                self.tell(WorkerEvent::Notice(Notice::Refused { id, reason }))
            }
        }
    }

    fn hand_over(&self, records: &mut Vec<Record>) -> Result<(), Deaf> {
        for record in records.drain(..) {
            self.tell(WorkerEvent::Finished {
                id: record.id,
                game: encode(&record),
            })?;
        }
        Ok(())
    }

    /// Waits while the spool takes nothing: this is how a full disk quota stops play.
    fn tell(&self, event: WorkerEvent) -> Result<(), Deaf> {
        self.events.send(event).map_err(|_| Deaf)
    }

    fn show<G: Game, E: Evaluator>(&self, driver: &Driver<G, E>) {
        let counters = driver.counters();
        for (gauge, count) in [
            (&self.gauges.evaluations, counters.evaluations),
            (&self.gauges.batches, counters.batches),
            (&self.gauges.cache_hits, counters.cache_hits),
            (&self.gauges.terminal_visits, counters.terminal_visits),
            (&self.gauges.reused_visits, counters.reused_visits),
            (&self.gauges.games, counters.games),
            (&self.gauges.plies_in_flight, driver.plies_in_flight()),
        ] {
            gauge.store(count, Ordering::Relaxed);
        }
    }
}

/// Chooses the game's type, once per thread.
struct Playing(Worker);

impl GameVisitor for Playing {
    type Output = Result<(), WorkerError>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let Playing(worker) = self;
        // With the first game the first network is here, and the size of a batch is settled.
        let Next::Start(first) = worker.queue.wait(worker.index) else {
            return Ok(());
        };
        let (feeding, thread) = (&worker.feeding, worker.index);
        let driver = Driver::new(game, feeding.evaluator(thread), feeding.driver(thread));
        worker.play(driver.sharing(worker.cache.clone()), first)
    }
}
