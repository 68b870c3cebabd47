//! Keeps the window in Redis equal to the database.
//!
//! The run's owner only *announces* what it has committed. A task of its own reads the games from the database, after the
//! newest one that Redis has, and appends them there. So nothing that Redis does or fails to do holds up a commit, no game
//! waits in memory, and catching up after any outage is the same work as following. A window that was wiped or is
//! somebody else's is rebuilt from the database under a new epoch.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tengen_replay::{Fill, LoggedGame, RedisFault, RedisOptions, RedisWriter, Standing};
use tengen_service::backoff::Backoff;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::run::request::Request;
use crate::run::{Handle, Unavailable};
use crate::store::progress::{self, Progress};
use crate::store::{Readers, StoreError, games};
use crate::window::{WindowStanding, capacity, left_out};

/// Games of one batch, and bytes of their records unless a single one is larger.
const BATCH: (usize, usize) = (512, 2 << 20);
/// How often Redis is asked how the window stands when there is nothing to append, so that a wiped one is noticed.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often the server's settings are checked.
const CHECK_EVERY: Duration = Duration::from_secs(3);
/// Longest wait before Redis is tried again; the window should be whole soon after it is back.
const RETRY_MAX: Duration = Duration::from_secs(1);
/// How long a coordinator that starts waits for its Redis.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// What the owner and the feeding task tell each other.
#[derive(Debug)]
pub(crate) struct Feed {
    server: String,
    newest: watch::Sender<u64>,
    state: Mutex<FeedState>,
}

#[derive(Debug)]
struct FeedState {
    /// Self-play games that were ever announced, those before this process included, and how many of them Redis has seen.
    announced_games: u64,
    appended_games: u64,
    fill: Fill,
    trouble: String,
    /// Games that were found damaged when it was built last, and left out.
    damaged: BTreeSet<u64>,
    /// Whether the stored games changed behind what Redis holds, so that it must begin anew.
    stale: bool,
}

impl Feed {
    /// The feed of a run that stands like this; nothing is appended before a [`Feeder`] runs.
    pub(crate) fn new(
        options: &RedisOptions,
        connection: &Connection,
        progress: &Progress,
    ) -> Result<Feed, StoreError> {
        Ok(Feed {
            server: options.to_string(),
            newest: watch::Sender::new(games::newest_self_play(connection)?),
            state: Mutex::new(FeedState {
                announced_games: progress.self_play_games,
                appended_games: progress.self_play_games,
                fill: Fill {
                    games: 0,
                    positions: 0,
                    capacity: capacity(progress)?.get(),
                },
                trouble: "it is not open yet".to_owned(),
                damaged: BTreeSet::new(),
                stale: false,
            }),
        })
    }

    /// The server, without its password.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Takes note of so many committed games, the newest with this sequence.
    pub(crate) fn announce(&self, newest: u64, games: u64) {
        let mut state = self.lock();
        state.announced_games += games;
        // Under the lock, so that the two always belong together.
        self.newest.send_replace(newest);
    }

    /// Takes note that games which Redis may hold are no longer of the window.
    pub(crate) fn renew(&self) {
        self.lock().stale = true;
        self.newest.send_modify(|_| {});
    }

    /// Commit sequences of games that were found damaged when the window was built.
    pub(crate) fn damaged(&self) -> BTreeSet<u64> {
        self.lock().damaged.clone()
    }

    pub(crate) fn standing(&self) -> WindowStanding {
        let state = self.lock();
        WindowStanding {
            store: "redis",
            fill: state.fill,
            lag_games: state.announced_games.saturating_sub(state.appended_games),
            damaged_games: state.damaged.len() as u64,
            trouble: state.trouble.clone(),
        }
    }

    /// The newest announced sequence and the number of announced games at one moment.
    fn announced(&self) -> (u64, u64) {
        let state = self.lock();
        (*self.newest.borrow(), state.announced_games)
    }

