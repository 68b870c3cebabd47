//! Minibatches, prepared on a thread of their own while the step before trains.
//!
//! The batch of a step is drawn with a generator seeded from (sampler seed, step) alone. So a frozen window gives the same
//! batches whenever and however often a step is asked for, and a checkpoint needs no generator state. Only steps that are
//! asked for are prepared: a batch never waits in the queue while the window moves on.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_replay::{Augmentation, Batch, Draw, Part, SampleError, Sampler, Window};

/// Batches that may be prepared ahead; each holds a few hundred kilobytes. Two would do when sampling is always quicker
/// than a step; four ride out a busy core.
const AHEAD: u64 = 4;

/// The window, shared between the mirror that fills it and the thread that draws from it.
pub type SharedWindow = Arc<Mutex<Window>>;

/// No batch came.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// The window could not be sampled.
    #[error("failed to sample the window: {0}")]
    Sample(#[from] SampleError),
    /// The sampling thread could not be started.
    #[error("failed to start the sampling thread: {0}")]
    Start(#[source] std::io::Error),
    /// The sampling thread is gone.
    #[error("the sampling thread ended early")]
    Gone,
}

impl BatchError {
    /// Whether the window had nothing to draw from: games may come, and the same batch can be asked for again.
    pub fn is_empty_window(&self) -> bool {
        matches!(self, BatchError::Sample(SampleError::Empty(_)))
    }
}

/// What is wanted of the sampling thread.
enum Wanted {
    /// The training batch of this step.
    Step(u64),
    /// So many positions as they were played, without symmetries, drawn with the generator of this step.
    Positions { count: usize, step: u64 },
    /// Training batches of this size from now on.
    Size(usize),
}

type Answer<T> = Result<T, SampleError>;

/// Positions as they were played, and what was legal in them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Positions {
    /// The positions, seen through no symmetry.
    pub batch: Batch,
    /// Whether the rules allow an action there, `[B, A]`.
    pub legal: Vec<bool>,
}

/// Asks for batches in the order of their steps. Dropping it ends the thread.
#[derive(Debug)]
pub struct Batches {
    wanted: Option<Sender<Wanted>>,
    steps: Receiver<Answer<Batch>>,
    positions: Receiver<Answer<Positions>>,
    /// The buffers of used batches go back here.
    used: Sender<Batch>,
    thread: Option<JoinHandle<()>>,
    /// First step not asked for yet, and first not taken yet.
    asked: u64,
    taken: u64,
    waited: Duration,
}

impl Batches {
    /// Starts the thread. The first batch will be that of `step`; positions are seen through symmetries drawn at random.
    pub fn start(
        game: &AnyGame,
        window: SharedWindow,
        batch: usize,
        seed: u64,
        step: u64,
    ) -> Result<Batches, BatchError> {
        Batches::augmented(game, window, Augmentation::Symmetries, batch, seed, step)
    }

    /// The same, with training batches seen as `augmentation` says.
    pub fn augmented(
        game: &AnyGame,
        window: SharedWindow,
        augmentation: Augmentation,
        batch: usize,
        seed: u64,
        step: u64,
    ) -> Result<Batches, BatchError> {
        // Room for everything that can be under way, so that no send here ever blocks.
        let room = AHEAD as usize + 1;
        let (wanted, orders) = bounded(room);
        let (step_answers, steps) = bounded(room);
        let (position_answers, positions) = bounded(1);
        let (used, spare) = bounded(room);
        let worker = Worker {
            window,
            augmentation,
            batch,
            seed,
            orders,
            steps: step_answers,
            positions: position_answers,
            spare,
        };
        let game = game.clone();
        let thread = std::thread::Builder::new()
            .name("learner-sampler".to_owned())
            .spawn(move || game.visit(worker))
            .map_err(BatchError::Start)?;
        Ok(Batches {
            wanted: Some(wanted),
            steps,
            positions,
            used,
            thread: Some(thread),
            asked: step,
            taken: step,
            waited: Duration::ZERO,
        })
    }

    /// The batch of the next step. Batches of the steps after it are prepared meanwhile, up to `steps_allowed` in all.
    ///
    /// # Errors
    /// When the window cannot be sampled; the next call asks for the batch of the same step again.
    pub fn next(&mut self, steps_allowed: u64) -> Result<Batch, BatchError> {
        let ahead = (self.taken + AHEAD).min(steps_allowed.max(self.taken + 1));
        while self.asked < ahead {
            self.want(Wanted::Step(self.asked))?;
            self.asked += 1;
        }
        let begun = Instant::now();
        let answer = self.steps.recv();
        self.waited += begun.elapsed();
        match answer.map_err(|_| BatchError::Gone)? {
            Ok(batch) => {
                self.taken += 1;
                Ok(batch)
            }
            Err(error) => {
                self.forget_asked()?;
                Err(error.into())
            }
        }
    }

