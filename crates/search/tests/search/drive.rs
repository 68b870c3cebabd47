//! Evaluators for tests and the loop that drives a tree with one of them.

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{Game, State};
use tengen_search::{Evaluation, RootNoise, Tree};

/// Logits that a test evaluator gives for a position.
pub(crate) struct Logits {
    pub(crate) policy: Vec<f32>,
    pub(crate) wdl: [f32; 3],
}

/// Knows nothing: equal logits.
pub(crate) fn uniform<G: Game>(game: &G) -> impl Fn(&G::State) -> Logits + use<G> {
    let actions = game.spec().actions.len();
    move |_| Logits {
        policy: vec![0.0; actions],
        wdl: [0.0; 3],
    }
}

/// Depends on the position's hash alone, without any sense.
pub(crate) fn arbitrary<G: Game>(game: &G) -> impl Fn(&G::State) -> Logits + use<G> {
    let actions = game.spec().actions.len();
    move |state| {
        let mut seed = state.hash();
        let mut logit = || {
            seed = mix(seed);
            (seed >> 40) as f32 / (1 << 23) as f32 - 1.0
        };
        Logits {
            wdl: [logit(), logit(), logit()],
            policy: (0..actions).map(|_| 2.0 * logit()).collect(),
        }
    }
}

/// Knows the exact value (+1, 0, -1 for the acting seat) and nothing of the policy.
pub(crate) fn exact<G: Game, F: FnMut(&G::State) -> i8>(
    game: &G,
    mut value: F,
) -> impl FnMut(&G::State) -> Logits + use<G, F> {
    let actions = game.spec().actions.len();
    move |state| {
        let mut wdl = [-50.0; 3];
        wdl[(1 - value(state)) as usize] = 50.0;
        Logits {
            policy: vec![0.0; actions],
            wdl,
        }
    }
}

/// Searches the root until the tree is done, with up to `leaves_max` leaves outstanding.
pub(crate) fn search<G: Game>(
    tree: &mut Tree<G>,
    simulations: u32,
    noise: RootNoise,
    leaves_max: usize,
    rng: &mut Xoshiro256PlusPlus,
    mut evaluate: impl FnMut(&G::State) -> Logits,
) {
    tree.begin(simulations, noise, rng);
    let mut leaves = Vec::new();
    while !tree.done() {
        tree.gather(leaves_max, &mut leaves);
        assert!(
            !leaves.is_empty() || tree.done(),
            "a search without outstanding leaves makes progress"
        );
        for leaf in leaves.drain(..) {
            assert_eq!(leaf.state.outcome(), None, "a finished game is never evaluated");
            let logits = evaluate(&leaf.state);
            let evaluation = Evaluation {
                policy_logits: &logits.policy,
                wdl_logits: logits.wdl,
            };
            tree.apply(leaf.id, &evaluation).unwrap();
        }
    }
}

pub(crate) fn rng(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// One step of SplitMix64.
pub(crate) fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
