//! The status as people watch it, put together from memory alone.

mod pace;
mod rates;

use std::collections::HashMap;

use tengen_control::ActorId;
use tengen_proto::v1;
use tengen_replay::StepLimit;

use super::owner::Now;
use super::request::ActorReport;
use super::state::{State, actor_key};
use crate::cores;
use crate::disk::Gauge;
use crate::messages;
use crate::window::WindowStanding;

pub(super) use pace::{Batch, Pace};
pub(super) use rates::Rate;

/// An actor or learner not heard for this long is shown as silent, milliseconds.
const SILENT_MS: u64 = 15_000;
/// An actor not heard for this long is not shown any more, milliseconds.
const FORGOTTEN_MS: u64 = 3_600_000;
/// How often the age of the window is looked up, milliseconds.
const WINDOW_AGE_MS: u64 = 5_000;

/// What an actor told last.
#[derive(Clone, Debug, Default)]
pub(super) struct ActorLive {
    pub(super) heard_ms: u64,
    /// Where it computes; before its first report, what it registered with.
    pub(super) provider: String,
    /// Its last report; empty before the first.
    pub(super) told: v1::ReportActorRequest,
    /// Its clock minus ours when it reported last.
    pub(super) clock_offset_ms: i64,
}

impl ActorLive {
    /// What follows from a report.
    pub(super) fn of(report: ActorReport, now: Now) -> ActorLive {
        ActorLive {
            heard_ms: now.ms,
            provider: report.told.provider.clone(),
            clock_offset_ms: clock_offset_ms(report.told.clock_unix_ms, now),
            told: report.told,
        }
    }

    /// Whether it has computed or played anything since it told last. An actor whose threads hang while its reports go on has
    /// not: its leases are for others.
    pub(super) fn has_advanced(&self, told: &v1::ReportActorRequest) -> bool {
        let work =
            |told: &v1::ReportActorRequest| (told.evaluations, told.cache_hits, told.games, told.plies_in_flight);
        work(&self.told) != work(told)
    }
}

/// What the learner told last.
#[derive(Clone, Debug)]
pub(super) struct LearnerLive {
    pub(super) heard_ms: u64,
    pub(super) status: v1::LearnerStatus,
}

/// When the window's oldest game was stored, and when that was looked up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowAge {
    looked_ms: Option<u64>,
    oldest_unix_ms: i64,
}

impl WindowAge {
    /// Whether to look it up again.
    pub(super) fn is_stale(&self, now_ms: u64) -> bool {
        self.looked_ms.is_none_or(|looked| now_ms - looked >= WINDOW_AGE_MS)
    }

    /// What was found.
    pub(super) fn found(now_ms: u64, oldest_unix_ms: i64) -> WindowAge {
        WindowAge {
            looked_ms: Some(now_ms),
            oldest_unix_ms,
        }
    }
}

/// Somebody's clock minus ours; 0 when they do not say.
pub(super) fn clock_offset_ms(theirs: i64, now: Now) -> i64 {
    if theirs == 0 {
        0
    } else {
        theirs.saturating_sub(now.unix_ms)
    }
}

impl State {
    /// The whole status.
    pub(super) fn status(&mut self, window: &WindowStanding, disk: &Gauge, now: Now) -> v1::RunStatus {
        let disk = disk.status();
        let self_play = self.rate.per_minute(now.ms);
        let matches = self.match_rate.per_minute(now.ms);
        let row = self.control.row();
        let learner = self.learner_status(now.ms);
        let actors = self.actor_statuses(now.ms);
        let audits = self.audit_totals();
        let status = v1::RunStatus {
            run_id: self.facts.id.to_string(),
            game: self.facts.game.spec().id.clone(),
            build: tengen_service::BUILD.to_owned(),
            created_unix_ms: self.facts.created_ms,
            uptime_ms: now.ms,
            clock_unix_ms: now.unix_ms,
            iteration: self.control.iteration(),
            iteration_games: self.control.iteration_games(),
            iteration_games_target: row.games,
            simulations: row.simulations,
            generation: self.control.generation(),
            champion: Some(messages::bare_model(self.facts.id.as_str(), &self.champion)),
            gate: self.control.gate().map(|gate| {
                messages::gate_in_progress(gate, self.control.streak(), self.gate_opened_ms, matches.games)
            }),
            gates_decided: self.gates_decided,
            gate_pairs_wanted: self.facts.gate_pairs_wanted(),
            games: self.progress().self_play_games,
            match_games: self.progress().match_games,
            rating_games: self.rating_games,
            positions: self.control.positions(),
            rejected: self.rejected.clone().into_iter().collect(),
            waiting: waiting(
                &self.held(),
                &actors,
                learner.as_ref(),
                self.steps_holding_self_play(),
                window,
                &disk.refusing,
            ),
            games_per_minute: self_play.games,
            positions_per_minute: self_play.positions,
            match_games_per_minute: matches.games,
            evaluations_per_second: alive(&actors).map(|actor| actor.evaluations_per_second).sum(),
            actors,
            opening_paths: self.opening_paths.clone().into_iter().collect(),
            candidates_waiting: self.control.waiting().len() as u32,
            candidate_due_iteration: self.control.due().map_or(0, |due| due.iteration),
            // The process tells it, not the run.
            access: String::new(),
            disk: Some(disk),
            audited: audits.audited,
            audit_failed: audits.failed,
            audit_missed: audits.missed,
            audit: self.audit(),
            steering: Some(self.steering_message()),
            settings_revision: self.facts.settings_revision,
            usage: Some(self.usage.usage()),
            ..v1::RunStatus::default()
        };
        self.with_window(self.with_learner(status, learner), window)
    }

