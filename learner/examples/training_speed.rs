//! Measures training steps per second on this machine: `cargo run --release -p tengen-learner --example training_speed`.
//!
//! Windows are of random games, which are as much work as real ones. Batches come from the sampling thread as in a run, so
//! the numbers include waiting for them.

use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_learner::batches::{Batches, SharedWindow};
use tengen_learner::config::LearnerConfig;
use tengen_learner::device::DeviceChoice;
use tengen_learner::trainer::Trainer;
use tengen_network::{Config, Shape, random_weights};
use tengen_records::{Kind, testing};
use tengen_replay::{Split, Window, WindowGame};
use tengen_service::run_config::LearnerSection;

const BATCH: u32 = 256;
const GAMES: u32 = 400;

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

fn measure(game: &str, blocks: usize, channels: usize, threads: i32, steps: u64) -> anyhow::Result<()> {
    tch::set_num_threads(threads);
    let game = AnyGame::parse(game)?;
    let capacity = NonZeroU64::new(500_000).expect("not zero");
    let window = game.visit(Fill(Window::new(capacity, Split::TRAINING_ONLY)));
    let shape = Shape::new(
        game.spec(),
        &Config {
            blocks,
            channels,
            ..Config::default()
        },
    )?;
    let config = LearnerConfig::from_section(&LearnerSection::default())?;
    let device = DeviceChoice::Auto.resolve()?;
    let mut trainer = Trainer::new(&shape, &random_weights(&shape, 1), config.training, device)?;
    let mut batches = Batches::start(&game, window, BATCH as usize, 1, 0)?;
    let mut waited = 0.0;
    let mut began = Instant::now();
    for step in 0..steps + 5 {
        if step == 5 {
            // The first steps make the library's buffers and threads.
            trainer.read_losses()?;
            (began, waited) = (Instant::now(), 0.0);
        }
        let asked = Instant::now();
        let batch = batches.next(u64::MAX)?;
        waited += asked.elapsed().as_secs_f64();
        trainer.train(&batch)?;
        batches.give_back(batch);
    }
    trainer.read_losses()?;
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{:<14} {blocks}x{channels:<3} batch {BATCH}, {threads} threads, {device:?}: {:6.2} steps/s ({:.1} % of the time \
         spent waiting for batches)",
        game.spec().id,
        steps as f64 / seconds,
        100.0 * waited / seconds,
    );
    Ok(())
}

fn main() -> anyhow::Result<()> {
    for threads in [1, 2] {
        measure("connect-four", 3, 32, threads, 60)?;
        measure("connect-four", 4, 64, threads, 40)?;
        measure("caro5?size=9", 4, 64, threads, 20)?;
    }
    Ok(())
}
