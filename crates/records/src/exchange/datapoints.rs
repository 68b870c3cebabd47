//! Datapoints: a position a line, as AlphaGomoku stores them: the moves so far, the best move, who won.
//!
//! `112,127,113;98;0`: cells divided by commas, the best move, and the winner: 0 black, 1 white, 2 a draw. A cell's number
//! is its column times the size of the board plus its row **from the bottom**. There colours begin with black and alternate;
//! here results belong to seats: they are converted at this border and nowhere else.

use tengen_games::{AnyGame, Game, GameVisitor, State};

use super::stones::{Board, Kind};
use super::{
    Colour, ExportError, ImportError, Imported, Names, Reader, Stated, SyntaxError, Transcript, game_of, positions,
    shown,
};
use crate::record::{PlyRecord, Record};
use crate::rejection::{ReasonCode, Rejection};

const FORMAT: &str = "datapoints";
/// What the format's own program plays.
const GAME_DEFAULT: &str = "gomoku-freestyle";

/// One line, as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datapoint {
    /// The moves so far.
    pub moves: Vec<u16>,
    /// The best move.
    pub best: u16,
    /// Who won the game.
    pub winner: Winner,
}

/// Who won, as the format counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Winner {
    /// 0; from black's view -1.
    Black,
    /// 1; from black's view +1.
    White,
    /// 2.
    Draw,
}

impl Winner {
    const ALL: [Winner; 3] = [Winner::Black, Winner::White, Winner::Draw];

    fn number(self) -> usize {
        Winner::ALL.iter().position(|&winner| winner == self).unwrap_or(0)
    }
}

impl std::fmt::Display for Datapoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let moves: Vec<String> = self.moves.iter().map(u16::to_string).collect();
        write!(f, "{};{};{}", moves.join(","), self.best, self.winner.number())
    }
}

/// Reads one line.
///
/// # Errors
/// Offset in the line and what is wrong there.
pub fn parse_line(line: &str) -> Result<Datapoint, (usize, String)> {
    let mut parts = line.split(';');
    let (moves, best, winner) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let (Some(best), Some(winner), None) = (best, winner, parts.next()) else {
        return Err((
            0,
            "expected moves, the best move and the winner, divided by `;`".to_owned(),
        ));
    };
    let mut offset = 0;
    let mut cell = |text: &str| {
        let at = offset;
        offset += text.len() + 1;
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse::<u16>().ok().filter(|_| plain);
        number.ok_or_else(|| (at, format!("{:?} is no number of a cell", shown(text))))
    };
    let moves_len = moves.len();
    let moves: Vec<u16> = match moves {
        "" => Vec::new(),
        moves => moves.split(',').map(&mut cell).collect::<Result<_, _>>()?,
    };
    let number = cell(best).map_err(|(_, what)| (moves_len + 1, what))?;
    let offset = moves_len + best.len() + 2;
    let winner = match winner {
        "0" => Winner::Black,
        "1" => Winner::White,
        "2" => Winner::Draw,
        other => {
            return Err((
                offset,
                format!("the winner is 0 (black), 1 (white) or 2 (draw), not {:?}", shown(other)),
            ));
        }
    };
    Ok(Datapoint {
        moves,
        best: number,
        winner,
    })
}

impl Board {
    /// A cell's number here for its place.
    fn number(&self, x: usize, y: usize) -> u16 {
        (x * self.size + (self.size - 1 - y)) as u16
    }

    fn action(&self, number: u16) -> Option<tengen_games::Action> {
        let (x, from_bottom) = (usize::from(number) / self.size, usize::from(number) % self.size);
        self.stone(x, self.size - 1 - from_bottom)
    }
}

/// The positions of a record, one a line: those that are trained on, once colours are fixed and the first stone lies. The best move is the most probable one of the policy target,
/// without a search the one that was played.
///
/// # Errors
/// For games of other families, and for records that do not replay.
pub fn export(record: &Record) -> Result<String, ExportError> {
    let game = game_of(record)?;
    let board = Board::of(&game, FORMAT)?;
    Ok(game.visit(Lines { record, board })?)
}

struct Lines<'a> {
    record: &'a Record,
    board: Board,
}

impl GameVisitor for Lines<'_> {
    type Output = Result<String, Rejection>;

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let Lines { record, board } = self;
        let winner = match record.outcome.winner {
            None => Winner::Draw,
            Some(seat) if seat == Colour::First.seat(record.roles) => Winner::Black,
            Some(_) => Winner::White,
        };
        let mut state = game.start();
        let (mut lines, mut moves) = (String::new(), Vec::new());
        for (n, action) in record.actions().enumerate() {
            let ply = n.checked_sub(record.opening.len()).map(|at| &record.plies[at]);
            let fixed = state.roles().first_colour.is_some() || !board.swap2;
            if let (Some(ply), true, false) = (ply, fixed, moves.is_empty())
                && let Some(Kind::Stone { x, y }) = best(record, ply).and_then(|best| board.kind(best))
            {
                let datapoint = Datapoint {
                    moves: moves.clone(),
                    best: board.number(x, y),
                    winner,
                };
                lines += &format!("{datapoint}\n");
            }
            state
                .apply(action)
                .map_err(|error| Rejection::new(ReasonCode::IllegalAction, format!("ply {n}: {error}")))?;
            if let Some(Kind::Stone { x, y }) = board.kind(action) {
                moves.push(board.number(x, y));
            }
        }
        Ok(lines)
    }
}

