//! The owner's loop: gather what waits, carry it out in one transaction, commit, answer.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use metrics::histogram;
use rusqlite::{Connection, TransactionBehavior};
use tengen_control::{LeaseRules, RulesError};
use tengen_proto::v1;
use tokio::sync::{mpsc, watch};

use super::Surroundings;
use super::request::Request;
use super::retain::Retainer;
use super::state::State;
use super::status::{Batch, Pace};
use crate::clock::{Uptime, unix_ms};
use crate::disk::Gauge;
use crate::facts::RunFacts;
use crate::failpoint::{Failpoint, Failpoints};
use crate::feed::Feed;
use crate::files::ModelFiles;
use crate::metrics::COMMIT_DURATION;
use crate::store::StoreError;
use crate::store::checkpoint::{Checkpointer, fold_all};
use crate::window::{CommittedGame, RunWindow};

/// Most requests of one transaction: bounds how long the first one waits for its answer.
const BATCH_MAX: usize = 512;

/// The owner cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum OwnerError {
    /// The database failed and could not be read again.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The configuration makes no rules.
    #[error("the run's configuration cannot be followed: {0}")]
    Rules(#[from] RulesError),
    /// A thread could not be started.
    #[error("failed to start a thread of the run: {0}")]
    Thread(#[source] io::Error),
    /// The thread panicked.
    #[error("the run's thread panicked; the database holds everything that was acknowledged")]
    Panicked,
}

/// The thread of the owner.
#[derive(Debug)]
pub(crate) struct OwnerThread {
    thread: JoinHandle<Result<(), OwnerError>>,
}

impl OwnerThread {
    /// Waits until the last handle is gone and everything is committed and checkpointed. Blocks.
    pub(crate) fn join(self) -> Result<(), OwnerError> {
        self.thread.join().map_err(|_| OwnerError::Panicked)?
    }
}

/// What a batch wants done once it is committed.
#[derive(Default)]
pub(super) struct Outbox {
    replies: Vec<Box<dyn FnOnce() + Send>>,
    pub(super) window: Vec<CommittedGame>,
    /// The window is to be built again from the stored games.
    pub(super) window_anew: bool,
    pub(super) new_champion: Option<v1::Model>,
    /// The run under changed settings.
    pub(super) facts: Option<Arc<RunFacts>>,
    /// Files of networks that retention removes.
    stale_files: Vec<String>,
}

impl Outbox {
    /// Answers after the commit. Nobody listening any more is fine: what was asked is done.
    pub(super) fn reply<T: Send + 'static>(&mut self, to: tokio::sync::oneshot::Sender<T>, answer: T) {
        self.replies.push(Box::new(move || drop(to.send(answer))));
    }

    /// Does something after the commit, before the answers that are yet to be given.
    pub(super) fn after(&mut self, then: impl FnOnce() + Send + 'static) {
        self.replies.push(Box::new(then));
    }
}

pub(super) struct Owner {
    connection: Connection,
    checkpointer: Checkpointer,
    facts: Arc<RunFacts>,
    leases: LeaseRules,
    uptime: Uptime,
    failpoints: Failpoints,
    state: State,
    window: RunWindow,
    disk: Gauge,
    retainer: Retainer,
    pace: Pace,
    status: watch::Sender<Arc<v1::RunStatus>>,
    champion: watch::Sender<Arc<v1::Model>>,
    /// What others know of the run's settings.
    told_facts: watch::Sender<Arc<RunFacts>>,
}

/// What the owner keeps telling.
type Outlets = (
    watch::Receiver<Arc<v1::RunStatus>>,
    watch::Receiver<Arc<v1::Model>>,
    watch::Receiver<Arc<RunFacts>>,
    RunWindow,
);

impl Owner {
    pub(super) fn load(
        mut connection: Connection,
        data: &Path,
        facts: Arc<RunFacts>,
        leases: LeaseRules,
        surroundings: Surroundings,
        uptime: Uptime,
    ) -> Result<Owner, OwnerError> {
        let Surroundings {
            disk,
            retention,
            redis,
            failpoints,
        } = surroundings;
        let mut state = State::load(&connection, Arc::clone(&facts), leases, uptime.ms())?;
        let window = match &redis {
            None => RunWindow::in_memory(&connection, state.progress())?,
            Some(options) => RunWindow::Redis(Arc::new(Feed::new(options, &connection, state.progress())?)),
        };
        let champion = watch::Sender::new(Arc::new(state.champion_message(&connection)?));
        let retainer = Retainer::new(retention, ModelFiles::new(data), window.clone());
        retainer.finish_removals(&connection)?;
        let (standing, now) = (window.standing(), Now::of(uptime));
        state.look_at_window(&connection, &standing, now)?;
        let status = watch::Sender::new(Arc::new(state.status(&standing, &disk, now)));
        let checkpointer = Checkpointer::start(data, &mut connection)?;
        Ok(Owner {
            connection,
            checkpointer,
            told_facts: watch::Sender::new(Arc::clone(&facts)),
            facts,
            leases,
            uptime,
            failpoints,
            state,
            window,
            disk,
            retainer,
            pace: Pace::default(),
            status,
            champion,
        })
    }

