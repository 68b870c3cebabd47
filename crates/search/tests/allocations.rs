//! A tree that has grown as large as it gets takes no more memory: not for its noise, not for a walk, an expansion or a
//! backup, not for a choice, and not for keeping the subtree of what was chosen. Only what it says of its root does.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use allocation_counter::measure;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{AnyGame, Game, GameVisitor, State};
use tengen_search::{Evaluation, Leaf, RootNoise, Settings, Tree};

const SIMULATIONS: u32 = 60;

struct Plies;

impl GameVisitor for Plies {
    /// Allocations of each ply of a game, from the beginning of its search to the next position. The first searches are the
    /// largest: stones only come, so fewer and fewer actions are playable.
    type Output = Vec<u64>;

    fn visit<G: Game>(self, game: G) -> Vec<u64> {
        let policy = vec![0.0; game.spec().actions.len()];
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut tree = Tree::new(game.clone(), game.start(), Settings::default());
        assert!(tree.settings().tree_reuse, "as in self-play");
        let mut leaves: Vec<Leaf<G>> = Vec::new();
        let mut counts = Vec::new();
        while tree.root().outcome().is_none() {
            let searched = measure(|| {
                tree.begin(SIMULATIONS, RootNoise::Dirichlet, &mut rng);
                search(&mut tree, &policy, &mut leaves);
            });
            let told = measure(|| drop(tree.root_stats()));
            assert_eq!(told.count_total, 1, "the list of children");
            let moved = measure(|| {
                let action = tree.choose(1.0, &mut rng).unwrap();
                tree.advance(action).unwrap();
            });
            counts.push(searched.count_total + moved.count_total);
        }
        counts
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
fn a_tree_that_has_its_memory_takes_no_more() {
    for name in ["caro5?size=9&opening=none", "connect-four"] {
        let counts = AnyGame::parse(name).unwrap().visit(Plies);
        // What is kept moves to and fro between two halves, and each has held a whole search after two plies.
        let (first, later) = counts.split_at(2);
        assert!(!first.contains(&0), "{name} takes its memory: {counts:?}");
        assert!(
            later.len() > 2 && later.iter().all(|&count| count == 0),
            "{name}: {counts:?}"
        );
    }
}
