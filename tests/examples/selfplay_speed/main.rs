//! How much of the hardware's speed self-play reaches, in the whole product: a cluster of real processes plays, and beside
//! it, in turns, the same network runs in ONNX Runtime alone with as many threads and batches as large. `make bench` runs
//! it; a name takes only the measurements whose names contain it. Beside that: what saved work brings, and whether two
//! processes are as fast as one.
//!
//! The learner stands by and does not train, and nothing is audited: what is measured is the actor with its records and
//! its spool, and the coordinator that checks and stores them, on the same cores. For a network in int8 the learner trains
//! for a moment first, because only a trained network comes in int8, and is paused then.
//!
//! Each row is written as soon as it is measured, and a measurement that fails does not keep the others from being made; the
//! program fails at its end then, and names it.

mod alone;
mod product;
mod scenario;
mod waiting;

use anyhow::ensure;
use tengen_faults::bench::{Attempts, BenchRows};
use tokio::runtime::{self, Runtime};

use product::{ground, play, play_on};
use scenario::{CARO5, CONNECT_FOUR, SCENARIOS, Saving, Scenario};

/// The measurements beside the scenarios.
const SAVING: &str = "selfplay_cache_and_tree_reuse";
const PROCESSES: &str = "selfplay_two_processes";
/// Positions a second with kept answers and kept trees, as a share of those without.
const SAVING_TARGET: f64 = 1.25;
/// Evaluations a second of two processes that share the threads, as a share of those of one process with all of them.
const PROCESSES_TARGET: f64 = 0.95;

fn main() -> anyhow::Result<()> {
    let only = std::env::args().nth(1).unwrap_or_default();
    let wanted = |name: &str| name.contains(&only);
    let mut names = SCENARIOS
        .iter()
        .map(|scenario| scenario.name)
        .chain([SAVING, PROCESSES]);
    ensure!(names.any(wanted), "no measurement has {only:?} in its name");
    tengen_inference::forbid_telemetry();
    tengen_inference::init(None)?;
    let bench = Bench {
        runtime: runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?,
        threads: std::thread::available_parallelism()?.get(),
        rows: BenchRows::of("selfplay")?,
    };
    let mut attempts = Attempts::default();
    for scenario in SCENARIOS.iter().filter(|scenario| wanted(scenario.name)) {
        attempts.make(scenario.name, || bench.beside_onnx_runtime(scenario));
    }
    if wanted(SAVING) {
        attempts.make(SAVING, || bench.saving(&CONNECT_FOUR));
    }
    if wanted(PROCESSES) {
        attempts.make(PROCESSES, || bench.two_processes(&CARO5));
    }
    Ok(attempts.end()?)
}

struct Bench {
    runtime: Runtime,
    threads: usize,
    rows: BenchRows,
}

impl Bench {
    /// The product, and ONNX Runtime alone before and after it.
    fn beside_onnx_runtime(&self, scenario: &Scenario) -> anyhow::Result<()> {
        let threads = self.threads;
        let ground = self.runtime.block_on(ground(scenario, threads))?;
        let alone = || alone::evaluations_per_second(&ground.network, scenario.batch_max, threads);
        let before = alone()?;
        let playing = play_on(&ground, 1, scenario, threads, Saving::Off);
        let played = self.runtime.block_on(playing)?;
        let after = alone()?;
        let rate = played.evaluations_per_second;
        println!(
            "{}: {rate:.0} evaluations/s, ONNX Runtime alone {before:.0} before and {after:.0} after, {:.2} positions/s",
            scenario.name, played.positions_per_second
        );
        let ratio = rate / ((before + after) / 2.0);
        self.rows
            .add(scenario.name, rate, "evaluations/s", ratio, scenario.target)?;
        Ok(())
    }

    /// What kept answers and kept trees bring.
    fn saving(&self, scenario: &Scenario) -> anyhow::Result<()> {
        let play = |saving| self.runtime.block_on(play(scenario, self.threads, saving));
        let off = play(Saving::Off)?.positions_per_second;
        let on = play(Saving::On)?;
        let again = play(Saving::Off)?.positions_per_second;
        let rate = on.positions_per_second;
        println!(
            "cache and tree reuse: {rate:.1} positions/s with, {off:.1} and {again:.1} without; {:.0} % of the answers from the cache",
            100.0 * on.cache_share
        );
        let ratio = rate / ((off + again) / 2.0);
        self.rows.add(SAVING, rate, "positions/s", ratio, SAVING_TARGET)?;
        Ok(())
    }

    /// Two actor processes with half of the threads and of the games each, and one with all of them before and after.
    fn two_processes(&self, scenario: &Scenario) -> anyhow::Result<()> {
        let one = || self.runtime.block_on(play(scenario, self.threads, Saving::Off));
        let before = one()?.evaluations_per_second;
        let ground = self.runtime.block_on(ground(scenario, self.threads))?;
        let playing = play_on(&ground, 2, scenario, self.threads, Saving::Off);
        let two = self.runtime.block_on(playing)?.evaluations_per_second;
        let after = one()?.evaluations_per_second;
        println!("two processes: {two:.0} evaluations/s, one {before:.0} before and {after:.0} after");
        let ratio = two / ((before + after) / 2.0);
        self.rows
            .add(PROCESSES, two, "evaluations/s", ratio, PROCESSES_TARGET)?;
        Ok(())
    }
}
