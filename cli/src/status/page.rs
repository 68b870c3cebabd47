//! The status as a page for people.

use std::fmt::Write;
use std::time::Duration;

use indicatif::HumanBytes;
use tengen_proto::v1::{DiskStatus, Gate, GateState, LearnerStatus, RunStatus};

use super::processes::{self, simulations};
use crate::models::short_id;

/// The whole status as text.
pub(super) fn page(status: &RunStatus) -> String {
    let mut lines: Vec<(&str, String)> = vec![
        (
            "run",
            format!("{} ({}), up {}", status.run_id, status.game, duration(status.uptime_ms)),
        ),
        ("iteration", iteration(status)),
        ("generation", generation(status)),
        (
            "gate",
            status.gate.as_ref().map_or_else(|| "none open".to_owned(), gate),
        ),
        ("games", games(status)),
        ("window", window(status)),
        ("learner", learner(status)),
        ("replay", replay(status)),
        ("rates", rates(status)),
    ];
    if let Some(simulations) = simulations(status) {
        lines.push(("simulations", simulations));
    }
    if let Some(steering) = &status.steering {
        lines.push(("steering", crate::steer::in_words(steering)));
    }
    if status.settings_revision > 0 {
        lines.push(("settings", format!("revision {}", status.settings_revision)));
    }
    if !status.access.is_empty() {
        lines.push(("access", status.access.clone()));
    }
    if let Some(disk) = &status.disk {
        lines.push(("disk", self::disk(disk)));
    }
    if status.damaged_games > 0 {
        lines.push((
            "damaged",
            format!(
                "{} stored games are left out of the window; see `tengen db check`",
                status.damaged_games
            ),
        ));
    }
    if !status.audit.is_empty() {
        lines.push(("audit", audit(status)));
    }
    if !status.rejected.is_empty() {
        lines.push(("rejected", counts(&status.rejected)));
    }
    if !status.opening_paths.is_empty() {
        lines.push(("openings", counts(&status.opening_paths)));
    }
    if !status.waiting.is_empty() {
        lines.push(("waiting", status.waiting.clone()));
    }
    if !status.refused_calls.is_empty() {
        lines.push(("refused", counts(&status.refused_calls)));
    }
    if let Some(usage) = &status.usage {
        lines.push((
            "coordinator",
            format!("tengen {}, {}", status.build, processes::usage(usage)),
        ));
    }
    lines.extend(status.actors.iter().map(|actor| ("actor", processes::actor(actor))));
    lines.iter().fold(String::new(), |mut text, (key, value)| {
        let _ = writeln!(text, "{key:<11} {value}");
        text
    })
}

pub(crate) fn iteration(status: &RunStatus) -> String {
    format!(
        "{}: {} of {} games at {} simulations",
        status.iteration, status.iteration_games, status.iteration_games_target, status.simulations
    )
}

/// How full the window is, and how far behind one that is kept in Redis.
fn window(status: &RunStatus) -> String {
    let mut text = format!("{} of {} positions", status.window_positions, status.window_capacity);
    if status.window_store == "redis" {
        text.push_str(" in Redis");
    }
    if status.window_lag_games > 0 {
        text.push_str(&format!(", {} games behind", status.window_lag_games));
    }
    if let Some(age_ms) = window_age_ms(status) {
        let _ = write!(text, ", the oldest {} old", duration(age_ms));
    }
    if let Some(minutes) = status.window_turnover_minutes {
        let _ = write!(text, ", filled anew in {}", duration((minutes * 60_000.0) as u64));
    }
    text
}

/// How long ago the oldest game of the window was stored.
pub(crate) fn window_age_ms(status: &RunStatus) -> Option<u64> {
    let stored = status.window_oldest_unix_ms;
    (stored > 0).then(|| u64::try_from(status.clock_unix_ms - stored).unwrap_or(0))
}

/// How often positions are trained on, and how far the learner is behind.
pub(super) fn replay(status: &RunStatus) -> String {
    let mut text = format!(
        "{:.2} of {:.2} samples a position, {} steps behind",
        status.samples_per_position, status.samples_per_position_max, status.steps_behind
    );
    if status.steps_behind_max > 0 {
        let _ = write!(text, " (self-play waits at {})", status.steps_behind_max);
    }
    text
}

