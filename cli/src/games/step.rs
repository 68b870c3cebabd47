//! Stepping through a game in the terminal: a position, what the search said there, and the next key.

use std::io::{BufRead, Write};

use anyhow::Context;
use tengen_games::{Action, Game, GameVisitor, State};
use tengen_records::exchange::game_of;
use tengen_records::{PlyRecord, Record, SearchBlock};

/// Actions of a search that are told.
const TOLD_ACTIONS_MAX: usize = 5;

/// Steps through `record`: Enter goes on, `b` back, a number to that ply, `q` ends.
pub(super) fn through(record: &Record, keys: &mut dyn BufRead, screen: &mut dyn Write) -> anyhow::Result<()> {
    game_of(record)?.visit(Steps { record, keys, screen })
}

struct Steps<'a> {
    record: &'a Record,
    keys: &'a mut dyn BufRead,
    screen: &'a mut dyn Write,
}

impl GameVisitor for Steps<'_> {
    type Output = anyhow::Result<()>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let Steps { record, keys, screen } = self;
        let states = states(&game, record)?;
        let mut at = 0;
        loop {
            write!(screen, "{}", page(&game, record, &states[at], at))?;
            let end = at + 1 == states.len();
            let hint = if end {
                "b back, q quit"
            } else {
                "Enter on, b back, N to ply N, q quit"
            };
            write!(screen, "[ply {at} of {}] {hint}: ", states.len() - 1)?;
            screen.flush()?;
            let mut key = String::new();
            if keys.read_line(&mut key).context("failed to read the terminal")? == 0 {
                writeln!(screen)?;
                return Ok(());
            }
            match key.trim() {
                "q" => return Ok(()),
                "b" => at = at.saturating_sub(1),
                "" => at = (at + 1).min(states.len() - 1),
                other => match other.parse::<usize>() {
                    Ok(ply) if ply < states.len() => at = ply,
                    _ => writeln!(screen, "{other:?} is none of these")?,
                },
            }
        }
    }
}

/// The position before every ply and the last one.
fn states<G: Game>(game: &G, record: &Record) -> anyhow::Result<Vec<G::State>> {
    let mut states = vec![game.start()];
    for (n, action) in record.actions().enumerate() {
        let mut next = states[n].clone();
        next.apply(action)
            .with_context(|| format!("ply {n} of the record is not legal"))?;
        states.push(next);
    }
    Ok(states)
}

/// One position: the board, and what is played there.
fn page<G: Game>(game: &G, record: &Record, state: &G::State, at: usize) -> String {
    let mut text = format!("\n{}", state.draw());
    if let Some(action) = record.actions().nth(at) {
        let text_of = game.action_text(action);
        text += &format!("{} plays {text_of}", state.seat());
        match at.checked_sub(record.opening.len()) {
            None => text += " (given)",
            Some(ply) => text += &told(game, &record.plies[ply]),
        }
        text.push('\n');
    }
    text
}

/// What the search of a ply says, in one or two lines.
fn told<G: Game>(game: &G, ply: &PlyRecord) -> String {
    let Some(search) = &ply.search else {
        return " (no search)".to_owned();
    };
    let listed = |entries: Vec<(Action, String)>| {
        let entries = entries.into_iter().take(TOLD_ACTIONS_MAX);
        let words: Vec<String> = entries
            .map(|(action, number)| format!("{} {number}", game.action_text(action)))
            .collect();
        words.join(", ")
    };
    format!(
        ", {} visits, value {:+.3} (network {:+.3}), weight {}\n  visits {}\n  priors {}",
        search.visits_total,
        search.root_wdl[0] - search.root_wdl[2],
        search.net_wdl[0] - search.net_wdl[2],
        search.weight,
        listed(most_visited(search)),
        listed(
            search
                .net_policy_top
                .iter()
                .map(|&(action, prior)| (action, format!("{prior:.3}")))
                .collect()
        ),
    )
}

fn most_visited(search: &SearchBlock) -> Vec<(Action, String)> {
    let mut visits = search.visits.clone();
    visits.sort_by_key(|&(action, visits)| (std::cmp::Reverse(visits), action));
    visits
        .into_iter()
        .map(|(action, visits)| (action, visits.to_string()))
        .collect()
}

#[cfg(test)]
mod tests {
    use tengen_games::AnyGame;
    use tengen_records::exchange::{Format, Reader};

    use super::*;

    fn screen(keys: &str) -> String {
        let text = "(;FF[4]GM[4]SZ[15]RU[gomoku-freestyle]RE[B+Resign];B[hh];W[ih])";
        let mut reader = Reader::new(Some(AnyGame::parse("gomoku-freestyle").unwrap()));
        let record = reader.read(Format::Sgf, text.as_bytes()).remove(0).record.unwrap();
        let mut screen = Vec::new();
        through(&record, &mut keys.as_bytes(), &mut screen).unwrap();
        String::from_utf8(screen).unwrap()
    }

    fn plies(screen: &str) -> Vec<&str> {
        let prompts = screen.split("[ply ").skip(1);
        prompts
            .map(|prompt| prompt.split(' ').next().unwrap_or_default())
            .collect()
    }

    #[test]
    fn keys_move_through_the_game_and_its_end_stays() {
        assert_eq!(plies(&screen("\n\n\nb\n0\nq\n")), ["0", "1", "2", "2", "1", "0"]);
        assert_eq!(plies(&screen("")), ["0"], "the end of the input ends it");
        assert_eq!(plies(&screen("9\nx\n")), ["0", "0", "0"]);
        assert!(screen("q\n").contains("seat 0 plays h8 (no search)"));
    }
}
