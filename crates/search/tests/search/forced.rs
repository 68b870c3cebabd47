//! Searches where the wanted action is not to be had: taken cells, forbidden points, and blocks that the rules forbid.
//! Engines have looped or answered with a taken cell there; a search ends, and with a playable action.

use tengen_games::{Action, AnyGame, Game, GameVisitor, State, notation, random_opening, registry};
use tengen_search::{RootNoise, Settings, Tree};

use crate::drive::{Logits, rng, search};

/// Gives every action that is not playable all the probability there is.
fn stubborn<G: Game>(game: &G) -> impl Fn(&G::State) -> Logits + use<G> {
    let actions = game.spec().actions.len();
    move |state| {
        let mut policy = vec![30.0; actions];
        playable(state).iter().for_each(|action| policy[action.index()] = -30.0);
        Logits { policy, wdl: [0.0; 3] }
    }
}

fn playable<S: State>(state: &S) -> Vec<Action> {
    let mut playable = Vec::new();
    state.playable(&mut playable);
    playable
}

/// Searches `state` with that evaluator, checks the root's children and returns the choice.
fn choice<G: Game>(game: &G, state: &G::State, simulations: u32) -> Action {
    let mut tree = Tree::new(game.clone(), state.clone(), Settings::default());
    search(
        &mut tree,
        simulations,
        RootNoise::Dirichlet,
        4,
        &mut rng(3),
        stubborn(game),
    );
    let allowed = playable(state);
    let children = tree.root_stats().children;
    assert!(
        children.iter().all(|child| allowed.contains(&child.action)),
        "{}",
        state.draw()
    );
    let chosen = tree.choose(0.0, &mut rng(0)).unwrap();
    assert!(allowed.contains(&chosen), "{chosen} in\n{}", state.draw());
    chosen
}

struct NeverUnplayable;

impl GameVisitor for NeverUnplayable {
    type Output = ();

    fn visit<G: Game>(self, game: G) {
        let mut rng = rng(9);
        for _ in 0..6 {
            let mut state = game.start();
            for action in random_opening(&game, 80, &mut rng) {
                state.apply(action).unwrap();
            }
            choice(&game, &state, 60);
        }
    }
}

#[test]
fn no_policy_makes_a_search_choose_what_is_not_playable() {
    for name in registry::names() {
        AnyGame::parse(name).unwrap().visit(NeverUnplayable);
    }
}

/// Black to move in renju after these points: which legal ones are forbidden, and what a search plays.
struct Renju {
    points: &'static str,
    forbidden: &'static [&'static str],
}

impl GameVisitor for Renju {
    type Output = String;

    fn visit<G: Game>(self, game: G) -> String {
        let points: Vec<&str> = self.points.split_whitespace().collect();
        let (_, state) = notation::play(&game, &game.start(), &points).unwrap();
        let mut legal = Vec::new();
        state.legal(&mut legal);
        let allowed = playable(&state);
        legal.retain(|action| !allowed.contains(action));
        let forbidden: Vec<String> = legal.into_iter().map(|action| game.action_text(action)).collect();
        assert_eq!(forbidden, self.forbidden, "{}", state.draw());
        game.action_text(choice(&game, &state, 400))
    }
}

#[test]
fn a_search_ends_where_the_wanted_point_is_forbidden() {
    let played = AnyGame::parse("renju").unwrap().visit(Renju {
        points: "h8 g6 f6 g5 f7 g4 h7 g3 g2 a1",
        forbidden: &["g7"],
    });
    assert_ne!(played, "g7");
}

/// White has four in a row, and the one point that would stop the fifth is a double-three: black has lost, but has to
/// play something, and a forbidden stone is not it.
#[test]
fn a_search_ends_where_the_only_block_is_forbidden() {
    let played = AnyGame::parse("renju").unwrap().visit(Renju {
        points: "h9 i9 h10 j10 g8 k11 m13 a1 f8 l12",
        forbidden: &["h8"],
    });
    assert_ne!(played, "h8");
}