fn generation(status: &RunStatus) -> String {
    format!(
        "{} (champion {}), {} gates decided",
        status.generation,
        champion(status),
        status.gates_decided
    )
}

/// The champion's id, in short.
pub(crate) fn champion(status: &RunStatus) -> String {
    let champion = status.champion.as_ref();
    champion.map_or_else(String::new, |model| short_id(&model.model_id))
}

pub(crate) fn gate(gate: &Gate) -> String {
    let state = match gate.state() {
        GateState::Promoted => "promoted",
        GateState::Passed => "passed",
        GateState::Rejected => "rejected",
        GateState::Void => "void",
        GateState::Open | GateState::Unspecified => "playing",
    };
    let left = time_left(gate).map_or_else(String::new, |left| format!(", {left}"));
    format!(
        "candidate {} of iteration {}: {} of {} pairs, +{} ={} -{}, score {:.3} ({}), Elo {:+.0} ± {:.0}{}, {state}{left}",
        short_id(&gate.candidate_id),
        gate.iteration,
        gate.pairs,
        gate.pairs_target,
        gate.wins,
        gate.draws,
        gate.losses,
        gate.score,
        needs(gate),
        gate.elo,
        gate.elo_error,
        beside(gate)
    )
}

/// How long a gate may still take, where that is known.
fn time_left(gate: &Gate) -> Option<String> {
    let seconds = gate.seconds_left_max?;
    Some(format!("at most {} left", duration((seconds * 1_000.0) as u64)))
}

/// What decides a gate's match with the champion.
fn needs(gate: &Gate) -> String {
    match gate.llr {
        Some(llr) => format!("LLR {llr:.2}, ends at {:.2} or {:.2}", gate.llr_lower, gate.llr_upper),
        None => format!("needs {:.3}", gate.threshold),
    }
}

/// What a candidate must show beside its match with the champion; empty when nothing.
fn beside(gate: &Gate) -> String {
    let mut text = String::new();
    if !gate.pool.is_empty() {
        let (pairs, of) = gate.pool.iter().fold((0, 0), |(pairs, of), played| {
            (pairs + played.pairs, of + played.pairs_target)
        });
        let opponents = gate.pool.len();
        text.push_str(&format!(
            ", {pairs} of {of} pairs against {opponents} earlier champions"
        ));
    }
    if gate.streak_needed > 1 {
        text.push_str(&format!(", {} of {} in a row", gate.streak, gate.streak_needed));
    }
    text
}

fn games(status: &RunStatus) -> String {
    format!(
        "{} self-play, {} match, {} positions",
        status.games, status.match_games, status.positions
    )
}

fn audit(status: &RunStatus) -> String {
    let mut text = format!("{} games, {} failed", status.audited, status.audit_failed);
    if status.audit_missed > 0 {
        let _ = write!(text, ", {} missed", status.audit_missed);
    }
    format!("{text} ({})", status.audit)
}

pub(crate) fn learner(status: &RunStatus) -> String {
    match &status.learner {
        None => "not seen yet".to_owned(),
        Some(learner) => format!(
            "step {} of {} allowed, policy loss {:.3}, value loss {:.3}, learning rate {}, {:.1} steps/s on {}, {}{}{}{}",
            learner.step,
            learner.step_limit,
            learner.policy_loss,
            learner.value_loss,
            rate(learner),
            learner.steps_per_second,
            learner.device,
            learner.activity,
            learner.illegal_mass.map_or_else(String::new, |mass| format!(
                ", {:.2} % of the last policy on illegal actions",
                100.0 * mass
            )),
            learner
                .usage
                .as_ref()
                .map_or_else(String::new, |usage| format!(", {}", processes::usage(usage))),
            if learner.alive { "" } else { " (silent)" }
        ),
    }
}

