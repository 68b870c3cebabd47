//! Games as people write them: a list of words, each a whole move, an action or an action's index, against the list of
//! actions that records hold. Both ways lose nothing.
//!
//! In a game of staged moves a word is a whole move (`d1-d4-a4`). Where a list breaks off inside a move, or the turn is
//! to be given stage by stage, a word that ends in a dash names single actions (`d1-`, `d1-d4-`).

use crate::game::{Action, Game, Moves, State};

/// A list of words that is no game.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ply {ply}: {word}: {why}")]
pub struct NotationError {
    /// Number of actions before the refused one.
    pub ply: usize,
    /// The word as given.
    pub word: String,
    /// The refused action, where the word names one.
    pub action: Option<Action>,
    /// What is wrong.
    pub why: String,
}

/// The actions that `words` name, played from `start`, and where they lead.
///
/// # Errors
/// The first word that names nothing or an action that is illegal there.
pub fn play<G: Game>(game: &G, start: &G::State, words: &[&str]) -> Result<(Vec<Action>, G::State), NotationError> {
    let mut state = start.clone();
    let mut actions = Vec::new();
    for &word in words {
        let refused = |ply, action, why: String| NotationError {
            ply,
            word: word.to_owned(),
            action,
            why,
        };
        let Some(named) = named(game, &state, word) else {
            return Err(refused(actions.len(), None, unknown(game, &state)));
        };
        for action in named {
            if let Err(error) = state.apply(action) {
                return Err(refused(actions.len(), Some(action), error.why.to_owned()));
            }
            actions.push(action);
        }
    }
    Ok((actions, state))
}

/// The words for `actions`, which are legal in this order from `start`: one for each move.
pub fn words<G: Game>(game: &G, start: &G::State, actions: &[Action]) -> Vec<String> {
    let mut state = start.clone();
    let mut words = Vec::new();
    let mut rest = actions;
    while !rest.is_empty() {
        let before = state.clone();
        let (len, whole) = play_move(game, &mut state, rest);
        let (now, later) = rest.split_at(len.max(1));
        let whole_move = whole && before.stage() == 0 && game.moves() == Moves::Staged;
        words.push(if whole_move {
            game.move_text(&before, now)
        } else {
            stages_text(game, now)
        });
        rest = later;
    }
    words
}

/// Plays the first move of `actions`: how many they are, and whether the move is finished.
fn play_move<G: Game>(game: &G, state: &mut G::State, actions: &[Action]) -> (usize, bool) {
    let turn = state.turn();
    for (played, &action) in actions.iter().enumerate() {
        if state.apply(action).is_err() {
            return (played, false);
        }
        if game.moves() == Moves::Actions || state.turn() != turn {
            return (played + 1, true);
        }
    }
    (actions.len(), false)
}

/// Single actions: one text, or in games of staged moves several with a dash behind each.
fn stages_text<G: Game>(game: &G, actions: &[Action]) -> String {
    match (game.moves(), actions) {
        (Moves::Actions, [action]) => game.action_text(*action),
        _ => actions.iter().map(|&action| game.action_text(action) + "-").collect(),
    }
}

/// The actions that a word names in `state`.
fn named<G: Game>(game: &G, state: &G::State, word: &str) -> Option<Vec<Action>> {
    if let (Moves::Staged, Some(stages)) = (game.moves(), word.strip_suffix('-')) {
        return stages.split('-').map(|text| game.parse_action(text)).collect();
    }
    let whole = (state.stage() == 0).then(|| game.parse_move(state, word)).flatten();
    whole.or_else(|| game.parse_action(word).map(|action| vec![action]))
}

/// Says what a word could have been, by the example of the first legal move.
fn unknown<G: Game>(game: &G, state: &G::State) -> String {
    let mut next = state.clone();
    let mut example = Vec::new();
    let mut legal = Vec::new();
    loop {
        next.legal(&mut legal);
        let Some(&action) = legal.first() else {
            break;
        };
        example.push(action);
        if game.moves() == Moves::Actions || next.apply(action).is_err() || next.turn() != state.turn() {
            break;
        }
    }
    let text = match (game.moves(), example.as_slice()) {
        (_, []) => return "the game is over".to_owned(),
        (Moves::Staged, moves) if state.stage() == 0 => game.move_text(state, moves),
        (_, [action, ..]) => game.action_text(*action),
    };
    let actions = game.spec().actions.len();
    format!("no move of this position: expected one like {text}, or an index below {actions}")
}
