//! Games for this crate's tests.

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::mnk::Mnk;
use tengen_games::{AnyGame, Game};
use tengen_records::{Kind, Record, testing};

pub(crate) fn rng(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

pub(crate) fn tic_tac_toe() -> Mnk {
    match AnyGame::parse("tic-tac-toe") {
        Ok(AnyGame::TicTacToe(game)) => game,
        other => panic!("tic-tac-toe is {other:?}"),
    }
}

/// Honest random self-play records of one lease.
pub(crate) fn records<G: Game>(game: &G, count: usize, seed: u64) -> Vec<Record> {
    let mut rng = rng(seed);
    let expected = testing::expected(game, Kind::SelfPlay, &mut rng);
    (0..count as u32)
        .map(|index| testing::random_record(game, &expected, index, &mut rng))
        .collect()
}
