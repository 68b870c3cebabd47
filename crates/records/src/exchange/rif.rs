//! `.rif`: games of renju as RenjuNet's database holds them, in XML.
//!
//! A list of `game` elements with their `move`s as `h8 h9 i10`, rows from the bottom. No schema is published: attributes
//! that are not known here are passed over. RenjuNet's own data may not be used online or passed on: none of it is here.

use roxmltree::{Document, Node};
use tengen_games::{Action, AnyGame};

use super::stones::Board;
use super::{Colour, ImportError, Imported, Names, Reader, Stated, SyntaxError, Transcript, shown};
use crate::rejection::{ReasonCode, Rejection};

const FORMAT: &str = "rif";
/// What RenjuNet's games are, when no other game is named. Openings, and with them swaps, have been played out.
const GAME_DEFAULT: &str = "renju";

pub(super) fn import(reader: &mut Reader, bytes: &[u8]) -> Vec<Imported> {
    let whole = |error: ImportError, line: usize| {
        vec![Imported {
            label: "the file".to_owned(),
            line,
            record: Err(error),
        }]
    };
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let error = SyntaxError::at(bytes, error.valid_up_to(), "no UTF-8");
            let line = error.line;
            return whole(error.into(), line);
        }
    };
    let document = match Document::parse(text.trim_start_matches('\u{feff}')) {
        Ok(document) => document,
        Err(error) => {
            let pos = error.pos();
            let line = pos.row as usize;
            let error = SyntaxError {
                line,
                column: pos.col as usize,
                what: error.to_string(),
            };
            return whole(error.into(), line);
        }
    };
    let board = reader.game_or(GAME_DEFAULT).map_err(ImportError::from);
    let board = match board.and_then(|game| Ok((Board::of(&game, FORMAT)?, game))) {
        Ok(board) => board,
        Err(error) => return whole(error, 1),
    };
    let games = document
        .root_element()
        .children()
        .filter(|node| node.has_tag_name("games"));
    let games = games
        .flat_map(|games| games.children())
        .filter(|node| node.has_tag_name("game"));
    games
        .enumerate()
        .map(|(n, node)| Imported {
            label: match node.attribute("id") {
                Some(id) => format!("game {}", shown(id)),
                None => format!("game {}", n + 1),
            },
            line: document.text_pos_at(node.range().start).row as usize,
            record: transcript(&document, node, &board.0, &board.1)
                .and_then(|transcript| reader.record(&board.1, &transcript)),
        })
        .collect()
}

fn transcript(
    document: &Document<'_>,
    node: Node<'_, '_>,
    board: &Board,
    game: &AnyGame,
) -> Result<Transcript, ImportError> {
    if board.swap2 {
        let detail = format!(
            "the format has no choices of colour: name the rules without an opening ({})",
            super::sgf::without_opening(&game.spec().id)
        );
        return Err(Rejection::new(ReasonCode::Opening, detail).into());
    }
    let fault = |at: usize, what: String| {
        let pos = document.text_pos_at(at);
        SyntaxError {
            line: pos.row as usize,
            column: pos.col as usize,
            what,
        }
    };
    let moves = node.children().find(|child| child.has_tag_name("move"));
    let begin = moves.map_or(node.range().start, |moves| moves.range().start);
    let text = moves.and_then(|moves| moves.text()).unwrap_or_default();
    let mut actions = Vec::new();
    for word in text.split_whitespace() {
        let action = point(word, board);
        let what = || {
            format!(
                "{:?} is no point of a board of {size}x{size}",
                shown(word),
                size = board.size
            )
        };
        actions.push(action.ok_or_else(|| fault(begin, what()))?);
    }
    if actions.is_empty() {
        return Err(Rejection::new(ReasonCode::Unfinished, "the game has no moves").into());
    }
    let stated = match node.attribute("bresult").map(str::trim) {
        Some("1") => Some(Stated::Colour(Colour::First)),
        Some("0") => Some(Stated::Colour(Colour::Second)),
        Some("0.5") => Some(Stated::Draw),
        None | Some("") => None,
        Some(other) => {
            let what = format!("bresult is 1, 0.5 or 0, not {:?}", shown(other));
            return Err(fault(node.range().start, what).into());
        }
    };
    let name = |colour: &str| node.attribute(colour).unwrap_or_default().to_owned();
    Ok(Transcript {
        game_id: game.spec().id.clone(),
        opening_plies: 0,
        actions,
        stated,
        names: Names::Colours([name("black"), name("white")]),
        seed: 0,
        created_unix_ms: 0,
        duration_ms: 0,
    })
}

/// The stone on a point like `h8`: column letter, row from the bottom.
fn point(word: &str, board: &Board) -> Option<Action> {
    let letter = word
        .chars()
        .next()
        .filter(char::is_ascii_alphabetic)?
        .to_ascii_lowercase();
    let digits = &word[1..];
    let row: usize = digits
        .parse()
        .ok()
        .filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    let y = board.size.checked_sub(row).filter(|_| row > 0)?;
    board.stone(letter as usize - 'a' as usize, y)
}

#[cfg(test)]
mod tests {
    use tengen_games::{Reason, Seat};

    use super::*;

    /// Written by hand: nothing of RenjuNet's.
    const FILE: &str = r#"<?xml version="1.0"?>
<database source="hand"><games>
  <game id="1" rule="1" black="1" white="2" bresult="1" opening="1"><move>h8 h9 i10 g7</move></game>
  <game id="2" rule="1" black="ann" white="bert" bresult="0.5" time="7"><board/><move>h8  h9
 a1</move></game>
  <game id="3" black="1" white="2" bresult="0"><move></move></game>
  <game id="4" black="1" white="2" bresult="0"><move>h8 h8</move></game>
  <game id="5" black="1" white="2" bresult="0"><move>h8 p1</move></game>
  <game id="6" black="1" white="2" bresult="x"><move>h8</move></game>
</games></database>"#;

    #[test]
    fn games_are_read_and_those_that_are_none_are_named() {
        let read = import(&mut Reader::new(None), FILE.as_bytes());
        let labels: Vec<&str> = read.iter().map(|game| &game.label[..]).collect();
        assert_eq!(labels, ["game 1", "game 2", "game 3", "game 4", "game 5", "game 6"]);
        let first = read[0].record.as_ref().unwrap();
        assert_eq!(first.outcome.winner, Some(Seat::FIRST));
        assert_eq!(first.plies[0].action, Action(7 * 15 + 7));
        let second = read[1].record.as_ref().unwrap();
        assert_eq!(
            (second.outcome.reason, second.plies[2].action),
            (Reason::MoveLimit, Action(14 * 15))
        );
        let refused = |n: usize| read[n].record.as_ref().unwrap_err().to_string();
        assert!(refused(2).contains("no moves"));
        assert!(refused(3).contains("ply 1 (h8)"), "{}", refused(3));
        assert!(refused(4).starts_with("line 8, column"), "{}", refused(4));
        assert!(refused(5).contains("bresult"));
        assert_eq!(
            read.iter().map(|game| game.line).collect::<Vec<_>>(),
            [3, 4, 6, 7, 8, 9]
        );
    }

    #[test]
    fn what_is_no_xml_says_where() {
        let refused = |text: &[u8]| {
            import(&mut Reader::new(None), text)
                .remove(0)
                .record
                .unwrap_err()
                .to_string()
        };
        assert!(refused(b"").starts_with("line 1, column 1"));
        assert!(refused(b"<a>\n<b></a>").starts_with("line 2, column"));
        assert!(refused(b"<a>\n\xff</a>").starts_with("line 2, column 1: no UTF-8"));
    }
}
