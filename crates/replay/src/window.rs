//! The learner's window: the newest N positions, drawn from uniformly.

use std::num::NonZeroU64;
use std::sync::Arc;

use rand::{Rng, RngExt};
use tengen_records::Record;

use crate::split::{Part, Split};
use crate::stored::StoredGame;
use crate::trim::{Fill, PushError, Trim};

/// One game as the mirror's feed delivers it.
#[derive(Clone, Debug)]
pub struct WindowGame {
    /// Commit sequence.
    pub sequence: u64,
    /// Positions committed in this run up to and including this game.
    pub positions_total: u64,
    /// The game.
    pub record: Record,
}

/// One drawn position. Holds its game, so that batches are filled without the window.
#[derive(Clone, Debug)]
pub struct Draw {
    /// The game.
    pub game: Arc<StoredGame>,
    /// Index into [`StoredGame::positions`].
    pub position: usize,
}

/// A kept game with what finds its positions: for each part, positions pushed up to and including this game.
#[derive(Clone, Debug)]
struct Slot {
    game: Arc<StoredGame>,
    part: Part,
    ends: [u64; 2],
}

/// The mirror of the run's window.
///
/// All games count towards the N positions; validation's share of them is left out of training's draws.
#[derive(Clone, Debug)]
pub struct Window {
    epoch: u64,
    split: Split,
    trim: Trim<Slot>,
    ends: [u64; 2],
    positions_total: u64,
}

impl Window {
    /// An empty window of `capacity` positions in epoch 0.
    pub fn new(capacity: NonZeroU64, split: Split) -> Window {
        Window {
            epoch: 0,
            split,
            trim: Trim::new(capacity),
            ends: [0; 2],
            positions_total: 0,
        }
    }

    /// An empty window of this epoch, with the same split.
    pub fn begin(&self, epoch: u64, capacity: NonZeroU64) -> Window {
        Window {
            epoch,
            ..Window::new(capacity, self.split)
        }
    }

    /// Appends a game and drops what the law drops.
    ///
    /// # Errors
    /// When its sequence does not follow the last one; the window is unchanged.
    pub fn push(&mut self, game: &WindowGame) -> Result<(), PushError> {
        self.trim.expect_after_last(game.sequence)?;
        let stored = StoredGame::new(&game.record);
        let positions = stored.positions().len() as u32;
        let part = self.split.part(stored.id());
        self.ends[part.index()] += u64::from(positions);
        self.positions_total = game.positions_total;
        self.trim.push(
            game.sequence,
            positions,
            Slot {
                game: Arc::new(stored),
                part,
                ends: self.ends,
            },
        )
    }

    /// Draws a position of `part` uniformly from those that count, or `None` when there is none.
    pub fn draw<R: Rng>(&self, part: Part, rng: &mut R) -> Option<Draw> {
        let range = self.range(part);
        (!range.is_empty()).then(|| self.at(part, rng.random_range(range)))
    }

    /// Draws `count` positions of `part` independently; none at all when there is none.
    pub fn draw_many<R: Rng>(&self, part: Part, count: usize, rng: &mut R) -> Vec<Draw> {
        (0..count).map_while(|_| self.draw(part, rng)).collect()
    }

    /// Number of positions of `part` that count.
    pub fn positions(&self, part: Part) -> u64 {
        let range = self.range(part);
        range.end - range.start
    }

    /// How full the window is, both parts together.
    pub fn fill(&self) -> Fill {
        self.trim.fill()
    }

    /// The epoch it mirrors.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Commit sequence of the game pushed last: the cursor to go on from.
    pub fn last_sequence(&self) -> Option<u64> {
        self.trim.last_sequence()
    }

    /// Positions the run had committed with the game pushed last.
    pub fn positions_total(&self) -> u64 {
        self.positions_total
    }

    /// Memory of the kept games, bytes.
    pub fn bytes(&self) -> usize {
        self.trim.kept().iter().map(|kept| kept.game.game.bytes()).sum()
    }

    /// The counting positions of `part`, by their number among all positions of that part ever pushed.
    fn range(&self, part: Part) -> std::ops::Range<u64> {
        let end = self.ends[part.index()];
        let Some(oldest) = self.trim.kept().front() else {
            return end..end;
        };
        let first = oldest.game.ends[part.index()];
        if oldest.game.part == part {
            first - u64::from(oldest.positions) + self.trim.skipped()..end
        } else {
            first..end
        }
    }

