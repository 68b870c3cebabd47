//! A search that has grown as large as it gets takes no more memory: not for a walk, not for an expansion, not for a backup.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{AnyGame, Game, GameVisitor, State};
use tengen_search::{Evaluation, Leaf, RootNoise, Settings, Tree};

const SIMULATIONS: u32 = 60;

struct Searches;

impl GameVisitor for Searches {
    /// Allocations within all searches of a game but the first, which is the largest: stones only come, so fewer and fewer
    /// actions are playable.
    type Output = u64;

    fn visit<G: Game>(self, game: G) -> u64 {
        let policy = vec![0.0; game.spec().actions.len()];
        let settings = Settings {
            tree_reuse: false,
            ..Settings::default()
        };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut tree = Tree::new(game.clone(), game.start(), settings);
        let mut leaves: Vec<Leaf<G>> = Vec::new();
        let mut counts = Vec::new();
        while tree.root().outcome().is_none() {
            tree.begin(SIMULATIONS, RootNoise::None, &mut rng);
            let counted = allocation_counter::measure(|| search(&mut tree, &policy, &mut leaves));
            counts.push(counted.count_total);
            let action = tree.choose(1.0, &mut rng).unwrap();
            tree.advance(action).unwrap();
        }
        assert!(counts[0] > 0, "the first search takes its memory");
        counts[1..].iter().sum()
    }
}

fn search<G: Game>(tree: &mut Tree<G>, policy: &[f32], leaves: &mut Vec<Leaf<G>>) {
    let answer = Evaluation {
        policy_logits: policy,
        wdl_logits: [0.0; 3],
    };
    while !tree.done() {
        tree.gather(1, leaves);
        for leaf in leaves.drain(..) {
            tree.apply(leaf.id, &answer).unwrap();
        }
    }
}

#[test]
fn a_search_that_has_its_memory_takes_no_more() {
    for name in ["caro5?size=9&opening=none", "connect-four"] {
        assert_eq!(AnyGame::parse(name).unwrap().visit(Searches), 0, "{name}");
    }
}
