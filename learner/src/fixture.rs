//! Windows of honest random games, for tests.

use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_records::{Kind, Record, testing};
use tengen_replay::{Split, Window, WindowGame};

use crate::batches::SharedWindow;

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