    /// The position with this number, which is in the range of `part`.
    fn at(&self, part: Part, number: u64) -> Draw {
        let kept = self.trim.kept();
        // Games of the other part and this one have ends that do not grow, so the first end above the number is the
        // position's own game.
        let found = &kept[kept.partition_point(|kept| kept.game.ends[part.index()] <= number)];
        let begin = found.game.ends[part.index()] - u64::from(found.positions);
        Draw {
            game: Arc::clone(&found.game.game),
            position: (number - begin) as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_games::{records, rng, tic_tac_toe};
    use proptest::prelude::*;
    use tengen_records::RecordId;

    fn capacity(positions: u64) -> NonZeroU64 {
        NonZeroU64::new(positions).expect("capacities in tests are above 0")
    }

    fn feed(window: &mut Window, records: &[Record]) {
        for record in records {
            let sequence = window.last_sequence().unwrap_or(0) + 1;
            let positions_total = window.positions_total() + u64::from(record.positions());
            window
                .push(&WindowGame {
                    sequence,
                    positions_total,
                    record: record.clone(),
                })
                .expect("sequences ascend");
        }
    }

    /// Every position that can be drawn, in order.
    fn drawable(window: &Window, part: Part) -> Vec<(RecordId, usize)> {
        let draws = window.range(part).map(|number| window.at(part, number));
        draws.map(|draw| (draw.game.id(), draw.position)).collect()
    }

    /// The same, from the definition: the newest `n` positions, then those of the part.
    fn by_definition(records: &[Record], n: usize, split: Split, part: Part) -> Vec<(RecordId, usize)> {
        let all = records
            .iter()
            .flat_map(|record| (0..record.positions() as usize).map(|index| (record.id, index)));
        let all: Vec<_> = all.collect();
        let newest = all[all.len().saturating_sub(n)..].iter().copied();
        newest.filter(|&(id, _)| split.part(id) == part).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn exactly_the_newest_positions_of_each_part_can_be_drawn(
            n in 1u64..120, games in 0usize..40, share in 0.0f64..0.9, seed in 0u64..1000,
        ) {
            let split = Split::new(share).expect("in range");
            let records = records(&tic_tac_toe(), games, seed);
            let mut window = Window::new(capacity(n), split);
            for pushed in 0..=records.len() {
                if pushed > 0 {
                    feed(&mut window, &records[pushed - 1..pushed]);
                }
                for part in [Part::Training, Part::Validation] {
                    let expected = by_definition(&records[..pushed], n as usize, split, part);
                    prop_assert_eq!(window.positions(part), expected.len() as u64);
                    prop_assert_eq!(drawable(&window, part), expected);
                }
            }
        }
    }

    #[test]
    fn positions_are_drawn_uniformly() {
        let mut window = Window::new(capacity(200), Split::new(0.2).expect("in range"));
        feed(&mut window, &records(&tic_tac_toe(), 90, 4));
        let cells = drawable(&window, Part::Training);
        assert!(
            window.fill().positions == 200 && (100..200).contains(&cells.len()),
            "{}",
            cells.len()
        );
        let draws = 1000 * cells.len();
        let mut counts = vec![0f64; cells.len()];
        let mut rng = rng(9);
        for _ in 0..draws {
            let draw = window.draw(Part::Training, &mut rng).expect("the window is full");
            let cell = cells.iter().position(|&cell| cell == (draw.game.id(), draw.position));
            counts[cell.expect("only counting positions are drawn")] += 1.0;
        }
        let chi_square: f64 = counts.iter().map(|count| (count - 1000.0).powi(2) / 1000.0).sum();
        // Mean k, variance 2k for k degrees of freedom; five deviations are a chance of about one in a million.
        let freedom = cells.len() as f64 - 1.0;
        assert!(
            (chi_square - freedom).abs() < 5.0 * (2.0 * freedom).sqrt(),
            "{chi_square} for {freedom}"
        );
    }

    #[test]
    fn an_empty_part_gives_nothing() {
        let mut window = Window::new(capacity(10), Split::TRAINING_ONLY);
        assert!(window.draw(Part::Training, &mut rng(1)).is_none());
        feed(&mut window, &records(&tic_tac_toe(), 3, 1));
        assert!(window.draw_many(Part::Validation, 5, &mut rng(1)).is_empty());
        assert_eq!(window.draw_many(Part::Training, 5, &mut rng(1)).len(), 5);
    }

    #[test]
    fn a_new_epoch_starts_from_nothing() {
        let mut window = Window::new(capacity(50), Split::TRAINING_ONLY);
        feed(&mut window, &records(&tic_tac_toe(), 20, 1));
        assert!(window.bytes() > 0 && window.positions_total() > 50);
        window = window.begin(4, capacity(30));
        assert_eq!(
            (window.epoch(), window.last_sequence(), window.positions_total()),
            (4, None, 0)
        );
        assert_eq!(
            window.fill(),
            Fill {
                games: 0,
                positions: 0,
                capacity: 30
            }
        );
        feed(&mut window, &records(&tic_tac_toe(), 20, 2));
        assert_eq!(window.positions(Part::Training), 30);
    }

    #[test]
    fn a_game_out_of_order_is_refused_and_changes_nothing() {
        let mut window = Window::new(capacity(50), Split::TRAINING_ONLY);
        let records = records(&tic_tac_toe(), 2, 1);
        feed(&mut window, &records[..1]);
        let before = (window.positions(Part::Training), window.positions_total());
        let again = WindowGame {
            sequence: 1,
            positions_total: 99,
            record: records[1].clone(),
        };
        assert_eq!(window.push(&again), Err(PushError { sequence: 1, last: 1 }));
        assert_eq!((window.positions(Part::Training), window.positions_total()), before);
    }
}
