//! A learner's side: reads the window page by page, then waits for what is appended.
//!
//! Two connections: one whose answers must come soon, and one for the reads that wait, which would hold up everything
//! else on it and has no time limit of its own.

use std::num::NonZeroU64;
use std::time::Duration;

use redis::RedisError;
use redis::aio::MultiplexedConnection;
use tengen_records::RECORD_BYTES_MAX;

use super::connect::{self, Patience, RESPONSE_TIMEOUT, check, fault};
use super::error::RedisFault;
use super::keys::Keys;
use super::options::RedisOptions;
use crate::log::{LoggedGame, within_bytes};
use crate::mirror::{Chunk, Cursor, WindowSource};

/// How long the server holds a read that waits. After it the pointer is looked at again, so this is also how late a new
/// epoch is noticed.
const BLOCK: Duration = Duration::from_secs(1);
/// Entries of the first page, whose size nobody knows yet, and most of any later one.
const ENTRIES: (usize, usize) = (16, 4_096);

/// An entry as the client decodes it: its id, and its fields' names and values in turn.
type Entry = (String, Vec<Vec<u8>>);
/// The pointer's epoch and capacity.
type Pointer = (Option<u64>, Option<u64>);

#[derive(Debug)]
struct Connections {
    commands: MultiplexedConnection,
    waiting: MultiplexedConnection,
}

/// Reads the window of one run. After an error it connects anew by itself when it is called again.
#[derive(Debug)]
pub struct RedisReader {
    options: RedisOptions,
    keys: Keys,
    bytes_max: usize,
    connections: Option<Connections>,
    /// Entries to ask for next: about as many as have `bytes_max` bytes.
    entries: usize,
    /// Epoch whose end was reached and told.
    told: u64,
}

impl RedisReader {
    /// Connects and checks the server. Chunks will have at most `bytes_max` bytes of records, unless a single one is
    /// larger.
    pub async fn open(options: &RedisOptions, run: &str, bytes_max: usize) -> Result<RedisReader, RedisFault> {
        let mut reader = RedisReader {
            options: options.clone(),
            keys: Keys::of(run),
            bytes_max,
            connections: None,
            entries: ENTRIES.0,
            told: 0,
        };
        let mut connections = reader.connect().await?;
        check(&mut connections.commands, options).await?;
        reader.connections = Some(connections);
        Ok(reader)
    }

    async fn connect(&self) -> Result<Connections, RedisFault> {
        Ok(Connections {
            commands: connect::connect(&self.options, Patience::Commands).await?,
            waiting: connect::connect(&self.options, Patience::Waiting).await?,
        })
    }

    async fn read(&mut self, connections: &mut Connections, mut cursor: Cursor) -> Result<Chunk, RedisFault> {
        loop {
            let ((epoch, capacity), page) = self.page(&mut connections.commands, cursor).await?;
            let capacity = capacity.and_then(NonZeroU64::new);
            let (Some(epoch), Some(capacity)) = (epoch, capacity) else {
                return Err(self.no_window());
            };
            if epoch != cursor.epoch {
                // The page is of a stream that is no longer the window, if it is there at all. A mirror that begins anew
                // is also told anew where the end is.
                self.told = 0;
                cursor = Cursor {
                    epoch,
                    after_sequence: 0,
                };
                continue;
            }
            if !page.is_empty() || self.told != epoch {
                return self.chunk(epoch, capacity, page);
            }
            let appended = self.wait(&mut connections.waiting, cursor).await?;
            if !appended.is_empty() {
                return self.chunk(epoch, capacity, appended);
            }
        }
    }

    /// The pointer, and what follows the cursor in the cursor's stream, as of one moment.
    async fn page(
        &self,
        connection: &mut MultiplexedConnection,
        cursor: Cursor,
    ) -> Result<(Pointer, Vec<Entry>), RedisFault> {
        let mut both = redis::pipe();
        both.atomic();
        both.cmd("HMGET").arg(self.keys.pointer()).arg("epoch").arg("capacity");
        both.cmd("XRANGE")
            .arg(self.keys.stream(cursor.epoch))
            .arg(format!("({}-0", cursor.after_sequence))
            .arg("+")
            .arg("COUNT")
            .arg(self.entries);
        both.query_async(connection).await.map_err(|error| self.fault(&error))
    }

