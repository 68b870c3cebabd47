//! `.psq`: the files of Piskvork, the manager of Gomocup's tournaments.
//!
//! A head with the board and who began, then a stone a line in playing order, counted from 1 and from the top left, then up
//! to two names and a result code. Levels and names are those of Piskvork's first and second player, whichever of them began
//! (`openPsq` and `savePsq` in Piskvork's `game.cpp`). The format knows neither rules nor choices of colour: a game that
//! began with Swap2 keeps its stones and loses its decisions.

use std::fmt;

use tengen_games::{Action, AnyGame};

use super::stones::{Board, Kind};
use super::transcript::UNKNOWN;
use super::{Colour, ExportError, ImportError, Imported, Names, Reader, SyntaxError, Transcript, game_of, shown};
use crate::player::Player;
use crate::record::Record;
use crate::rejection::{ReasonCode, Rejection};

const FORMAT: &str = "psq";
const HEAD: &str = "Piskvorky ";
/// What the result code says when nobody knows.
const CODE_UNKNOWN: i64 = -1;
/// Longest side of a board.
const SIDE_MAX: u32 = 1_000;

/// A file, as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Psq {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Playing strength of both players, 0 for a person.
    pub levels: [i64; 2],
    /// Which of them began, 0 or 1.
    pub begins: usize,
    /// The stones in playing order.
    pub stones: Vec<Stone>,
    /// Up to two names, in the order of the levels.
    pub names: Vec<String>,
    /// How it ended: -1 unknown, 0 by the rules, others are faults of a player.
    pub code: Option<i64>,
    /// What ends its lines.
    pub line_end: LineEnd,
}

/// One stone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stone {
    /// Column from the left, from 1.
    pub x: u32,
    /// Row from the top, from 1.
    pub y: u32,
    /// Thinking time, milliseconds.
    pub time_ms: Option<i64>,
}

/// What ends a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnd {
    /// A line feed.
    Lf,
    /// Carriage return and line feed.
    CrLf,
}

impl LineEnd {
    const fn as_str(self) -> &'static str {
        match self {
            LineEnd::Lf => "\n",
            LineEnd::CrLf => "\r\n",
        }
    }
}

impl fmt::Display for Psq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.line_end.as_str();
        let [first, second] = self.levels;
        let (width, height, begins) = (self.width, self.height, self.begins);
        write!(f, "{HEAD}{width}x{height}, {first}:{second}, {begins}{end}")?;
        for Stone { x, y, time_ms } in &self.stones {
            match time_ms {
                Some(time_ms) => write!(f, "{x},{y},{time_ms}{end}")?,
                None => write!(f, "{x},{y}{end}")?,
            }
        }
        for name in &self.names {
            write!(f, "{name}{end}")?;
        }
        self.code.map_or(Ok(()), |code| write!(f, "{code}{end}"))
    }
}

/// Reads a file.
///
/// # Errors
/// The first line that is not what the format has there.
pub fn parse(bytes: &[u8]) -> Result<Psq, SyntaxError> {
    let mut lines = lines(bytes).peekable();
    let refuse = |offset, what: &str| SyntaxError::at(bytes, offset, what);
    let (offset, head) = lines.next().ok_or_else(|| refuse(0, "the file is empty"))?;
    let mut psq = parse_head(&head).ok_or_else(|| refuse(offset, "expected a head like `Piskvorky 15x15, 0:0, 0`"))?;
    let first_line = bytes.iter().position(|&byte| byte == b'\n');
    if first_line.is_some_and(|at| at > 0 && bytes[at - 1] == b'\r') {
        psq.line_end = LineEnd::CrLf;
    }
    while let Some((offset, line)) = lines.peek() {
        let Some(stone) = parse_stone(line) else { break };
        if !(1..=psq.width).contains(&stone.x) || !(1..=psq.height).contains(&stone.y) {
            let what = format!(
                "{},{} is not on a board of {}x{}",
                stone.x, stone.y, psq.width, psq.height
            );
            return Err(refuse(*offset, &what));
        }
        psq.stones.push(stone);
        lines.next();
    }
    for (offset, line) in lines {
        if psq.code.is_some() {
            return Err(refuse(offset, "there is more after the result code"));
        }
        match line.parse() {
            Ok(code) => psq.code = Some(code),
            Err(_) if psq.names.len() < 2 => psq.names.push(line),
            Err(_) => return Err(refuse(offset, "expected a result code after two names")),
        }
    }
    Ok(psq)
}

/// The lines that are not empty, without what ends them, with their offsets.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, String)> + '_ {
    let mut offset = 0;
    bytes.split(|&byte| byte == b'\n').filter_map(move |line| {
        let at = offset;
        offset += line.len() + 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        (!line.is_empty()).then(|| (at, text(line)))
    })
}

/// Text in UTF-8, or else in Latin-1, of which every byte is a letter.
fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|&byte| char::from(byte)).collect(),
    }
}

