//! How games lie in a segment file, and how they are found again in any bytes. Pure: no file, no clock.
//!
//! A segment is frames and nothing else. A frame is a header of [`HEADER_BYTES`] (mark, length of the game, CRC-32C of
//! the game, CRC-32C of the header so far, all little-endian), then the game. The header has a sum of its own, so that
//! a damaged length is known before it is believed, and the mark lets the next frame be found behind any damage.

use std::ops::Range;

use tengen_records::RECORD_BYTES_MAX;

/// What every frame begins with; the last character is the version of the format.
const MARK: [u8; 4] = *b"TGF1";
/// Bytes of a frame before its game.
pub const HEADER_BYTES: usize = 16;

/// What a segment's bytes hold. Ranges are ascending, do not overlap, and together with the headers cover everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Where the whole games lie, without their headers.
    pub games: Vec<Range<usize>>,
    /// What is no whole frame though more follows, or though it is no frame that was cut short.
    pub damaged: Vec<Range<usize>>,
    /// A last frame that was cut short: its game was never finished as far as anybody was told.
    pub torn: Option<Range<usize>>,
}

/// Finds every whole game in the bytes of a segment, whatever has become of them.
pub fn recover(bytes: &[u8]) -> Recovery {
    let mut found = Recovery::default();
    let mut at = 0;
    while at < bytes.len() {
        if let Some(game) = whole_frame(bytes, at) {
            at = game.end;
            found.games.push(game);
            continue;
        }
        match next_frame(bytes, at + 1) {
            Some(next) => {
                found.damaged.push(at..next);
                at = next;
            }
            None => {
                let rest = at..bytes.len();
                if is_cut_short(&bytes[at..]) {
                    found.torn = Some(rest);
                } else {
                    found.damaged.push(rest);
                }
                break;
            }
        }
    }
    found
}

/// The header of the frame around this game.
pub(crate) fn header(game: &[u8]) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    // A game's length is checked at the spool's door: it fits.
    let len = game.len() as u32;
    header[..4].copy_from_slice(&MARK);
    header[4..8].copy_from_slice(&len.to_le_bytes());
    header[8..12].copy_from_slice(&crc32c::crc32c(game).to_le_bytes());
    let sum = crc32c::crc32c(&header[..12]);
    header[12..].copy_from_slice(&sum.to_le_bytes());
    header
}

/// The game of the frame that begins at `at`, if it is whole.
pub(crate) fn whole_frame(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let (len, sum) = read_header(bytes.get(at..)?)?;
    let game = at + HEADER_BYTES..at + HEADER_BYTES + len;
    (crc32c::crc32c(bytes.get(game.clone())?) == sum).then_some(game)
}

/// Length and sum of the game behind a good header.
fn read_header(bytes: &[u8]) -> Option<(usize, u32)> {
    let header: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let len = word(4) as usize;
    let good = header[..4] == MARK && word(12) == crc32c::crc32c(&header[..12]) && len <= RECORD_BYTES_MAX;
    good.then_some((len, word(8)))
}

/// Where the next whole frame at or after `from` begins.
fn next_frame(bytes: &[u8], from: usize) -> Option<usize> {
    let mark_at = |&at: &usize| bytes[at..].starts_with(&MARK);
    (from..bytes.len())
        .filter(mark_at)
        .find(|&at| whole_frame(bytes, at).is_some())
}

