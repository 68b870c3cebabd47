//! The contract of the window's stores once more, read as a learner without Redis reads it: through a stream over gRPC.

use std::num::NonZeroU64;
use std::sync::Arc;

use tengen_learner::source::StreamSource;
use tengen_proto::v1::replay_service_server::{ReplayService, ReplayServiceServer};
use tengen_proto::v1::{StreamWindowRequest, WindowChunk, WindowGame};
use tengen_replay::testing::contract::{self, CHUNK_BYTES, Store, after, taken};
use tengen_replay::{Chunk, Cursor, LoggedGame, MemoryWindow, WindowLog, WindowSource};
use tengen_service::channel::{self, Channel};
use tengen_service::credentials::Credentials;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status};

macro_rules! over_a_stream {
    ($($name:ident,)*) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            contract::$name(Streamed::start().await).await;
        }
    )*};
}

tengen_replay::window_contract!(over_a_stream);

/// Streams a window as the coordinator does.
struct Streams(Arc<MemoryWindow>);

#[tonic::async_trait]
impl ReplayService for Streams {
    type StreamWindowStream = ReceiverStream<Result<WindowChunk, Status>>;

    async fn stream_window(
        &self,
        request: Request<StreamWindowRequest>,
    ) -> Result<Response<Self::StreamWindowStream>, Status> {
        let StreamWindowRequest { epoch, after_sequence } = request.into_inner();
        let mut cursor = Cursor { epoch, after_sequence };
        let mut source = self.0.source(CHUNK_BYTES);
        let (chunks, stream) = mpsc::channel(1);
        tokio::spawn(async move {
            while let Ok(chunk) = source.next(cursor).await {
                cursor = after(&cursor, &chunk);
                if chunks.send(Ok(wire(chunk))).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

fn wire(chunk: Chunk) -> WindowChunk {
    let games = chunk.games.into_iter().map(|game| WindowGame {
        sequence: game.sequence,
        record: game.record.to_vec(),
        positions_total: game.positions_total,
        positions: game.positions,
    });
    WindowChunk {
        epoch: chunk.epoch,
        games: games.collect(),
        capacity_positions: chunk.capacity.get(),
        caught_up: chunk.caught_up,
    }
}

/// A window behind a real port, and a learner's way to read it.
struct Streamed {
    window: Arc<MemoryWindow>,
    channel: Channel,
    source: StreamSource,
    /// How far the source has read.
    read: Cursor,
    server: JoinHandle<()>,
}

impl Streamed {
    async fn start() -> Streamed {
        let window = Arc::new(MemoryWindow::new(WindowLog::new(1, NonZeroU64::MIN, 0)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router =
            tonic::transport::Server::builder().add_service(ReplayServiceServer::new(Streams(Arc::clone(&window))));
        let server = tokio::spawn(async move {
            router
                .serve_with_incoming(TcpListenerStream::new(listener))
                .await
                .unwrap();
        });
        let channel = channel::connect(&url, &Credentials::default()).unwrap();
        Streamed {
            window,
            source: StreamSource::new(channel.clone()),
            channel,
            read: Cursor::default(),
            server,
        }
    }
}

impl Drop for Streamed {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Store for Streamed {
    async fn rebuild(&mut self, epoch: u64, capacity: u64, games: &[LoggedGame]) {
        let before = games
            .first()
            .map_or(0, |game| game.positions_total - u64::from(game.positions));
        let mut log = WindowLog::new(epoch, NonZeroU64::new(capacity).unwrap(), before);
        for (sequence, positions, record) in taken(games) {
            log.push(sequence, positions, record).unwrap();
        }
        self.window.replace(log);
    }

    async fn append(&mut self, _after: u64, games: &[LoggedGame]) {
        // A game that is there already is refused one by one, which changes nothing.
        let _refused = self.window.append(taken(games));
    }

    async fn next(&mut self, cursor: Cursor) -> Chunk {
        // A stream goes on where it is; a mirror that is elsewhere has begun anew.
        if cursor != self.read {
            self.source = StreamSource::new(self.channel.clone());
        }
        let chunk = self.source.next(cursor).await.unwrap();
        self.read = after(&cursor, &chunk);
        chunk
    }
}