fn parse_head(line: &str) -> Option<Psq> {
    let mut parts = line.strip_prefix(HEAD)?.split(',').map(str::trim);
    let (board, levels, begins) = (parts.next()?, parts.next()?, parts.next()?);
    let (width, height) = board.split_once('x')?;
    let (first, second) = levels.split_once(':')?;
    let side = |text: &str| text.parse().ok().filter(|side| (1..=SIDE_MAX).contains(side));
    Some(Psq {
        width: side(width)?,
        height: side(height)?,
        levels: [first.parse().ok()?, second.parse().ok()?],
        begins: begins.parse::<usize>().ok().filter(|&begins| begins < 2)?,
        stones: Vec::new(),
        names: Vec::new(),
        code: None,
        line_end: LineEnd::Lf,
    })
}

fn parse_stone(line: &str) -> Option<Stone> {
    let mut parts = line.split(',');
    let stone = Stone {
        x: parts.next()?.parse().ok()?,
        y: parts.next()?.parse().ok()?,
        time_ms: parts.next().map(str::parse).transpose().ok()?,
    };
    parts.next().is_none().then_some(stone)
}

/// The file of a game of five in a row: its stones without times, the names of black and of white where both are people,
/// result unknown.
///
/// # Errors
/// For games of other families.
pub fn export(record: &Record) -> Result<String, ExportError> {
    let board = Board::of(&game_of(record)?, FORMAT)?;
    let stones = record.actions().filter_map(|action| match board.kind(action) {
        Some(Kind::Stone { x, y }) => Some(Stone {
            x: x as u32 + 1,
            y: y as u32 + 1,
            time_ms: Some(0),
        }),
        _ => None,
    });
    let psq = Psq {
        width: board.size as u32,
        height: board.size as u32,
        levels: [0, 0],
        begins: 0,
        stones: stones.collect(),
        names: names(record),
        code: Some(CODE_UNKNOWN),
        line_end: LineEnd::Lf,
    };
    Ok(psq.to_string())
}

/// The names of black, who begins, and of white. None are written where one of the two is no person, or is called by a number,
/// which would be taken for the result code; nor those of nobody.
fn names(record: &Record) -> Vec<String> {
    let person = |colour: Colour| {
        let index = record.seat_models[colour.seat(record.roles).index()];
        match record.players.as_ref()?.get(index.index())? {
            Player::Human(name) if name.as_str().parse::<i64>().is_err() => Some(name.as_str().to_owned()),
            _ => None,
        }
    };
    let mut names = match (person(Colour::First), person(Colour::Second)) {
        (Some(first), Some(second)) => vec![first, second],
        _ => Vec::new(),
    };
    while names.last().is_some_and(|name| name == UNKNOWN) {
        names.pop();
    }
    names
}

pub(super) fn import(reader: &mut Reader, bytes: &[u8]) -> Vec<Imported> {
    let record = match (parse(bytes), &reader.given) {
        (Err(error), _) => Err(error.into()),
        (Ok(_), None) => Err(ImportError::NoGame("for example gomoku-freestyle?size=20".to_owned())),
        (Ok(psq), Some(game)) => {
            let game = game.clone();
            transcript(&psq, &game).and_then(|transcript| reader.record(&game, &transcript))
        }
    };
    vec![Imported {
        label: "game 1".to_owned(),
        line: 1,
        record,
    }]
}

