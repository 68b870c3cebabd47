//! The threads that play, and what the event loop shares with them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::Sender;
use tengen_games::AnyGame;
use tengen_selfplay::EvaluationCache;
use tengen_selfplay::feeding::Feeding;

use crate::queue::Queue;
use crate::worker::{Gauges, Worker, WorkerEvent};

/// The event loop's end of them.
pub(super) struct Players {
    pub(super) feeding: Arc<Feeding>,
    pub(super) queue: Arc<Queue>,
    /// Threads that have not ended.
    pub(super) threads: usize,
    gauges: Vec<Arc<Gauges>>,
}

impl Players {
    /// Starts the threads among which `feeding` divides the games; what they play goes to `finished`.
    pub(super) fn start(
        feeding: Feeding,
        game: &AnyGame,
        cache: Option<&Arc<EvaluationCache>>,
        finished: &Sender<WorkerEvent>,
    ) -> io::Result<Players> {
        let (threads, games) = (feeding.division().threads(), feeding.division().games());
        let players = Players {
            feeding: Arc::new(feeding),
            // An eighth of the games ahead: the next lease is here before the present one runs dry.
            queue: Arc::new(Queue::new(threads, (games as u64 / 8).max(1))),
            threads,
            gauges: (0..threads).map(|_| Arc::default()).collect(),
        };
        for (index, gauges) in players.gauges.iter().enumerate() {
            let worker = Worker {
                index,
                game: game.clone(),
                feeding: Arc::clone(&players.feeding),
                cache: cache.cloned(),
                queue: Arc::clone(&players.queue),
                events: finished.clone(),
                gauges: Arc::clone(gauges),
            };
            worker.spawn()?;
        }
        Ok(players)
    }

    /// A number over all threads.
    pub(super) fn sum(&self, number: impl Fn(&Gauges) -> &AtomicU64) -> u64 {
        self.gauges
            .iter()
            .map(|gauges| number(gauges).load(Ordering::Relaxed))
            .sum()
    }
}
