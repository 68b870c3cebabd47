//! How much of the tensor library's speed training reaches: the learner's own loop, with sampling, symmetries, transfer,
//! step and an average of the weights, beside what one would write with the tensor library alone: the same network, its own
//! optimiser, and one batch that is on the device already. `make bench` runs it. The two take turns; what counts is the median
//! of their ratios.
//!
//! Windows are of random games, which are as much work as real ones.

use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tch::{COptimizer, Device, Tensor};
use tengen_faults::bench::BenchRows;
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_learner::batches::{Batches, SharedWindow};
use tengen_learner::config::{LearnerConfig, TrainingConfig};
use tengen_learner::device::DeviceChoice;
use tengen_learner::loss::{Losses, Targets};
use tengen_learner::memory;
use tengen_learner::network::{Mode, Network};
use tengen_learner::optimiser::MomentumForm;
use tengen_learner::parameters::Decay;
use tengen_learner::trainer::Trainer;
use tengen_network::{Config, Shape, random_weights};
use tengen_records::{Kind, testing};
use tengen_replay::{Batch, Split, Window, WindowGame};
use tengen_service::run_config::{ExportSection, LearnerSection};

const BATCH: u32 = 512;
const GAMES: u32 = 400;
/// Turns of either loop.
const TURNS: usize = 5;
/// Steps of a turn, and before the first: they make the library's buffers and threads.
const STEPS: u64 = 6;
const WARM_UP: u64 = 2;

struct Fill(Window);

impl GameVisitor for Fill {
    type Output = SharedWindow;

    fn visit<G: Game>(self, game: G) -> SharedWindow {
        let Fill(mut window) = self;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let expected = testing::expected(&game, Kind::SelfPlay, &mut rng);
        for index in 0..GAMES {
            let record = testing::random_record(&game, &expected, index, &mut rng);
            let positions_total = window.positions_total() + u64::from(record.positions());
            let game = WindowGame {
                sequence: u64::from(index) + 1,
                positions_total,
                record,
            };
            window.push(&game).expect("sequences ascend");
        }
        Arc::new(Mutex::new(window))
    }
}

/// The same network over one fixed batch: nothing but libtorch and its SGD, which has the same constants.
struct Bare {
    network: Network,
    sgd: COptimizer,
    value_loss_weight: f64,
    planes: Tensor,
    targets: Targets,
}

impl Bare {
    fn new(shape: &Shape, config: &TrainingConfig, device: Device, batch: &Batch) -> anyhow::Result<Bare> {
        let network = Network::new(shape, &random_weights(shape, 1), device)?;
        let (rate, constants) = (config.rates.at(0), config.sgd);
        let nesterov = constants.form == MomentumForm::Nesterov;
        let mut sgd = COptimizer::sgd(rate, constants.momentum, 0.0, constants.weight_decay, nesterov)?;
        for (group, decay) in [Decay::Weight, Decay::Exempt].into_iter().enumerate() {
            for parameter in network.parameters().trained_with(decay) {
                sgd.add_parameters(&parameter.value, group)?;
            }
        }
        sgd.set_weight_decay_group(1, 0.0)?;
        let rows = |values: &[f32], width: i64| Tensor::from_slice(values).view([-1, width]).to_device(device);
        Ok(Bare {
            planes: network.planes(&batch.planes)?,
            targets: Targets {
                policy: rows(&batch.policy, shape.actions() as i64),
                wdl: rows(&batch.wdl, 3),
                weight: Tensor::from_slice(&batch.weight).to_device(device),
            },
            network,
            sgd,
            value_loss_weight: config.value_loss_weight,
        })
    }

    /// Steps per second.
    fn run(&self, steps: u64) -> anyhow::Result<f64> {
        let begun = Instant::now();
        let mut last = Tensor::from(0.0f32);
        for _ in 0..steps {
            let losses = Losses::of(&self.network.forward(&self.planes, Mode::Train)?, &self.targets)?;
            self.sgd.zero_grad()?;
            losses.total(self.value_loss_weight)?.f_backward()?;
            self.sgd.step()?;
            last = losses.policy.detach();
        }
        // Reading a number waits for the device.
        anyhow::ensure!(last.double_value(&[]).is_finite(), "training diverged");
        Ok(steps as f64 / begun.elapsed().as_secs_f64())
    }
}

/// Steps per second of the learner's loop.
fn learn(trainer: &mut Trainer, batches: &mut Batches, steps: u64) -> anyhow::Result<f64> {
    let begun = Instant::now();
    for _ in 0..steps {
        let batch = batches.next(u64::MAX)?;
        trainer.train(&batch)?;
        batches.give_back(batch);
    }
    trainer.read_losses()?;
    Ok(steps as f64 / begun.elapsed().as_secs_f64())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Samples a second of the learner, and the median of its ratio to the bare loop.
fn measure(game: &str, blocks: usize, channels: usize, threads: i32) -> anyhow::Result<(f64, f64)> {
    tch::set_num_threads(threads);
    let game = AnyGame::parse(game)?;
    let capacity = NonZeroU64::new(500_000).expect("not zero");
    let window = game.visit(Fill(Window::new(capacity, Split::TRAINING_ONLY)));
    let config = Config {
        blocks,
        channels,
        ..Config::default()
    };
    let shape = Shape::new(game.spec(), &config)?;
    let config = LearnerConfig::from_sections(&LearnerSection::default(), &ExportSection::default())?.training;
    let device = DeviceChoice::Auto.resolve()?;
    let averaging = TrainingConfig {
        ema_decay: Some(0.999),
        ..config.clone()
    };
    let mut trainer = Trainer::new(&shape, &random_weights(&shape, 1), averaging, device)?;
    let mut batches = Batches::start(&game, window, BATCH as usize, 1, 0)?;
    let bare = Bare::new(&shape, &config, device, &batches.next(u64::MAX)?)?;
    bare.run(WARM_UP)?;
    learn(&mut trainer, &mut batches, WARM_UP)?;
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        turns.push((bare.run(STEPS)?, learn(&mut trainer, &mut batches, STEPS)?));
    }
    let ratio = median(turns.iter().map(|(bare, learned)| learned / bare).collect());
    let samples = |steps: f64| steps * f64::from(BATCH);
    let learned = samples(median(turns.iter().map(|turn| turn.1).collect()));
    println!(
        "{:<14} {blocks}x{channels:<3} batch {BATCH}, {threads} threads, {device:?}: {learned:.0} samples/s, bare {:.0}: {ratio:.3}",
        game.spec().id,
        samples(median(turns.iter().map(|turn| turn.0).collect())),
    );
    Ok((learned, ratio))
}

fn main() -> anyhow::Result<()> {
    memory::keep();
    // As in the learner, a thread of its own trains.
    let training = std::thread::spawn(measure_all);
    training.join().map_err(|_| anyhow::anyhow!("the thread panicked"))?
}

fn measure_all() -> anyhow::Result<()> {
    let cores = std::thread::available_parallelism()?.get();
    let threads = i32::try_from(cores)?;
    let rows = BenchRows::of("learner")?;
    let (learned, ratio) = measure("caro5", 4, 64, threads)?;
    rows.add("learner_caro5_4x64", learned, "samples/s", ratio, 0.95)?;
    // What two cores of the usual kind are to reach.
    rows.add("learner_caro5_4x64_samples", learned, "samples/s", learned / 520.0, 1.0)?;
    measure("connect-four", 4, 64, 1)?;
    Ok(())
}