    /// Time in which [`Batches::next`] waited for the sampling thread, in all.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Drops what was prepared for the steps after the one that failed, so that they are asked for again in order.
    fn forget_asked(&mut self) -> Result<(), BatchError> {
        for _later in self.taken + 1..self.asked {
            let _prepared = self.steps.recv().map_err(|_| BatchError::Gone)?;
        }
        self.asked = self.taken;
        Ok(())
    }

    /// Batches of another size from the next step on.
    pub fn resize(&mut self, batch: usize) -> Result<(), BatchError> {
        for _old in self.taken..self.asked {
            let _prepared = self.steps.recv().map_err(|_| BatchError::Gone)?;
        }
        self.asked = self.taken;
        self.want(Wanted::Size(batch))
    }

    /// Gives a used batch's buffers back.
    pub fn give_back(&self, batch: Batch) {
        // When there are spare ones enough, this one is dropped.
        let _ = self.used.try_send(batch);
    }

    /// So many positions of the window as they were played.
    pub fn positions(&mut self, count: usize) -> Result<Positions, BatchError> {
        self.want(Wanted::Positions {
            count,
            step: self.taken,
        })?;
        Ok(self.positions.recv().map_err(|_| BatchError::Gone)??)
    }

    fn want(&self, wanted: Wanted) -> Result<(), BatchError> {
        let sender = self.wanted.as_ref().ok_or(BatchError::Gone)?;
        sender.send(wanted).map_err(|_| BatchError::Gone)
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        // Without orders the thread ends.
        self.wanted = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Worker {
    window: SharedWindow,
    augmentation: Augmentation,
    batch: usize,
    seed: u64,
    orders: Receiver<Wanted>,
    steps: Sender<Answer<Batch>>,
    positions: Sender<Answer<Positions>>,
    spare: Receiver<Batch>,
}

impl GameVisitor for Worker {
    type Output = ();

    fn visit<G: Game>(self, game: G) {
        let augmented = Sampler::new(game.clone(), self.augmentation);
        let plain = Sampler::new(game, Augmentation::None);
        let mut size = self.batch;
        for wanted in self.orders.iter() {
            let sent = match wanted {
                Wanted::Size(other) => {
                    size = other;
                    continue;
                }
                Wanted::Step(step) => {
                    let batch = self.step(&augmented, size, step);
                    self.steps.send(batch).is_ok()
                }
                Wanted::Positions { count, step } => {
                    let positions = self.positions(&plain, count, step);
                    self.positions.send(positions).is_ok()
                }
            };
            if !sent {
                return;
            }
        }
    }
}

impl Worker {
    fn step<G: Game>(&self, sampler: &Sampler<G>, count: usize, step: u64) -> Answer<Batch> {
        let mut rng = generator(self.seed, "step", step);
        let draws = self.draw(count, &mut rng)?;
        let mut batch = self.spare.try_recv().unwrap_or_default();
        sampler.fill(&draws, &mut batch, &mut rng)?;
        Ok(batch)
    }

    fn positions<G: Game>(&self, sampler: &Sampler<G>, count: usize, step: u64) -> Answer<Positions> {
        let mut rng = generator(self.seed, "probe", step);
        let draws = self.draw(count, &mut rng)?;
        let mut positions = Positions {
            legal: sampler.legal(&draws)?,
            ..Positions::default()
        };
        sampler.fill(&draws, &mut positions.batch, &mut rng)?;
        Ok(positions)
    }

    /// Only the draw needs the window; replaying the games does not hold up the mirror.
    fn draw(&self, count: usize, rng: &mut Xoshiro256PlusPlus) -> Answer<Vec<Draw>> {
        let window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let draws = window.draw_many(Part::Training, count, rng);
        if draws.len() < count {
            return Err(SampleError::Empty(Part::Training));
        }
        Ok(draws)
    }
}

/// The generator that everything random about a step comes from.
fn generator(seed: u64, purpose: &str, step: u64) -> Xoshiro256PlusPlus {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"tengen/v1/learner/");
    hasher.update(purpose.as_bytes());
    hasher.update(&seed.to_le_bytes());
    hasher.update(&step.to_le_bytes());
    Xoshiro256PlusPlus::from_seed(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::fixture;

    fn batches(step: u64) -> Batches {
        let game = AnyGame::parse("tic-tac-toe").unwrap();
        let window = fixture::window(&game, 20, 3);
        Batches::start(&game, window, 8, 42, step).unwrap()
    }

    #[test]
    fn batches_of_another_size_come_from_the_next_step_on() {
        let mut batches = batches(0);
        assert_eq!(batches.next(10).unwrap().len, 8);
        batches.resize(3).unwrap();
        let resized = batches.next(10).unwrap();
        assert_eq!((resized.len, batches.next(10).unwrap().len), (3, 3));
        // The generator is that of the step, whatever came before.
        let mut fresh = self::batches(1);
        fresh.resize(3).unwrap();
        assert_eq!(fresh.next(10).unwrap().planes, resized.planes);
    }

    #[test]
    fn a_frozen_window_gives_each_step_the_same_batch_whenever_it_is_asked_for() {
        let mut from_start = batches(0);
        let first: Vec<Batch> = (0..10).map(|_| from_start.next(10).unwrap()).collect();
        let mut from_five = batches(5);
        // Asked for differently: one step at a time, with other orders between.
        for (step, expected) in first.iter().enumerate().skip(5) {
            from_five.positions(3).unwrap();
            assert_eq!(&from_five.next(step as u64 + 1).unwrap(), expected);
        }
        assert_ne!(first[0], first[1]);
    }

    #[test]
    fn nothing_is_prepared_beyond_what_is_allowed() {
        let mut batches = batches(0);
        batches.next(2).unwrap();
        assert_eq!(batches.asked, 2);
        batches.next(2).unwrap();
        assert_eq!((batches.asked, batches.taken), (2, 2));
        batches.next(100).unwrap();
        assert_eq!(batches.asked, 2 + AHEAD);
    }

    #[test]
    fn only_waiting_for_batches_counts_as_that() {
        let begun = Instant::now();
        let mut batches = batches(0);
        batches.positions(3).unwrap();
        assert_eq!(batches.waited(), Duration::ZERO);
        for _ in 0..10 {
            batches.next(10).unwrap();
        }
        assert!(batches.waited() > Duration::ZERO && batches.waited() <= begun.elapsed());
    }

    #[test]
    fn an_empty_window_is_an_error() {
        let game = AnyGame::parse("tic-tac-toe").unwrap();
        let mut batches = Batches::start(&game, fixture::window(&game, 0, 3), 8, 42, 0).unwrap();
        assert!(matches!(
            batches.next(1),
            Err(BatchError::Sample(SampleError::Empty(Part::Training)))
        ));
    }

    #[test]
    fn a_window_that_was_empty_for_a_while_gives_every_step_its_batch() {
        let game = AnyGame::parse("tic-tac-toe").unwrap();
        let mut steady = batches(0);
        let window = fixture::window(&game, 20, 3);
        let mut moody = Batches::start(&game, Arc::clone(&window), 8, 42, 0).unwrap();
        for step in 0..12 {
            if step % 3 == 1 {
                let full = window.lock().unwrap().clone();
                *window.lock().unwrap() = full.begin(9, std::num::NonZeroU64::MIN);
                // Those that were prepared before are good still; then the empty window shows.
                loop {
                    match moody.next(100) {
                        Ok(batch) => assert_eq!(batch, steady.next(100).unwrap()),
                        Err(error) => {
                            assert!(error.is_empty_window(), "{error}");
                            break;
                        }
                    }
                }
                assert!(moody.positions(3).unwrap_err().is_empty_window());
                *window.lock().unwrap() = full;
            }
            assert_eq!(moody.next(100).unwrap(), steady.next(100).unwrap());
        }
    }

    #[test]
    fn used_buffers_do_not_leak_into_later_batches() {
        let mut reusing = batches(0);
        let mut fresh = batches(0);
        for _ in 0..6 {
            let batch = reusing.next(6).unwrap();
            assert_eq!(batch, fresh.next(6).unwrap());
            reusing.give_back(batch);
        }
    }

    #[test]
    fn targets_are_turned_with_their_position() {
        // Tic-tac-toe's first two planes are the stones of both seats; a target on a stone would be a legal action of
        // another view of the board.
        let mut batches = batches(0);
        let mut turned = HashSet::new();
        for _ in 0..100 {
            let batch = batches.next(100).unwrap();
            let rows = batch
                .planes
                .chunks_exact(batch.planes.len() / batch.len)
                .zip(batch.policy.chunks_exact(9));
            for (planes, policy) in rows {
                let on_stones = (0..9)
                    .filter(|&cell| planes[cell] + planes[9 + cell] > 0)
                    .map(|cell| policy[cell]);
                assert_eq!(on_stones.sum::<f32>(), 0.0, "{planes:?} {policy:?}");
                assert!((policy.iter().sum::<f32>() - 1.0).abs() < 1e-5);
                turned.insert(planes[..18].to_vec());
            }
        }
        // Twenty games of at most nine positions, seen through eight symmetries.
        assert!(turned.len() > 180, "{}", turned.len());
    }
}
