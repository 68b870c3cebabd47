//! From arguments to a position: where to begin, and the moves from there.

use serde_json::{Value, json};
use tengen_games::notation::{self, NotationError};
use tengen_games::{Game, Moves, State};

/// A position and how many actions led there from where it began.
pub(super) struct Position<G: Game> {
    pub(super) state: G::State,
    pub(super) plies: usize,
}

/// Why arguments lead to no position.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// `--from` is neither.
    #[error("--from is neither a position ({position}) nor a list of moves ({moves})")]
    From { position: String, moves: NotationError },
    /// A move names nothing or is illegal.
    #[error(transparent)]
    Move(#[from] NotationError),
    /// The count of whole moves begins inside one.
    #[error("the moves end inside a move: --moves counts from the beginning of one")]
    InsideMove,
}

impl Refusal {
    pub(super) fn as_json(&self) -> Value {
        match self {
            Refusal::Move(error) | Refusal::From { moves: error, .. } => json!({
                "ply": error.ply,
                "action": error.action.map(|action| action.0),
                "text": error.word,
                "why": error.why,
                "error": self.to_string(),
            }),
            Refusal::InsideMove => json!({ "error": self.to_string() }),
        }
    }
}

/// Plays `words` from the start or from `from`.
pub(super) fn reach<G: Game>(game: &G, from: Option<&str>, words: &[String]) -> Result<Position<G>, Refusal> {
    let begin = match from {
        Some(from) => begin(game, from)?,
        None => Position {
            state: game.start(),
            plies: 0,
        },
    };
    let words: Vec<&str> = words.iter().flat_map(|word| split(word)).collect();
    let (actions, state) = notation::play(game, &begin.state, &words).map_err(|error| NotationError {
        ply: begin.plies + error.ply,
        ..error
    })?;
    Ok(Position {
        state,
        plies: begin.plies + actions.len(),
    })
}

fn begin<G: Game>(game: &G, from: &str) -> Result<Position<G>, Refusal> {
    let position = match game.parse_position(from) {
        Ok(state) => return Ok(Position { state, plies: 0 }),
        Err(error) => error.why,
    };
    let words: Vec<&str> = split(from).collect();
    match notation::play(game, &game.start(), &words) {
        Ok((actions, state)) => Ok(Position {
            state,
            plies: actions.len(),
        }),
        Err(moves) => Err(Refusal::From { position, moves }),
    }
}

/// One argument may hold several moves, so that a list can be pasted.
fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
}

/// Whole moves are counted from the beginning of one.
pub(super) fn at_turn<G: Game>(game: &G, state: &G::State) -> Result<(), Refusal> {
    if game.moves() == Moves::Actions || state.stage() == 0 {
        Ok(())
    } else {
        Err(Refusal::InsideMove)
    }
}
