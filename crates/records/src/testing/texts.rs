//! What position texts and lists of words promise, whatever text they are given.
//!
//! The body of the fuzz targets `parse_position` and `play_words` (folder `fuzz/`), here so that ordinary tests run it too.
//! An input is a digit that picks a game, and the text.

use rand::Rng;
use tengen_games::{AnyGame, Game, GameVisitor, State, notation, random_opening};

/// The games that have a text for positions.
const OF_POSITIONS: [&str; 4] = ["amazons?size=4", "amazons", "ataxx", "xiangqi"];
/// Small games of every notation.
const OF_WORDS: [&str; 8] = [
    "tic-tac-toe",
    "connect-four",
    "caro5?size=5",
    "hex?size=3",
    "go?size=3",
    "amazons?size=4",
    "ataxx",
    "xiangqi",
];
/// Honest inputs of each game, and most plies of each.
const HONEST: usize = 10;
const PLIES_MAX: u32 = 40;
const WORDS_PLIES_MAX: u32 = 6;

/// What a text is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// A position, `Game::parse_position`.
    Position,
    /// A list of moves from the start, `notation::play`.
    Words,
}

/// The games whose texts are tried.
#[derive(Debug)]
pub struct Texts {
    text: Text,
    games: Vec<AnyGame>,
}

impl Texts {
    /// The same every time.
    ///
    /// # Panics
    /// When a game of the list is unknown.
    pub fn new(text: Text) -> Texts {
        let names = match text {
            Text::Position => &OF_POSITIONS[..],
            Text::Words => &OF_WORDS[..],
        };
        let games = names.iter().map(|name| AnyGame::parse(name).expect("a known game"));
        Texts {
            text,
            games: games.collect(),
        }
    }

    /// Whether an input is a position or a list of moves.
    ///
    /// # Panics
    /// When one that is read breaks a promise: it says the same when it is written and read again, and a position that goes
    /// on has legal actions, which can be played.
    pub fn judge(&self, input: &[u8]) -> bool {
        let [game, text @ ..] = input else {
            return false;
        };
        let game = &self.games[usize::from(game.wrapping_sub(b'0')) % self.games.len()];
        game.visit(Judge(self.text, &String::from_utf8_lossy(text)))
    }

    /// Inputs to begin from, each of a random game.
    pub fn honest<R: Rng>(&self, rng: &mut R) -> Vec<Vec<u8>> {
        let mut inputs = Vec::new();
        for (n, game) in self.games.iter().enumerate() {
            for _ in 0..HONEST {
                inputs.push(format!("{n}{}", game.visit(Honest(self.text, &mut *rng))).into_bytes());
            }
        }
        inputs
    }
}

struct Judge<'a>(Text, &'a str);

impl GameVisitor for Judge<'_> {
    type Output = bool;

    fn visit<G: Game>(self, game: G) -> bool {
        match self.0 {
            Text::Position => is_position(&game, self.1),
            Text::Words => are_words(&game, self.1),
        }
    }
}

fn is_position<G: Game>(game: &G, text: &str) -> bool {
    let Ok(state) = game.parse_position(text) else {
        return false;
    };
    let written = game.position_text(&state).expect("a position lies between moves");
    assert_eq!(game.parse_position(&written).as_ref(), Ok(&state), "{written}");
    let mut legal = Vec::new();
    state.legal(&mut legal);
    assert_eq!(legal.is_empty(), state.outcome().is_some(), "{written}");
    for &action in legal.first().into_iter().chain(legal.last()) {
        let mut next = state.clone();
        assert_eq!(next.apply(action), Ok(()), "{written}");
    }
    let mut planes = vec![0; game.spec().planes_len()];
    state.planes(&mut planes);
    true
}

fn are_words<G: Game>(game: &G, text: &str) -> bool {
    let start = game.start();
    let words: Vec<&str> = text.split_whitespace().collect();
    match notation::play(game, &start, &words) {
        Ok(played) => {
            let written = notation::words(game, &start, &played.0);
            let again: Vec<&str> = written.iter().map(String::as_str).collect();
            assert_eq!(notation::play(game, &start, &again), Ok(played), "{text}");
            true
        }
        Err(error) => {
            assert!(words.contains(&error.word.as_str()), "{error}: {text}");
            false
        }
    }
}

struct Honest<'a, R>(Text, &'a mut R);

impl<R: Rng> GameVisitor for Honest<'_, R> {
    type Output = String;

    fn visit<G: Game>(self, game: G) -> String {
        let Honest(text, rng) = self;
        let mut state = game.start();
        match text {
            Text::Words => {
                let actions = random_opening(&game, WORDS_PLIES_MAX, rng);
                notation::words(&game, &state, &actions).join(" ")
            }
            Text::Position => {
                let mut last = game.position_text(&state);
                for action in random_opening(&game, PLIES_MAX, rng) {
                    state.apply(action).expect("openings are legal");
                    // Inside a move there is no text.
                    last = game.position_text(&state).or(last);
                }
                last.expect("the start has a text")
            }
        }
    }
}