    /// Adds how the window stands.
    fn with_window(&self, status: v1::RunStatus, window: &WindowStanding) -> v1::RunStatus {
        let rate = f64::from(status.positions_per_minute);
        v1::RunStatus {
            window_positions: window.fill.positions,
            window_capacity: window.fill.capacity,
            window_games: window.fill.games as u64,
            window_store: window.store.to_owned(),
            window_lag_games: window.lag_games,
            window_trouble: window.trouble.clone(),
            window_oldest_unix_ms: self.window_age.oldest_unix_ms,
            window_turnover_minutes: (rate > 0.0).then(|| window.fill.capacity as f64 / rate),
            damaged_games: window.damaged_games,
            ..status
        }
    }

    /// Adds what the learner told, and who of it and self-play is ahead.
    fn with_learner(&self, status: v1::RunStatus, learner: Option<v1::LearnerStatus>) -> v1::RunStatus {
        let section = &self.facts.config.learner;
        v1::RunStatus {
            samples_per_position: learner
                .as_ref()
                .map_or(0.0, |learner| self.samples_per_position(learner)),
            samples_per_position_max: section.samples_per_position,
            steps_behind: self.steps_behind().unwrap_or(0),
            steps_behind_max: section.steps_behind_max,
            window_min_positions: section.window_min_positions,
            learner,
            ..status
        }
    }

    /// How often the positions since the present numbers hold were trained on, on average.
    fn samples_per_position(&self, learner: &v1::LearnerStatus) -> f64 {
        let positions = self.control.positions().saturating_sub(learner.limit_from_positions);
        let steps = learner.step.saturating_sub(learner.limit_from_step);
        match positions {
            0 => 0.0,
            positions => steps as f64 * f64::from(self.facts.config.learner.batch) / positions as f64,
        }
    }

    /// How far the learner is behind, when that is far enough to hold self-play back. Leases keep it just inside its
    /// limit, so a little below the limit self-play already waits.
    fn steps_holding_self_play(&self) -> Option<u64> {
        let limit = self.facts.config.learner.steps_behind_max;
        self.steps_behind()
            .filter(|behind| limit > 0 && behind * 10 >= limit * 9)
    }

    /// Steps that the stored positions allow and the learner has not done; `None` while no learner is known. Counted from
    /// what is stored here, not from what the learner last said: a silent one must not be outrun.
    pub(super) fn steps_behind(&self) -> Option<u64> {
        let learner = &self.facts.config.learner;
        let status = &self.live_learner.as_ref()?.status;
        let limit = StepLimit {
            from_step: status.limit_from_step,
            from_positions: status.limit_from_positions,
            ..StepLimit::new(learner.batch, learner.samples_per_position)
        };
        Some(limit.steps(self.control.positions()).saturating_sub(status.step))
    }

    fn learner_status(&self, now_ms: u64) -> Option<v1::LearnerStatus> {
        let live = self.live_learner.as_ref()?;
        let silent_ms = now_ms.saturating_sub(live.heard_ms);
        Some(v1::LearnerStatus {
            alive: silent_ms < SILENT_MS,
            silent_ms,
            ..live.status.clone()
        })
    }

    /// What people hold, in sentences.
    fn held(&self) -> Vec<String> {
        let steering = self.control.steering();
        if steering.ended {
            return vec!["the run has ended".to_owned()];
        }
        let paused = steering.paused.iter().map(|&activity| {
            let name = messages::activity(activity).name();
            format!("{name} is paused (`tengen resume {name}` lets it go on)")
        });
        let pinned = steering
            .pinned
            .then(|| "the champion is pinned (`tengen unpin` lets gates promote)".to_owned());
        paused.chain(pinned).collect()
    }

