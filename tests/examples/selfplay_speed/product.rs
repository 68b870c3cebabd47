//! The product: a cluster of real processes that plays while it is watched.

#![allow(
    clippy::disallowed_methods,
    reason = "a measurement's run file need not survive a crash"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use tengen_games::AnyGame;
use tengen_network::{Config, Metadata, Precision, Shape, random_weights, read_metadata, write_onnx};
use tengen_proto::v1::RunStatus;
use tengen_system_tests::cluster::{Up, is_alive, tengen_ok};

use crate::scenario::{Part, Saving, Scenario, run_file};
use crate::waiting::Watch;

/// How long the product is measured.
const PLAYED: Duration = Duration::from_secs(30);
/// Evaluations before the clock starts: every thread has its session, and every game has begun.
const WARM_UP: u64 = 4_000;
/// How long after the first trained network one is to be played in the reduced precision. Until its lease of the random one
/// ends, which is sized for a minute and a half, an actor meets none.
const TAKEN_MAX: Duration = Duration::from_secs(6 * 60);
/// How long it may take until there are so many of the largest network, and until a report is there. Both are many times what a
/// slow machine takes.
const PREPARED_MAX: Duration = Duration::from_secs(30 * 60);
const REPORTED_MAX: Duration = Duration::from_secs(15 * 60);

/// Where a cluster plays, and the file of the network that it plays with.
pub(crate) struct Ground {
    folder: tempfile::TempDir,
    pub(crate) network: Vec<u8>,
}