/// The learning rate, and what comes of the weights where it is their average that is published.
fn rate(learner: &LearnerStatus) -> String {
    if learner.ema_decay > 0.0 {
        format!(
            "{}, averages with decay {} published",
            learner.learning_rate, learner.ema_decay
        )
    } else {
        learner.learning_rate.to_string()
    }
}

pub(crate) fn rates(status: &RunStatus) -> String {
    format!(
        "{:.0} games/min, {:.0} positions/min, {:.0} evaluations/s",
        status.games_per_minute, status.positions_per_minute, status.evaluations_per_second
    )
}

pub(super) fn disk(disk: &DiskStatus) -> String {
    let bytes = |bytes: u64| HumanBytes(bytes).to_string();
    let mut text = format!("{} in use, {} free", bytes(disk.data_bytes), bytes(disk.free_bytes));
    if let Some(rate) = disk.bytes_per_hour {
        let sign = if rate < 0.0 { "-" } else { "+" };
        let _ = write!(text, ", {sign}{} an hour", bytes(rate.abs() as u64));
    }
    if let Some(hours) = disk.hours_left {
        let _ = match hours {
            0.0..48.0 => write!(text, ", room for {hours:.1} hours"),
            _ => write!(text, ", room for {:.0} days", hours / 24.0),
        };
    }
    if !disk.refusing.is_empty() {
        text.push_str("; REFUSING NEW GAMES");
    }
    text
}

fn counts(by_name: &std::collections::HashMap<String, u64>) -> String {
    let mut entries: Vec<_> = by_name.iter().collect();
    entries.sort();
    entries
        .iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect::<Vec<_>>()
        .join(", ")
}

pub(crate) fn duration(milliseconds: u64) -> String {
    humantime::format_duration(Duration::from_secs(milliseconds / 1000)).to_string()
}

/// A gate's score so far, in short.
pub(crate) fn tally(gate: &Gate) -> String {
    let needs = match gate.llr {
        Some(llr) => format!("LLR {llr:.2} of {:.2}", gate.llr_upper),
        None => format!("of {:.3}", gate.threshold),
    };
    format!(
        "+{} ={} -{} score {:.3} {needs}",
        gate.wins, gate.draws, gate.losses, gate.score
    )
}

/// A learner's losses, in short.
pub(crate) fn losses(learner: &LearnerStatus) -> String {
    format!("policy {:.3} value {:.3}", learner.policy_loss, learner.value_loss)
}

/// The whole status in one line.
pub(crate) fn line(status: &RunStatus) -> String {
    let learner = status.learner.as_ref().map_or_else(
        || "learner not seen yet".to_owned(),
        |learner| format!("step {}/{} {}", learner.step, learner.step_limit, losses(learner)),
    );
    let gate = status.gate.as_ref().map_or_else(
        || "no gate".to_owned(),
        |gate| format!("gate {}/{} {}", gate.pairs, gate.pairs_target, tally(gate)),
    );
    let simulations = simulations(status).map_or_else(String::new, |ends| format!(" | simulations {ends}"));
    format!(
        "iteration {} {}/{} games | generation {} | {} games, {} positions, window {}/{} | {learner} | {gate} | {}{simulations}",
        status.iteration,
        status.iteration_games,
        status.iteration_games_target,
        status.generation,
        status.games,
        status.positions,
        status.window_positions,
        status.window_capacity,
        rates(status)
    )
}

/// A gate in a few words.
pub(super) fn gate_in_short(gate: &Gate) -> String {
    let left = time_left(gate).map_or_else(String::new, |left| format!("  {left}"));
    format!("{}{left}", tally(gate))
}

#[cfg(test)]
mod tests {
    use tengen_proto::v1::{ActorStatus, Usage};

    use super::*;

