//! Keeps the learner's window equal to the coordinator's: reads its stream, and begins again from its cursor whenever the
//! stream breaks.

use std::num::NonZeroU64;
use std::sync::{Arc, MutexGuard, PoisonError};

use tengen_proto::v1::replay_service_client::ReplayServiceClient;
use tengen_proto::v1::{self, StreamWindowRequest, WindowChunk};
use tengen_replay::{Part, Window, WindowGame};
use tengen_service::backoff::Backoff;
use tengen_service::channel::{Channel, MESSAGE_BYTES_MAX};
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use crate::batches::SharedWindow;
use crate::plan::WindowProgress;
use crate::signals::Signals;
use crate::wire::reason;

/// The mirror of the run's window.
#[derive(Debug)]
pub struct Mirror {
    window: SharedWindow,
    signals: Arc<Signals>,
    caught_up: bool,
    /// Of the newest game, whether it could be read or not.
    positions_total: u64,
}

/// What a chunk did to the mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// Its games were appended.
    Appended,
    /// It belongs to another epoch than the games before it: the mirror is empty now and its games are yet to come.
    Restarted,
}

impl Mirror {
    /// A mirror that fills this window.
    pub fn new(window: SharedWindow, signals: Arc<Signals>) -> Mirror {
        Mirror {
            window,
            signals,
            caught_up: false,
            positions_total: 0,
        }
    }

    /// Follows the coordinator's window until `stop` is cancelled.
    pub async fn run(mut self, channel: Channel, stop: CancellationToken) {
        let mut client = ReplayServiceClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let mut backoff = Backoff::default();
        loop {
            let request = self.cursor();
            let ended = tokio::select! {
                () = stop.cancelled() => return,
                ended = self.follow(&mut client, request, &mut backoff) => ended,
            };
            match ended {
                Ok(Applied::Restarted) => continue,
                Ok(Applied::Appended) => tracing::debug!("the window's stream ended, following it again"),
                Err(status) => tracing::warn!(reason = reason(&status), "lost the window, following it again"),
            }
            if !backoff.wait(&stop).await {
                return;
            }
        }
    }

    /// Reads one stream to its end.
    async fn follow(
        &mut self,
        client: &mut ReplayServiceClient<Channel>,
        request: StreamWindowRequest,
        backoff: &mut Backoff,
    ) -> Result<Applied, Status> {
        let mut chunks: Streaming<WindowChunk> = client.stream_window(request).await?.into_inner();
        let mut first = true;
        while let Some(chunk) = chunks.message().await? {
            *backoff = Backoff::default();
            // The first chunk answers our cursor: with a new epoch it already is the new window's beginning.
            if self.apply(&chunk) == Applied::Restarted && !std::mem::take(&mut first) {
                return Ok(Applied::Restarted);
            }
            first = false;
        }
        Ok(Applied::Appended)
    }

    fn cursor(&self) -> StreamWindowRequest {
        let window = self.lock();
        StreamWindowRequest {
            epoch: window.epoch(),
            after_sequence: window.last_sequence().unwrap_or(0),
        }
    }

    /// Takes a chunk into the window and tells the training thread how far it is.
    pub fn apply(&mut self, chunk: &WindowChunk) -> Applied {
        let mut applied = Applied::Appended;
        if self.lock().epoch() != chunk.epoch {
            self.restart(chunk);
            applied = Applied::Restarted;
        }
        self.push(&chunk.games);
        if chunk.caught_up && !self.caught_up {
            self.caught_up = true;
            let fill = self.lock().fill();
            tracing::info!(games = fill.games, positions = fill.positions, "window read");
        }
        self.tell();
        applied
    }

    /// Appends the games that can be read and follow the newest one.
    fn push(&mut self, games: &[v1::WindowGame]) {
        let mut passed_over = 0;
        for game in games {
            self.positions_total = game.positions_total;
            let Ok(record) = tengen_records::decode(&game.record) else {
                passed_over += 1;
                continue;
            };
            let game = WindowGame {
                sequence: game.sequence,
                positions_total: game.positions_total,
                record,
            };
            if self.lock().push(&game).is_err() {
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

    fn restart(&mut self, chunk: &WindowChunk) {
        let mut window = self.lock();
        let known = NonZeroU64::new(window.fill().capacity).unwrap_or(NonZeroU64::MIN);
        let capacity = NonZeroU64::new(chunk.capacity_positions).unwrap_or(known);
        window.reset(chunk.epoch, capacity);
        drop(window);
        self.caught_up = false;
        self.positions_total = 0;
        tracing::info!(epoch = chunk.epoch, capacity, "window begins anew");
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
        self.signals
            .set_status(|status| status.positions_seen = progress.positions_total);
    }

    fn lock(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tengen_games::AnyGame;
    use tengen_replay::Split;

    use super::*;
    use crate::fixture;

    fn mirror() -> Mirror {
        let window = Window::new(NonZeroU64::new(1_000).unwrap(), Split::TRAINING_ONLY);
        Mirror::new(Arc::new(Mutex::new(window)), Arc::new(Signals::default()))
    }

    /// Games `first..` of the run in chunk form.
    fn chunk(epoch: u64, first: u64, games: u32) -> WindowChunk {
        let game = AnyGame::parse("tic-tac-toe").unwrap();
        let games = (first..)
            .zip(fixture::records(&game, games, first))
            .map(|(sequence, record)| v1::WindowGame {
                sequence,
                record: tengen_records::encode(&record),
                positions_total: sequence * 10,
            })
            .collect();
        WindowChunk {
            epoch,
            games,
            capacity_positions: 500,
            caught_up: true,
        }
    }

    #[test]
    fn chunks_fill_the_window_and_move_the_cursor() {
        let mut mirror = mirror();
        assert_eq!(
            mirror.cursor(),
            StreamWindowRequest {
                epoch: 0,
                after_sequence: 0
            }
        );
        assert_eq!(mirror.apply(&chunk(4, 1, 5)), Applied::Restarted);
        assert_eq!(mirror.apply(&chunk(4, 6, 3)), Applied::Appended);
        assert_eq!(
            mirror.cursor(),
            StreamWindowRequest {
                epoch: 4,
                after_sequence: 8
            }
        );
        let progress = mirror.signals.inputs().inputs.window;
        assert_eq!(
            (progress.positions_total, progress.capacity, progress.caught_up),
            (80, 500, true)
        );
        assert_eq!(progress.positions, mirror.lock().positions(Part::Training));
        assert!(progress.positions > 0);
    }

    #[test]
    fn a_new_epoch_empties_the_window() {
        let mut mirror = mirror();
        mirror.apply(&chunk(4, 1, 5));
        let begins = WindowChunk {
            caught_up: false,
            ..chunk(5, 1, 1)
        };
        assert_eq!(mirror.apply(&begins), Applied::Restarted);
        assert_eq!(mirror.lock().fill().games, 1);
        assert!(!mirror.signals.inputs().inputs.window.caught_up);
    }

    #[test]
    fn games_that_come_twice_or_do_not_decode_are_passed_over() {
        let mut mirror = mirror();
        mirror.apply(&chunk(4, 1, 5));
        mirror.apply(&chunk(4, 5, 1));
        let mut broken = chunk(4, 6, 2);
        broken.games[0].record = vec![255, 255];
        mirror.apply(&broken);
        assert_eq!(mirror.cursor().after_sequence, 7);
        assert_eq!(mirror.lock().fill().games, 6);
    }
}
