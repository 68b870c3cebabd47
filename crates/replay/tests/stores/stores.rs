//! The two stores behind the face that the contract asks for.

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use tengen_replay::testing::RedisServer;
use tengen_replay::testing::contract::taken;
pub(crate) use tengen_replay::testing::contract::{CHUNK_BYTES, Store, after, games};
use tengen_replay::{
    Chunk, Cursor, LoggedGame, MemorySource, MemoryWindow, RedisFault, RedisOptions, RedisReader, RedisWriter,
    Standing, WindowLog, WindowSource,
};

pub(crate) struct Memory {
    window: Arc<MemoryWindow>,
    source: MemorySource,
}

impl Memory {
    pub(crate) fn new() -> Memory {
        let log = WindowLog::new(1, NonZeroU64::MIN, 0);
        let window = Arc::new(MemoryWindow::new(log));
        let source = window.source(CHUNK_BYTES);
        Memory { window, source }
    }
}

impl Store for Memory {
    async fn rebuild(&mut self, epoch: u64, capacity: u64, games: &[LoggedGame]) {
        let before = games
            .first()
            .map_or(0, |game| game.positions_total - u64::from(game.positions));
        let capacity = NonZeroU64::new(capacity).expect("above 0");
        self.window = Arc::new(MemoryWindow::new(WindowLog::new(epoch, capacity, before)));
        self.source = self.window.source(CHUNK_BYTES);
        self.window.append(taken(games)).expect("games ascend");
    }

    async fn append(&mut self, _after: u64, games: &[LoggedGame]) {
        // A game that is there already is refused one by one, which changes nothing.
        let _refused = self.window.append(taken(games));
    }

    async fn next(&mut self, cursor: Cursor) -> Chunk {
        self.source.next(cursor).await.expect("the window is there")
    }
}

pub(crate) struct Redis {
    pub(crate) writer: RedisWriter,
    pub(crate) reader: RedisReader,
    epoch: u64,
}

impl Redis {
    pub(crate) async fn new(server: &RedisServer, run: &str) -> Redis {
        let (writer, standing) = RedisWriter::open(&options(server), run, 1).await.expect("a fit server");
        assert_eq!(standing, None);
        let reader = RedisReader::open(&options(server), run, CHUNK_BYTES)
            .await
            .expect("a fit server");
        Redis {
            writer,
            reader,
            epoch: 0,
        }
    }
}

impl Store for Redis {
    async fn rebuild(&mut self, epoch: u64, capacity: u64, games: &[LoggedGame]) {
        self.epoch = epoch;
        rebuild(&mut self.writer, epoch, capacity, games)
            .await
            .expect("a rebuilt window");
    }

    async fn append(&mut self, after: u64, games: &[LoggedGame]) {
        self.writer
            .append(self.epoch, after, games)
            .await
            .expect("appended games");
    }

    async fn next(&mut self, cursor: Cursor) -> Chunk {
        self.reader.next(cursor).await.expect("the window is there")
    }
}

/// Builds a window in two loads and switches to it.
pub(crate) async fn rebuild(
    writer: &mut RedisWriter,
    epoch: u64,
    capacity: u64,
    games: &[LoggedGame],
) -> Result<Standing, RedisFault> {
    writer.begin(epoch).await?;
    let (first, second) = games.split_at(games.len() / 2);
    writer.load(epoch, 0, first).await?;
    let last = first.last().map_or(0, |game| game.sequence);
    writer.load(epoch, last, second).await?;
    writer.switch(built(epoch, capacity, games)).await
}

/// What a window of all these games is, before it is trimmed.
pub(crate) fn built(epoch: u64, capacity: u64, games: &[LoggedGame]) -> Standing {
    Standing {
        epoch,
        capacity,
        last_sequence: games.last().map_or(0, |game| game.sequence),
        held: games.iter().map(|game| u64::from(game.positions)).sum(),
        games: games.iter().filter(|game| game.positions > 0).count() as u64,
        positions_total: games.last().map_or(0, |game| game.positions_total),
    }
}

pub(crate) fn options(server: &RedisServer) -> RedisOptions {
    RedisOptions::load(&server.url(), None, None).expect("a good URL")
}

/// A server and the folder it lives in.
pub(crate) fn server(arguments: &[&str]) -> (RedisServer, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let path: &Path = folder.path();
    (RedisServer::start(path, arguments), folder)
}
