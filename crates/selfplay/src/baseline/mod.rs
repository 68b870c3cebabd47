//! Players that need no network: yardsticks whose strength does not change while a run learns.
//!
//! Each chooses one action in one position from its game's generator alone. They know the rules and nothing else; a
//! value always belongs to a seat, so runs of actions by one seat are nothing special to them.

mod one_ply;
mod rollout;

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{Action, State};

pub(crate) use one_ply::one_ply;
pub(crate) use rollout::rollout;

/// Any playable action with equal probability; `None` after the end.
pub(crate) fn random<S: State>(state: &S, rng: &mut Xoshiro256PlusPlus, playable: &mut Vec<Action>) -> Option<Action> {
    state.playable(playable);
    (!playable.is_empty()).then(|| playable[rng.random_range(0..playable.len())])
}

/// The playable actions in random order.
fn shuffled<S: State>(state: &S, rng: &mut Xoshiro256PlusPlus) -> Vec<Action> {
    let mut actions = Vec::new();
    state.playable(&mut actions);
    for last in (1..actions.len()).rev() {
        actions.swap(last, rng.random_range(0..=last));
    }
    actions
}
