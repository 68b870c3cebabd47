//! The positions of a record as numbers for people who train elsewhere: planes, policy, value, weight.

use tengen_games::{Game, State};

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
        if let Some(weight) = weight(record, ply) {
            let mut planes = vec![0; game.spec().planes_len()];
            state.planes(&mut planes);
            each(Position {
                planes,
                policy: policy(ply, game.spec().actions.len()),
                value: record.outcome.value_for(ply.seat),
                weight,
            })?;
        }
        state
            .apply(ply.action)
            .map_err(|error| illegal(record.opening.len() + n, error))?;
    }
    Ok(())
}

/// How much a ply counts, if it does. Without a search only the moves of people are worth learning.
pub(super) fn weight(record: &Record, ply: &PlyRecord) -> Option<f32> {
    match &ply.search {
        Some(search) => Some(search.weight).filter(|&weight| weight > 0.0),
        None => is_taught(record, ply).then_some(1.0),
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

fn policy(ply: &PlyRecord, actions: usize) -> Vec<f32> {
    let mut policy = vec![0.0; actions];
    match &ply.search {
        Some(search) => {
            for &(action, probability) in &search.policy_target {
                if let Some(place) = policy.get_mut(action.index()) {
                    *place = probability;
                }
            }
        }
        None => {
            if let Some(place) = policy.get_mut(ply.action.index()) {
                *place = 1.0;
            }
        }
    }
    policy
}
