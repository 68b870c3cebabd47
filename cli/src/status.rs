//! `tengen status`: the run's status as a page for people or as JSON.

use std::fmt::Write;
use std::time::Duration;

use clap::Args;
use indicatif::HumanBytes;
use tengen_proto::v1::{DiskStatus, Gate, GateState, GetStatusRequest, RunStatus};

use crate::client::{CoordinatorArgs, explain};
use crate::models::short_id;

#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    coordinator: CoordinatorArgs,
}

pub(crate) async fn run(args: StatusArgs) -> anyhow::Result<()> {
    let run = args.coordinator.reach().await?;
    let mut client = run.runs()?;
    let status = client
        .get_status(GetStatusRequest {})
        .await
        .map_err(|status| explain(&status))?
        .into_inner();
    print!("{}", page(&status));
    Ok(())
}

/// The whole status as text.
fn page(status: &RunStatus) -> String {
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
        ("rates", rates(status)),
    ];
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
    for actor in &status.actors {
        let heard = duration(actor.silent_ms);
        let waiting = match actor.waiting.as_str() {
            "" => String::new(),
            why => format!(", waiting: {why}"),
        };
        lines.push((
            "actor",
            format!(
                "{} on {}: {}, {:.0} evaluations/s, {} games, heard {heard} ago, {} strikes{waiting}",
                actor.actor_id, actor.host, actor.provider, actor.evaluations_per_second, actor.games, actor.strikes
            ),
        ));
    }
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
    text
}

fn generation(status: &RunStatus) -> String {
    let champion = status.champion.as_ref();
    let id = champion.map_or_else(String::new, |model| short_id(&model.model_id));
    format!(
        "{} (champion {id}), {} gates decided",
        status.generation, status.gates_decided
    )
}

pub(crate) fn gate(gate: &Gate) -> String {
    let state = match gate.state() {
        GateState::Promoted => "promoted",
        GateState::Rejected => "rejected",
        GateState::Open | GateState::Unspecified => "playing",
    };
    format!(
        "candidate {} of iteration {}: {} of {} pairs, +{} ={} -{}, score {:.3} (needs {:.3}), {state}",
        short_id(&gate.candidate_id),
        gate.iteration,
        gate.pairs,
        gate.pairs_target,
        gate.wins,
        gate.draws,
        gate.losses,
        gate.score,
        gate.threshold
    )
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
            "step {} of {} allowed, policy loss {:.3}, value loss {:.3}, {:.1} steps/s on {}, {}{}",
            learner.step,
            learner.step_limit,
            learner.policy_loss,
            learner.value_loss,
            learner.steps_per_second,
            learner.device,
            learner.activity,
            if learner.alive { "" } else { " (silent)" }
        ),
    }
}

pub(crate) fn rates(status: &RunStatus) -> String {
    format!(
        "{:.0} games/min, {:.0} evaluations/s",
        status.games_per_minute, status.evaluations_per_second
    )
}

fn disk(disk: &DiskStatus) -> String {
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

#[cfg(test)]
mod tests {
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
        ] {
            assert!(page.contains(part), "{part:?} in\n{page}");
        }
    }
}