/// Whether the end of a segment is what an append leaves that did not come to its end: a part of a frame, or room that
/// the file system made and never filled.
fn is_cut_short(rest: &[u8]) -> bool {
    let begun = match read_header(rest) {
        Some((len, _)) => rest.len() < HEADER_BYTES + len,
        None => rest.len() < HEADER_BYTES && MARK.starts_with(&rest[..rest.len().min(MARK.len())]),
    };
    begun || rest.iter().all(|&byte| byte == 0)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// A segment of these games, and where its frames lie.
    fn segment(games: &[Vec<u8>]) -> (Vec<u8>, Vec<Range<usize>>) {
        let mut bytes = Vec::new();
        let mut frames = Vec::new();
        for game in games {
            let at = bytes.len();
            bytes.extend_from_slice(&header(game));
            bytes.extend_from_slice(game);
            frames.push(at..bytes.len());
        }
        (bytes, frames)
    }

    fn game_of(frame: &Range<usize>) -> Range<usize> {
        frame.start + HEADER_BYTES..frame.end
    }

    /// Games, some of which hold what looks like the beginning of a frame.
    fn games() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let plain = vec(any::<u8>(), 0..200);
        let sly = vec(any::<u8>(), 8..40).prop_map(|tail| [header(&tail).as_slice(), &tail[..tail.len() / 2]].concat());
        vec(prop_oneof![3 => plain, 1 => sly], 1..8)
    }

    proptest! {
        #[test]
        fn every_cut_leaves_exactly_the_whole_games_before_it(games in games()) {
            let (bytes, frames) = segment(&games);
            for cut in 0..=bytes.len() {
                let whole: Vec<_> = frames.iter().filter(|frame| frame.end <= cut).collect();
                let end = whole.last().map_or(0, |frame| frame.end);
                let found = recover(&bytes[..cut]);
                prop_assert_eq!(found.games, whole.into_iter().map(game_of).collect::<Vec<_>>());
                prop_assert!(found.damaged.is_empty());
                prop_assert_eq!(found.torn, (end < cut).then_some(end..cut));
            }
        }

        #[test]
        fn a_flipped_byte_is_noticed_and_costs_its_own_frame_alone(games in games(), flip in 1..=255u8) {
            let (mut bytes, frames) = segment(&games);
            for (hit, frame) in frames.iter().enumerate() {
                for at in frame.clone() {
                    bytes[at] ^= flip;
                    let found = recover(&bytes);
                    bytes[at] ^= flip;
                    let others = frames.iter().enumerate().filter(|&(n, _)| n != hit);
                    prop_assert_eq!(found.games, others.map(|(_, frame)| game_of(frame)).collect::<Vec<_>>());
                    prop_assert_eq!(found.damaged, vec![frame.clone()]);
                    prop_assert_eq!(found.torn, None);
                }
            }
        }

        #[test]
        fn any_bytes_are_taken_apart_without_loss(mut bytes in vec(any::<u8>(), 0..600), games in games(), at in any::<prop::sample::Index>()) {
            bytes.splice(at.index(bytes.len() + 1).., segment(&games).0);
            let found = recover(&bytes);
            prop_assert!(found.games.len() >= games.len());
            let mut ranges: Vec<_> = found.games.iter().map(|game| game.start - HEADER_BYTES..game.end).collect();
            ranges.extend(found.damaged);
            ranges.extend(found.torn);
            ranges.sort_by_key(|range| range.start);
            let ends: Vec<_> = std::iter::once(0).chain(ranges.iter().map(|range| range.end)).collect();
            let starts: Vec<_> = ranges.iter().map(|range| range.start).chain([bytes.len()]).collect();
            prop_assert_eq!(ends, starts);
        }
    }

    #[test]
    fn a_tail_of_zeros_was_never_written() {
        let (mut bytes, _) = segment(&[b"game".to_vec()]);
        let end = bytes.len();
        bytes.extend_from_slice(&[0; 100]);
        let found = recover(&bytes);
        assert_eq!((found.games.len(), found.damaged.len()), (1, 0));
        assert_eq!(found.torn, Some(end..end + 100));
    }

    #[test]
    fn games_written_after_a_torn_frame_are_found() {
        let (whole, _) = segment(&[b"first".to_vec(), b"second".to_vec()]);
        let torn = &whole[..whole.len() - 3];
        let bytes = [torn, &segment(&[b"third".to_vec()]).0].concat();
        let found = recover(&bytes);
        let games: Vec<&[u8]> = found.games.into_iter().map(|game| &bytes[game]).collect();
        assert_eq!(games, [b"first".as_slice(), b"third"]);
        assert_eq!(found.damaged.len(), 1);
    }
}
