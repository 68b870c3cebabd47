//! Laws that hold for every game, evaluator and way of driving the tree.

use proptest::prelude::*;
use tengen_games::{Game, State};
use tengen_search::{RootNoise, RootStats, Settings, Tree, policy_target};

use crate::drive::{arbitrary, rng, search};
use crate::thicket::Thicket;
use crate::toy::Toy;

fn tree_of(seed: u64, settings: Settings) -> Tree<Toy<Thicket>> {
    let game = Thicket::game(seed, 6);
    Tree::new(game.clone(), game.start(), settings)
}

fn grown(seed: u64, simulations: u32, leaves_max: usize, noise: RootNoise) -> Tree<Toy<Thicket>> {
    let mut tree = tree_of(seed, Settings::default());
    search(
        &mut tree,
        simulations,
        noise,
        leaves_max,
        &mut rng(seed),
        arbitrary(&Thicket::game(seed, 6)),
    );
    tree
}

/// Checks the root and, through [`Tree::advance`], every visited position below it.
fn check_everywhere<G: Game>(tree: &Tree<G>) {
    let stats = tree.root_stats();
    let mut legal = Vec::new();
    tree.root().legal(&mut legal);
    let parts = [stats.root_wdl.win, stats.root_wdl.draw, stats.root_wdl.loss];
    assert!(
        parts.iter().all(|part| (-1e-5..=1.0 + 1e-5).contains(part)),
        "{stats:?}"
    );
    assert!((parts.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{stats:?}");
    if let Some(outcome) = tree.root().outcome() {
        assert!(stats.children.is_empty());
        assert_eq!(stats.root_wdl.value(), outcome.value_for(tree.root().seat()));
        return;
    }
    assert!(stats.children.iter().map(|child| child.action).eq(legal), "{stats:?}");
    let visits: u32 = stats.children.iter().map(|child| child.visits).sum();
    assert_eq!(stats.visits_total, visits + 1, "the first visit is the position's own");
    let priors: f32 = stats.children.iter().map(|child| child.prior).sum();
    assert!((priors - 1.0).abs() < 1e-5, "{stats:?}");
    let sum: f32 = stats.children.iter().map(|child| child.q * child.visits as f32).sum();
    let mean = (stats.net_wdl.value() + sum) / stats.visits_total as f32;
    assert!((mean - stats.root_wdl.value()).abs() < 1e-4, "{stats:?}");
    for child in stats.children.iter().filter(|child| child.visits > 0) {
        let mut below = tree.clone();
        below.advance(child.action).unwrap();
        let stats = below.root_stats();
        assert_eq!((stats.visits_total, stats.visits_reused), (child.visits, child.visits));
        let sign = if below.root().seat() == tree.root().seat() {
            1.0
        } else {
            -1.0
        };
        assert!((sign * stats.root_wdl.value() - child.q).abs() < 1e-5);
        check_everywhere(&below);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn statistics_add_up_at_every_node(seed: u64, simulations in 1..200_u32, leaves_max in 1..40_usize, noisy: bool) {
        let noise = if noisy { RootNoise::Dirichlet } else { RootNoise::None };
        let tree = grown(seed, simulations, leaves_max, noise);
        prop_assert_eq!(tree.root_stats().visits_total, simulations);
        check_everywhere(&tree);
        let target: f32 = policy_target(&tree.root_stats()).iter().map(|&(_, share)| share).sum();
        prop_assert!((target - 1.0).abs() < 1e-5);
        prop_assert!(tree.root_stats().prior_kl().is_finite());
    }

    #[test]
    fn outstanding_leaves_are_distinct_and_leave_no_trace(seed: u64, leaves_max in 2..40_usize) {
        let mut tree = grown(seed, 60, leaves_max, RootNoise::None);
        let before = tree.dump(9);
        tree.begin(200, RootNoise::None, &mut rng(0));
        let mut leaves = Vec::new();
        tree.gather(leaves_max, &mut leaves);
        tree.gather(leaves_max, &mut leaves);
        let mut hashes: Vec<_> = leaves.iter().map(|leaf| leaf.state.hash()).collect();
        hashes.sort_unstable();
        hashes.dedup();
        prop_assert_eq!(hashes.len(), leaves.len());
        let terminal_visits = tree.root_stats().visits_total - 60;
        tree.begin(200, RootNoise::None, &mut rng(0));
        prop_assert!(!tree.dump(9).contains("outstanding"));
        if terminal_visits == 0 {
            // Positions reached but not evaluated are listed as fresh ones.
            let after: Vec<_> = tree.dump(9).lines().filter(|line| !line.ends_with("fresh")).map(str::to_owned).collect();
            prop_assert_eq!(after, before.lines().map(str::to_owned).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_same_seed_grows_the_same_tree(seed: u64, simulations in 1..200_u32, leaves_max in 1..9_usize) {
        let [first, second] = [(); 2].map(|()| grown(seed, simulations, leaves_max, RootNoise::Dirichlet));
        prop_assert_eq!(first.dump(9), second.dump(9));
        prop_assert_eq!(first.choose(1.0, &mut rng(seed)), second.choose(1.0, &mut rng(seed)));
    }

    #[test]
    fn reuse_counts_kept_visits_and_searches_only_the_rest(seed: u64, leaves_max in 1..9_usize) {
        let mut tree = grown(seed, 150, leaves_max, RootNoise::Dirichlet);
        let action = tree.choose(0.0, &mut rng(0)).unwrap();
        let kept = tree.root_stats().children.iter().find(|child| child.action == action).unwrap().visits;
        tree.advance(action).unwrap();
        let mut evaluations = 0;
        let evaluate = arbitrary(&Thicket::game(seed, 6));
        search(&mut tree, 100, RootNoise::Dirichlet, leaves_max, &mut rng(1), |state| {
            evaluations += 1;
            evaluate(state)
        });
        let stats = tree.root_stats();
        prop_assert_eq!(stats.visits_reused, kept);
        prop_assert_eq!(stats.visits_total, kept.max(100));
        prop_assert!(evaluations <= 100_u32.saturating_sub(kept));
        check_everywhere(&tree);
    }

    #[test]
    fn noise_changes_the_search_but_not_the_stored_priors(seed: u64) {
        let [plain, noisy] = [RootNoise::None, RootNoise::Dirichlet].map(|noise| grown(seed, 100, 1, noise).root_stats());
        let priors = |stats: &RootStats| stats.children.iter().map(|child| child.prior).collect::<Vec<_>>();
        prop_assert_eq!(priors(&plain), priors(&noisy));
        prop_assert_eq!(plain.net_wdl, noisy.net_wdl);
    }
}

#[test]
fn noise_is_redrawn_on_a_reused_root() {
    let mut differ = 0;
    for seed in 0..20 {
        let game = Thicket::game(seed, 6);
        let [first, second] = [1, 2].map(|noise_seed| {
            let mut tree = grown(seed, 20, 1, RootNoise::None);
            search(
                &mut tree,
                100,
                RootNoise::Dirichlet,
                1,
                &mut rng(noise_seed),
                arbitrary(&game),
            );
            tree.root_stats()
        });
        assert_eq!((first.visits_reused, second.visits_reused), (20, 20));
        differ += u32::from(first != second);
    }
    assert!(differ >= 10, "only {differ} of 20 searches felt the noise");
}

#[test]
fn a_budget_of_one_is_the_policy_alone() {
    let game = Thicket::game(3, 6);
    let mut tree = grown(3, 1, 8, RootNoise::Dirichlet);
    let stats = tree.root_stats();
    assert_eq!((stats.visits_total, stats.root_wdl), (1, stats.net_wdl));
    assert!(stats.children.iter().all(|child| child.visits == 0));
    assert_eq!(stats.prior_kl(), 0.0);
    let greatest = stats
        .children
        .iter()
        .max_by(|a, b| a.prior.total_cmp(&b.prior))
        .unwrap();
    assert_eq!(tree.choose(0.0, &mut rng(0)), Some(greatest.action));
    // And it costs exactly one evaluation.
    tree = Tree::new(game.clone(), game.start(), Settings::default());
    let mut evaluations = 0;
    search(&mut tree, 1, RootNoise::None, 8, &mut rng(0), |state| {
        evaluations += 1;
        arbitrary(&game)(state)
    });
    assert_eq!(evaluations, 1);
}

#[test]
fn without_reuse_every_search_starts_from_nothing() {
    let settings = Settings {
        tree_reuse: false,
        ..Settings::default()
    };
    let game = Thicket::game(3, 6);
    let mut tree = Tree::new(game.clone(), game.start(), settings);
    search(&mut tree, 100, RootNoise::None, 1, &mut rng(0), arbitrary(&game));
    tree.advance(tree.choose(0.0, &mut rng(0)).unwrap()).unwrap();
    assert_eq!(tree.root_stats().visits_total, 0);
}

#[test]
fn temperature_draws_in_proportion_to_visits() {
    let tree = grown(3, 150, 1, RootNoise::None);
    let stats = tree.root_stats();
    let mut rng = rng(9);
    let mut draws = vec![0_u32; stats.children.len()];
    for _ in 0..20_000 {
        let action = tree.choose(1.0, &mut rng).unwrap();
        draws[stats.children.iter().position(|child| child.action == action).unwrap()] += 1;
    }
    for (child, drawn) in stats.children.iter().zip(draws) {
        let expected = f64::from(child.visits) / 149.0;
        assert!(
            (f64::from(drawn) / 20_000.0 - expected).abs() < 0.02,
            "{child:?} drawn {drawn} times"
        );
    }
    let most = stats.children.iter().max_by_key(|child| child.visits).unwrap();
    assert_eq!(
        tree.choose(0.001, &mut rng),
        Some(most.action),
        "a tiny temperature does not overflow"
    );
}
