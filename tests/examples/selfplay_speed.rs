//! How much of the hardware's speed self-play reaches, in the whole product: a cluster of real processes plays, and beside
//! it, in turns, the same network runs in ONNX Runtime alone with as many threads and batches as large. `make bench` runs
//! it; a name takes only the scenarios whose names contain it. Beside that: what saved work brings, and whether two processes
//! are as fast as one.
//!
//! The learner stands by and does not train, and nothing is audited: what is measured is the actor with its records and
//! its spool, and the coordinator that checks and stores them, on the same cores. For a network in int8 the learner trains
//! for a moment first, because only a trained network comes in int8, and is paused then.

#![allow(
    clippy::disallowed_methods,
    reason = "a measurement's run file need not survive a crash"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tengen_faults::bench::BenchRows;
use tengen_games::AnyGame;
use tengen_inference::{Outputs, Session, SessionOptions};
use tengen_network::{Config, Metadata, Precision, Shape, random_weights, read_metadata, write_onnx};
use tengen_proto::v1::RunStatus;
use tengen_system_tests::cluster::{Up, tengen_ok};

/// How long ONNX Runtime alone is measured, before and after the product.
const RAW: Duration = Duration::from_secs(8);
/// How long the product is measured.
const PLAYED: Duration = Duration::from_secs(30);
/// Evaluations before the clock starts: every thread has its session, and every game has begun.
const WARM_UP: u64 = 4_000;
/// Time between two looks at the status; reports change it once a second.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What is played.
#[derive(Clone, Copy)]
struct Scenario {
    name: &'static str,
    game: &'static str,
    blocks: usize,
    channels: usize,
    precision: Precision,
    games: u32,
    batch_max: usize,
    /// Evaluations a second that must be reached, as a share of those of ONNX Runtime alone.
    target: f64,
}

const CARO5: Scenario = Scenario {
    name: "selfplay_caro5_4x64_fp32",
    game: "caro5",
    blocks: 4,
    channels: 64,
    precision: Precision::Fp32,
    games: 32,
    batch_max: 16,
    target: 0.95,
};
const CARO5_LARGE: Scenario = Scenario {
    name: "selfplay_caro5_10x128_fp32",
    blocks: 10,
    channels: 128,
    target: 0.97,
    ..CARO5
};
const CONNECT_FOUR: Scenario = Scenario {
    name: "selfplay_connect_four_4x32_fp32",
    game: "connect-four",
    channels: 32,
    games: 64,
    batch_max: 32,
    ..CARO5
};
const SCENARIOS: [Scenario; 5] = [
    CARO5,
    Scenario {
        name: "selfplay_caro5_4x64_int8",
        precision: Precision::Int8,
        ..CARO5
    },
    CARO5_LARGE,
    Scenario {
        name: "selfplay_caro5_10x128_int8",
        precision: Precision::Int8,
        target: 0.95,
        ..CARO5_LARGE
    },
    CONNECT_FOUR,
];

/// Root visits of every search.
const SIMULATIONS: u32 = 100;
/// Evaluations a second of two processes that share the threads, as a share of those of one process with all of them.
const PROCESSES_TARGET: f64 = 0.95;

/// What a cluster did while it was watched.
struct Played {
    evaluations_per_second: f64,
    positions_per_second: f64,
    cache_share: f64,
}

/// Whether work is saved: answers kept, trees kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Saving {
    Off,
    On,
}

/// What a run is for.
#[derive(Clone, Copy)]
enum Part {
    /// Quick games, of which the learner makes a network in the scenario's precision.
    Preparing,
    /// Games that are measured.
    Measured,
}

/// Where a cluster plays, and the file of the network that it plays with.
struct Ground {
    folder: tempfile::TempDir,
    network: Vec<u8>,
}

