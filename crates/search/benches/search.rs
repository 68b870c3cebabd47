//! What a simulation costs beside the network: walk, planes, expansion and backup, with answers that are always the same.
//! One core, 100 simulations a move, trees kept from move to move as in self-play.
//!
//! `make bench`, or `cargo bench --profile dev --workspace --bench search`.

use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_faults::bench::BenchRows;
use tengen_games::{AnyGame, Game, GameVisitor, State};
use tengen_search::{Evaluation, RootNoise, Settings, Tree};

const SIMULATIONS: u32 = 100;
/// A turn goes on until it has taken this long.
const LONG_ENOUGH: Duration = Duration::from_millis(500);
/// What counts is the median of so many turns.
const TURNS: usize = 7;

/// Microseconds a simulation.
struct Measure;

impl GameVisitor for Measure {
    type Output = f64;

    fn visit<G: Game>(self, game: G) -> f64 {
        let mut turns: Vec<f64> = (0..TURNS as u64).map(|turn| play(&game, turn)).collect();
        turns.sort_by(f64::total_cmp);
        turns[TURNS / 2]
    }
}

/// Plays game after game; microseconds a simulation that was made.
fn play<G: Game>(game: &G, seed: u64) -> f64 {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut planes = vec![0; game.spec().planes_len()];
    let policy = vec![0.0; game.spec().actions.len()];
    let answer = Evaluation {
        policy_logits: &policy,
        wdl_logits: [0.0; 3],
    };
    let mut leaves = Vec::new();
    let (mut simulations, mut taken) = (0u64, Duration::ZERO);
    while taken < LONG_ENOUGH {
        let mut tree = Tree::new(game.clone(), game.start(), Settings::default());
        let begun = Instant::now();
        while tree.root().outcome().is_none() {
            tree.begin(SIMULATIONS, RootNoise::Dirichlet, &mut rng);
            let reused = tree.root_stats().visits_total;
            while !tree.done() {
                tree.gather(1, &mut leaves);
                for leaf in leaves.drain(..) {
                    leaf.state.planes(&mut planes);
                    tree.apply(leaf.id, &answer).expect("the answer fits the game");
                }
            }
            simulations += u64::from(tree.root_stats().visits_total - reused);
            let action = tree.choose(1.0, &mut rng).expect("the game goes on");
            tree.advance(action).expect("a chosen action is legal");
        }
        taken += begun.elapsed();
    }
    taken.as_secs_f64() * 1e6 / simulations as f64
}

fn main() -> std::io::Result<()> {
    let mut rows = BenchRows::default();
    for (name, game, limit) in [
        ("search_caro5_15x15", "caro5", 10.0),
        ("search_connect_four", "connect-four", 2.0),
    ] {
        let game = AnyGame::parse(game).expect("a registered game");
        rows.add_time(name, game.visit(Measure), "microseconds a simulation", limit);
    }
    rows.write("search")?;
    Ok(())
}