    /// What is appended after the cursor, or nothing when the server has waited long enough.
    async fn wait(&self, connection: &mut MultiplexedConnection, cursor: Cursor) -> Result<Vec<Entry>, RedisFault> {
        let mut read = redis::cmd("XREAD");
        read.arg("BLOCK").arg(BLOCK.as_millis() as u64);
        read.arg("COUNT").arg(self.entries).arg("STREAMS");
        read.arg(self.keys.stream(cursor.epoch))
            .arg(format!("{}-0", cursor.after_sequence));
        let reading = read.query_async::<Option<Vec<(String, Vec<Entry>)>>>(connection);
        match tokio::time::timeout(BLOCK + RESPONSE_TIMEOUT, reading).await {
            Ok(Ok(streams)) => Ok(streams.into_iter().flatten().flat_map(|(_, entries)| entries).collect()),
            Ok(Err(error)) => Err(self.fault(&error)),
            Err(_) => Err(RedisFault::Unreachable {
                server: self.options.to_string(),
                reason: "no answer in time".to_owned(),
            }),
        }
    }

    fn chunk(&mut self, epoch: u64, capacity: NonZeroU64, page: Vec<Entry>) -> Result<Chunk, RedisFault> {
        let asked = self.entries;
        let entries = page.len();
        let mut games = Vec::with_capacity(entries);
        for entry in page {
            games.push(self.game(epoch, entry)?);
        }
        let bytes: usize = games.iter().map(|game| game.record.len()).sum();
        if let Some(each) = bytes.checked_div(entries) {
            self.entries = (self.bytes_max / each.max(1)).clamp(1, ENTRIES.1);
        }
        // What is too much now is read again with the next page.
        games.truncate(within_bytes(&games, self.bytes_max));
        let caught_up = entries < asked && games.len() == entries;
        if caught_up {
            self.told = epoch;
        }
        Ok(Chunk {
            epoch,
            capacity,
            games,
            caught_up,
        })
    }

    fn game(&self, epoch: u64, (id, fields): Entry) -> Result<LoggedGame, RedisFault> {
        let (mut record, mut positions, mut total) = (None, None, None);
        let mut fields = fields.into_iter();
        while let (Some(name), Some(value)) = (fields.next(), fields.next()) {
            match name.as_slice() {
                b"r" => record = Some(value),
                b"p" => positions = number(&value),
                b"t" => total = number(&value),
                // Written by a later build; old readers do without it.
                _ => {}
            }
        }
        let sequence = id.strip_suffix("-0").and_then(|sequence| sequence.parse().ok());
        let game = || {
            Some(LoggedGame {
                sequence: sequence?,
                positions: u32::try_from(positions?).ok()?,
                positions_total: total?,
                record: record.filter(|record| record.len() <= RECORD_BYTES_MAX)?.into(),
            })
        };
        game().ok_or_else(|| RedisFault::Foreign {
            key: self.keys.stream(epoch),
            id,
        })
    }

    fn no_window(&self) -> RedisFault {
        RedisFault::NoWindow {
            server: self.options.to_string(),
            key: self.keys.pointer().to_owned(),
        }
    }

    fn fault(&self, error: &RedisError) -> RedisFault {
        fault(&self.options, error)
    }
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

impl WindowSource for RedisReader {
    type Error = RedisFault;

    async fn next(&mut self, cursor: Cursor) -> Result<Chunk, RedisFault> {
        // Taken out for the time of the call: whatever ends it early leaves no connection with a half-read answer.
        let mut connections = match self.connections.take() {
            Some(connections) => connections,
            None => self.connect().await?,
        };
        let read = self.read(&mut connections, cursor).await;
        if !matches!(read, Err(RedisFault::Unreachable { .. })) {
            self.connections = Some(connections);
        }
        read
    }
}
