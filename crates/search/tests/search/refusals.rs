//! What the tree does with input that it cannot use.

use tengen_games::{Action, Game};
use tengen_search::{Evaluation, EvaluationError, RootNoise, Settings, Tree};

use crate::drive::{rng, search, uniform};
use crate::script::Place::{Act, Drawn, Won};
use crate::script::{Place, Script};

const GAME: &[Place] = &[Act(0, &[1, 2]), Act(1, &[3]), Won(0), Drawn];

fn fresh() -> Tree<impl Game> {
    let game = Script::game(GAME);
    Tree::new(game.clone(), game.start(), Settings::default())
}

#[test]
fn a_bad_evaluation_is_refused_and_the_leaf_waits_for_a_better_one() {
    let mut tree = fresh();
    tree.begin(1, RootNoise::None, &mut rng(0));
    let mut leaves = Vec::new();
    tree.gather(1, &mut leaves);
    let id = leaves[0].id;
    let good = [0.0; 4];
    let apply = |tree: &mut Tree<_>, policy_logits: &[f32], wdl_logits| {
        tree.apply(
            id,
            &Evaluation {
                policy_logits,
                wdl_logits,
            },
        )
    };
    assert_eq!(
        apply(&mut tree, &[0.0; 3], [0.0; 3]),
        Err(EvaluationError::PolicyLength { got: 3, expected: 4 })
    );
    let infinite = EvaluationError::PolicyNotFinite {
        action: Action(1),
        logit: f32::INFINITY,
    };
    assert_eq!(
        apply(&mut tree, &[0.0, f32::INFINITY, 0.0, 0.0], [0.0; 3]),
        Err(infinite)
    );
    assert!(matches!(
        apply(&mut tree, &good, [0.0, f32::NAN, 0.0]),
        Err(EvaluationError::WdlNotFinite(_))
    ));
    assert!(!tree.done());
    // The logits of illegal actions do not matter.
    assert_eq!(apply(&mut tree, &[0.0, 0.0, f32::NAN, f32::INFINITY], [0.0; 3]), Ok(()));
    assert!(tree.done());
    assert_eq!(tree.root_stats().children.len(), 2);
}

#[test]
fn a_late_evaluation_is_ignored() {
    let mut tree = fresh();
    let evaluation = Evaluation {
        policy_logits: &[0.0; 4],
        wdl_logits: [0.0; 3],
    };
    let mut leaves = Vec::new();
    tree.begin(8, RootNoise::None, &mut rng(0));
    tree.gather(4, &mut leaves);
    assert_eq!(leaves.len(), 1, "nothing but the root can be evaluated first");
    tree.begin(8, RootNoise::None, &mut rng(0));
    assert_eq!(tree.apply(leaves[0].id, &evaluation), Ok(()));
    assert_eq!(tree.root_stats().visits_total, 0);
    tree.gather(4, &mut leaves);
    tree.advance(Action(0)).unwrap();
    for leaf in &leaves {
        assert_eq!(tree.apply(leaf.id, &evaluation), Ok(()));
    }
    assert_eq!(tree.root_stats().visits_total, 0);
}

#[test]
fn an_illegal_action_leaves_the_tree_as_it_is() {
    let game = Script::game(GAME);
    let mut tree = Tree::new(game.clone(), game.start(), Settings::default());
    search(&mut tree, 20, RootNoise::None, 1, &mut rng(0), uniform(&game));
    let before = tree.dump(9);
    assert_eq!(tree.advance(Action(3)).unwrap_err().action, Action(3));
    assert_eq!(tree.dump(9), before);
}

#[test]
fn a_finished_game_is_searched_without_evaluations_and_has_no_action() {
    let mut tree = fresh();
    tree.advance(Action(1)).unwrap();
    tree.begin(5, RootNoise::Dirichlet, &mut rng(0));
    let mut leaves = Vec::new();
    tree.gather(3, &mut leaves);
    assert!(leaves.is_empty() && tree.done());
    // After the end the seat to act is the second, which has lost.
    assert_eq!(tree.root_stats().root_wdl.loss, 1.0);
    assert_eq!(tree.choose(0.0, &mut rng(0)), None);
    assert_eq!(tree.choose(1.0, &mut rng(0)), None);
    assert!(tree.advance(Action(0)).is_err());
}

#[test]
fn an_unsearched_tree_says_so() {
    let tree = fresh();
    assert!(tree.done());
    assert_eq!(tree.choose(0.0, &mut rng(0)), None);
    let stats = tree.root_stats();
    assert_eq!(
        (stats.visits_total, stats.children.len(), stats.root_wdl.draw),
        (0, 0, 1.0)
    );
}
