//! Games in the formats of other programs: round trips, conflicts, and spoilt files; beside them spoilt texts of positions
//! and moves.

mod conflicts;
mod round_trips;
mod sgf;
mod spoilt;
mod texts;

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_records::{Kind, Player, Record, testing};

/// Games of five in a row of every kind.
const FIVE: [&str; 10] = [
    "caro5",
    "caro5?size=9",
    "caro5?size=7&edge=open",
    "caro5?opening=none",
    "caro5?size=8&history=6",
    "gomoku-freestyle?size=9",
    "gomoku-standard?size=6&opening=swap2",
    "caro?size=9",
    "renju?size=9",
    "renju?size=7&opening=swap2",
];

fn game(id: &str) -> AnyGame {
    AnyGame::parse(id).expect("a known game")
}

/// Honest random records of a game: self-play, matches and rating games.
fn records(id: &str, each: u32, seed: u64) -> Vec<Record> {
    struct Play(u32, u64);
    impl GameVisitor for Play {
        type Output = Vec<Record>;
        fn visit<G: Game>(self, game: G) -> Vec<Record> {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.1);
            let mut records = Vec::new();
            for kind in [Kind::SelfPlay, Kind::Match] {
                let lease = testing::expected(&game, kind, &mut rng);
                records.extend((0..self.0).map(|n| testing::random_record(&game, &lease, n % 8, &mut rng)));
            }
            let players: [Player; 2] = ["rollout:50", "human:ann"].map(|text| text.parse().expect("a player"));
            let lease = testing::rated(testing::expected(&game, Kind::Match, &mut rng), players);
            records.extend((0..self.0).map(|n| testing::random_record(&game, &lease, n % 8, &mut rng)));
            records
        }
    }
    game(id).visit(Play(each, seed))
}
