//! Measures training on this machine: `tengen-learner bench`, of which `tengen plan` asks.
//!
//! Games of the window are random ones, which are as much work as real ones; batches come from the sampling thread as in a
//! run. It touches no data folder and no coordinator.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_network::{Shape, random_weights};
use tengen_records::{Kind, testing};
use tengen_replay::{Split, Window, WindowGame};
use tengen_service::run_config::RunConfig;
use tengen_service::usage;

use crate::batches::{Batches, SharedWindow};
use crate::config::LearnerConfig;
use crate::device::{DeviceChoice, device_name};
use crate::trainer::Trainer;

/// Positions of the window that is sampled from.
const POSITIONS: u64 = 4_000;
/// Steps before the measured ones: they make the library's buffers and threads.
const WARM_UP_STEPS: u64 = 5;

/// What to measure.
#[derive(Args, Clone, Debug)]
pub struct BenchArgs {
    /// The run's configuration
    #[arg(long, value_name = "FILE")]
    run: PathBuf,
    /// Steps to measure
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,
    /// auto, cpu or cuda:N; without it the run's configuration decides
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceChoice>,
    /// Threads of the tensor library
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
}

/// What was measured; printed as JSON.
#[derive(Debug, Serialize)]
struct Measured {
    device: String,
    threads: u16,
    batch: u32,
    steps: u64,
    steps_per_second: f64,
    /// Time that the process computed for a step, over all its threads.
    cpu_seconds_per_step: f64,
}

/// Measures and prints.
pub fn run(args: &BenchArgs) -> Result<()> {
    let run = RunConfig::load(&args.run)?;
    let game = AnyGame::parse(&run.run.game).context("run.game")?;
    let config = LearnerConfig::from_sections(&run.learner, &run.export)?;
    tch::set_num_threads(i32::from(args.threads));
    let device = args.device.unwrap_or(config.device).resolve()?;
    let shape = Shape::new(game.spec(), &run.network)?;
    let mut trainer = Trainer::new(&shape, &random_weights(&shape, run.run.seed), config.training, device)?;
    let window = game.visit(Fill);
    let mut batches = Batches::start(&game, window, run.learner.batch as usize, run.run.seed, 0)?;
    let mut begun = (Instant::now(), usage::busy());
    for step in 0..args.steps + WARM_UP_STEPS {
        if step == WARM_UP_STEPS {
            // Reading the losses waits for the device.
            trainer.read_losses()?;
            begun = (Instant::now(), usage::busy());
        }
        let batch = batches.next(u64::MAX)?;
        trainer.train(&batch)?;
        batches.give_back(batch);
    }
    trainer.read_losses()?;
    let steps = args.steps as f64;
    let measured = Measured {
        device: device_name(device),
        threads: args.threads,
        batch: run.learner.batch,
        steps: args.steps,
        steps_per_second: steps / begun.0.elapsed().as_secs_f64(),
        cpu_seconds_per_step: (usage::busy() - begun.1).as_secs_f64() / steps,
    };
    println!("{}", serde_json::to_string(&measured)?);
    Ok(())
}

/// A window of random games.
struct Fill;

impl GameVisitor for Fill {
    type Output = SharedWindow;

    fn visit<G: Game>(self, game: G) -> SharedWindow {
        let capacity = NonZeroU64::new(POSITIONS).expect("it is not 0");
        let mut window = Window::new(capacity, Split::TRAINING_ONLY);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let expected = testing::expected(&game, Kind::SelfPlay, &mut rng);
        for sequence in 1.. {
            let record = testing::random_record(&game, &expected, sequence as u32, &mut rng);
            let positions_total = window.positions_total() + u64::from(record.positions());
            let game = WindowGame {
                sequence,
                positions_total,
                record,
            };
            window.push(&game).expect("sequences ascend");
            if positions_total >= POSITIONS {
                break;
            }
        }
        Arc::new(Mutex::new(window))
    }
}
