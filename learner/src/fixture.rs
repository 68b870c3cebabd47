//! Windows of honest random games, and networks that were trained on them for a moment, for tests.

use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tch::Device;
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_network::{Config, Shape, random_weights};
use tengen_records::{Kind, Record, testing};
use tengen_replay::{Split, Window, WindowGame};
use tengen_service::run_config::ExportSection;

use crate::batches::{Batches, Positions, SharedWindow};
use crate::config::{LearnerConfig, TrainingConfig};
use crate::trainer::Trainer;
use crate::variants::positions_wanted;

/// Random finished games, the same for the same seed.
pub(crate) fn records(game: &AnyGame, games: u32, seed: u64) -> Vec<Record> {
    struct Random {
        games: u32,
        seed: u64,
    }
    impl GameVisitor for Random {
        type Output = Vec<Record>;
        fn visit<G: Game>(self, game: G) -> Vec<Record> {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.seed);
            let expected = testing::expected(&game, Kind::SelfPlay, &mut rng);
            (0..self.games)
                .map(|index| testing::random_record(&game, &expected, index, &mut rng))
                .collect()
        }
    }
    game.visit(Random { games, seed })
}

/// A window that holds all of these random games.
pub(crate) fn window(game: &AnyGame, games: u32, seed: u64) -> SharedWindow {
    let capacity = NonZeroU64::new(1_000_000).unwrap();
    let mut window = Window::new(capacity, Split::TRAINING_ONLY);
    for (sequence, record) in (1..).zip(records(game, games, seed)) {
        let positions_total = window.positions_total() + u64::from(record.positions());
        window
            .push(&WindowGame {
                sequence,
                positions_total,
                record,
            })
            .unwrap();
    }
    Arc::new(Mutex::new(window))
}

/// How a learner trains by default.
pub(crate) fn training() -> TrainingConfig {
    let config = LearnerConfig::from_sections(&Default::default(), &Default::default());
    config.unwrap().training
}

/// A small network trained for so many steps on so many random games, and positions of them.
pub(crate) fn trained(game: &str, games: u32, steps: u64) -> (Trainer, Positions) {
    tch::set_num_threads(1);
    let game = AnyGame::parse(game).unwrap();
    let config = Config {
        blocks: 2,
        channels: 16,
        value_channels: 8,
        value_hidden: 16,
    };
    let shape = Shape::new(game.spec(), &config).unwrap();
    let mut trainer = Trainer::new(&shape, &random_weights(&shape, 2), training(), Device::Cpu).unwrap();
    let mut batches = Batches::start(&game, window(&game, games, 5), 32, 9, 0).unwrap();
    for _ in 0..steps {
        trainer.train(&batches.next(steps).unwrap()).unwrap();
    }
    let positions = batches.positions(positions_wanted(&ExportSection::default())).unwrap();
    (trainer, positions)
}
