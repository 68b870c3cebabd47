//! Every registered game has a network, whatever its planes and actions.

mod common;

use common::{config, model, session};
use tengen_games::{AnyGame, Game, GameVisitor, State, registry};
use tengen_inference::{Outputs, softmax};
use tengen_network::{Shape, random_weights};

/// Runs the random network on the start position.
struct FirstPosition;

impl GameVisitor for FirstPosition {
    type Output = ();

    fn visit<G: Game>(self, game: G) {
        let spec = game.spec();
        let shape = Shape::new(spec, &config(2, 16)).expect("the game has a network");
        let mut session = session(&model(&shape, &random_weights(&shape, 1)), 2);
        let mut planes = vec![0; spec.planes_len()];
        game.start().planes(&mut planes);
        let mut outputs = Outputs::default();
        session.run(&planes, 1, &mut outputs).expect("the position runs");
        assert_eq!(outputs.policy.len(), spec.actions.len());

        let greatest = softmax(&outputs.policy).into_iter().fold(0.0, f32::max);
        let uniform = 1.0 / spec.actions.len() as f32;
        assert!(
            greatest < 1.5 * uniform,
            "{}: {greatest} where uniform is {uniform}",
            spec.id
        );
    }
}

#[test]
fn the_random_network_plays_every_registered_game() {
    for name in registry::names() {
        AnyGame::parse(name).expect("a registered name").visit(FirstPosition);
    }
}
