//! From drawn positions to a minibatch: replay to the ply, a symmetry, planes and targets.
//!
//! Needs the rules and no window, so that batches are filled while games arrive.

use rand::{Rng, RngExt};
use tengen_games::{Game, IllegalAction, Outcome, Seat, State, Symmetry};
use tengen_records::RecordId;

use crate::batch::{Batch, Row};
use crate::split::Part;
use crate::window::{Draw, Window};

/// Which symmetries positions are seen through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Augmentation {
    /// As they were played.
    None,
    /// Through one of the game's symmetries, drawn uniformly for each position.
    Symmetries,
}

/// Why a batch could not be filled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    /// Nothing to draw from.
    #[error("the window has no position for {0:?}")]
    Empty(Part),
    /// A stored game that these rules do not replay.
    #[error("game {record} does not replay: ply {ply}: {source}")]
    Replay {
        /// The game.
        record: RecordId,
        /// Ply of the refused action, from the start of the game.
        ply: usize,
        /// What the rules say.
        source: IllegalAction,
    },
    /// A policy target for an action that the game does not have.
    #[error("game {record} has a target for action {action}, its game has {actions} actions")]
    Target {
        /// The game.
        record: RecordId,
        /// The action.
        action: usize,
        /// Number of actions there are.
        actions: usize,
    },
}

/// Fills batches for one game.
#[derive(Clone, Debug)]
pub struct Sampler<G: Game> {
    game: G,
    augmentation: Augmentation,
}

impl<G: Game> Sampler<G> {
    /// A sampler for this game.
    pub fn new(game: G, augmentation: Augmentation) -> Sampler<G> {
        Sampler { game, augmentation }
    }

    /// Overwrites `batch` with `len` positions of `part`, drawn uniformly from those of the window that count.
    ///
    /// # Errors
    /// When there is nothing to draw from, or as in [`Sampler::fill`].
    pub fn sample<R: Rng>(
        &self,
        window: &Window,
        part: Part,
        len: usize,
        batch: &mut Batch,
        rng: &mut R,
    ) -> Result<(), SampleError> {
        let draws = window.draw_many(part, len, rng);
        if draws.len() < len {
            return Err(SampleError::Empty(part));
        }
        self.fill(&draws, batch, rng)
    }

    /// Overwrites `batch` with these positions in order, each seen through its own symmetry.
    ///
    /// # Errors
    /// When a game is not one of these rules; the batch then holds no whole set of positions.
    pub fn fill<R: Rng>(&self, draws: &[Draw], batch: &mut Batch, rng: &mut R) -> Result<(), SampleError> {
        let spec = self.game.spec();
        batch.clear_to(spec, draws.len());
        for (row, draw) in batch.rows(spec).zip(draws) {
            let symmetry = match self.augmentation {
                Augmentation::None => &spec.symmetries[0],
                Augmentation::Symmetries => &spec.symmetries[rng.random_range(0..spec.symmetries.len())],
            };
            self.fill_row(row, draw, symmetry)?;
        }
        Ok(())
    }

    /// Which actions are legal in these positions as they were played, `[B, A]` in the order of the draws.
    ///
    /// # Errors
    /// When a game is not one of these rules.
    pub fn legal(&self, draws: &[Draw]) -> Result<Vec<bool>, SampleError> {
        let actions = self.game.spec().actions.len();
        let mut legal = vec![false; draws.len() * actions];
        let mut listed = Vec::new();
        for (row, draw) in legal.chunks_exact_mut(actions).zip(draws) {
            let position = draw.game.positions()[draw.position];
            self.replay(draw, position.ply as usize)?.legal(&mut listed);
            listed.iter().for_each(|action| row[action.index()] = true);
        }
        Ok(legal)
    }

    fn fill_row(&self, row: Row<'_>, draw: &Draw, symmetry: &Symmetry) -> Result<(), SampleError> {
        let position = draw.game.positions()[draw.position];
        let state = self.replay(draw, position.ply as usize)?;
        // The state is transformed, not its planes: a symmetry may swap colours, which moves planes as well as cells.
        let seen = state.transform(symmetry);
        seen.planes(row.planes);
        for (action, probability) in draw.game.target(draw.position) {
            let (record, action, actions) = (draw.game.id(), action.index(), symmetry.actions.len());
            let image = symmetry.actions.get(action).ok_or(SampleError::Target {
                record,
                action,
                actions,
            })?;
            row.policy[usize::from(*image)] = probability;
        }
        // A result belongs to the seats of the game as it was played.
        row.wdl[wdl_index(draw.game.outcome(), state.seat())] = 1.0;
        *row.weight = position.weight;
        Ok(())
    }

    fn replay(&self, draw: &Draw, plies: usize) -> Result<G::State, SampleError> {
        let mut state = self.game.start();
        for (ply, &action) in draw.game.actions()[..plies].iter().enumerate() {
            let record = draw.game.id();
            state
                .apply(action)
                .map_err(|source| SampleError::Replay { record, ply, source })?;
        }
        Ok(state)
    }
}