    fn actor_statuses(&self, now_ms: u64) -> Vec<v1::ActorStatus> {
        let mut leases: HashMap<ActorId, u32> = HashMap::new();
        for lease in self.control.leases() {
            *leases.entry(lease.actor).or_default() += 1;
        }
        let seen = self
            .live_actors
            .iter()
            .filter(|(_, live)| now_ms.saturating_sub(live.heard_ms) < FORGOTTEN_MS);
        seen.map(|(name, live)| v1::ActorStatus {
            leases: leases.get(&actor_key(name)).copied().unwrap_or(0),
            ..self.actor_status(name, live, now_ms)
        })
        .collect()
    }

    fn actor_status(&self, name: &str, live: &ActorLive, now_ms: u64) -> v1::ActorStatus {
        let row = self.actors.get(name);
        let told = &live.told;
        let silent_ms = now_ms.saturating_sub(live.heard_ms);
        v1::ActorStatus {
            actor_id: name.to_owned(),
            host: row.map(|row| row.host.clone()).unwrap_or_default(),
            provider: live.provider.clone(),
            evaluations_per_second: told.evaluations_per_second,
            games: told.games,
            silent_ms,
            strikes: row.map_or(0, |row| row.strikes),
            queue: told.queue,
            build: row.map(|row| row.build.clone()).unwrap_or_default(),
            device: told.device.clone(),
            precision: told.precision.clone(),
            precision_fell_back: told.precision_fell_back.clone(),
            games_per_minute: told.games_per_minute,
            spool_bytes: told.spool_bytes,
            model_id: told.model_id.clone(),
            clock_offset_ms: live.clock_offset_ms,
            waiting: told.waiting.clone(),
            usage: told.usage,
            alive: silent_ms < SILENT_MS && !told.gives_up,
            gave_up: told.gives_up,
            leases: 0,
            evaluations: told.evaluations,
            cache_hits: told.cache_hits,
            terminal_visits: told.terminal_visits,
            reused_visits: told.reused_visits,
        }
    }
}

/// The actors that were heard lately.
fn alive(actors: &[v1::ActorStatus]) -> impl Iterator<Item = &v1::ActorStatus> {
    actors.iter().filter(|actor| actor.alive)
}

/// Who waits for whom, in a sentence; empty when nobody does.
fn waiting(
    held: &[String],
    actors: &[v1::ActorStatus],
    learner: Option<&v1::LearnerStatus>,
    behind: Option<u64>,
    window: &WindowStanding,
    refusing: &str,
) -> String {
    let mut sentences = Vec::new();
    if !refusing.is_empty() {
        sentences.push(refusing.to_owned());
    }
    sentences.extend_from_slice(held);
    if alive(actors).next().is_none() {
        sentences.push("no actor is connected".to_owned());
    }
    match learner {
        Some(learner) if learner.alive => {
            if learner.activity.contains("wait") {
                sentences.push(format!("the learner is {}", learner.activity));
            }
        }
        _ => sentences.push("no learner is connected".to_owned()),
    }
    if let Some(behind) = behind {
        sentences.push(format!(
            "self-play waits for the learner, which is {behind} steps behind"
        ));
    }
    sentences.extend(cores::in_short(&cores::crowds(actors, learner)));
    if !window.trouble.is_empty() {
        let WindowStanding { lag_games, trouble, .. } = window;
        sentences.push(format!(
            "the learner's window is {lag_games} games behind and goes on by itself: {trouble}"
        ));
    }
    sentences.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_whose_numbers_stand_still_has_not_advanced() {
        let told = v1::ReportActorRequest {
            evaluations: 900,
            games: 3,
            plies_in_flight: 40,
            ..v1::ReportActorRequest::default()
        };
        let live = ActorLive {
            told: told.clone(),
            ..ActorLive::default()
        };
        let still = v1::ReportActorRequest {
            clock_unix_ms: 77,
            queue: 5,
            ..told.clone()
        };
        assert!(!live.has_advanced(&still));
        for moved in [
            v1::ReportActorRequest {
                evaluations: 901,
                ..told.clone()
            },
            // Baselines play without evaluations.
            v1::ReportActorRequest {
                plies_in_flight: 41,
                ..told.clone()
            },
            // A process of the same name that has just started.
            v1::ReportActorRequest::default(),
        ] {
            assert!(live.has_advanced(&moved));
        }
    }
}
