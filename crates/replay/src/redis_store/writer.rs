//! The coordinator's side: the only one that writes.

use redis::aio::MultiplexedConnection;
use redis::{Script, ScriptInvocation};

use super::connect::{self, Patience, check, fault};
use super::error::RedisFault;
use super::keys::Keys;
use super::options::RedisOptions;
use crate::log::LoggedGame;
use crate::trim::Fill;

/// What the window in Redis holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its epoch.
    pub epoch: u64,
    /// Positions that count at most.
    pub capacity: u64,
    /// Commit sequence of the newest game taken in, kept or not; 0 for none.
    pub last_sequence: u64,
    /// Positions of all kept games, those that do not count included.
    pub held: u64,
    /// Games kept.
    pub games: u64,
    /// Positions of the run up to and including the newest game.
    pub positions_total: u64,
}

impl Standing {
    /// How full it is.
    pub fn fill(&self) -> Fill {
        Fill {
            games: self.games as usize,
            positions: self.held.min(self.capacity),
            capacity: self.capacity,
        }
    }
}

/// What the function answers.
struct Answer {
    standing: Standing,
    /// Epoch of a stream that is to be removed; 0 for none.
    garbage: u64,
}

/// Writes the window of one run, under one fence, over one connection. After an error that is not
/// [`RedisFault::Lost`] or [`RedisFault::Gap`] it is to be opened again.
#[derive(Debug)]
pub struct RedisWriter {
    connection: MultiplexedConnection,
    options: RedisOptions,
    keys: Keys,
    fence: u64,
    script: Script,
}

impl RedisWriter {
    /// Connects, checks the server, takes the window of `run` for `fence`, removes what an earlier writer left behind, and
    /// says what is there.
    ///
    /// # Errors
    /// When the server is away or unfit, and [`RedisFault::Fenced`] when a later coordinator has the window.
    pub async fn open(
        options: &RedisOptions,
        run: &str,
        fence: u64,
    ) -> Result<(RedisWriter, Option<Standing>), RedisFault> {
        let mut connection = connect::connect(options, Patience::Commands).await?;
        check(&mut connection, options).await?;
        let mut writer = RedisWriter {
            connection,
            options: options.clone(),
            keys: Keys::of(run),
            fence,
            script: Script::new(include_str!("window.lua")),
        };
        let answer = writer.call("take", 0, |_| ()).await?;
        writer.sweep(answer.garbage).await?;
        Ok((writer, Some(answer.standing).filter(|standing| standing.epoch != 0)))
    }

    /// Checks again whether the server is fit: its settings can be changed while it runs.
    pub async fn check(&mut self) -> Result<(), RedisFault> {
        check(&mut self.connection, &self.options).await
    }

    /// Appends games of this epoch that follow the one with sequence `after`, and drops what the law drops. Games that
    /// are there already change nothing. With no games it only asks how things stand.
    ///
    /// # Errors
    /// [`RedisFault::Lost`] and [`RedisFault::Gap`] when what is there is not what the caller believes.
    pub async fn append(&mut self, epoch: u64, after: u64, games: &[LoggedGame]) -> Result<Standing, RedisFault> {
        expect_order(after, games)?;
        let answer = self.call("append", epoch, |call| {
            call.arg(after);
            push_games(call, games);
        });
        match answer.await {
            // The function cannot know what the batch followed on; it is the one of the two that is ours.
            Err(RedisFault::Gap { key, last, .. }) => Err(RedisFault::Gap { key, last, after }),
            answer => Ok(answer?.standing),
        }
    }

    /// Begins a new window of this epoch beside the one that is read. What was begun before is forgotten.
    pub async fn begin(&mut self, epoch: u64) -> Result<(), RedisFault> {
        self.call("begin", epoch, |_| ()).await.map(drop)
    }

    /// Adds games to the window that was begun; `after` is the newest sequence it has.
    pub async fn load(&mut self, epoch: u64, after: u64, games: &[LoggedGame]) -> Result<(), RedisFault> {
        expect_order(after, games)?;
        let loaded = self.call("load", epoch, |call| {
            call.arg(after);
            push_games(call, games);
        });
        loaded.await.map(drop)
    }

    /// Makes the window that was begun the one that is read, trims it, and removes the one before it. `built` says what
    /// was loaded; when that is not what is there, the switch is refused as [`RedisFault::Lost`].
    pub async fn switch(&mut self, built: Standing) -> Result<Standing, RedisFault> {
        let switched = self.call("switch", built.epoch, |call| {
            call.arg(built.capacity).arg(built.last_sequence);
            call.arg(built.held).arg(built.games).arg(built.positions_total);
        });
        let answer = switched.await?;
        self.sweep(answer.garbage).await?;
        Ok(answer.standing)
    }

    /// Removes a stream that nobody reads any more. Large ones take a while to free, so the server does it aside.
    async fn sweep(&mut self, garbage: u64) -> Result<(), RedisFault> {
        if garbage == 0 {
            return Ok(());
        }
        let key = self.keys.stream(garbage);
        let mut unlink = redis::cmd("UNLINK");
        unlink.arg(key);
        let unlinked: Result<i64, _> = unlink.query_async(&mut self.connection).await;
        unlinked.map_err(|error| fault(&self.options, &error))?;
        self.call("swept", garbage, |_| ()).await.map(drop)
    }

    /// Runs the function; [`check`]s are done, so what it refuses is the state of the window.
    async fn call(
        &mut self,
        what: &str,
        epoch: u64,
        arguments: impl FnOnce(&mut ScriptInvocation<'_>),
    ) -> Result<Answer, RedisFault> {
        let mut call = self.script.key(self.keys.pointer());
        call.key(self.keys.stream(epoch)).arg(what).arg(self.fence).arg(epoch);
        arguments(&mut call);
        let answer: Result<Vec<String>, _> = call.invoke_async(&mut self.connection).await;
        let answer = answer.map_err(|error| fault(&self.options, &error))?;
        self.read(&answer)
    }

    fn read(&self, answer: &[String]) -> Result<Answer, RedisFault> {
        let key = self.keys.pointer().to_owned();
        let number = |n: usize| answer.get(n).and_then(|text| text.parse::<u64>().ok());
        let standing = || {
            Some(Standing {
                epoch: number(1)?,
                capacity: number(2)?,
                last_sequence: number(3)?,
                held: number(4)?,
                games: number(5)?,
                positions_total: number(6)?,
            })
        };
        match (answer.first().map(String::as_str), standing(), number(7)) {
            (Some("ok"), Some(standing), Some(garbage)) => Ok(Answer { standing, garbage }),
            (Some("gap"), Some(Standing { last_sequence, .. }), _) => Err(RedisFault::Gap {
                key,
                last: last_sequence,
                after: last_sequence,
            }),
            (Some("fenced"), ..) => Err(RedisFault::Fenced {
                key,
                ours: self.fence,
                newest: number(1).unwrap_or(u64::MAX),
            }),
            // Also a pointer whose fields are not numbers: somebody else wrote it.
            _ => Err(RedisFault::Lost { key }),
        }
    }
}

fn expect_order(after: u64, games: &[LoggedGame]) -> Result<(), RedisFault> {
    let mut last = after;
    for game in games {
        if game.sequence <= last {
            return Err(RedisFault::Order {
                sequence: game.sequence,
                last,
            });
        }
        last = game.sequence;
    }
    Ok(())
}

fn push_games(call: &mut ScriptInvocation<'_>, games: &[LoggedGame]) {
    for game in games {
        call.arg(game.sequence)
            .arg(game.positions)
            .arg(game.positions_total)
            .arg(&*game.record);
    }
}
