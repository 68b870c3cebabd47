//! Retention at work: a sweep now and then, in steps small enough that no commit waits long for one.
//!
//! A step belongs to the transaction of the batch it comes with. The files of networks go only after that transaction is
//! durable; what a crash leaves of them goes at the next start. What may go at all is said in `crate::retention` and
//! `store::retention`.

use rusqlite::Connection;

use super::owner::Now;
use crate::files::ModelFiles;
use crate::retention::RetentionConfig;
use crate::store::StoreError;
use crate::store::retention::{self as rows, Removed};
use crate::store::trail::{self, Entry};
use crate::window::RunWindow;

/// Time between the end of one sweep and the next, milliseconds.
const SWEEP_EVERY_MS: u64 = 60_000;
/// Games of each kind that one step removes or looks at: some milliseconds of work.
const STEP_GAMES: u32 = 64;

/// Carries out the section `[retention]`.
#[derive(Debug)]
pub(super) struct Retainer {
    rule: RetentionConfig,
    files: ModelFiles,
    /// Knows which games are damaged and do not count as its own.
    window: RunWindow,
    due_ms: u64,
    sweep: Option<Sweep>,
}

/// A sweep in progress.
#[derive(Debug, Default)]
struct Sweep {
    /// Games before this commit sequence may go.
    floor: u64,
    self_play_done: bool,
    /// The match game looked at last; none once there are no more.
    matches_after: Option<u64>,
    games: u64,
    positions: u64,
    /// The files of the networks that go, one each.
    models: Vec<String>,
    /// All of their files, until they are handed over.
    files: Vec<String>,
}

impl Retainer {
    pub(super) fn new(rule: RetentionConfig, files: ModelFiles, window: RunWindow) -> Retainer {
        Retainer {
            rule,
            files,
            window,
            due_ms: 0,
            sweep: None,
        }
    }

    /// Removes files that an earlier process noted as removed and did not come to remove.
    pub(super) fn finish_removals(&self, connection: &Connection) -> Result<(), StoreError> {
        self.remove_files(&rows::removed_files(connection)?);
        Ok(())
    }

    /// Whether there is more to do at once.
    pub(super) fn is_busy(&self) -> bool {
        self.sweep.is_some()
    }

    /// Forgets a sweep whose transaction was taken back.
    pub(super) fn reset(&mut self) {
        // Not at once: whatever failed would fail again.
        self.sweep = None;
    }

    /// One step, when one is due. The files of the networks it names are to be removed after the commit.
    pub(super) fn step(
        &mut self,
        connection: &Connection,
        window_capacity: u64,
        now: Now,
    ) -> Result<Vec<String>, StoreError> {
        let (mut sweep, stale_files) = match self.sweep.take() {
            Some(sweep) => (sweep, Vec::new()),
            None if now.ms < self.due_ms || self.rule == RetentionConfig::default() => return Ok(Vec::new()),
            None => {
                self.due_ms = now.ms + SWEEP_EVERY_MS;
                let mut sweep = self.begin(connection, window_capacity, now)?;
                let files = std::mem::take(&mut sweep.files);
                (sweep, files)
            }
        };
        sweep.step(connection)?;
        if sweep.is_done() {
            sweep.conclude(connection, now)?;
            self.due_ms = now.ms + SWEEP_EVERY_MS;
        } else {
            self.sweep = Some(sweep);
        }
        Ok(stale_files)
    }

    /// Finds out what may go, and notes the networks that do.
    fn begin(&self, connection: &Connection, window_capacity: u64, now: Now) -> Result<Sweep, StoreError> {
        let floor = match self.rule.keep_games {
            0 => 0,
            games => rows::games_floor(connection, games)?.min(rows::window_floor(
                connection,
                window_capacity,
                &self.window.damaged(),
            )?),
        };
        let (mut models, mut files) = (Vec::new(), Vec::new());
        if self.rule.keep_generations > 0 {
            let held = rows::held_models(connection)?;
            let met = rows::promoted_against(connection)?;
            let at_work = rows::models_at_work(connection)?;
            for model in self.rule.removable(&held, &met, &at_work) {
                rows::set_removed(connection, model.id, now.unix_ms)?;
                models.push(model.file_name.clone());
                files.extend(model.files().map(|(_, name)| name.to_owned()));
            }
        }
        Ok(Sweep {
            floor,
            matches_after: Some(0),
            models,
            files,
            ..Sweep::default()
        })
    }

    /// Removes files; one that is gone already is fine.
    pub(super) fn remove_files(&self, file_names: &[String]) {
        for file_name in file_names {
            match self.files.remove_named(file_name) {
                Ok(()) => tracing::info!(file_name, "network file removed"),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    tracing::warn!(%error, file_name, "the file of a removed network stays until the next start")
                }
            }
        }
    }
}

impl Sweep {
    fn step(&mut self, connection: &Connection) -> Result<(), StoreError> {
        if !self.self_play_done {
            let removed = rows::remove_self_play(connection, self.floor, STEP_GAMES)?;
            self.count(removed);
            self.self_play_done = removed.newest.is_none();
        }
        if let Some(after) = self.matches_after {
            let removed = rows::remove_matches(connection, after, self.floor, STEP_GAMES)?;
            self.count(removed);
            self.matches_after = removed.newest;
        }
        Ok(())
    }

    fn count(&mut self, removed: Removed) {
        self.games += removed.games;
        self.positions += removed.positions;
    }

    fn is_done(&self) -> bool {
        self.self_play_done && self.matches_after.is_none()
    }

    /// Leaves a trace of what went.
    fn conclude(&self, connection: &Connection, now: Now) -> Result<(), StoreError> {
        if self.games == 0 && self.models.is_empty() {
            return Ok(());
        }
        let (games, positions) = (self.games, self.positions);
        let detail = format!(
            "{games} games with {positions} positions before sequence {}; networks: {}",
            self.floor,
            if self.models.is_empty() {
                "none".to_owned()
            } else {
                self.models.join(", ")
            }
        );
        let entry = Entry {
            who: trail::COORDINATOR,
            action: "retention",
            detail: &detail,
            ..Entry::default()
        };
        trail::append(connection, &entry, now.unix_ms)?;
        tracing::info!(
            games,
            positions,
            networks = self.models.len(),
            "retention removed what is old"
        );
        Ok(())
    }
}
