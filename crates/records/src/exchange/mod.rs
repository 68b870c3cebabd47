//! Games in the formats of other programs: bytes in, games or positioned errors out, and back.
//!
//! Reading has two halves. A format's own reader knows its syntax and says where bytes break it ([`SyntaxError`]); what it
//! read becomes a [`Transcript`], and [`Transcript::record`] plays that through the rules. What comes out is a [`Record`]
//! like any other, or the [`Rejection`] with the ply that is wrong.
//!
//! **Nothing here opens a file, and nothing is guessed**: a format that names no rules needs to be told the game, and a
//! game that a format has no place for is refused ([`Unfit`]).
//!
//! [`Record`]: crate::Record
//! [`Rejection`]: crate::Rejection

pub mod datapoints;
pub mod delimited;
pub mod json;
pub mod positions;
pub mod psq;
pub mod rif;
pub mod set;
pub mod sgf;
mod stones;
mod transcript;

use std::collections::HashMap;
use std::fmt;

use tengen_games::{AnyGame, Fingerprint, ParseGameError};

use crate::record::Record;
use crate::rejection::Rejection;

pub use transcript::{Colour, IMPORT_RUN, Names, Stated, Transcript, seat_names};

/// Bytes that break the syntax of their format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct SyntaxError {
    /// Line, from 1.
    pub line: usize,
    /// Byte within the line, from 1.
    pub column: usize,
    /// What is wrong there.
    pub what: String,
}

impl SyntaxError {
    /// The error at byte `offset` of `bytes`.
    pub fn at(bytes: &[u8], offset: usize, what: impl Into<String>) -> SyntaxError {
        let before = &bytes[..offset.min(bytes.len())];
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        SyntaxError {
            line: before.iter().filter(|&&byte| byte == b'\n').count() + 1,
            column: before.len() - line_start + 1,
            what: what.into(),
        }
    }
}

/// Counts lines on the way through a file.
struct LineCounter<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
}

impl LineCounter<'_> {
    fn new(bytes: &[u8]) -> LineCounter<'_> {
        LineCounter { bytes, at: 0, line: 1 }
    }

    /// The line of byte `offset`, which is not before the last one asked for.
    fn line(&mut self, offset: usize) -> usize {
        let offset = offset.clamp(self.at, self.bytes.len());
        self.line += self.bytes[self.at..offset]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count();
        self.at = offset;
        self.line
    }
}

/// Why a game of a file did not become a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// The bytes break the format.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// The rules, or what the file says of itself, refuse the game.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The file names no game that is known.
    #[error("{0}")]
    Game(#[from] ParseGameError),
    /// The file does not say by which rules it was played.
    #[error("the file does not say which game it is: name it with --game ({0})")]
    NoGame(String),
    /// The format has no place for this game.
    #[error(transparent)]
    Unfit(#[from] Unfit),
}

/// One game of a file, and where it stands there.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// Which game of the file, for people: its own name, or `game 3`.
    pub label: String,
    /// Line of the file on which it begins, from 1.
    pub line: usize,
    /// The record, or why there is none.
    pub record: Result<Record, ImportError>,
}

/// A format has no place for a game.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{format} has no place for a game of {game}: {why}")]
pub struct Unfit {
    /// The format.
    pub format: &'static str,
    /// The game's canonical id.
    pub game: String,
    /// What is missing.
    pub why: &'static str,
}

