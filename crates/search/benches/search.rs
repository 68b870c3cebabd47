//! What a simulation costs beside the network: walk, planes, expansion and backup, with answers that are always the same.
//! One core, 100 simulations a move, trees kept from move to move as in self-play.
//!
//! `make bench BENCH=search`, or `cargo bench --profile dev --workspace --bench search`.

use std::io;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_faults::bench::BenchRows;
use tengen_faults::bench::measure::{Measures, in_lumps};
use tengen_games::{AnyGame, Game, GameVisitor, State};
use tengen_search::{Evaluation, RootNoise, Settings, Tree};

const SIMULATIONS: u32 = 100;
/// How long each game is measured.
const MEASURED: Duration = Duration::from_secs(4);

/// Nanoseconds a simulation.
struct Measure<'a> {
    measures: &'a mut Measures,
    name: &'a str,
}

impl GameVisitor for Measure<'_> {
    type Output = io::Result<Option<f64>>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut planes = vec![0; game.spec().planes_len()];
        let policy = vec![0.0; game.spec().actions.len()];
        let answer = Evaluation {
            policy_logits: &policy,
            wdl_logits: [0.0; 3],
        };
        let mut leaves = Vec::new();
        let begin = || Tree::new(game.clone(), game.start(), Settings::default());
        let mut tree = begin();
        // One move of a game that goes on with the next one: how many simulations it made, and how long it took.
        let mut one_move = || {
            if tree.root().outcome().is_some() {
                tree = begin();
            }
            let begun = Instant::now();
            tree.begin(SIMULATIONS, RootNoise::Dirichlet, &mut rng);
            let reused = tree.root_stats().visits_total;
            while !tree.done() {
                tree.gather(1, &mut leaves);
                for leaf in leaves.drain(..) {
                    leaf.state.planes(&mut planes);
                    tree.apply(leaf.id, &answer).expect("the answer fits the game");
                }
            }
            let simulations = tree.root_stats().visits_total - reused;
            let action = tree.choose(1.0, &mut rng).expect("the game goes on");
            tree.advance(action).expect("a chosen action is legal");
            (u64::from(simulations), begun.elapsed())
        };
        self.measures.median_ns("search", self.name, |bencher| {
            bencher.iter_custom(|wanted| in_lumps(wanted, &mut one_move));
        })
    }
}

fn main() -> io::Result<()> {
    let mut measures = Measures::from_args(MEASURED);
    let rows = BenchRows::of("search")?;
    for (name, game, limit) in [("caro5_15x15", "caro5", 10.0), ("connect_four", "connect-four", 2.0)] {
        let game = AnyGame::parse(game).expect("a registered game");
        let measures = &mut measures;
        if let Some(ns) = game.visit(Measure { measures, name })? {
            let row = format!("search_{name}");
            rows.add_time(&row, ns / 1e3, "microseconds a simulation", limit)?;
        }
    }
    Ok(())
}
