//! `tengen status`: the run's status as a page for people or as JSON.

use std::fmt::Write;
use std::time::Duration;

use clap::Args;
use tengen_proto::v1::{Gate, GateState, GetStatusRequest, RunStatus};

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
        (
            "window",
            format!("{} of {} positions", status.window_positions, status.window_capacity),
        ),
        ("learner", learner(status)),
        ("rates", rates(status)),
    ];
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
        lines.push((
            "actor",
            format!(
                "{} on {}: {}, {:.0} evaluations/s, {} games, heard {heard} ago, {} strikes",
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
        ] {
            assert!(page.contains(part), "{part:?} in\n{page}");
        }
    }
}
