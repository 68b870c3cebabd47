//! Judges games that come line by line on standard input, for programs that compare these rules with other ones
//! (`make cross-check`).
//!
//! A line is `GAME<tab>ACTION ACTION ...`: a game's text and actions as indexes or as people write them. The answer is
//! one line of JSON: for every position the acting `seat` with its `legal` and `playable` actions, the last one being the
//! position after all actions, then `winner` (a seat, or null) and `reason` (null while the game goes on). An action that
//! is refused ends the answer, which then says so in `refused`.

use std::io::{self, BufRead, Write};

use serde::Serialize;
use tengen_games::{Action, AnyGame, Game, GameVisitor, State};

#[derive(Serialize)]
struct Position {
    seat: usize,
    legal: Vec<u16>,
    playable: Vec<u16>,
}

#[derive(Serialize)]
struct Answer {
    positions: Vec<Position>,
    winner: Option<usize>,
    reason: Option<&'static str>,
    refused: Option<String>,
}

struct Judge<'a>(&'a str);

fn main() -> io::Result<()> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (text, actions) = line.split_once('\t').unwrap_or((&line, ""));
        let game = AnyGame::parse(text).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let answer = game.visit(Judge(actions));
        serde_json::to_writer(&mut output, &answer)?;
        writeln!(output)?;
        output.flush()?;
    }
    Ok(())
}

impl GameVisitor for Judge<'_> {
    type Output = Answer;

    fn visit<G: Game>(self, game: G) -> Answer {
        let mut state = game.start();
        let mut positions = vec![position(&state)];
        let mut refused = None;
        for word in self.0.split_whitespace() {
            let played = game
                .parse_action(word)
                .ok_or_else(|| format!("`{word}` is no action"))
                .and_then(|action| state.apply(action).map_err(|error| error.to_string()));
            if let Err(why) = played {
                refused = Some(why);
                break;
            }
            positions.push(position(&state));
        }
        let outcome = state.outcome();
        Answer {
            positions,
            winner: outcome.and_then(|outcome| outcome.winner).map(|seat| seat.index()),
            reason: outcome.map(|outcome| outcome.reason.as_str()),
            refused,
        }
    }
}

fn position<S: State>(state: &S) -> Position {
    let listed = |list: &dyn Fn(&mut Vec<Action>)| {
        let mut actions = Vec::new();
        list(&mut actions);
        actions.into_iter().map(|action| action.0).collect()
    };
    Position {
        seat: state.seat().index(),
        legal: listed(&|out| state.legal(out)),
        playable: listed(&|out| state.playable(out)),
    }
}
