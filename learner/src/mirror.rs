//! Keeps the learner's window equal to the run's: reads it from wherever it is, and goes on from its cursor whenever that
//! breaks.
//!
//! Training never sees a window that is half read. When the epoch changes, the new window is built aside, and takes the
//! place of the old one when it has caught up; until then batches come from the old one. For that time both are in memory.

use std::sync::{Arc, MutexGuard, PoisonError};

use tengen_replay::{Chunk, Cursor, LoggedGame, Part, Window, WindowGame, WindowSource};
use tengen_service::backoff::Backoff;
use tokio_util::sync::CancellationToken;

use crate::batches::SharedWindow;
use crate::plan::WindowProgress;
use crate::signals::Signals;

/// The mirror of the run's window.
#[derive(Debug)]
pub struct Mirror {
    window: SharedWindow,
    signals: Arc<Signals>,
    /// Whether `window` has been read to its end once.
    caught_up: bool,
    /// Of the newest game in `window`, whether it could be read or not.
    positions_total: u64,
    coming: Option<Coming>,
}

/// The window of a new epoch on its way in.
#[derive(Debug)]
struct Coming {
    window: Window,
    positions_total: u64,
}

impl Mirror {
    /// A mirror that fills this window.
    pub fn new(window: SharedWindow, signals: Arc<Signals>) -> Mirror {
        Mirror {
            window,
            signals,
            caught_up: false,
            positions_total: 0,
            coming: None,
        }
    }

    /// Follows the window until `stop` is cancelled.
    pub async fn run<S: WindowSource>(mut self, mut source: S, stop: CancellationToken) {
        let mut backoff = Backoff::default();
        loop {
            let next = tokio::select! {
                () = stop.cancelled() => return,
                next = source.next(self.cursor()) => next,
            };
            match next {
                Ok(chunk) => {
                    backoff = Backoff::default();
                    self.apply(chunk);
                }
                Err(error) => {
                    tracing::warn!(%error, "lost the window, following it again");
                    if !backoff.wait(&stop).await {
                        return;
                    }
                }
            }
        }
    }

    fn cursor(&self) -> Cursor {
        let of = |window: &Window| Cursor {
            epoch: window.epoch(),
            after_sequence: window.last_sequence().unwrap_or(0),
        };
        match &self.coming {
            Some(coming) => of(&coming.window),
            None => of(&self.lock()),
        }
    }

    /// Takes a chunk and tells the training thread how far the window is.
    pub fn apply(&mut self, chunk: Chunk) {
        if self.cursor().epoch != chunk.epoch {
            self.begin(&chunk);
        }
        match &mut self.coming {
            Some(Coming {
                window,
                positions_total,
            }) => push(|game| window.push(game).is_ok(), positions_total, &chunk.games),
            None => {
                let window = Arc::clone(&self.window);
                let append = |game: &WindowGame| lock(&window).push(game).is_ok();
                push(append, &mut self.positions_total, &chunk.games);
            }
        }
        if chunk.caught_up {
            self.take_coming();
            if !self.caught_up {
                self.caught_up = true;
                let fill = self.lock().fill();
                tracing::info!(games = fill.games, positions = fill.positions, "window read");
            }
        }
        self.tell();
    }

    /// Begins the window of the chunk's epoch: in place when there is nothing to train on yet, aside otherwise.
    fn begin(&mut self, chunk: &Chunk) {
        let (epoch, capacity) = (chunk.epoch, chunk.capacity);
        tracing::info!(epoch, capacity, "window begins anew");
        let window = self.lock().begin(epoch, capacity);
        if self.lock().fill().games == 0 {
            *self.lock() = window;
            self.caught_up = false;
            self.positions_total = 0;
            self.coming = None;
        } else {
            self.coming = Some(Coming {
                window,
                positions_total: 0,
            });
        }
    }

    /// Puts the window that was built aside in the place of the old one.
    fn take_coming(&mut self) {
        let Some(Coming {
            window,
            positions_total,
        }) = self.coming.take()
        else {
            return;
        };
        let fill = window.fill();
        // The old one is dropped after the lock is: that takes a while.
        let _old = std::mem::replace(&mut *self.lock(), window);
        self.positions_total = positions_total;
        tracing::info!(games = fill.games, positions = fill.positions, "window replaced");
    }

    fn tell(&self) {
        let window = self.lock();
        let fill = window.fill();
        // A window whose every game is kept for validation has nothing to train on.
        let positions = if window.positions(Part::Training) == 0 {
            0
        } else {
            fill.positions
        };
        let progress = WindowProgress {
            positions_total: self.positions_total,
            positions,
            capacity: fill.capacity,
            caught_up: self.caught_up,
        };
        drop(window);
        self.signals.update(|inputs| inputs.window = progress);
        self.signals.set_status(|status| {
            status.positions_seen = progress.positions_total;
            status.mirror_positions = progress.positions;
        });
    }

    fn lock(&self) -> MutexGuard<'_, Window> {
        lock(&self.window)
    }
}

