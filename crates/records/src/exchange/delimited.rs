//! Records as they are, one after the other: each a `GameRecord` message with its length before it as a varint, as
//! protobuf's libraries write and read messages that are delimited.

use super::{Imported, Reader, SyntaxError, game_of};
use crate::check::referee;
use crate::record::Record;
use crate::rejection::{ReasonCode, Rejection};
use crate::wire::{RECORD_BYTES_MAX, decode, encode};

/// Appends a record to a file's bytes.
pub fn append(record: &Record, bytes: &mut Vec<u8>) {
    let encoded = encode(record);
    let mut len = encoded.len();
    while len >= 0x80 {
        bytes.push(len as u8 | 0x80);
        len >>= 7;
    }
    bytes.push(len as u8);
    bytes.extend(encoded);
}

/// The bytes of each record of a file, with their offsets.
///
/// # Errors
/// After whole records, the first length that nothing of that length follows.
pub fn split(bytes: &[u8]) -> impl Iterator<Item = Result<(usize, &[u8]), Fault>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let mut rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
        let begin = at;
        let before = rest.len();
        let len = prost::decode_length_delimiter(&mut rest).ok();
        let found = len
            .filter(|&len| len <= RECORD_BYTES_MAX)
            .and_then(|len| rest.get(..len));
        at = match found {
            Some(record) => begin + (before - rest.len()) + record.len(),
            None => bytes.len(),
        };
        Some(found.map(|record| (begin, record)).ok_or(Fault { offset: begin }))
    })
}

/// A place in a file of records where none begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset}: no whole record begins here")]
pub struct Fault {
    /// Where.
    pub offset: usize,
}

pub(super) fn import(reader: &mut Reader, bytes: &[u8]) -> Vec<Imported> {
    let parts = split(bytes).enumerate();
    parts
        .map(|(n, part)| match part {
            Ok((_, record)) => Imported {
                label: format!("record {}", n + 1),
                line: 1,
                record: check(reader, record).map_err(Into::into),
            },
            Err(fault) => Imported {
                label: format!("record {}", n + 1),
                line: 1,
                record: Err(SyntaxError {
                    line: 1,
                    column: fault.offset + 1,
                    what: "no whole record begins here".to_owned(),
                }
                .into()),
            },
        })
        .collect()
}

fn check(reader: &mut Reader, bytes: &[u8]) -> Result<Record, Rejection> {
    let record = decode(bytes)?;
    check_record(reader, &record)?;
    Ok(record)
}

/// Checks a record by the rules of the game it names.
pub(super) fn check_record(reader: &mut Reader, record: &Record) -> Result<(), Rejection> {
    use tengen_games::{Fingerprint, Game, GameVisitor};
    struct Check<'a>(&'a Record, Fingerprint);
    impl GameVisitor for Check<'_> {
        type Output = Result<(), Rejection>;
        fn visit<G: Game>(self, game: G) -> Self::Output {
            referee(&game, self.1, self.0).map(drop)
        }
    }
    let game = game_of(record).map_err(|error| Rejection::new(ReasonCode::WrongGame, error.to_string()))?;
    let rules = reader.fingerprint(&game);
    game.visit(Check(record, rules))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_is_told_after_the_whole_ones() {
        let bytes = [2, 7, 7, 0, 3, 1];
        let parts: Vec<_> = split(&bytes).collect();
        assert_eq!(
            parts,
            [Ok((0, &[7, 7][..])), Ok((3, &[][..])), Err(Fault { offset: 4 })]
        );
        assert_eq!(split(&[0xff; 12]).collect::<Vec<_>>(), [Err(Fault { offset: 0 })]);
        assert_eq!(split(&[]).count(), 0);
    }
}
