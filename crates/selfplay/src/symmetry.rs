//! Which symmetry of the rules a position is evaluated under, and the way there and back.
//!
//! AlphaGo Zero evaluates each leaf under a symmetry drawn at random (Silver et al. 2017, Methods, "Expand and evaluate"),
//! so that what a network gets wrong on one side of the board does not always pull a search to that side. Here the draw is
//! a **pure function of the position**: pseudo-random over positions, and the same whenever the same position is asked
//! for. So a kept answer is the right one for every game, thread and lease that asks again, a game played again is searched
//! the same again, and whoever holds a record can tell which symmetry each root was seen through. A seed of the run or of
//! the game would add nothing to the first and break one of the others.
//!
//! Values belong to the acting seat, which no symmetry changes; the policy is turned back before anybody sees it.

use tengen_games::{Game, State};
use tengen_search::Settings;

use crate::seed::mix;

/// Sets these draws apart from whatever else is made of a position's hash: "symmetry" in ASCII.
const SALT: u64 = 0x7379_6d6d_6574_7279;

/// Index among the game's symmetries of the one that `state` is evaluated under: 0, the identity, unless the settings ask
/// for random ones.
pub fn symmetry_of<G: Game>(game: &G, settings: &Settings, state: &G::State) -> u16 {
    if !settings.random_symmetry {
        return 0;
    }
    drawn(state.hash(), game.spec().symmetries.len())
}

/// One of `count` symmetries. Games stored with it are searched again by it: it never changes.
fn drawn(hash: u64, count: usize) -> u16 {
    ((u128::from(mix(hash ^ SALT)) * count as u128) >> 64) as u16
}

/// Turns the planes of a game's positions as its symmetries say, and policies back, in buffers that are reused.
pub(crate) struct Lens<G> {
    game: G,
    /// A position's planes before they are turned, `[C, H, W]`.
    planes: Vec<u8>,
    /// A policy that was turned back, `[A]`.
    policy: Vec<f32>,
}

impl<G: Game> Lens<G> {
    pub(crate) fn new(game: G) -> Lens<G> {
        Lens {
            planes: vec![0; game.spec().planes_len()],
            policy: vec![0.0; game.spec().actions.len()],
            game,
        }
    }

    /// Turns one position's planes, `[C, H, W]`, to those of its image under the symmetry with this index.
    ///
    /// Planes commute with every symmetry of a game (the conformance suite of `tengen-games` says so), and moving bytes is
    /// cheaper than transforming the state, which takes memory in some games.
    pub(crate) fn turn(&mut self, symmetry: u16, planes: &mut [u8]) {
        if symmetry == 0 {
            return;
        }
        self.planes.copy_from_slice(planes);
        let cells = &self.game.spec().symmetries[usize::from(symmetry)].cells;
        let pairs = self.planes.chunks_exact(cells.len());
        for (from, to) in pairs.zip(planes.chunks_exact_mut(cells.len())) {
            for (&byte, &cell) in from.iter().zip(cells) {
                to[usize::from(cell)] = byte;
            }
        }
    }

    /// The policy `[A]` of a position, of which `policy` is what the network said of its image under this symmetry.
    pub(crate) fn turn_back<'a>(&'a mut self, symmetry: u16, policy: &'a [f32]) -> &'a [f32] {
        if symmetry == 0 {
            return policy;
        }
        let images = &self.game.spec().symmetries[usize::from(symmetry)].actions;
        for (logit, &image) in self.policy.iter_mut().zip(images) {
            *logit = policy[usize::from(image)];
        }
        &self.policy
    }
}

#[cfg(test)]
mod tests {
    use tengen_games::{Action, AnyGame, GameVisitor, registry};

    use super::*;

    #[test]
    fn the_draw_never_changes() {
        // Computed by a program in another language.
        let draws = |count| -> Vec<u16> { (0..12).map(|hash| drawn(hash, count)).collect() };
        assert_eq!(draws(8), [7, 1, 6, 5, 2, 1, 3, 3, 7, 0, 2, 7]);
        assert_eq!(draws(6), [5, 1, 4, 3, 2, 1, 2, 2, 5, 0, 1, 5]);
        assert_eq!(draws(2), [1, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 1]);
        assert_eq!(draws(1), [0; 12]);
        assert_eq!([0, 1, 2, 3].map(|down| drawn(u64::MAX - down, 8)), [1, 4, 2, 5]);
    }

    /// A lens against the game's own way to turn positions, a few plies into a game.
    struct Turned;

    impl GameVisitor for Turned {
        type Output = ();

        fn visit<G: Game>(self, game: G) {
            let spec = game.spec();
            let mut lens = Lens::new(game.clone());
            let mut state = game.start();
            let mut playable = Vec::new();
            for ply in 0..6 {
                state.playable(&mut playable);
                state.apply(playable[(7 * ply + 1) % playable.len()]).unwrap();
                if state.outcome().is_some() {
                    break;
                }
                for (index, symmetry) in spec.symmetries.iter().enumerate() {
                    let image = state.transform(symmetry);
                    let (mut turned, mut expected) = (vec![0; spec.planes_len()], vec![0; spec.planes_len()]);
                    state.planes(&mut turned);
                    lens.turn(index as u16, &mut turned);
                    image.planes(&mut expected);
                    assert_eq!(turned, expected, "{} {}", spec.id, symmetry.name);

                    // What is said of an action of the image is found at the action of the position.
                    let policy: Vec<f32> = (0..spec.actions.len()).map(|action| action as f32).collect();
                    let back = lens.turn_back(index as u16, &policy);
                    for (action, &logit) in back.iter().enumerate() {
                        let there = Action(logit as u16);
                        assert_eq!(state.is_legal(Action(action as u16)), image.is_legal(there));
                        assert_eq!(symmetry.actions[action], there.0);
                    }
                }
            }
        }
    }

    #[test]
    fn planes_and_policies_of_every_game_are_turned_as_its_positions_are() {
        for name in registry::names() {
            AnyGame::parse(name).unwrap().visit(Turned);
        }
    }
}