impl Ground {
    fn run(&self) -> PathBuf {
        self.folder.path().join("run.toml")
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    let only = std::env::args().nth(1).unwrap_or_default();
    tengen_inference::forbid_telemetry();
    tengen_inference::init(None)?;
    let threads = std::thread::available_parallelism()?.get();
    let mut rows = BenchRows::default();
    for scenario in SCENARIOS.iter().filter(|scenario| scenario.name.contains(&only)) {
        let ground = ground(scenario, threads).await?;
        let before = raw(scenario, &ground.network, threads)?;
        let played = play_on(&ground, 1, scenario, threads, Saving::Off).await?;
        let after = raw(scenario, &ground.network, threads)?;
        let ceiling = (before + after) / 2.0;
        let rate = played.evaluations_per_second;
        println!(
            "{}: {rate:.0} evaluations/s, ONNX Runtime alone {before:.0} before and {after:.0} after, {:.2} positions/s",
            scenario.name, played.positions_per_second
        );
        rows.add(scenario.name, rate, "evaluations/s", rate / ceiling, scenario.target);
    }
    if "selfplay_cache_and_tree_reuse".contains(&only) {
        let connect_four = &CONNECT_FOUR;
        let off = play(connect_four, threads, Saving::Off).await?;
        let on = play(connect_four, threads, Saving::On).await?;
        let again = play(connect_four, threads, Saving::Off).await?;
        let without = (off.positions_per_second + again.positions_per_second) / 2.0;
        println!(
            "cache and tree reuse: {:.1} positions/s with, {:.1} and {:.1} without; {:.0} % of the answers from the cache",
            on.positions_per_second,
            off.positions_per_second,
            again.positions_per_second,
            100.0 * on.cache_share
        );
        let ratio = on.positions_per_second / without;
        let value = on.positions_per_second;
        rows.add("selfplay_cache_and_tree_reuse", value, "positions/s", ratio, 1.25);
    }
    if "selfplay_two_processes".contains(&only) {
        let (value, ratio) = two_processes(&CARO5, threads).await?;
        rows.add(
            "selfplay_two_processes",
            value,
            "evaluations/s",
            ratio,
            PROCESSES_TARGET,
        );
    }
    rows.write("selfplay")?;
    Ok(())
}

/// Evaluations a second of two actor processes with half of the threads and of the games each, and how many times as many as
/// one process makes with all of them.
async fn two_processes(scenario: &Scenario, threads: usize) -> anyhow::Result<(f64, f64)> {
    let before = play(scenario, threads, Saving::Off).await?.evaluations_per_second;
    let ground = ground(scenario, threads).await?;
    let two = play_on(&ground, 2, scenario, threads, Saving::Off)
        .await?
        .evaluations_per_second;
    let after = play(scenario, threads, Saving::Off).await?.evaluations_per_second;
    println!("two processes: {two:.0} evaluations/s, one {before:.0} before and {after:.0} after");
    Ok((two, two / ((before + after) / 2.0)))
}

/// A folder in which this scenario can be played at once. In fp32 the coordinator's random network is as good as any; in int8
/// the learner has made a network, and stands by from then on.
async fn ground(scenario: &Scenario, threads: usize) -> anyhow::Result<Ground> {
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
        let mut looks = tokio::time::interval(LOOK_EVERY);
        while !is_played(&up.status().await, scenario.precision) {
            looks.tick().await;
        }
        tengen_ok(["pause", "training", "--coordinator", up.url()]);
        anyhow::ensure!(up.interrupt().0.success(), "the cluster did not drain");
        ground.network = file_in(&ground.data().join("models"), scenario.precision)?;
    }
    Ok(ground)
}

/// Whether every actor plays in this precision.
fn is_played(status: &RunStatus, precision: Precision) -> bool {
    let mut actors = status.actors.iter();
    !status.actors.is_empty() && actors.all(|actor| actor.precision == precision.as_str())
}

/// A network's file in this precision.
fn file_in(folder: &Path, precision: Precision) -> anyhow::Result<Vec<u8>> {
    for entry in fs::read_dir(folder)? {
        let file = fs::read(entry?.path())?;
        if read_metadata(&file).is_ok_and(|metadata| metadata.precision == precision) {
            return Ok(file);
        }
    }
    anyhow::bail!("no network in {} is in {precision}", folder.display())
}

/// Evaluations a second of ONNX Runtime alone on so many threads, each with its session.
fn raw(scenario: &Scenario, network: &[u8], threads: usize) -> anyhow::Result<f64> {
    let options = SessionOptions {
        batch_max: scenario.batch_max,
        ..SessionOptions::default()
    };
    let run = || -> anyhow::Result<f64> {
        let mut session = Session::load(network, &options)?;
        let planes: Vec<u8> = (0..scenario.batch_max * session.planes_len())
            .map(|index| u8::from(index % 3 == 0))
            .collect();
        let mut outputs = Outputs::default();
        let mut run_for = |time: Duration| -> anyhow::Result<f64> {
            let (begun, mut batches) = (Instant::now(), 0u32);
            while begun.elapsed() < time {
                session.run(&planes, scenario.batch_max, &mut outputs)?;
                batches += 1;
            }
            Ok(f64::from(batches) * scenario.batch_max as f64 / begun.elapsed().as_secs_f64())
        };
        run_for(RAW / 8)?;
        run_for(RAW)
    };
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let rates = started
            .into_iter()
            .map(|thread| thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?);
        rates.sum()
    })
}