    fn lock(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why the window does not follow now.
#[derive(Debug, thiserror::Error)]
enum FeedError {
    #[error(transparent)]
    Redis(#[from] RedisFault),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Owner(#[from] Unavailable),
    #[error("a reader of the database panicked: {0}")]
    Panicked(#[from] tokio::task::JoinError),
}

/// The feeding task.
pub(crate) struct Feeder {
    options: RedisOptions,
    fence: u64,
    feed: Arc<Feed>,
    run: Handle,
    readers: Readers,
}

/// Waits until the server is there and fit; gives up on one that stays away, and at once on one that never will be.
pub(crate) async fn await_server(options: &RedisOptions) -> Result<(), RedisFault> {
    let begun = Instant::now();
    let mut backoff = Backoff::up_to(RETRY_MAX);
    loop {
        match options.check().await {
            Err(fault) if fault.may_pass() && begun.elapsed() < START_PATIENCE => {
                tracing::warn!(%fault, "waiting for the window's server");
                tokio::time::sleep(backoff.next_delay()).await;
            }
            done => return done,
        }
    }
}

impl Feeder {
    pub(crate) fn new(options: RedisOptions, fence: u64, feed: Arc<Feed>, run: Handle, readers: Readers) -> Feeder {
        Feeder {
            options,
            fence,
            feed,
            run,
            readers,
        }
    }

    /// Feeds until `stop` is cancelled. What is not in Redis by then is found there missing at the next start.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let mut backoff = Backoff::up_to(RETRY_MAX);
        loop {
            let ended = tokio::select! {
                () = stop.cancelled() => return,
                ended = self.follow(&mut backoff) => ended,
            };
            let Err(error) = ended;
            self.note(&error);
            if !backoff.wait(&stop).await {
                return;
            }
        }
    }

    /// Opens the window, makes it ours, and appends what is committed until something fails.
    async fn follow(&self, backoff: &mut Backoff) -> Result<Infallible, FeedError> {
        let run_id = self.run.facts().id.to_string();
        let (mut writer, found) = RedisWriter::open(&self.options, &run_id, self.fence).await?;
        let mut standing = match found {
            Some(found) if self.is_ours(found).await? => found,
            found => self.rebuild(&mut writer, found).await?,
        };
        self.opened(standing).await?;
        let mut bell = self.feed.newest.subscribe();
        let mut checked = Instant::now();
        loop {
            *backoff = Backoff::up_to(RETRY_MAX);
            // Games announced from here on ring again.
            bell.mark_unchanged();
            if checked.elapsed() > CHECK_EVERY {
                writer.check().await?;
                checked = Instant::now();
            }
            if std::mem::take(&mut self.feed.lock().stale) {
                standing = self.rebuild(&mut writer, Some(standing)).await?;
                self.opened(standing).await?;
            }
            let page = self.page(standing.last_sequence).await?;
            standing = match writer.append(standing.epoch, standing.last_sequence, &page).await {
                Ok(now) => now,
                Err(RedisFault::Lost { key }) => {
                    tracing::warn!(key, "the window in Redis was wiped or changed");
                    let standing = self.rebuild(&mut writer, Some(standing)).await?;
                    self.opened(standing).await?;
                    continue;
                }
                Err(fault) => return Err(fault.into()),
            };
            self.appended(page.len() as u64, standing);
            if page.is_empty() {
                // Both are reasons to look again.
                let _rung_or_time = tokio::time::timeout(LOOK_EVERY, bell.changed()).await;
            }
        }
    }

    /// Whether this is the window that this run wrote, perhaps without its newest games.
    async fn is_ours(&self, found: Standing) -> Result<bool, FeedError> {
        self.read(move |connection| {
            let progress = progress::load(connection)?;
            if (found.epoch, found.capacity) != (progress.window_epoch, progress.window_capacity) {
                return Ok(false);
            }
            let known = games::positions_up_to(connection, found.last_sequence)?;
            Ok(found.last_sequence == 0 || known == Some(found.positions_total))
        })
        .await
    }

    /// Builds the window anew from the database, under an epoch that was never used.
    async fn rebuild(&self, writer: &mut RedisWriter, found: Option<Standing>) -> Result<Standing, FeedError> {
        self.feed.lock().trouble = "it is being rebuilt".to_owned();
        let above = found.map_or(0, |found| found.epoch);
        let epoch = self.run.ask(|reply| Request::NewWindowEpoch { above, reply }).await?;
        let (capacity, begin) = self
            .read(|connection| {
                let capacity = progress::load(connection)?.window_capacity;
                Ok((capacity, games::window_begin(connection, capacity)?))
            })
            .await?;
        self.feed.lock().damaged = left_out(&begin.damaged);
        let mut after = begin.before;
        let mut built = Standing {
            epoch,
            capacity,
            last_sequence: 0,
            held: 0,
            games: 0,
            positions_total: 0,
        };
        writer.begin(epoch).await?;
        loop {
            let page = self.page(after).await?;
            let Some(last) = page.last() else { break };
            writer.load(epoch, after, &page).await?;
            after = last.sequence;
            built.last_sequence = last.sequence;
            built.positions_total = last.positions_total;
            built.held += page.iter().map(|game| u64::from(game.positions)).sum::<u64>();
            built.games += page.iter().filter(|game| game.positions > 0).count() as u64;
        }
        let standing = writer.switch(built).await?;
        let Standing { games, held, .. } = standing;
        tracing::info!(epoch, games, positions = held, "window rebuilt in Redis");
        Ok(standing)
    }

    /// The next games after a sequence, as Redis takes them.
    async fn page(&self, after: u64) -> Result<Vec<LoggedGame>, FeedError> {
        let rows = self
            .read(move |connection| games::window_page(connection, after, BATCH.0, BATCH.1))
            .await?;
        let games = rows.into_iter().map(|row| LoggedGame {
            sequence: row.sequence,
            positions: row.positions,
            positions_total: row.positions_total,
            record: row.record.into(),
        });
        Ok(games.collect())
    }

    /// Notes where the window stands now, with what is still to come counted in the database.
    async fn opened(&self, standing: Standing) -> Result<(), FeedError> {
        let (newest, announced) = self.feed.announced();
        let after = standing.last_sequence;
        let behind = self
            .read(move |connection| games::count_self_play(connection, after, newest))
            .await?;
        let mut state = self.feed.lock();
        state.appended_games = announced.saturating_sub(behind);
        state.fill = standing.fill();
        state.trouble.clear();
        drop(state);
        tracing::info!(
            server = self.feed.server,
            epoch = standing.epoch,
            behind,
            "window follows in Redis"
        );
        Ok(())
    }

    fn appended(&self, games: u64, standing: Standing) {
        let mut state = self.feed.lock();
        state.appended_games += games;
        state.fill = standing.fill();
    }

    /// Says what is wrong, once for each thing that is.
    fn note(&self, error: &FeedError) {
        let trouble = error.to_string();
        let mut state = self.feed.lock();
        if state.trouble != trouble {
            tracing::warn!(%error, "the window in Redis lags; games are stored meanwhile");
            state.trouble = trouble;
        }
    }

    /// Reads the database on a thread that may block.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, FeedError> {
        let readers = self.readers.clone();
        Ok(tokio::task::spawn_blocking(move || readers.with(read)).await??)
    }
}
