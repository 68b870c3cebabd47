//! The positions of a record as numbers for people who train elsewhere: planes, policy, value, weight.

use std::borrow::Cow;

use tengen_games::{Action, Game, State};

use crate::record::{PlyRecord, Record};
use crate::rejection::{ReasonCode, Rejection};

/// One position.
#[derive(Clone, Debug, PartialEq)]
pub struct Position {
    /// Feature planes as bytes, `u8 [C, H, W]`; the game's spec has the scale of each plane.
    pub planes: Vec<u8>,
    /// The policy to learn, `f32 [A]`: probabilities that sum to 1, 0 for actions that are not legal.
    pub policy: Vec<f32>,
    /// The result from the view of the acting seat: 1, 0 or -1.
    pub value: f32,
    /// How much the position counts.
    pub weight: f32,
}

/// Hands every position of a record of `game` to `each`, in order: the plies that are trained on. A ply without a search, as
/// in games of people, teaches the action that was played.
///
/// # Errors
/// When the record does not replay, or what `each` says.
pub fn each<G: Game, E: From<Rejection>>(
    game: &G,
    record: &Record,
    mut each: impl FnMut(Position) -> Result<(), E>,
) -> Result<(), E> {
    let illegal = |ply, error: tengen_games::IllegalAction| {
        Rejection::new(ReasonCode::IllegalAction, format!("ply {ply}: {error}"))
    };
    let mut state = game.start();
    for (n, &action) in record.opening.iter().enumerate() {
        state.apply(action).map_err(|error| illegal(n, error))?;
    }
    for (n, ply) in record.plies.iter().enumerate() {
        if let Some(target) = target(record, ply) {
            let mut planes = vec![0; game.spec().planes_len()];
            state.planes(&mut planes);
            each(Position {
                planes,
                policy: policy(&target, game.spec().actions.len()),
                value: record.outcome.value_for(ply.seat),
                weight: target.weight,
            })?;
        }
        state
            .apply(ply.action)
            .map_err(|error| illegal(record.opening.len() + n, error))?;
    }
    Ok(())
}

/// What is learned at a ply.
#[derive(Clone, Debug, PartialEq)]
pub struct Target<'a> {
    /// How much the position counts, above 0.
    pub weight: f32,
    /// Probabilities of distinct actions, which sum to 1.
    pub policy: Cow<'a, [(Action, f32)]>,
}

/// What is learned at a ply of `record`, if anything is: what a search found, and where nothing was searched the move that a
/// person played.
pub fn target<'a>(record: &Record, ply: &'a PlyRecord) -> Option<Target<'a>> {
    match &ply.search {
        Some(search) => (search.weight > 0.0).then(|| Target {
            weight: search.weight,
            policy: Cow::Borrowed(&search.policy_target),
        }),
        None => is_taught(record, ply).then(|| Target {
            weight: 1.0,
            policy: Cow::Owned(vec![(ply.action, 1.0)]),
        }),
    }
}

/// Whether a person, or an engine that a file names, chose the ply.
fn is_taught(record: &Record, ply: &PlyRecord) -> bool {
    let player = record
        .players
        .as_ref()
        .and_then(|players| players.get(ply.model.index()));
    matches!(player, Some(crate::player::Player::Human(_)))
}

fn policy(target: &Target, actions: usize) -> Vec<f32> {
    let mut policy = vec![0.0; actions];
    for &(action, probability) in target.policy.iter() {
        if let Some(place) = policy.get_mut(action.index()) {
            *place = probability;
        }
    }
    policy
}
