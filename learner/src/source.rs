//! Where the mirror reads the window: the coordinator's stream, or Redis. The coordinator says which of them a run uses.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::Args;
use tengen_proto::v1::replay_service_client::ReplayServiceClient;
use tengen_proto::v1::{StreamWindowRequest, WindowChunk};
use tengen_replay::{Chunk, Cursor, LoggedGame, OptionsError, RedisFault, RedisOptions, RedisReader, WindowSource};
use tengen_service::backoff::Backoff;
use tengen_service::channel::{Channel, MESSAGE_BYTES_MAX};
use tengen_service::process_config::{REPLAY_CA_VARIABLE, REPLAY_PASSWORD_FILE_VARIABLE, REPLAY_URL_VARIABLE};
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use crate::wire::reason;

/// Records of one page from Redis, bytes.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// Where the window is, as the command line says it
#[derive(Args, Clone, Debug, Default)]
pub struct ReplayArgs {
    /// Redis server that holds the run's window: redis://user@host:6379/0, rediss:// for TLS; without it the coordinator
    /// streams the window
    #[arg(long, value_name = "URL", env = REPLAY_URL_VARIABLE, hide_env_values = true)]
    pub replay: Option<MaskedUrl>,
    /// File with the password of the Redis server, on one line
    #[arg(long, value_name = "FILE", env = REPLAY_PASSWORD_FILE_VARIABLE, requires = "replay")]
    pub replay_password_file: Option<PathBuf>,
    /// File with the certificates (PEM) of the CA that signed the Redis server's
    #[arg(long, value_name = "FILE", env = REPLAY_CA_VARIABLE, requires = "replay")]
    pub replay_ca: Option<PathBuf>,
}

/// A URL that may hold a password and is never shown.
#[derive(Clone)]
pub struct MaskedUrl(String);

impl std::str::FromStr for MaskedUrl {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<MaskedUrl, Self::Err> {
        Ok(MaskedUrl(text.to_owned()))
    }
}

impl std::fmt::Debug for MaskedUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl ReplayArgs {
    /// The Redis server, if one is named. Reads the files.
    pub fn redis(&self) -> Result<Option<RedisOptions>, OptionsError> {
        let (password, ca) = (self.replay_password_file.as_deref(), self.replay_ca.as_deref());
        let load = |url: &MaskedUrl| RedisOptions::load(&url.0, password, ca);
        self.replay.as_ref().map(load).transpose()
    }
}

/// The command line and the run do not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The coordinator streams nothing.
    #[error(
        "the window of this run is in Redis at {0}: start the learner with --replay and the URL of that server (its \
         password in the URL or with --replay-password-file, its CA with --replay-ca)"
    )]
    ReplayMissing(String),
    /// There is nothing in Redis.
    #[error("--replay names {0}, but the coordinator of this run keeps the window itself: leave --replay out")]
    ReplayNeedless(String),
}

/// Checks that the learner reads where the coordinator writes: `window_store` is what it said at registration.
pub fn expect_store(redis: Option<&RedisOptions>, window_store: &str) -> Result<(), SourceError> {
    match redis {
        None if !window_store.is_empty() => Err(SourceError::ReplayMissing(window_store.to_owned())),
        Some(options) if window_store.is_empty() => Err(SourceError::ReplayNeedless(options.to_string())),
        _ => Ok(()),
    }
}

/// Connects to Redis, however long it is away. `None`: stopped before it was there.
pub async fn open_redis(
    options: &RedisOptions,
    run_id: &str,
    stop: &CancellationToken,
) -> Result<Option<RedisReader>, RedisFault> {
    let mut backoff = Backoff::default();
    loop {
        let opened = tokio::select! {
            () = stop.cancelled() => return Ok(None),
            opened = RedisReader::open(options, run_id, PAGE_BYTES_MAX) => opened,
        };
        match opened {
            Err(fault) if fault.may_pass() => tracing::warn!(%fault, "waiting for the window's server"),
            opened => return opened.map(Some),
        }
        if !backoff.wait(stop).await {
            return Ok(None);
        }
    }
}

/// The coordinator's stream ended or was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StreamFault(String);

impl From<Status> for StreamFault {
    fn from(status: Status) -> StreamFault {
        StreamFault(reason(&status))
    }
}

/// The coordinator's stream, opened anew from the cursor whenever it ends.
#[derive(Debug)]
pub struct StreamSource {
    client: ReplayServiceClient<Channel>,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    chunks: Streaming<WindowChunk>,
    /// Epoch of the chunks so far.
    epoch: Option<u64>,
}

impl StreamSource {
    /// Reads from the coordinator behind this channel.
    pub fn new(channel: Channel) -> StreamSource {
        StreamSource {
            client: ReplayServiceClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX),
            open: None,
        }
    }

    async fn open(&mut self, cursor: Cursor) -> Result<Open, StreamFault> {
        let request = StreamWindowRequest {
            epoch: cursor.epoch,
            after_sequence: cursor.after_sequence,
        };
        let chunks = self.client.stream_window(request).await?.into_inner();
        Ok(Open { chunks, epoch: None })
    }
}

impl WindowSource for StreamSource {
    type Error = StreamFault;

    async fn next(&mut self, cursor: Cursor) -> Result<Chunk, StreamFault> {
        loop {
            let mut open = match self.open.take() {
                Some(open) => open,
                None => self.open(cursor).await?,
            };
            let Some(chunk) = open.chunks.message().await? else {
                return Err(StreamFault("the coordinator ended the stream".to_owned()));
            };
            // The first chunk answers our cursor: with a new epoch it is the new window's beginning. Later ones of another
            // epoch are not, so the new window is asked for from its beginning.
            if open.epoch.is_some_and(|epoch| epoch != chunk.epoch) {
                continue;
            }
            open.epoch = Some(chunk.epoch);
            self.open = Some(open);
            return read(chunk);
        }
    }
}

fn read(chunk: WindowChunk) -> Result<Chunk, StreamFault> {
    let capacity = NonZeroU64::new(chunk.capacity_positions)
        .ok_or_else(|| StreamFault("the coordinator says that the window has no capacity".to_owned()))?;
    let games = chunk.games.into_iter().map(|game| LoggedGame {
        sequence: game.sequence,
        positions: game.positions,
        positions_total: game.positions_total,
        record: game.record.into(),
    });
    Ok(Chunk {
        epoch: chunk.epoch,
        capacity,
        games: games.collect(),
        caught_up: chunk.caught_up,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_learner_reads_where_the_coordinator_writes_or_ends_with_the_way_out() {
        let redis = RedisOptions::load("redis://:s3cret@host", None, None).unwrap();
        expect_store(None, "").unwrap();
        expect_store(Some(&redis), "redis://other:6379/0").unwrap();
        let missing = expect_store(None, "redis://host:6379/0").unwrap_err().to_string();
        assert!(
            missing.contains("--replay") && missing.contains("redis://host:6379/0"),
            "{missing}"
        );
        let needless = expect_store(Some(&redis), "").unwrap_err().to_string();
        assert!(
            needless.contains("leave --replay out") && !needless.contains("s3cret"),
            "{needless}"
        );
    }

    #[test]
    fn a_url_on_the_command_line_is_never_shown() {
        let args = ReplayArgs {
            replay: Some("redis://:s3cret@host".parse().unwrap()),
            ..ReplayArgs::default()
        };
        assert!(!format!("{args:?}").contains("s3cret"));
        assert_eq!(args.redis().unwrap().unwrap().to_string(), "redis://:***@host:6379/0");
    }
}
