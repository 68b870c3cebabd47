//! `ReplayService`: the window, from a cursor, for as long as the mirror listens.

use tengen_proto::v1;
use tengen_proto::v1::replay_service_server::ReplayService;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::{Shared, errors};

/// Records of one chunk, bytes; one larger game makes a chunk of its own.
const CHUNK_BYTES_MAX: usize = 2 << 20;
/// Chunks that wait for a slow mirror.
const CHUNKS_MAX: usize = 2;

/// The service.
#[derive(Debug)]
pub(crate) struct ReplayApi(pub(crate) Shared);

#[tonic::async_trait]
impl ReplayService for ReplayApi {
    type StreamWindowStream = ReceiverStream<Result<v1::WindowChunk, Status>>;

    async fn stream_window(
        &self,
        request: Request<v1::StreamWindowRequest>,
    ) -> Result<Response<Self::StreamWindowStream>, Status> {
        let v1::StreamWindowRequest { epoch, after_sequence } = request.into_inner();
        let (chunks, stream) = mpsc::channel(CHUNKS_MAX);
        tokio::spawn(stream_window(self.0.clone(), (epoch, after_sequence), chunks));
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

async fn stream_window(
    shared: Shared,
    (mut epoch, mut after): (u64, u64),
    chunks: mpsc::Sender<Result<v1::WindowChunk, Status>>,
) {
    let window = shared.run.window();
    let mut bell = window.bell();
    let mut caught_up = false;
    loop {
        // Games appended from here on ring again.
        bell.mark_unchanged();
        let (epoch_now, games) = window.chunk(epoch, after, CHUNK_BYTES_MAX);
        if epoch_now != epoch {
            // The mirror empties itself and takes the window from its first game.
            (epoch, after, caught_up) = (epoch_now, 0, false);
        }
        let at_end = games
            .last()
            .is_none_or(|last| window.chunk(epoch, last.sequence, 1) == (epoch, Vec::new()));
        let completes = at_end && !caught_up;
        if !games.is_empty() || completes {
            after = games.last().map_or(after, |last| last.sequence);
            let chunk = v1::WindowChunk {
                epoch,
                games: games.into_iter().map(window_game).collect(),
                capacity_positions: window.fill().capacity,
                caught_up: completes,
            };
            caught_up |= completes;
            if chunks.send(Ok(chunk)).await.is_err() {
                return;
            }
            continue;
        }
        tokio::select! {
            rung = bell.changed() => if rung.is_err() { return },
            () = shared.archive.stop.cancelled() => {
                let _gone = chunks.send(Err(errors::draining())).await;
                return;
            }
            () = chunks.closed() => return,
        }
    }
}

fn window_game(game: tengen_replay::LoggedGame) -> v1::WindowGame {
    v1::WindowGame {
        sequence: game.sequence,
        record: game.record.to_vec(),
        positions_total: game.positions_total,
    }
}