    #[test]
    fn the_page_names_what_people_ask_for() {
        let status = RunStatus {
            run_id: "quickstart".to_owned(),
            game: "connect-four".to_owned(),
            iteration: 2,
            iteration_games: 10,
            iteration_games_target: 200,
            simulations: 64,
            gate: Some(Gate {
                pairs: 3,
                pairs_target: 30,
                threshold: 0.55,
                ..Gate::default()
            }),
            rejected: [("illegal-action".to_owned(), 2)].into(),
            disk: Some(DiskStatus {
                data_bytes: 3 << 20,
                free_bytes: 5 << 30,
                bytes_per_hour: Some(1024.0 * 1024.0),
                hours_left: Some(100.0),
                ..DiskStatus::default()
            }),
            damaged_games: 3,
            audited: 31,
            audit_failed: 1,
            audit: "2 % of the games, 4 positions each".to_owned(),
            clock_unix_ms: 100_000,
            window_oldest_unix_ms: 40_000,
            window_turnover_minutes: Some(90.0),
            samples_per_position: 3.5,
            samples_per_position_max: 4.0,
            refused_calls: [("OTHER_TOKEN".to_owned(), 3)].into(),
            actors: vec![ActorStatus {
                provider: "CUDA".to_owned(),
                precision: "fp32".to_owned(),
                precision_fell_back: "network 12ab is another one in int8 here".to_owned(),
                evaluations: 3,
                reused_visits: 1,
                usage: Some(Usage {
                    gpu_busy: Some(0.41),
                    gpu_memory_bytes: Some(3 << 30),
                    ..Usage::default()
                }),
                ..ActorStatus::default()
            }],
            ..RunStatus::default()
        };
        let page = page(&status);
        for part in [
            "2: 10 of 200 games at 64",
            "3 of 30 pairs",
            "illegal-action 2",
            "31 games, 1 failed (2 % of the games, 4 positions each)",
            "not seen yet",
            "3.00 MiB in use, 5.00 GiB free, +1.00 MiB an hour, room for 4 days",
            "3 stored games are left out",
            "the oldest 1m old, filled anew in 1h 30m",
            "3.50 of 4.00 samples a position",
            "OTHER_TOKEN 3",
            "simulations 75 % evaluated, 25 % from the ply before",
            "CUDA fp32",
            "GPU 41 % busy, GPU memory 3.00 GiB",
            "in fp32 because network 12ab",
            "SILENT",
        ] {
            assert!(page.contains(part), "{part:?} in\n{page}");
        }
    }

    #[test]
    fn a_line_tells_everything_the_bars_tell() {
        let status = RunStatus {
            iteration: 3,
            iteration_games: 7,
            iteration_games_target: 100,
            generation: 2,
            games: 307,
            positions: 5_252,
            window_positions: 4_000,
            window_capacity: 60_000,
            learner: Some(LearnerStatus {
                step: 65,
                step_limit: 161,
                policy_loss: 1.9414,
                value_loss: 0.8166,
                ..LearnerStatus::default()
            }),
            gate: Some(Gate {
                pairs: 5,
                pairs_target: 30,
                wins: 8,
                draws: 1,
                losses: 1,
                ..Gate::default()
            }),
            games_per_minute: 1_684.4,
            positions_per_minute: 30_120.0,
            evaluations_per_second: 19_017.0,
            actors: vec![ActorStatus {
                evaluations: 3,
                cache_hits: 1,
                ..ActorStatus::default()
            }],
            ..RunStatus::default()
        };
        let text = line(&status);
        for part in [
            "iteration 3 7/100 games",
            "generation 2",
            "307 games, 5252 positions",
            "window 4000/60000",
            "step 65/161 policy 1.941 value 0.817",
            "gate 5/30 +8 =1 -1",
            "1684 games/min, 30120 positions/min, 19017 evaluations/s | simulations 75 % evaluated, 25 % from the cache",
        ] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
        let text = line(&RunStatus::default());
        for part in ["learner not seen yet", "no gate"] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
    }

    #[test]
    fn the_learners_line_says_when_averages_are_published() {
        let line = |ema_decay| {
            let status = LearnerStatus {
                learning_rate: 0.02,
                ema_decay,
                ..LearnerStatus::default()
            };
            learner(&RunStatus {
                learner: Some(status),
                ..RunStatus::default()
            })
        };
        let averaging = line(0.99);
        assert!(
            averaging.contains("learning rate 0.02, averages with decay 0.99 published,"),
            "{averaging}"
        );
        assert!(line(0.0).contains("learning rate 0.02, 0.0 steps/s"));
    }
}
