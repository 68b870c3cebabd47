//! Waiting for what a cluster's status says, with an end: when a process has ended, when what was waited for cannot come any
//! more, and after a time that is long for any machine. The error says what was waited for and what the status said.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use tengen_proto::v1::RunStatus;
use tengen_system_tests::cluster::{Up, is_alive};

/// Time between two looks at the status; reports change it once a second.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long the coordinator may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// Lines of the learner's log that an error shows.
const LINES: usize = 5;

/// A cluster that is watched.
pub(crate) struct Watch<'a> {
    up: &'a Up,
    learner_log: PathBuf,
    looks: tokio::time::Interval,
}

impl<'a> Watch<'a> {
    /// The cluster that plays on this data folder.
    pub(crate) fn of(up: &'a Up, data: &Path) -> Watch<'a> {
        Watch {
            up,
            learner_log: data.join("logs").join("learner.log"),
            looks: tokio::time::interval(LOOK_EVERY),
        }
    }

    /// Looks again and again until `found` finds something in the status, or says why it never will.
    pub(crate) async fn until<T>(
        &mut self,
        what: &str,
        limit: Duration,
        mut found: impl FnMut(&RunStatus) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        let begun = Instant::now();
        let mut last = "nothing".to_owned();
        loop {
            let looked = self.look().await.and_then(|status| {
                last = in_words(&status);
                let found = found(&status)?;
                ensure!(
                    found.is_some() || begun.elapsed() < limit,
                    "it took longer than {} s",
                    limit.as_secs()
                );
                Ok(found)
            });
            match looked {
                Ok(None) => {}
                Ok(Some(found)) => return Ok(found),
                Err(why) => {
                    let log = self.learner_log();
                    return Err(why.context(format!(
                        "waited for {what}; the status said: {last}; the learner's log ends:\n{log}\ngiven up"
                    )));
                }
            }
        }
    }

    /// The next status; an error when somebody who is needed has ended.
    async fn look(&mut self) -> anyhow::Result<RunStatus> {
        self.looks.tick().await;
        ensure!(is_alive(self.up.id()), "`tengen up` has ended");
        let status = self.up.status_within(ANSWER_MAX).await;
        let status = status.context("the coordinator does not answer")?;
        match status.actors.iter().find(|actor| actor.gave_up) {
            Some(actor) => bail!("an actor gave up: {}", actor.waiting),
            None => Ok(status),
        }
    }

    fn learner_log(&self) -> String {
        let text = std::fs::read_to_string(&self.learner_log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }
}

/// What a status says of how far the run is, and of its actors.
fn in_words(status: &RunStatus) -> String {
    let mut text = format!(
        "iteration {}, generation {}, {} games of {} positions",
        status.iteration, status.generation, status.games, status.positions
    );
    // Writing to a string does not fail.
    let _ = match &status.learner {
        Some(learner) => write!(text, "; learner at step {}, {}", learner.step, learner.activity),
        None => write!(text, "; no learner"),
    };
    for actor in &status.actors {
        let _ = write!(
            text,
            "; an actor in {:?} with {} evaluations",
            actor.precision, actor.evaluations
        );
        if !actor.waiting.is_empty() {
            let _ = write!(text, ", waits: {}", actor.waiting);
        }
        if !actor.precision_fell_back.is_empty() {
            let _ = write!(text, ", fell back to fp32: {}", actor.precision_fell_back);
        }
    }
    text
}