async fn play(scenario: &Scenario, threads: usize, saving: Saving) -> anyhow::Result<Played> {
    play_on(&ground(scenario, threads).await?, 1, scenario, threads, saving).await
}

/// Plays in so many actor processes, among which games and threads are divided.
async fn play_on(
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
    let mut looks = tokio::time::interval(LOOK_EVERY);
    let everybody_plays = |status: &RunStatus| {
        let playing = status.actors.iter().filter(|actor| actor.evaluations > 0);
        playing.count() == processes as usize && evaluations(status) > WARM_UP
    };
    let begun = next_report(&up, &mut looks, everybody_plays).await;
    tokio::time::sleep(PLAYED).await;
    let ended = next_report(&up, &mut looks, |_| true).await;
    let (status, after) = (&begun.1, &ended.1);
    anyhow::ensure!(
        is_played(after, scenario.precision),
        "the network is not played in {}",
        scenario.precision
    );
    let seconds = (ended.0 - begun.0).as_secs_f64();
    let evaluated = evaluations(after) - evaluations(status);
    let hits = |status: &RunStatus| status.actors.iter().map(|actor| actor.cache_hits).sum::<u64>();
    let found = hits(after) - hits(status);
    let played = Played {
        evaluations_per_second: evaluated as f64 / seconds,
        positions_per_second: (after.positions - status.positions) as f64 / seconds,
        cache_share: found as f64 / (found + evaluated) as f64,
    };
    anyhow::ensure!(up.interrupt().0.success(), "the cluster did not drain");
    Ok(played)
}

fn evaluations(status: &RunStatus) -> u64 {
    status.actors.iter().map(|actor| actor.evaluations).sum()
}

/// The status at the moment at which the first actor has reported and this holds. What the others told last is as old as
/// ever at that moment, because all report equally often.
async fn next_report(
    up: &Up,
    looks: &mut tokio::time::Interval,
    holds: impl Fn(&RunStatus) -> bool,
) -> (Instant, RunStatus) {
    let of_first = |status: &RunStatus| status.actors.first().map_or(0, |actor| actor.evaluations);
    let mut last = of_first(&up.status().await);
    loop {
        looks.tick().await;
        let status = up.status().await;
        let now = of_first(&status);
        if now > last && holds(&status) {
            return (Instant::now(), status);
        }
        last = now;
    }
}

fn run_file(scenario: &Scenario, threads: usize, saving: Saving, part: Part) -> String {
    let Scenario {
        game,
        blocks,
        channels,
        precision,
        games,
        batch_max,
        ..
    } = scenario;
    let (tree_reuse, cache_mib) = match saving {
        Saving::Off => (false, 0),
        Saving::On => (true, 64),
    };
    // A few quick games, and a handful of steps, which a large network takes long for; then games and no end.
    let (games_of_iteration, simulations) = match part {
        Part::Preparing => (8, 2),
        Part::Measured => (1_000_000, SIMULATIONS),
    };
    let (window_min, precisions) = match precision {
        Precision::Fp32 => (400_000, String::new()),
        _ => (300, format!("\"{precision}\"")),
    };
    format!(
        r#"
[run]
name = "bench"
game = "{game}"
[network]
blocks = {blocks}
channels = {channels}
[search]
tree_reuse = {tree_reuse}
[[schedule]]
from_iteration = 0
games = {games_of_iteration}
simulations = {simulations}
[gate]
kind = "none"
[learner]
batch = 32
samples_per_position = 0.1
window_min_positions = {window_min}
[export]
precisions = [{precisions}]
[actor]
precision = "{precision}"
games = {games}
batch_max = {batch_max}
cache_mib = {cache_mib}
device = "cpu"
[cpu]
learner_threads = 1
actor_threads = {threads}
"#
    )
}