/// What is learned as the best move of a ply, if it is learned from at all.
fn best(record: &Record, ply: &PlyRecord) -> Option<tengen_games::Action> {
    let target = positions::target(record, ply)?;
    let best = target.policy.iter().max_by(|one, other| one.1.total_cmp(&other.1));
    best.map(|&(action, _)| action)
}

pub(super) fn import(reader: &mut Reader, bytes: &[u8]) -> Vec<Imported> {
    let named = reader.game_or(GAME_DEFAULT).map_err(ImportError::from);
    let game = named.and_then(|game| Ok((Board::of(&game, FORMAT)?, game)));
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(n, line)| Imported {
            label: format!("datapoint {}", n + 1),
            line: n + 1,
            record: game.clone().and_then(|(board, game)| {
                let transcript = transcript(line.trim_end(), n + 1, &board, &game)?;
                reader.record(&game, &transcript)
            }),
        })
        .collect()
}

/// The position as a game: the moves so far are given, the best move is the one to learn, and the rest is the result.
fn transcript(line: &str, number: usize, board: &Board, game: &AnyGame) -> Result<Transcript, ImportError> {
    if board.swap2 {
        let detail = format!(
            "the format has no choices of colour: name the rules without an opening ({})",
            super::sgf::without_opening(&game.spec().id)
        );
        return Err(Rejection::new(ReasonCode::Opening, detail).into());
    }
    let datapoint = parse_line(line).map_err(|(offset, what)| SyntaxError {
        line: number,
        column: offset + 1,
        what,
    })?;
    let cells = datapoint.moves.iter().chain([&datapoint.best]);
    let actions = cells.map(|&number| {
        board.action(number).ok_or_else(|| {
            let detail = format!(
                "there is no cell {number} on a board of {size}x{size}",
                size = board.size
            );
            Rejection::new(ReasonCode::IllegalAction, detail)
        })
    });
    Ok(Transcript {
        game_id: game.spec().id.clone(),
        opening_plies: datapoint.moves.len(),
        actions: actions.collect::<Result<_, _>>()?,
        stated: Some(match datapoint.winner {
            Winner::Black => Stated::Colour(Colour::First),
            Winner::White => Stated::Colour(Colour::Second),
            Winner::Draw => Stated::Draw,
        }),
        names: Names::Seats([String::new(), String::new()]),
        seed: 0,
        created_unix_ms: 0,
        duration_ms: 0,
    })
}

#[cfg(test)]
mod tests {
    use tengen_games::{Action, Reason, Seat};

    use super::*;

    #[test]
    fn lines_read_back_as_they_were() {
        for line in ["112,127,113;98;0", "0;224;2", ";112;1"] {
            assert_eq!(parse_line(line).unwrap().to_string(), line);
        }
        assert_eq!(parse_line("1,x;3;0").unwrap_err().0, 2);
        assert_eq!(parse_line("1,2;;0").unwrap_err().0, 4);
        assert_eq!(parse_line("1,2;3;7").unwrap_err().0, 6);
        assert_eq!(parse_line("1,2;3").unwrap_err().0, 0);
        assert_eq!(parse_line("1,70000;3;0").unwrap_err().0, 2);
    }

    #[test]
    fn a_position_becomes_a_given_opening_and_one_ply_with_the_result() {
        let mut reader = Reader::new(None);
        let read = import(&mut reader, b"0,14;1;1\n\n0,14;1;2\n0,0;1;1\nx\n");
        assert_eq!(read.iter().map(|game| game.line).collect::<Vec<_>>(), [1, 3, 4, 5]);
        let record = read[0].record.as_ref().unwrap();
        // Number 0 is the column and row at the bottom left: the first cell of the last row.
        assert_eq!(record.opening, [Action(14 * 15), Action(0)]);
        assert_eq!(record.plies[0].action, Action(13 * 15));
        assert_eq!(record.outcome.winner, Some(Seat::SECOND));
        assert_eq!(read[1].record.as_ref().unwrap().outcome.reason, Reason::MoveLimit);
        assert!(read[2].record.as_ref().unwrap_err().to_string().contains("ply 1"));
        assert!(
            read[3]
                .record
                .as_ref()
                .unwrap_err()
                .to_string()
                .starts_with("line 5, column 1")
        );
        // A line without searches is written as it was read.
        assert_eq!(export(record).unwrap(), "0,14;1;1\n");
    }
}
