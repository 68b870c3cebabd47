//! The law of the window: the newest N positions, kept in whole games.
//!
//! The oldest game is dropped only while the others still hold N positions; of the oldest kept game only its last
//! positions count. So exactly the newest N positions count, or all there are. A game without positions is never kept,
//! which bounds the number of games by N plus one.
//!
//! Knows nothing of what a game is.

use std::collections::VecDeque;
use std::num::NonZeroU64;

/// A game that cannot follow the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("game {sequence} cannot follow game {last}: commit sequences only grow")]
pub struct PushError {
    /// Sequence of the refused game.
    pub sequence: u64,
    /// Sequence of the newest game.
    pub last: u64,
}

/// How full a window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// Games kept.
    pub games: usize,
    /// Positions that count, at most `capacity`.
    pub positions: u64,
    /// Positions that count at most (N).
    pub capacity: u64,
}

/// One kept game.
#[derive(Clone, Debug)]
pub(crate) struct Kept<T> {
    pub sequence: u64,
    pub positions: u32,
    pub game: T,
}

/// Games in commit order, trimmed to the newest N positions.
#[derive(Clone, Debug)]
pub struct Trim<T> {
    capacity: NonZeroU64,
    /// Positions of all kept games, those that do not count included.
    held: u64,
    kept: VecDeque<Kept<T>>,
    last_sequence: Option<u64>,
}

impl<T> Trim<T> {
    /// An empty window of `capacity` positions.
    pub fn new(capacity: NonZeroU64) -> Trim<T> {
        Trim {
            capacity,
            held: 0,
            kept: VecDeque::new(),
            last_sequence: None,
        }
    }

    /// Appends a game with this many positions and drops what the law drops.
    ///
    /// # Errors
    /// When `sequence` is not above the one pushed last; the window is unchanged.
    pub fn push(&mut self, sequence: u64, positions: u32, game: T) -> Result<(), PushError> {
        self.expect_after_last(sequence)?;
        self.last_sequence = Some(sequence);
        if positions == 0 {
            return Ok(());
        }
        self.held += u64::from(positions);
        self.kept.push_back(Kept {
            sequence,
            positions,
            game,
        });
        while let Some(oldest) = self.kept.front() {
            let others = self.held - u64::from(oldest.positions);
            if others < self.capacity.get() {
                break;
            }
            self.held = others;
            self.kept.pop_front();
        }
        Ok(())
    }

    /// Whether a game with this sequence could be pushed.
    pub(crate) fn expect_after_last(&self, sequence: u64) -> Result<(), PushError> {
        match self.last_sequence {
            Some(last) if sequence <= last => Err(PushError { sequence, last }),
            _ => Ok(()),
        }
    }

    /// How full the window is.
    pub fn fill(&self) -> Fill {
        Fill {
            games: self.kept.len(),
            positions: self.held.min(self.capacity.get()),
            capacity: self.capacity.get(),
        }
    }

    /// Positions that count at most (N).
    pub fn capacity(&self) -> NonZeroU64 {
        self.capacity
    }

    /// Positions at the beginning of the oldest game that do not count.
    pub fn skipped(&self) -> u64 {
        self.held.saturating_sub(self.capacity.get())
    }

    /// Sequence of the game pushed last, kept or not.
    pub fn last_sequence(&self) -> Option<u64> {
        self.last_sequence
    }

    pub(crate) fn kept(&self) -> &VecDeque<Kept<T>> {
        &self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn capacity(positions: u64) -> NonZeroU64 {
        NonZeroU64::new(positions).expect("capacities in tests are above 0")
    }

    /// The positions that count, as (sequence, index in the game), oldest first.
    fn counting(trim: &Trim<()>) -> Vec<(u64, u32)> {
        let all = trim
            .kept()
            .iter()
            .flat_map(|game| (0..game.positions).map(|n| (game.sequence, n)));
        all.skip(trim.skipped() as usize).collect()
    }

    proptest! {
        #[test]
        fn exactly_the_newest_positions_count(n in 1u64..60, games in prop::collection::vec(0u32..25, 0..60)) {
            let mut trim = Trim::new(capacity(n));
            let mut all = Vec::new();
            for (sequence, &positions) in games.iter().enumerate() {
                trim.push(sequence as u64, positions, ()).expect("sequences ascend");
                all.extend((0..positions).map(|index| (sequence as u64, index)));
                let newest = &all[all.len().saturating_sub(n as usize)..];
                prop_assert_eq!(counting(&trim), newest);
                prop_assert_eq!(trim.fill().positions, newest.len() as u64);
                // No game is kept in vain: at least one position of the oldest counts.
                let oldest = trim.kept().front().map(|game| u64::from(game.positions));
                prop_assert!(oldest.is_none_or(|positions| trim.skipped() < positions));
            }
        }
    }

    #[test]
    fn the_oldest_game_goes_only_when_the_others_are_enough() {
        let mut trim = Trim::new(capacity(10));
        trim.push(1, 6, ()).expect("first");
        trim.push(2, 9, ()).expect("second");
        assert_eq!((trim.fill().games, trim.skipped()), (2, 5));
        trim.push(3, 1, ()).expect("third");
        assert_eq!((trim.fill().games, trim.skipped()), (2, 0));
        trim.push(4, 50, ()).expect("fourth");
        assert_eq!(
            trim.fill(),
            Fill {
                games: 1,
                positions: 10,
                capacity: 10
            }
        );
        assert_eq!(trim.skipped(), 40);
    }

    #[test]
    fn a_game_out_of_order_is_refused_and_changes_nothing() {
        let mut trim = Trim::new(capacity(10));
        trim.push(5, 3, ()).expect("first");
        assert_eq!(trim.push(5, 3, ()), Err(PushError { sequence: 5, last: 5 }));
        assert_eq!(trim.push(4, 0, ()), Err(PushError { sequence: 4, last: 5 }));
        assert_eq!((trim.fill().positions, trim.last_sequence()), (3, Some(5)));
    }

    #[test]
    fn a_game_without_positions_only_moves_the_cursor() {
        let mut trim = Trim::new(capacity(10));
        trim.push(1, 0, ()).expect("first");
        assert_eq!((trim.fill().games, trim.last_sequence()), (0, Some(1)));
    }
}
