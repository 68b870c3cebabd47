//! The run's one owner: a thread that holds the state machine and the writing connection.
//!
//! Everything that changes the run comes to it as a [`Request`] through a bounded queue. It takes all requests that
//! wait, carries them out in **one transaction**, commits, and only then answers: group commit, and no answer before
//! its commit. The effects of the state machine (an iteration ends, a gate is decided, the champion changes) are part
//! of the same transaction as the game that caused them, so the database never holds one without the other. When a
//! commit fails nobody is answered, and the state is read again from the database.

pub(crate) mod admin;
mod audits;
mod candidates;
mod games;
mod gates;
pub(crate) mod orders;
mod owner;
pub(crate) mod ratings;
pub(crate) mod request;
mod retain;
pub(crate) mod settings;
mod state;
mod status;
mod steer;
mod work;

use std::path::Path;
use std::sync::Arc;

use tengen_control::LeaseRules;
use tengen_proto::v1;
use tengen_replay::RedisOptions;
use tokio::sync::{mpsc, oneshot, watch};

use crate::clock::Uptime;
use crate::disk::Gauge;
use crate::facts::RunFacts;
use crate::failpoint::Failpoints;
use crate::retention::RetentionConfig;
use crate::window::RunWindow;
use request::Request;

pub(crate) use owner::{OwnerError, OwnerThread};
pub(crate) use request::{ActorRefused, Fenced, PublishRefused};

/// Requests that may wait for the owner; more make their senders wait.
const QUEUE_MAX: usize = 1_024;

/// The owner could not commit, or is gone: nothing was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the coordinator could not store this now; try again later")]
pub(crate) struct Unavailable;

/// How to reach the owner; cheap to clone. The owner ends when the last handle is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    requests: mpsc::Sender<Request>,
    status: watch::Receiver<Arc<v1::RunStatus>>,
    champion: watch::Receiver<Arc<v1::Model>>,
    window: RunWindow,
    facts: watch::Receiver<Arc<RunFacts>>,
}

impl Handle {
    pub(crate) async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> Request) -> Result<T, Unavailable> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(request(reply)).await.map_err(|_| Unavailable)?;
        answer.await.map_err(|_| Unavailable)
    }

    /// Tells the owner to hand out no more work.
    pub(crate) async fn drain(&self) {
        // An owner that is gone hands out nothing either.
        let _ = self.requests.send(Request::Drain).await;
    }

    /// Lets time pass: leases lapse and the status is refreshed. Skipped when the owner is busy; it looks at the clock
    /// with every batch anyway.
    pub(crate) fn tick(&self) {
        let _ = self.requests.try_send(Request::Tick);
    }

    /// Ends the owner although others may still ask it things: they are told that it is gone.
    pub(crate) async fn stop(&self) {
        // An owner that is gone already needs no asking.
        let _ = self.requests.send(Request::Stop).await;
    }

    /// Returns when the owner has ended.
    pub(crate) async fn gone(&self) {
        self.requests.closed().await;
    }

    /// The status, as of the last commit or tick; with more than a hundred actors a little older at times.
    pub(crate) fn status(&self) -> watch::Receiver<Arc<v1::RunStatus>> {
        self.status.clone()
    }

    /// The champion, with its description, configuration and probes.
    pub(crate) fn champion(&self) -> watch::Receiver<Arc<v1::Model>> {
        self.champion.clone()
    }

    /// The window.
    pub(crate) fn window(&self) -> &RunWindow {
        &self.window
    }

    /// The run, with its settings as of the last commit.
    pub(crate) fn facts(&self) -> Arc<RunFacts> {
        Arc::clone(&self.facts.borrow())
    }
}

/// What a run goes on in: its disk, its window's place, what may be forgotten of it, and where it is to die in a test.
#[derive(Debug)]
pub(crate) struct Surroundings {
    /// The room on the disk.
    pub(crate) disk: Gauge,
    /// What may be forgotten.
    pub(crate) retention: RetentionConfig,
    /// The Redis server that holds the window; without one it is in memory.
    pub(crate) redis: Option<RedisOptions>,
    /// Where to die.
    pub(crate) failpoints: Failpoints,
}

/// Starts the owner on its own thread, with the connection that writes.
pub(crate) fn spawn(
    connection: rusqlite::Connection,
    data: &Path,
    facts: Arc<RunFacts>,
    leases: LeaseRules,
    surroundings: Surroundings,
) -> Result<(Handle, OwnerThread), OwnerError> {
    let (requests, queue) = mpsc::channel(QUEUE_MAX);
    let owner = owner::Owner::load(connection, data, facts, leases, surroundings, Uptime::start())?;
    let (status, champion, facts, window) = owner.outlets();
    let thread = owner.start(queue)?;
    Ok((
        Handle {
            requests,
            status,
            champion,
            window,
            facts,
        },
        thread,
    ))
}
