//! Training in short: a run of the whole system with a tiny network, until its second promotion and until a network that was
//! trained has played.

use anyhow::{Context, ensure};
use tengen_proto::v1::RunStatus;
use tengen_service::args::LogArgs;
use tengen_service::files::write_atomic;

use super::survey::Survey;
use super::{CheckArgs, Group, NOT_TRAINED, Report};
use crate::up::{Limits, Trial, trial};

/// Positions of an iteration, about: few, and enough for a tiny network to learn what is legal.
const ITERATION_POSITIONS: f64 = 3_000.0;
const ITERATION_GAMES: (f64, f64) = (4.0, 200.0);
/// The second promotion: a network that went on from a promoted one.
const GENERATION: u32 = 2;
/// Iterations' worth of games after which training does not keep up. Before a slow learner has come, quick games run far
/// ahead; once it has, self-play waits for it.
const ITERATIONS_MAX: u64 = 500;

/// The parameters of training that a network's description holds, each behind [`PARAMETER_PREFIX`].
const PARAMETERS: [&str; 6] = [
    "batch",
    "samples_per_position",
    "learning_rate",
    "momentum",
    "weight_decay",
    "value_loss_weight",
];
const PARAMETER_PREFIX: &str = "train_";
/// What the run file says of the first of them.
const BATCH: &str = "32";

/// What the run came to.
pub(super) struct Trained {
    trial: Trial,
    /// Mean probability on illegal actions, 0 to 1.
    illegal_mass: f64,
    /// The values of [`PARAMETERS`].
    parameters: Vec<String>,
}

impl Trained {
    /// The training parameters that the champion's description holds.
    pub(super) fn parameters(&self) -> String {
        let pairs = PARAMETERS.iter().zip(&self.parameters);
        let pairs: Vec<String> = pairs
            .map(|(name, value)| format!("{PARAMETER_PREFIX}{name} {value}"))
            .collect();
        format!(
            "the description of generation {} has {}",
            self.trial.status.generation,
            pairs.join(", ")
        )
    }
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
    let parameters = parameters(&metadata)?;
    ensure!(
        parameters[0] == BATCH,
        "the network says it was trained in batches of {}, the run file says {BATCH}",
        parameters[0]
    );
    Ok(Trained {
        trial,
        illegal_mass,
        parameters,
    })
}

/// The values of [`PARAMETERS`] in a network's description.
fn parameters(metadata: &serde_json::Value) -> anyhow::Result<Vec<String>> {
    let value = |name: &&str| {
        let key = format!("{PARAMETER_PREFIX}{name}");
        let value = metadata[&key].as_str().map(str::to_owned);
        value.with_context(|| format!("the network's description has no {key}"))
    };
    PARAMETERS.iter().map(value).collect()
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
batch = {BATCH}
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
    let not_measured = || NOT_TRAINED.to_owned();
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
         exported generation {}; {} games are stored that networks it trained have played",
        status.games,
        status.positions,
        status.rejected.values().sum::<u64>(),
        trained.trial.champion.step,
        status.generation,
        trained.trial.trained_games,
    )
}