fn lock(window: &SharedWindow) -> MutexGuard<'_, Window> {
    window.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Appends the games that can be read and that `append` takes.
fn push(mut append: impl FnMut(&WindowGame) -> bool, positions_total: &mut u64, games: &[LoggedGame]) {
    let mut passed_over = 0;
    for game in games {
        *positions_total = game.positions_total;
        let Ok(record) = tengen_records::decode(&game.record) else {
            passed_over += 1;
            continue;
        };
        let game = WindowGame {
            sequence: game.sequence,
            positions_total: game.positions_total,
            record,
        };
        if !append(&game) {
            passed_over += 1;
        }
    }
    if passed_over > 0 {
        // The coordinator checked each game before it stored it: these are another build's, or came twice.
        tracing::warn!(
            games = passed_over,
            "games that do not decode or do not follow were passed over"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;
    use std::sync::Mutex;

    use tengen_games::AnyGame;
    use tengen_replay::{Fill, Split};

    use super::*;
    use crate::fixture;

    fn mirror() -> Mirror {
        let window = Window::new(NonZeroU64::new(1_000).unwrap(), Split::TRAINING_ONLY);
        Mirror::new(Arc::new(Mutex::new(window)), Arc::new(Signals::default()))
    }

    /// Games `first..` of the run in chunk form.
    fn chunk(epoch: u64, first: u64, games: u32) -> Chunk {
        let game = AnyGame::parse("tic-tac-toe").unwrap();
        let games = (first..)
            .zip(fixture::records(&game, games, first))
            .map(|(sequence, record)| LoggedGame {
                sequence,
                positions: record.positions(),
                record: tengen_records::encode(&record).into(),
                positions_total: sequence * 10,
            })
            .collect();
        Chunk {
            epoch,
            games,
            capacity: NonZeroU64::new(500).unwrap(),
            caught_up: true,
        }
    }

    fn progress(mirror: &Mirror) -> WindowProgress {
        mirror.signals.inputs().inputs.window
    }

    fn cursor(epoch: u64, after_sequence: u64) -> Cursor {
        Cursor { epoch, after_sequence }
    }

    /// Epoch and fill of the window that training sees.
    fn standing(mirror: &Mirror) -> (u64, Fill) {
        let window = mirror.lock();
        (window.epoch(), window.fill())
    }

    #[test]
    fn chunks_fill_the_window_and_move_the_cursor() {
        let mut mirror = mirror();
        assert_eq!(mirror.cursor(), Cursor::default());
        mirror.apply(chunk(4, 1, 5));
        mirror.apply(chunk(4, 6, 3));
        assert_eq!(mirror.cursor(), cursor(4, 8));
        let progress = progress(&mirror);
        assert_eq!(
            (progress.positions_total, progress.capacity, progress.caught_up),
            (80, 500, true)
        );
        assert_eq!(progress.positions, mirror.lock().positions(Part::Training));
        assert!(progress.positions > 0);
    }

    #[test]
    fn the_window_of_a_new_epoch_is_built_aside_until_it_has_caught_up() {
        let mut mirror = mirror();
        mirror.apply(chunk(4, 1, 5));
        let (before, held) = (progress(&mirror), mirror.lock().fill());
        // Empty at first, as it is when the coordinator says only that it began.
        for (first, games) in [(1, 0), (1, 2)] {
            let begins = Chunk {
                caught_up: false,
                ..chunk(5, first, games)
            };
            mirror.apply(begins);
            assert_eq!(standing(&mirror), (4, held));
            assert_eq!(progress(&mirror), before);
        }
        assert_eq!(mirror.cursor(), cursor(5, 2));
        mirror.apply(chunk(5, 3, 1));
        let (epoch, fill) = standing(&mirror);
        assert_eq!((epoch, fill.games), (5, 3));
        assert_eq!(
            (progress(&mirror).positions_total, progress(&mirror).caught_up),
            (30, true)
        );
        assert_eq!(mirror.cursor(), cursor(5, 3));
    }

    #[test]
    fn a_third_epoch_makes_the_second_forgotten() {
        let mut mirror = mirror();
        mirror.apply(chunk(4, 1, 5));
        mirror.apply(Chunk {
            caught_up: false,
            ..chunk(5, 1, 4)
        });
        mirror.apply(chunk(6, 1, 2));
        let (epoch, fill) = standing(&mirror);
        assert_eq!((epoch, fill.games), (6, 2));
    }

    #[test]
    fn games_that_come_twice_or_do_not_decode_are_passed_over() {
        let mut mirror = mirror();
        mirror.apply(chunk(4, 1, 5));
        mirror.apply(chunk(4, 5, 1));
        let mut broken = chunk(4, 6, 2);
        broken.games[0].record = vec![255, 255].into();
        mirror.apply(broken);
        assert_eq!(mirror.cursor().after_sequence, 7);
        assert_eq!(mirror.lock().fill().games, 6);
    }
}