/// Why a record cannot be written in a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// The format has no place for the game.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// This build does not know the record's game.
    #[error(transparent)]
    Game(#[from] ParseGameError),
    /// The record does not replay.
    #[error(transparent)]
    Rejected(#[from] Rejection),
}

/// A format that games can be read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Records as they are: [`delimited`].
    Protobuf,
    /// The JSON of [`json`].
    Json,
    /// Smart Game Format: [`sgf`].
    Sgf,
    /// Piskvork's files: [`psq`].
    Psq,
    /// Positions with their best moves: [`datapoints`].
    Datapoints,
    /// RenjuNet's XML: [`rif`].
    Rif,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 6] = [
        Format::Protobuf,
        Format::Json,
        Format::Sgf,
        Format::Psq,
        Format::Datapoints,
        Format::Rif,
    ];

    /// The name on command lines.
    pub const fn as_str(self) -> &'static str {
        match self {
            Format::Protobuf => "protobuf",
            Format::Json => "json",
            Format::Sgf => "sgf",
            Format::Psq => "psq",
            Format::Datapoints => "datapoints",
            Format::Rif => "rif",
        }
    }

    /// The endings of its files' names, the usual one first.
    pub const fn endings(self) -> &'static [&'static str] {
        match self {
            Format::Protobuf => &["binpb"],
            Format::Json => &["json", "jsonl"],
            Format::Sgf => &["sgf"],
            Format::Psq => &["psq"],
            Format::Datapoints => &["datapoints"],
            Format::Rif => &["rif", "xml"],
        }
    }

    /// The format of files with this ending, in any case of letters.
    pub fn of_ending(ending: &str) -> Option<Format> {
        let ending = ending.to_ascii_lowercase();
        Format::ALL
            .into_iter()
            .find(|format| format.endings().contains(&&ending[..]))
    }
}

/// Reads games, and knows the rules they are played by.
#[derive(Debug)]
pub struct Reader {
    given: Option<AnyGame>,
    fingerprints: HashMap<String, Fingerprint>,
}

impl Reader {
    /// A reader for files of the game `given`, or of whatever game they name.
    pub fn new(given: Option<AnyGame>) -> Reader {
        Reader {
            given,
            fingerprints: HashMap::new(),
        }
    }

    /// The games in `bytes`, in their order; each of them, or why it is none. Nothing that is wrong with one game keeps
    /// the others from being read, as far as the format lets them be told apart.
    pub fn read(&mut self, format: Format, bytes: &[u8]) -> Vec<Imported> {
        match format {
            Format::Protobuf => delimited::import(self, bytes),
            Format::Json => json::import(self, bytes),
            Format::Sgf => sgf::import(self, bytes),
            Format::Psq => psq::import(self, bytes),
            Format::Datapoints => datapoints::import(self, bytes),
            Format::Rif => rif::import(self, bytes),
        }
    }

    /// The fingerprint of a game's rules; computed once a game.
    pub fn fingerprint(&mut self, game: &AnyGame) -> Fingerprint {
        let id = &game.spec().id;
        if let Some(&known) = self.fingerprints.get(id) {
            return known;
        }
        let fingerprint = game.rules_fingerprint();
        self.fingerprints.insert(id.clone(), fingerprint);
        fingerprint
    }

    /// The game that was given, or else `named`.
    fn game_or(&self, named: &str) -> Result<AnyGame, ParseGameError> {
        self.given.clone().map_or_else(|| AnyGame::parse(named), Ok)
    }

    /// The record of what a file tells of `game`.
    fn record(&mut self, game: &AnyGame, transcript: &Transcript) -> Result<Record, ImportError> {
        // A game that is refused need not wait for the fingerprint.
        let played = transcript.record(game, Fingerprint([0; 32]))?;
        Ok(Record {
            rules_fingerprint: self.fingerprint(game),
            ..played
        })
    }
}

/// The game that a record names, as this build knows it.
///
/// # Errors
/// When it knows none of that name.
pub fn game_of(record: &Record) -> Result<AnyGame, ParseGameError> {
    AnyGame::parse(&record.game_id)
}

/// The family in a game's id: what stands before its parameters.
fn family(id: &str) -> &str {
    id.split('?').next().unwrap_or(id)
}

/// A text of a file, short enough for a message.
fn shown(text: impl fmt::Display) -> String {
    const SHOWN_CHARS_MAX: usize = 60;
    let text = text.to_string();
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        None => text,
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_told_in_lines_and_bytes() {
        let at = |offset| {
            let error = SyntaxError::at(b"ab\ncd\n", offset, "x");
            (error.line, error.column)
        };
        assert_eq!(
            [at(0), at(1), at(3), at(4), at(6), at(99)],
            [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 1)]
        );
    }

    #[test]
    fn long_texts_are_cut_between_letters() {
        assert_eq!(shown("short"), "short");
        assert_eq!(shown("ö".repeat(100)), format!("{}...", "ö".repeat(60)));
    }
}
