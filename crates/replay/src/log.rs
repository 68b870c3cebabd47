//! The coordinator's side of the window: encoded games in commit order, to be streamed to mirrors.

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::mirror::{Chunk, Cursor};
use crate::trim::{Fill, PushError, Trim};

/// One game as the log holds it and a mirror receives it. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedGame {
    /// Commit sequence.
    pub sequence: u64,
    /// Positions of the game.
    pub positions: u32,
    /// Positions committed in this run up to and including this game.
    pub positions_total: u64,
    /// The encoded record.
    pub record: Arc<[u8]>,
}

/// The newest games of a run, trimmed by the window's law.
#[derive(Clone, Debug)]
pub struct WindowLog {
    epoch: u64,
    trim: Trim<LoggedGame>,
    positions_total: u64,
}

impl WindowLog {
    /// An empty log of this epoch. `positions_before` is what the run had committed before the first game that will be
    /// pushed.
    pub fn new(epoch: u64, capacity: NonZeroU64, positions_before: u64) -> WindowLog {
        WindowLog {
            epoch,
            trim: Trim::new(capacity),
            positions_total: positions_before,
        }
    }

    /// Appends a committed game.
    ///
    /// # Errors
    /// When `sequence` does not follow the last one; the log is unchanged.
    pub fn push(&mut self, sequence: u64, positions: u32, record: Arc<[u8]>) -> Result<(), PushError> {
        let positions_total = self.positions_total + u64::from(positions);
        self.trim.push(
            sequence,
            positions,
            LoggedGame {
                sequence,
                positions,
                positions_total,
                record,
            },
        )?;
        self.positions_total = positions_total;
        Ok(())
    }

    /// The kept games after this commit sequence, oldest first; 0 for all, because sequences begin at 1.
    pub fn after(&self, sequence: u64) -> impl Iterator<Item = &LoggedGame> + Clone {
        let kept = self.trim.kept();
        let first = kept.partition_point(|game| game.sequence <= sequence);
        kept.range(first..).map(|kept| &kept.game)
    }

    /// The next games after this commit sequence, as many as have `bytes_max` bytes together, but at least one if there
    /// is one.
    pub fn chunk(&self, after_sequence: u64, bytes_max: usize) -> Vec<LoggedGame> {
        let after = self.after(after_sequence);
        let fits = within_bytes(after.clone(), bytes_max);
        after.take(fits).cloned().collect()
    }

    /// What a mirror at `cursor` is to read next, at most `bytes_max` bytes as in [`WindowLog::chunk`]; without games when
    /// there are none. A cursor of another epoch means nothing in this one.
    pub fn page(&self, cursor: Cursor, bytes_max: usize) -> Chunk {
        let after = if cursor.epoch == self.epoch {
            cursor.after_sequence
        } else {
            0
        };
        let games = self.chunk(after, bytes_max);
        let end = games.last().map_or(after, |last| last.sequence);
        Chunk {
            epoch: self.epoch,
            capacity: self.trim.capacity(),
            caught_up: self.after(end).next().is_none(),
            games,
        }
    }

    /// When the epoch changes, mirrors start anew.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// How full the log is.
    pub fn fill(&self) -> Fill {
        self.trim.fill()
    }

    /// Positions committed in this run so far.
    pub fn positions_total(&self) -> u64 {
        self.positions_total
    }

    /// Commit sequence of the game pushed last.
    pub fn last_sequence(&self) -> Option<u64> {
        self.trim.last_sequence()
    }
}

/// How many of these games have at most `bytes_max` bytes together, but at least one if there is one.
pub(crate) fn within_bytes<'a>(games: impl IntoIterator<Item = &'a LoggedGame>, bytes_max: usize) -> usize {
    let mut bytes = 0;
    let mut fits = 0;
    for game in games {
        bytes += game.record.len();
        if bytes > bytes_max && fits > 0 {
            break;
        }
        fits += 1;
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(positions: &[u32]) -> WindowLog {
        let mut log = WindowLog::new(3, NonZeroU64::new(10).expect("above 0"), 100);
        for (n, &positions) in positions.iter().enumerate() {
            let record = Arc::from(vec![n as u8; 4]);
            log.push(n as u64 + 1, positions, record).expect("sequences ascend");
        }
        log
    }

    fn sequences<'a>(games: impl IntoIterator<Item = &'a LoggedGame>) -> Vec<u64> {
        games.into_iter().map(|game| game.sequence).collect()
    }

    #[test]
    fn a_mirror_reads_on_from_any_cursor() {
        let log = log(&[9, 4, 0, 4, 4]);
        assert_eq!(sequences(log.after(0)), [2, 4, 5]);
        assert_eq!(sequences(log.after(2)), [4, 5]);
        assert_eq!(sequences(log.after(3)), [4, 5]);
        assert_eq!(sequences(log.after(9)), [] as [u64; 0]);
        assert_eq!(log.last_sequence(), Some(5));
    }

    #[test]
    fn totals_count_what_was_dropped_too() {
        let log = log(&[9, 4, 0, 4, 4]);
        let totals: Vec<u64> = log.after(0).map(|game| game.positions_total).collect();
        assert_eq!(totals, [113, 117, 121]);
        assert_eq!(log.positions_total(), 121);
        assert_eq!(
            log.fill(),
            Fill {
                games: 3,
                positions: 10,
                capacity: 10
            }
        );
    }

    #[test]
    fn a_chunk_is_bounded_in_bytes_but_never_empty_before_the_end() {
        let log = log(&[3, 3, 3]);
        assert_eq!(sequences(&log.chunk(0, 8)), [1, 2]);
        assert_eq!(sequences(&log.chunk(2, 8)), [3]);
        assert_eq!(sequences(&log.chunk(0, 1)), [1]);
        assert_eq!(sequences(&log.chunk(3, 8)), [] as [u64; 0]);
    }

    #[test]
    fn a_refused_game_is_not_counted() {
        let mut log = log(&[3]);
        assert!(log.push(1, 5, Arc::from([])).is_err());
        assert_eq!(log.positions_total(), 103);
    }
}