/// 0 for a win of `seat`, 1 for a draw, 2 for a loss.
fn wdl_index(outcome: Outcome, seat: Seat) -> usize {
    match outcome.winner {
        Some(winner) if winner == seat => 0,
        None => 1,
        Some(_) => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::Split;
    use crate::stored::StoredGame;
    use crate::test_games::{records, rng, tic_tac_toe};
    use crate::window::WindowGame;
    use std::num::NonZeroU64;
    use std::sync::Arc;
    use tengen_games::Action;
    use tengen_records::Record;
    use tengen_records::testing::{EveryGame, each_game};

    /// Every position of some records with the ply it was made from.
    fn draws(records: &[Record]) -> Vec<(Draw, &Record, usize)> {
        let mut draws = Vec::new();
        for record in records {
            let game = Arc::new(StoredGame::new(record));
            let plies = record.plies.iter().enumerate().filter(|(_, ply)| ply.is_position());
            for (position, (n, _)) in plies.enumerate() {
                draws.push((
                    Draw {
                        game: Arc::clone(&game),
                        position,
                    },
                    record,
                    n,
                ));
            }
        }
        draws
    }

    fn state_at<G: Game>(game: &G, record: &Record, n: usize) -> G::State {
        let mut state = game.start();
        for action in record.actions().take(record.opening.len() + n) {
            state.apply(action).expect("the record is honest");
        }
        state
    }

    struct RowsAreWhatWasPlayed;

    impl EveryGame for RowsAreWhatWasPlayed {
        fn test<G: Game>(&self, game: &G) {
            let records = records(game, 6, 3);
            let drawn = draws(&records);
            let only: Vec<Draw> = drawn.iter().map(|(draw, ..)| draw.clone()).collect();
            let mut batch = Batch::default();
            Sampler::new(game.clone(), Augmentation::None)
                .fill(&only, &mut batch, &mut rng(1))
                .expect("honest games");
            let (spec, mut planes) = (game.spec(), vec![0; game.spec().planes_len()]);
            for (row, (_, record, n)) in drawn.iter().enumerate() {
                let (state, ply) = (state_at(game, record, *n), &record.plies[*n]);
                let search = ply.search.as_ref().expect("positions were searched");
                state.planes(&mut planes);
                assert_eq!(batch.planes[row * planes.len()..][..planes.len()], planes[..]);
                let policy = &batch.policy[row * spec.actions.len()..][..spec.actions.len()];
                let target = policy
                    .iter()
                    .enumerate()
                    .filter(|(_, p)| **p > 0.0)
                    .map(|(a, &p)| (Action(a as u16), p));
                assert_eq!(target.collect::<Vec<_>>(), search.policy_target);
                let wdl = &batch.wdl[row * 3..][..3];
                assert_eq!(wdl[0] - wdl[2], record.outcome.value_for(ply.seat));
                assert_eq!(wdl.iter().sum::<f32>(), 1.0);
                assert_eq!(batch.weight[row], search.weight);
            }
            assert_eq!(batch.len, drawn.len());
            let legal = Sampler::new(game.clone(), Augmentation::Symmetries)
                .legal(&only)
                .expect("honest games");
            for (row, (_, record, n)) in legal.chunks_exact(spec.actions.len()).zip(&drawn) {
                let state = state_at(game, record, *n);
                let is_legal = (0..spec.actions.len()).map(|action| state.is_legal(Action(action as u16)));
                assert!(is_legal.eq(row.iter().copied()));
            }
        }
    }

    #[test]
    fn without_augmentation_rows_are_what_was_played() {
        each_game(&RowsAreWhatWasPlayed);
    }

    struct SeenThroughSymmetries;

    impl EveryGame for SeenThroughSymmetries {
        fn test<G: Game>(&self, game: &G) {
            let records = records(game, 2, 8);
            let (spec, sampler) = (game.spec(), Sampler::new(game.clone(), Augmentation::Symmetries));
            for (draw, record, n) in draws(&records) {
                let state = state_at(game, record, n);
                for symmetry in &spec.symmetries {
                    let mut batch = Batch::default();
                    batch.clear_to(spec, 1);
                    let row = batch.rows(spec).next().expect("one row");
                    sampler.fill_row(row, &draw, symmetry).expect("honest games");
                    let mut planes = vec![0; spec.planes_len()];
                    state.planes(&mut planes);
                    assert_eq!(
                        batch.planes,
                        permuted(&planes, symmetry, spec.cells()),
                        "{}",
                        symmetry.name
                    );
                    // Every target lies on an action that is legal in the position as it is seen.
                    let seen = state.transform(symmetry);
                    for (action, &probability) in batch.policy.iter().enumerate() {
                        assert!(
                            probability == 0.0 || seen.is_legal(Action(action as u16)),
                            "{}",
                            symmetry.name
                        );
                    }
                }
            }
        }
    }

    /// Planes with their cells moved as the symmetry says.
    fn permuted(planes: &[u8], symmetry: &Symmetry, cells: usize) -> Vec<u8> {
        let mut moved = vec![0; planes.len()];
        for (from, to) in planes.chunks_exact(cells).zip(moved.chunks_exact_mut(cells)) {
            for (cell, &byte) in from.iter().enumerate() {
                to[usize::from(symmetry.cells[cell])] = byte;
            }
        }
        moved
    }

    #[test]
    fn moving_the_cells_of_planes_equals_transforming_the_state() {
        each_game(&SeenThroughSymmetries);
    }

    fn window(records: &[Record]) -> Window {
        let mut window = Window::new(NonZeroU64::new(1000).expect("above 0"), Split::TRAINING_ONLY);
        for (n, record) in records.iter().enumerate() {
            let game = WindowGame {
                sequence: n as u64 + 1,
                positions_total: 0,
                record: record.clone(),
            };
            window.push(&game).expect("sequences ascend");
        }
        window
    }

    #[test]
    fn every_symmetry_is_drawn_about_as_often() {
        let game = tic_tac_toe();
        // A stone in a corner and one beside it: all eight images differ.
        let record = asymmetric(&game);
        let game_of = Arc::new(StoredGame::new(&record));
        let position = game_of
            .positions()
            .iter()
            .position(|position| position.ply == 2)
            .expect("ply 2 is a position");
        let draws = vec![
            Draw {
                game: game_of,
                position
            };
            8000
        ];
        let mut batch = Batch::default();
        Sampler::new(game.clone(), Augmentation::Symmetries)
            .fill(&draws, &mut batch, &mut rng(2))
            .expect("honest");
        let mut counts = std::collections::BTreeMap::new();
        for planes in batch.planes.chunks_exact(game.spec().planes_len()) {
            *counts.entry(planes.to_vec()).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 8);
        assert!(
            counts.values().all(|count| (850..1150).contains(count)),
            "{:?}",
            counts.values()
        );
    }

    /// A game that begins 0, 1, with a position at ply 2.
    fn asymmetric<G: Game>(game: &G) -> Record {
        (0..)
            .flat_map(|seed| records(game, 50, seed))
            .find(|record| {
                record.actions().take(2).eq([Action(0), Action(1)])
                    && record.opening.len() <= 2
                    && record.plies[2 - record.opening.len()].is_position()
            })
            .expect("random games begin in every way")
    }

    #[test]
    fn the_same_seed_samples_the_same_batch() {
        let game = tic_tac_toe();
        let window = window(&records(&game, 40, 6));
        let sampler = Sampler::new(game, Augmentation::Symmetries);
        let mut batches = [Batch::default(), Batch::default(), Batch::default()];
        for (batch, seed) in batches.iter_mut().zip([1, 1, 2]) {
            sampler
                .sample(&window, Part::Training, 64, batch, &mut rng(seed))
                .expect("the window has positions");
        }
        assert_eq!(batches[0], batches[1]);
        assert_ne!(batches[0], batches[2]);
    }

    #[test]
    fn a_reused_batch_keeps_nothing_of_the_one_before() {
        let game = tic_tac_toe();
        let window = window(&records(&game, 40, 6));
        let sampler = Sampler::new(game, Augmentation::Symmetries);
        let (mut reused, mut fresh) = (Batch::default(), Batch::default());
        sampler
            .sample(&window, Part::Training, 99, &mut reused, &mut rng(1))
            .expect("the window has positions");
        for batch in [&mut reused, &mut fresh] {
            sampler
                .sample(&window, Part::Training, 17, batch, &mut rng(5))
                .expect("the window has positions");
        }
        assert_eq!(reused, fresh);
    }

    #[test]
    fn an_empty_window_and_a_foreign_game_are_errors() {
        let game = tic_tac_toe();
        let sampler = Sampler::new(game.clone(), Augmentation::None);
        let mut batch = Batch::default();
        let empty = sampler.sample(&window(&[]), Part::Training, 4, &mut batch, &mut rng(1));
        assert_eq!(empty, Err(SampleError::Empty(Part::Training)));
        let honest = records(&game, 1, 1).remove(0);
        let mut bad = honest.clone();
        bad.opening.insert(0, Action(500));
        let draws: Vec<Draw> = draws(&[bad]).into_iter().map(|(draw, ..)| draw).collect();
        let replayed = sampler.fill(&draws, &mut batch, &mut rng(1));
        assert!(
            matches!(replayed, Err(SampleError::Replay { ply: 0, .. })),
            "{replayed:?}"
        );
        let mut bad = honest;
        let ply = bad
            .plies
            .iter_mut()
            .find(|ply| ply.is_position())
            .expect("one position");
        ply.search.as_mut().expect("positions were searched").policy_target = vec![(Action(9), 1.0)];
        let draws: Vec<Draw> = self::draws(&[bad]).into_iter().map(|(draw, ..)| draw).collect();
        let filled = sampler.fill(&draws, &mut batch, &mut rng(1));
        assert!(
            matches!(
                filled,
                Err(SampleError::Target {
                    action: 9,
                    actions: 9,
                    ..
                })
            ),
            "{filled:?}"
        );
    }
}