    pub(super) fn outlets(&self) -> Outlets {
        (
            self.status.subscribe(),
            self.champion.subscribe(),
            self.told_facts.subscribe(),
            self.window.clone(),
        )
    }

    pub(super) fn start(self, queue: mpsc::Receiver<Request>) -> Result<OwnerThread, OwnerError> {
        let body = move || self.run(queue);
        let thread = std::thread::Builder::new()
            .name("run-owner".to_owned())
            .spawn(body)
            .map_err(OwnerError::Thread)?;
        Ok(OwnerThread { thread })
    }

    fn run(mut self, mut queue: mpsc::Receiver<Request>) -> Result<(), OwnerError> {
        // What a changed configuration makes of the stored state (a gate begins, an iteration ends) comes first.
        let mut batch = vec![Request::Tick];
        loop {
            while batch.len() < BATCH_MAX
                && let Ok(request) = queue.try_recv()
            {
                batch.push(request);
            }
            let last = batch.iter().any(|request| matches!(request, Request::Stop));
            self.carry_out(std::mem::take(&mut batch))?;
            if last {
                break;
            }
            if self.retainer.is_busy() {
                batch.push(Request::Tick);
                continue;
            }
            match queue.blocking_recv() {
                Some(request) => batch.push(request),
                None => break,
            }
        }
        self.checkpointer.stop();
        fold_all(&self.connection)?;
        Ok(())
    }

    fn carry_out(&mut self, batch: Vec<Request>) -> Result<(), OwnerError> {
        let kind = Batch::of(&batch);
        match self.commit(batch) {
            Ok(outbox) => {
                let games = outbox.window.len();
                if let Some(facts) = outbox.facts {
                    self.facts = Arc::clone(&facts);
                    self.told_facts.send_replace(facts);
                }
                (0..games).for_each(|_| self.failpoints.pass(Failpoint::Committed));
                if outbox.window_anew {
                    self.window
                        .renew(&self.connection, self.state.progress(), outbox.window)?;
                } else {
                    self.window.append(outbox.window);
                }
                (0..games).for_each(|_| self.failpoints.pass(Failpoint::Windowed));
                if let Some(champion) = outbox.new_champion {
                    self.champion.send_replace(Arc::new(champion));
                }
                if self.pace.is_due(kind, self.state.live_actors.len(), self.uptime.ms()) {
                    self.show();
                }
                self.retainer.remove_files(&outbox.stale_files);
                outbox.replies.into_iter().for_each(|reply| reply());
                Ok(())
            }
            Err(error) => {
                // The replies are dropped: to whoever asked, nothing was stored. Memory may be ahead of the database.
                tracing::error!(%error, "a commit failed; the state is read again from the database");
                if error.is_disk_full() {
                    self.disk.note_full();
                }
                self.retainer.reset();
                let fresh = State::load(&self.connection, Arc::clone(&self.facts), self.leases, self.uptime.ms())?;
                self.state.replace_by(fresh);
                Ok(())
            }
        }
    }

    /// Tells how the run stands now.
    fn show(&mut self) {
        let (standing, now) = (self.window.standing(), Now::of(self.uptime));
        if let Err(error) = self.state.look_at_window(&self.connection, &standing, now) {
            tracing::warn!(%error, "the age of the window could not be looked up");
        }
        let status = self.state.status(&standing, &self.disk, now);
        self.status.send_replace(Arc::new(status));
    }

    fn commit(&mut self, batch: Vec<Request>) -> Result<Outbox, StoreError> {
        let begun = Instant::now();
        let now = Now::of(self.uptime);
        let mut outbox = Outbox::default();
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        self.state.begin(&transaction, now, &mut outbox)?;
        for request in batch {
            self.state.handle(&transaction, request, now, &mut outbox)?;
        }
        self.state.save(&transaction)?;
        let capacity = self.state.progress().window_capacity;
        outbox.stale_files = self.retainer.step(&transaction, capacity, now)?;
        transaction.commit()?;
        histogram!(COMMIT_DURATION).record(begun.elapsed());
        // The batch is durable: what goes wrong here must not take it back.
        if let Err(error) = self.checkpointer.after_commit(&self.connection) {
            tracing::warn!(%error, "the write-ahead log could not be shortened");
        }
        Ok(outbox)
    }
}

/// The time of a batch on both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    /// For leases and rates.
    pub(super) ms: u64,
    /// For rows.
    pub(super) unix_ms: i64,
}

impl Now {
    fn of(uptime: Uptime) -> Now {
        Now {
            ms: uptime.ms(),
            unix_ms: unix_ms(),
        }
    }
}
