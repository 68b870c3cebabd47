//! `ReplayService`: the window, from a cursor, for as long as the mirror listens.

use tengen_proto::v1;
use tengen_proto::v1::replay_service_server::ReplayService;
use tengen_replay::{Chunk, Cursor, LoggedGame, MemorySource, WindowSource};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::{Shared, errors};
use crate::window::RunWindow;

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
        let source = match self.0.run.window() {
            RunWindow::Memory(window) => window.source(CHUNK_BYTES_MAX),
            RunWindow::Redis(feed) => {
                let server = feed.server();
                let message = format!(
                    "the window of this run is in Redis at {server}: start the learner with --replay and its URL"
                );
                return Err(errors::precondition("WINDOW_IN_REDIS", "window", message));
            }
        };
        let (chunks, stream) = mpsc::channel(CHUNKS_MAX);
        tokio::spawn(stream_window(
            self.0.clone(),
            source,
            Cursor { epoch, after_sequence },
            chunks,
        ));
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

async fn stream_window(
    shared: Shared,
    mut source: MemorySource,
    mut cursor: Cursor,
    chunks: mpsc::Sender<Result<v1::WindowChunk, Status>>,
) {
    let mut caught_up = false;
    loop {
        let chunk = tokio::select! {
            chunk = source.next(cursor) => chunk,
            () = shared.archive.stop.cancelled() => {
                let _gone = chunks.send(Err(errors::draining())).await;
                return;
            }
            () = chunks.closed() => return,
        };
        let Ok(chunk) = chunk else { return };
        if cursor.epoch != chunk.epoch {
            cursor = Cursor {
                epoch: chunk.epoch,
                after_sequence: 0,
            };
            caught_up = false;
        }
        cursor.after_sequence = chunk.games.last().map_or(cursor.after_sequence, |last| last.sequence);
        let completes = chunk.caught_up && !caught_up;
        caught_up |= completes;
        if chunks.send(Ok(window_chunk(chunk, completes))).await.is_err() {
            return;
        }
    }
}

fn window_chunk(chunk: Chunk, caught_up: bool) -> v1::WindowChunk {
    v1::WindowChunk {
        epoch: chunk.epoch,
        games: chunk.games.into_iter().map(window_game).collect(),
        capacity_positions: chunk.capacity.get(),
        caught_up,
    }
}

fn window_game(game: LoggedGame) -> v1::WindowGame {
    v1::WindowGame {
        sequence: game.sequence,
        record: game.record.to_vec(),
        positions_total: game.positions_total,
        positions: game.positions,
    }
}
