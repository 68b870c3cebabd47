//! One supervised child process: started, restarted with back-off when it crashes, drained by closing its standard
//! input, killed only when it does not drain.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context;
use tengen_service::backoff::Backoff;
use tengen_service::files;
use tokio::process::Command;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a child may take to drain before it is killed.
const DRAIN_MAX: Duration = Duration::from_secs(60);

/// A child that ran this long was healthy: its next crash starts the back-off anew.
const HEALTHY: Duration = Duration::from_secs(60);

/// Lines of a child's log shown when it fails to start.
const LAST_WORDS: usize = 20;

/// What to start. Nothing prints it: a variable may hold a password.
#[derive(Clone)]
pub(crate) struct ChildSpec {
    pub(crate) part: String,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    /// Variables beside this process's own.
    pub(crate) variables: Vec<(&'static str, OsString)>,
    /// Where its standard error goes.
    pub(crate) log: PathBuf,
}

/// Something happened to a child.
#[derive(Debug)]
pub(crate) struct ChildEvent {
    part: String,
    what: String,
}

impl fmt::Display for ChildEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.part, self.what)
    }
}

/// A supervised child.
pub(crate) struct Child {
    spec: Arc<Mutex<ChildSpec>>,
    stop: CancellationToken,
    crashes: watch::Receiver<u32>,
    supervisor: Option<tokio::task::JoinHandle<()>>,
}

impl Child {
    /// Starts the child; its earlier log is kept with `.old` appended.
    pub(crate) fn start(spec: ChildSpec, events: mpsc::Sender<ChildEvent>) -> anyhow::Result<Child> {
        if let Some(folder) = spec.log.parent() {
            files::create_folder(folder).with_context(|| format!("failed to make {}", folder.display()))?;
        }
        if spec.log.exists() {
            std::fs::rename(&spec.log, spec.log.with_extension("log.old"))?;
        }
        let process = spawn(&spec)?;
        let spec = Arc::new(Mutex::new(spec));
        let stop = CancellationToken::new();
        let (crashed, crashes) = watch::channel(0);
        let supervisor = tokio::spawn(supervise(process, Arc::clone(&spec), stop.clone(), crashed, events));
        Ok(Child {
            spec,
            stop,
            crashes,
            supervisor: Some(supervisor),
        })
    }

    /// From now on a crash restarts the child with `spec`.
    pub(crate) fn restart_as(&self, spec: ChildSpec) {
        *lock(&self.spec) = spec;
    }

    /// Resolves when the child has crashed since this was last awaited.
    pub(crate) async fn crashed(&mut self) {
        if self.crashes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// The last lines of the child's log.
    pub(crate) fn last_words(&self) -> String {
        last_lines(&lock(&self.spec).log.clone(), LAST_WORDS)
    }

    /// Asks the child to drain and waits until it is gone.
    pub(crate) async fn drain(&mut self) {
        self.stop.cancel();
        if let Some(supervisor) = self.supervisor.take()
            && let Err(error) = supervisor.await
        {
            tracing::error!(%error, "a child's supervisor failed");
        }
    }
}

fn lock(spec: &Mutex<ChildSpec>) -> std::sync::MutexGuard<'_, ChildSpec> {
    spec.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn last_lines(log: &Path, count: usize) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

fn spawn(spec: &ChildSpec) -> anyhow::Result<tokio::process::Child> {
    let log = File::options()
        .create(true)
        .append(true)
        .open(&spec.log)
        .with_context(|| format!("failed to open {}", spec.log.display()))?;
    Command::new(&spec.program)
        .args(&spec.args)
        .envs(spec.variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(log.try_clone()?)
        .stderr(log)
        // Ctrl-C in the terminal must reach this process alone: it ends the others in order.
        .process_group(0)
        .spawn()
        .with_context(|| format!("failed to start {}", spec.program.display()))
}

async fn supervise(
    mut process: tokio::process::Child,
    spec: Arc<Mutex<ChildSpec>>,
    stop: CancellationToken,
    crashed: watch::Sender<u32>,
    events: mpsc::Sender<ChildEvent>,
) {
    let mut backoff = Backoff::default();
    loop {
        let started = Instant::now();
        // Held apart: waiting for a process closes a standard input that it still owns.
        let lifeline = process.stdin.take();
        let ended = tokio::select! {
            ended = process.wait() => ended,
            () = stop.cancelled() => {
                let part = lock(&spec).part.clone();
                drop(lifeline);
                return end(process, &part).await;
            }
        };
        crashed.send_modify(|crashes| *crashes += 1);
        let how = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
        if started.elapsed() > HEALTHY {
            backoff = Backoff::default();
        }
        process = loop {
            let why = last_lines(&lock(&spec).log, 1);
            say(&events, &spec, format!("ended ({how}): {why}; starting it again")).await;
            if !backoff.wait(&stop).await {
                return;
            }
            let next = spawn(&lock(&spec));
            match next {
                Ok(process) => break process,
                Err(error) => say(&events, &spec, format!("{error:#}")).await,
            }
        };
    }
}

async fn say(events: &mpsc::Sender<ChildEvent>, spec: &Mutex<ChildSpec>, what: String) {
    let part = lock(spec).part.clone();
    // Nobody listens any more once the cluster drains; then there is nobody to tell.
    let _ = events.send(ChildEvent { part, what }).await;
}

/// Waits for a child whose standard input was closed, which asks it to drain, and kills it if it does not end in time.
async fn end(mut process: tokio::process::Child, part: &str) {
    match tokio::time::timeout(DRAIN_MAX, process.wait()).await {
        Ok(Ok(status)) if status.success() => {}
        Ok(Ok(status)) => tracing::warn!(part, %status, "ended badly while draining"),
        Ok(Err(error)) => tracing::warn!(part, %error, "cannot be waited for"),
        Err(_) => {
            tracing::warn!(part, "did not drain in time and is killed");
            let _ = process.kill().await;
        }
    }
}