impl Ground {
    fn run(&self) -> PathBuf {
        self.folder.path().join("run.toml")
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
}

/// What a cluster did while it was watched.
pub(crate) struct Played {
    pub(crate) evaluations_per_second: f64,
    pub(crate) positions_per_second: f64,
    pub(crate) cache_share: f64,
}

/// A folder in which this scenario can be played at once. In fp32 the coordinator's random network is as good as any; in int8
/// the learner has made a network, and stands by from then on.
pub(crate) async fn ground(scenario: &Scenario, threads: usize) -> anyhow::Result<Ground> {
    let folder = tempfile::tempdir()?;
    let game = AnyGame::parse(scenario.game)?;
    let config = Config {
        blocks: scenario.blocks,
        channels: scenario.channels,
        ..Config::default()
    };
    let shape = Shape::new(game.spec(), &config)?;
    let network = write_onnx(&shape, &random_weights(&shape, 1), &Metadata::of_shape(&shape))?;
    let mut ground = Ground { folder, network };
    if scenario.precision != Precision::Fp32 {
        fs::write(ground.run(), run_file(scenario, threads, Saving::Off, Part::Preparing))?;
        let up = Up::start(&ground.run(), &ground.data(), &[]);
        let trained = trained(&up, &ground.data(), scenario.precision).await;
        ended(up, trained)?;
        ground.network = file_in(&ground.data().join("models"), scenario.precision)?;
    }
    Ok(ground)
}

/// Waits until every actor plays a trained network in this precision, and ends the training.
async fn trained(up: &Up, data: &Path, precision: Precision) -> anyhow::Result<()> {
    let what = format!("a trained network that is played in {precision}");
    let mut first = None;
    Watch::of(up, data)
        .until(&what, PREPARED_MAX, |status| {
            if is_played(status, precision) {
                return Ok(Some(()));
            }
            if first.is_none() && status.generation > 0 {
                first = Some(Instant::now());
            }
            if let (Some(first), Some(why)) = (first, fell_back(status))
                && first.elapsed() > TAKEN_MAX
            {
                bail!("none is after {} generations: {why}", status.generation);
            }
            Ok(None)
        })
        .await?;
    tengen_ok(["pause", "training", "--coordinator", up.url()]);
    Ok(())
}

/// Drains a cluster, whatever came of what it was started for.
fn ended<T>(up: Up, outcome: anyhow::Result<T>) -> anyhow::Result<T> {
    if !is_alive(up.id()) {
        return outcome.and_then(|_| bail!("`tengen up` has ended"));
    }
    let drained = up.interrupt().0.success();
    let outcome = outcome?;
    ensure!(drained, "the cluster did not drain");
    Ok(outcome)
}

/// Whether every actor plays in this precision.
fn is_played(status: &RunStatus, precision: Precision) -> bool {
    let mut actors = status.actors.iter();
    !status.actors.is_empty() && actors.all(|actor| actor.precision == precision.as_str())
}

/// Why an actor plays in fp32 although it is to play in another precision.
fn fell_back(status: &RunStatus) -> Option<&str> {
    let mut reasons = status.actors.iter().map(|actor| actor.precision_fell_back.as_str());
    reasons.find(|reason| !reason.is_empty())
}

/// A network's file in this precision.
fn file_in(folder: &Path, precision: Precision) -> anyhow::Result<Vec<u8>> {
    for entry in fs::read_dir(folder)? {
        let file = fs::read(entry?.path())?;
        if read_metadata(&file).is_ok_and(|metadata| metadata.precision == precision) {
            return Ok(file);
        }
    }
    bail!("no network in {} is in {precision}", folder.display())
}

pub(crate) async fn play(scenario: &Scenario, threads: usize, saving: Saving) -> anyhow::Result<Played> {
    play_on(&ground(scenario, threads).await?, 1, scenario, threads, saving).await
}

/// Plays in so many actor processes, among which games and threads are divided.
pub(crate) async fn play_on(
    ground: &Ground,
    processes: u32,
    scenario: &Scenario,
    threads: usize,
    saving: Saving,
) -> anyhow::Result<Played> {
    let of_each = Scenario {
        games: scenario.games / processes,
        ..*scenario
    };
    fs::write(ground.run(), run_file(&of_each, threads, saving, Part::Measured))?;
    let actors = processes.to_string();
    let more = ["--actors", actors.as_str()];
    let up = Up::start_with(&ground.run(), &ground.data(), &more, &[("AUDIT__SHARE", "0")]);
    let played = watched(&up, &ground.data(), processes, scenario.precision).await;
    ended(up, played)
}

/// What a cluster of so many actors does in a while, once all of them play.
async fn watched(up: &Up, data: &Path, processes: u32, precision: Precision) -> anyhow::Result<Played> {
    let mut watch = Watch::of(up, data);
    let in_precision = |status: &RunStatus| {
        ensure!(
            is_played(status, precision),
            "the network is not played in {precision}: {}",
            fell_back(status).unwrap_or("no reason is told")
        );
        Ok(true)
    };
    let (begun, before) = next_report(&mut watch, "every actor's first evaluations", |status| {
        let playing = status.actors.iter().filter(|actor| actor.evaluations > 0);
        let everybody_plays = playing.count() == processes as usize && evaluations(status) > WARM_UP;
        Ok(everybody_plays && in_precision(status)?)
    })
    .await?;
    tokio::time::sleep(PLAYED).await;
    let (ended, after) = next_report(&mut watch, "the report that ends the measuring", in_precision).await?;
    let seconds = (ended - begun).as_secs_f64();
    let evaluated = evaluations(&after) - evaluations(&before);
    let hits = |status: &RunStatus| status.actors.iter().map(|actor| actor.cache_hits).sum::<u64>();
    let found = hits(&after) - hits(&before);
    Ok(Played {
        evaluations_per_second: evaluated as f64 / seconds,
        positions_per_second: (after.positions - before.positions) as f64 / seconds,
        cache_share: found as f64 / (found + evaluated) as f64,
    })
}

fn evaluations(status: &RunStatus) -> u64 {
    status.actors.iter().map(|actor| actor.evaluations).sum()
}

/// The status at the moment at which the first actor has reported and this holds. What the others told last is as old as
/// ever at that moment, because all report equally often.
async fn next_report(
    watch: &mut Watch<'_>,
    what: &str,
    mut holds: impl FnMut(&RunStatus) -> anyhow::Result<bool>,
) -> anyhow::Result<(Instant, RunStatus)> {
    let mut last = None;
    watch
        .until(what, REPORTED_MAX, |status| {
            let now = status.actors.first().map_or(0, |actor| actor.evaluations);
            let reported = last.replace(now).is_some_and(|last| now > last);
            Ok((reported && holds(status)?).then(|| (Instant::now(), status.clone())))
        })
        .await
}