/// What the file tells, as a game of `game`.
fn transcript(psq: &Psq, game: &AnyGame) -> Result<Transcript, ImportError> {
    let board = Board::of(game, FORMAT)?;
    let size = board.size as u32;
    if (psq.width, psq.height) != (size, size) {
        let detail = format!(
            "a board of {}x{}, {} has {size}x{size}",
            psq.width,
            psq.height,
            game.spec().id
        );
        return Err(Rejection::new(ReasonCode::WrongGame, detail).into());
    }
    if board.swap2 {
        let detail = format!(
            "the format has no choices of colour: name the rules without an opening ({})",
            shown(super::sgf::without_opening(&game.spec().id))
        );
        return Err(Rejection::new(ReasonCode::Opening, detail).into());
    }
    let place = |stone: &Stone| board.stone(stone.x as usize - 1, stone.y as usize - 1);
    let actions: Option<Vec<Action>> = psq.stones.iter().map(place).collect();
    let name = |player: usize| psq.names.get(player).cloned().unwrap_or_default();
    Ok(Transcript {
        game_id: game.spec().id.clone(),
        opening_plies: 0,
        // The reader has looked that every stone is on the board.
        actions: actions.unwrap_or_default(),
        stated: None,
        // Who began has seat 0.
        names: Names::Seats([name(psq.begins), name(1 - psq.begins)]),
        seed: 0,
        created_unix_ms: 0,
        duration_ms: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample, and the file of the report that a black overline had been ruled a foul.
    const SAMPLE: &str = "Piskvorky 15x15, 0:0, 0\n8,8,0\n9,8,0\n10,10,0\n9,9,0\n9,7,0\n7,9,0\n10,7,0\n1,1,0\n11,7,0\n\
                          3,1,0\n12,7,0\n5,1,0\n13,7,0\n-1\n";

    #[test]
    fn files_come_back_as_they_were() {
        for text in [
            SAMPLE,
            "Piskvorky 20x20, 11:0, 1\r\n2,10,150\r\n5,10\r\nalice\r\nbob, of the club\r\n15\r\n",
            "Piskvorky 20x20, 0:0, 0\n",
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap().to_string(), text);
        }
    }

    fn record(text: &str) -> Record {
        let mut reader = Reader::new(Some(AnyGame::parse("gomoku-freestyle?size=9").unwrap()));
        reader
            .read(super::super::Format::Psq, text.as_bytes())
            .remove(0)
            .record
            .unwrap()
    }

    /// A game that the one who begins wins.
    fn file(begins: usize, names: &str) -> String {
        format!(
            "Piskvorky 9x9, 0:0, {begins}\n2,2,0\n2,3,0\n3,2,0\n3,3,0\n4,2,0\n4,3,0\n5,2,0\n5,3,0\n6,2,0\n{names}-1\n"
        )
    }

    #[test]
    fn stones_and_names_survive_a_record() {
        for names in ["alice\nbob\n", "alice\nalice\n", "alice\n", ""] {
            assert_eq!(export(&record(&file(0, names))).unwrap(), file(0, names));
        }
        // What a record has no place for: times, levels, the result code, line ends.
        let rich = file(0, "alice\nbob\n")
            .replace(",0\n", ",150\r\n")
            .replace("0:0", "3:0");
        let rich = rich.replace("-1\n", "15\n");
        assert_eq!(export(&record(&rich)).unwrap(), file(0, "alice\nbob\n"));
    }

    #[test]
    fn the_head_says_whose_the_first_stone_is() {
        let players = |text: &str| record(text).players.unwrap().map(|player| player.to_string());
        assert_eq!(players(&file(0, "alice\nbob\n")), ["human:alice", "human:bob"]);
        assert_eq!(players(&file(1, "alice\nbob\n")), ["human:bob", "human:alice"]);
        assert_eq!(players(&file(1, "alice\n")), ["human:unknown", "human:alice"]);
        let turned = export(&record(&file(1, "alice\nbob\n"))).unwrap();
        assert_eq!(turned, file(0, "bob\nalice\n"), "black comes first in what is written");
        assert!(parse(file(2, "").as_bytes()).is_err());
    }

    #[test]
    fn a_name_that_reads_as_a_result_code_is_left_out() {
        let mut played = record(&file(0, "alice\nbob\n"));
        played.players = Some(["human:15", "human:bob"].map(|text| text.parse().unwrap()));
        assert_eq!(export(&played).unwrap(), file(0, ""));
        played.players = Some(["rollout:50", "human:bob"].map(|text| text.parse().unwrap()));
        assert_eq!(export(&played).unwrap(), file(0, ""));
    }

    #[test]
    fn what_breaks_the_format_is_told_with_its_line() {
        let refused = |text: &str| parse(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(refused(""), "line 1, column 1: the file is empty");
        assert!(refused("Piskvork 15x15\n").starts_with("line 1, column 1: expected a head"));
        assert!(refused("Piskvorky 0x15, 0:0, 0\n").starts_with("line 1"));
        assert_eq!(
            refused("Piskvorky 15x15, 0:0, 0\n1,1,0\n16,1,0\n"),
            "line 3, column 1: 16,1 is not on a board of 15x15"
        );
        assert!(refused("Piskvorky 15x15, 0:0, 0\na\nb\nc\n").starts_with("line 4"));
        assert!(refused("Piskvorky 15x15, 0:0, 0\n-1\n1,2,3\n").starts_with("line 3"));
    }

    #[test]
    fn a_line_of_six_wins_under_the_rules_that_say_so() {
        let text = "Piskvorky 20x20, 0:0, 0\n2,10\n5,10\n6,11\n7,9\n6,10\n8,8\n6,8\n7,7\n6,7\n9,10\n6,12\n17,5\n6,9\n";
        let read = |game: &str| {
            let mut reader = Reader::new(Some(AnyGame::parse(game).unwrap()));
            reader.read(super::super::Format::Psq, text.as_bytes()).remove(0).record
        };
        let won = read("gomoku-freestyle?size=20").unwrap();
        assert_eq!(won.outcome.reason.as_str(), "line");
        assert!(
            read("gomoku-standard?size=20")
                .unwrap_err()
                .to_string()
                .contains("the game goes on")
        );
        assert!(
            read("gomoku-freestyle")
                .unwrap_err()
                .to_string()
                .contains("board of 20x20")
        );
        assert!(
            read("caro5?size=20")
                .unwrap_err()
                .to_string()
                .contains("caro5?size=20&opening=none")
        );
        assert!(read("hex").unwrap_err().to_string().contains("five in a row"));
    }
}
