//! The status as people watch it, put together from memory alone.

use std::collections::VecDeque;

use tengen_control::Gate;
use tengen_proto::v1;

use super::state::State;
use crate::disk::Gauge;
use crate::messages;
use crate::store::gates::GateState;
use crate::window::WindowStanding;

/// An actor or learner not heard for this long is shown as gone, milliseconds.
const SILENT_MS: u64 = 15_000;
/// Over how long rates are taken, milliseconds.
const RATE_MS: u64 = 60_000;
/// Rates are counted in slots of this length, milliseconds.
const SLOT_MS: u64 = 1_000;

/// What an actor told last.
#[derive(Clone, Debug, Default)]
pub(super) struct ActorLive {
    pub(super) heard_ms: u64,
    pub(super) provider: String,
    pub(super) evaluations_per_second: f32,
    pub(super) games: u64,
    pub(super) queue: u32,
}

/// What the learner told last.
#[derive(Clone, Debug)]
pub(super) struct LearnerLive {
    pub(super) heard_ms: u64,
    pub(super) status: v1::LearnerStatus,
}

/// Games stored in the last minute, by second.
#[derive(Clone, Debug, Default)]
pub(super) struct Rate {
    slots: VecDeque<(u64, u32)>,
}

impl Rate {
    /// Notes a game.
    pub(super) fn note(&mut self, now_ms: u64) {
        let slot = now_ms / SLOT_MS;
        match self.slots.back_mut() {
            Some((last, games)) if *last == slot => *games += 1,
            _ => self.slots.push_back((slot, 1)),
        }
        self.forget(now_ms);
    }

    /// Games per minute: over the last minute, or over the time since the process began when that is shorter.
    fn per_minute(&mut self, now_ms: u64) -> f32 {
        self.forget(now_ms);
        let games: u32 = self.slots.iter().map(|slot| slot.1).sum();
        let over_ms = now_ms.clamp(SLOT_MS, RATE_MS);
        games as f32 * 60_000.0 / over_ms as f32
    }

    fn forget(&mut self, now_ms: u64) {
        let oldest = now_ms.saturating_sub(RATE_MS) / SLOT_MS;
        while self.slots.front().is_some_and(|slot| slot.0 < oldest) {
            self.slots.pop_front();
        }
    }
}

impl State {
    /// The whole status.
    pub(super) fn status(&mut self, window: &WindowStanding, disk: &Gauge, now_ms: u64) -> v1::RunStatus {
        let disk = disk.status();
        let games_per_minute = self.rate.per_minute(now_ms);
        let row = self.control.row();
        let learner = self.live_learner.as_ref().map(|live| v1::LearnerStatus {
            alive: now_ms.saturating_sub(live.heard_ms) < SILENT_MS,
            ..live.status.clone()
        });
        let actors = self.actor_statuses(now_ms);
        let audits = self.audit_totals();
        v1::RunStatus {
            run_id: self.facts.id.to_string(),
            game: self.facts.game.spec().id.clone(),
            build: tengen_service::BUILD.to_owned(),
            created_unix_ms: self.facts.created_ms,
            uptime_ms: now_ms,
            iteration: self.control.iteration(),
            iteration_games: self.control.iteration_games(),
            iteration_games_target: row.games,
            simulations: row.simulations,
            generation: self.control.generation(),
            champion: Some(messages::bare_model(self.facts.id.as_str(), &self.champion)),
            gate: self
                .control
                .gate()
                .map(|gate| gate_in_progress(gate, self.gate_opened_ms)),
            gates_decided: self.gates_decided,
            games: self.progress().self_play_games,
            match_games: self.progress().match_games,
            rating_games: self.rating_games,
            positions: self.control.positions(),
            window_positions: window.fill.positions,
            window_capacity: window.fill.capacity,
            window_store: window.store.to_owned(),
            window_lag_games: window.lag_games,
            rejected: self.rejected.clone().into_iter().collect(),
            waiting: waiting(
                &actors,
                learner.as_ref(),
                self.steps_holding_self_play(),
                window,
                &disk.refusing,
            ),
            learner,
            games_per_minute,
            evaluations_per_second: actors.iter().map(|actor| actor.evaluations_per_second).sum(),
            actors,
            opening_paths: self.opening_paths.clone().into_iter().collect(),
            candidates_waiting: u32::from(self.control.waiting().is_some()),
            // The process tells it, not the run.
            access: String::new(),
            disk: Some(disk),
            damaged_games: window.damaged_games,
            audited: audits.audited,
            audit_failed: audits.failed,
            audit_missed: audits.missed,
            audit: self.facts.audit.clone(),
        }
    }

    /// How far the learner is behind, when that is far enough to hold self-play back. Leases keep it just inside its
    /// limit, so a little below the limit self-play already waits.
    fn steps_holding_self_play(&self) -> Option<u64> {
        let limit = self.facts.config.learner.steps_behind_max;
        self.steps_behind()
            .filter(|behind| limit > 0 && behind * 10 >= limit * 9)
    }

    fn actor_statuses(&self, now_ms: u64) -> Vec<v1::ActorStatus> {
        let seen = self
            .live_actors
            .iter()
            .filter(|(_, live)| now_ms.saturating_sub(live.heard_ms) < SILENT_MS);
        seen.map(|(name, live)| {
            let row = self.actors.get(name);
            v1::ActorStatus {
                actor_id: name.clone(),
                host: row.map(|row| row.host.clone()).unwrap_or_default(),
                provider: live.provider.clone(),
                evaluations_per_second: live.evaluations_per_second,
                games: live.games,
                silent_ms: now_ms.saturating_sub(live.heard_ms),
                strikes: row.map_or(0, |row| row.strikes),
                queue: live.queue,
                build: row.map(|row| row.build.clone()).unwrap_or_default(),
            }
        })
        .collect()
    }
}

fn gate_in_progress(gate: &Gate, opened_ms: i64) -> v1::Gate {
    messages::gate(&messages::GateView {
        id: gate.id().0,
        candidate: gate.candidate().model.0,
        champion: gate.champion().0,
        iteration: gate.candidate().iteration,
        pairs_target: gate.rule().pairs,
        threshold: gate.rule().threshold(),
        tally: gate.tally(),
        state: GateState::Open,
        reason: String::new(),
        opened_ms,
        decided_ms: None,
    })
}

/// Who waits for whom, in a sentence; empty when nobody does.
fn waiting(
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
    if actors.is_empty() {
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
    fn the_rate_forgets_what_is_older_than_a_minute() {
        let mut rate = Rate::default();
        for second in 0..120 {
            rate.note(second * 1_000);
        }
        assert!((rate.per_minute(119_500) - 61.0).abs() <= 1.0);
        assert_eq!(rate.per_minute(500_000), 0.0);
        rate = Rate::default();
        rate.note(100);
        assert_eq!(rate.per_minute(30_000), 2.0);
    }
}
