//! Training in short: a run of the whole system with a tiny network, until a network plays that was trained on the games of
//! a trained one.

use anyhow::Context;
use tengen_proto::v1::RunStatus;
use tengen_service::args::LogArgs;
use tengen_service::files::write_atomic;

use super::survey::Survey;
use super::{CheckArgs, Group, Report};
use crate::up::{Limits, Trial, trial};

/// Positions of an iteration, about: few, and enough for a tiny network to learn what is legal.
const ITERATION_POSITIONS: f64 = 3_000.0;
const ITERATION_GAMES: (f64, f64) = (4.0, 200.0);
/// Generation 2 is a candidate of an iteration that was played with generation 1.
const GENERATION: u32 = 2;
/// Iterations' worth of games after which training does not keep up.
const ITERATIONS_MAX: u64 = 30;

/// What the run came to.
pub(super) struct Trained {
    trial: Trial,
    /// Mean probability on illegal actions, 0 to 1.
    illegal_mass: f64,
}

pub(super) async fn train(
    args: &CheckArgs,
    survey: &Survey,
    report: &Report,
    log: &LogArgs,
) -> anyhow::Result<Trained> {
    let (least, most) = ITERATION_GAMES;
    let games = (ITERATION_POSITIONS / survey.plies_per_game()).clamp(least, most) as u32;
    let folder = tempfile::tempdir().context("failed to make a folder for the run")?;
    let run = folder.path().join("run.toml");
    write_atomic(&run, run_file(args, games).as_bytes())?;
    report.begin("training through the whole system");
    let limits = Limits {
        generation: GENERATION,
        games_max: ITERATIONS_MAX * u64::from(games),
    };
    let show = |status: &RunStatus| {
        let steps = status.learner.as_ref().map_or(0, |learner| learner.step);
        report.begin(format!(
            "training through the whole system: {} games, {steps} steps, generation {} of {GENERATION}",
            status.games, status.generation
        ));
    };
    let trial = trial(&run, &folder.path().join("data"), limits, log, show)
        .await
        .context("the run of the whole system failed")?;
    let metadata: serde_json::Value =
        serde_json::from_str(&trial.champion.metadata_json).context("the network's description is no JSON")?;
    let mass = metadata["train_illegal_mass"].as_str().unwrap_or_default();
    let illegal_mass = mass
        .parse()
        .context("the network does not say what it puts on illegal actions")?;
    Ok(Trained { trial, illegal_mass })
}

fn run_file(args: &CheckArgs, games: u32) -> String {
    format!(
        r#"
[run]
name = "check"
game = "{game}"
[network]
blocks = 1
channels = 16
value_hidden = 8
[[schedule]]
from_iteration = 0
games = {games}
simulations = {simulations}
[gate]
kind = "none"
[learner]
batch = 32
window_min_positions = 64
samples_per_position = 2.0
steps_behind_max = 50
[actor]
games = 32
batch_max = 32
[cpu]
learner_threads = 1
actor_threads = 1
"#,
        game = args.game.0.spec().id,
        simulations = args.simulations.max(2),
    )
}

/// The lines on training.
pub(super) fn tell(trained: Option<&Trained>, survey: &Survey, report: &mut Report) {
    let not_measured = || "not measured, as asked (--without-training)".to_owned();
    report.line(
        Group::Training,
        "training reads the data and the next generation loads it",
        trained.map_or_else(not_measured, generations),
    );
    let never = format!(
        "{} of {} actions were legal in no position of {} random games, and an even policy puts {:.1} % on what is illegal; ",
        survey.never_legal(),
        survey.actions(),
        survey.games.len(),
        100.0 * survey.illegal_share(),
    );
    let mass = trained.map_or_else(not_measured, |trained| {
        format!(
            "after {} steps the policy puts {:.2} % there, which is masked before the search sees it",
            trained.trial.champion.step,
            100.0 * trained.illegal_mass
        )
    });
    report.line(
        Group::Training,
        "the policy has no weight on what is always illegal",
        never + &mass,
    );
}

fn generations(trained: &Trained) -> String {
    let status = &trained.trial.status;
    format!(
        "{} games of {} positions by the actor, {} rejected by the coordinator; the learner trained {} steps on them and \
         exported generation {}, the games of generation {} among its data",
        status.games,
        status.positions,
        status.rejected.values().sum::<u64>(),
        trained.trial.champion.step,
        status.generation,
        status.generation.saturating_sub(1),
    )
}
