//! What every reader of an exchange format promises, whatever bytes it is given; and ways to spoil its files.
//!
//! The body of the fuzz targets `parse_*` (folder `fuzz/`), here so that ordinary tests run it too.

use rand::{Rng, RngExt};
use tengen_games::{AnyGame, Fingerprint, Game, GameVisitor};

use crate::exchange::{Format, ImportError, Reader, game_of};
use crate::record::Record;
use crate::{decode, encode, referee};

/// Readers for one format: told the game, and left to find it out.
#[derive(Debug)]
pub struct Readers {
    format: Format,
    readers: Vec<Reader>,
}

impl Readers {
    /// Readers of files in `format`.
    ///
    /// # Panics
    /// When a game of this list is unknown.
    pub fn new(format: Format) -> Readers {
        let games = match format {
            Format::Protobuf | Format::Json => &[][..],
            Format::Sgf => &["gomoku-freestyle?size=9"][..],
            Format::Psq => &["gomoku-freestyle?size=9", "renju"][..],
            Format::Datapoints | Format::Rif => &["gomoku-standard"][..],
        };
        let told = games
            .iter()
            .map(|game| Reader::new(Some(AnyGame::parse(game).expect("a known game"))));
        Readers {
            format,
            readers: std::iter::once(Reader::new(None)).chain(told).collect(),
        }
    }

    /// Reads `input` and returns how many games it holds.
    ///
    /// # Panics
    /// When a reader breaks a promise: a fault is told with a place that is in the file, and a game that is read is one by
    /// its rules and survives the wire.
    pub fn judge(&mut self, input: &[u8]) -> usize {
        let format = self.format;
        self.readers.iter_mut().map(|reader| judge(reader, format, input)).sum()
    }
}

fn judge(reader: &mut Reader, format: Format, input: &[u8]) -> usize {
    let lines = input.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let mut games = 0;
    for imported in reader.read(format, input) {
        assert!(
            (1..=lines).contains(&imported.line),
            "line {} of {lines}",
            imported.line
        );
        match imported.record {
            Ok(record) => {
                games += 1;
                keeps_its_promises(reader, &record);
            }
            Err(ImportError::Syntax(error)) => {
                assert!((1..=lines).contains(&error.line), "{error} in {lines} lines");
                assert!(error.column >= 1 && error.column <= input.len() + 1, "{error}");
            }
            Err(_) => {}
        }
    }
    games
}

fn keeps_its_promises(reader: &mut Reader, record: &Record) {
    struct Check<'a>(&'a Record, Fingerprint);
    impl GameVisitor for Check<'_> {
        type Output = ();
        fn visit<G: Game>(self, game: G) {
            let refused = referee(&game, self.1, self.0).err();
            assert_eq!(refused, None, "a game that was read is not one");
        }
    }
    let game = game_of(record).expect("the game was played");
    let rules = reader.fingerprint(&game);
    game.visit(Check(record, rules));
    assert_eq!(decode(&encode(record)).as_ref(), Ok(record));
}

/// Spoils a text: letters, runs of it, numbers; or puts in a piece of another one.
///
/// # Panics
/// When a text is empty.
pub fn spoil<R: Rng>(honest: &[u8], donor: &[u8], rng: &mut R) -> Vec<u8> {
    const LETTERS: &[u8] = b"()[];,:\\/\"'{}<>&=+-.0123456789 \r\n\t\0aAxXyYbBwW\xff\xc3\x80";
    const NUMBERS: [&str; 9] = [
        "-1",
        "0",
        "4294967296",
        "18446744073709551616",
        "1e999",
        "NaN",
        "0.5",
        "true",
        "null",
    ];
    let mut bytes = honest.to_vec();
    for _ in 0..rng.random_range(1..=3) {
        let len = bytes.len().max(1);
        let begin = rng.random_range(0..len).min(bytes.len());
        let end = (begin + rng.random_range(0..12)).min(bytes.len());
        match rng.random_range(0..7) {
            0 => drop(bytes.splice(begin..end.min(begin + 1), [LETTERS[rng.random_range(0..LETTERS.len())]])),
            1 => drop(bytes.drain(begin..end)),
            2 => bytes.truncate(begin),
            3 => {
                let again = bytes[begin..end].to_vec();
                drop(bytes.splice(end..end, again));
            }
            4 => drop(bytes.splice(begin..end, NUMBERS[rng.random_range(0..NUMBERS.len())].bytes())),
            5 => {
                let from = rng.random_range(0..donor.len());
                let to = (from + rng.random_range(0..40)).min(donor.len());
                drop(bytes.splice(begin..end, donor[from..to].iter().copied()));
            }
            _ => {
                // A number becomes another one: what stays well formed reaches the rules.
                if let Some(at) = bytes[begin..].iter().position(u8::is_ascii_digit) {
                    bytes[begin + at] = b'0' + rng.random_range(0..10);
                }
            }
        }
    }
    bytes
}
