//! Who feeds which device.
//!
//! A core of a CPU is fed by an independent thread with a session of its own, in small batches over many trees. A GPU is
//! fed by a *set* of threads, which share its sessions and take turns: while the batch of one is on the device, the others
//! walk their trees. Of what nobody fixed, the numbers follow from the device ([`Division`]), and the size of a batch from
//! how fast the first network is here ([`Feeding::measure`]).
//!
//! A new network stops no game: the sessions that threads will want of it are loaded before they have its games
//! ([`Feeding::prepare`]), beside play.
//!
//! A game does not depend on how play is divided, but for the last digits of its network's answers: those follow from the
//! size that a batch is padded to, as everywhere (`reproduce` says what that can do to a search).
//!
//! Deliberately absent: the threads themselves, which whoever plays has.

mod division;
mod measure;
mod shared;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tengen_games::AnyGame;
use tengen_inference::{Device, Devices, InferenceError, Outputs, Session, SessionOptions, bucket_sizes};
use tengen_network::{Config, Metadata, Shape, ShapeError, WriteError, random_weights, write_onnx};

use crate::driver::DriverOptions;
use crate::evaluator::{EvaluateError, Evaluator, SessionEvaluator};
use crate::model::ModelBytes;
use crate::order::Lease;
use crate::shelf::Shelf;

pub use division::{Batch, Division, SessionsPer, Wishes};
pub use measure::Rate;
pub use shared::Shared;

/// No network can be tried on this machine.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The game has no network.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The network cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The network cannot be loaded, not even on the CPU.
    #[error(transparent)]
    Load(#[from] InferenceError),
}

/// What `devices` are on this machine: `auto` becomes the first GPU if the smallest network of `game` can be loaded there,
/// else the CPU. From then on nothing falls back silently. [`tengen_inference::init`] comes first.
///
/// # Errors
/// When `auto` is wanted and no network can be made or loaded at all.
pub fn find(devices: &Devices, game: &AnyGame) -> Result<Devices, TrialError> {
    if devices.as_slice() != [Device::Auto] {
        return Ok(devices.clone());
    }
    let config = Config {
        blocks: 1,
        channels: 8,
        ..Config::default()
    };
    let shape = Shape::new(game.spec(), &config)?;
    let network = write_onnx(&shape, &random_weights(&shape, 1), &Metadata::of_shape(&shape))?;
    Ok(devices.resolve(&network)?)
}

/// Feeds devices as a division says, for one process.
pub struct Feeding {
    division: Division,
    planes_len: usize,
    /// One for each device, where its threads share sessions.
    sets: Vec<Shared<SessionEvaluator>>,
    /// Sessions that threads will want.
    shelf: Arc<Shelf>,
    /// Positions in one evaluation, once that is settled.
    batch: OnceLock<usize>,
}

/// How fast a network is evaluated here, and what followed from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The execution provider really used.
    pub provider: String,
    /// Positions in one evaluation from now on.
    pub batch: usize,
    /// Of one session, by size of batch, ascending.
    pub rates: Vec<Rate>,
}

impl Measured {
    /// The rates for people: `1: 2310, 2: 2450`, positions a second by size of batch.
    pub fn rates_in_words(&self) -> String {
        let each = self.rates.iter();
        let words = each.map(|Rate { batch, per_second }| format!("{batch}: {per_second:.0}"));
        words.collect::<Vec<_>>().join(", ")
    }
}

impl Feeding {
    /// Feeds as `division` says, with positions of `planes_len` bytes.
    pub fn new(division: Division, planes_len: usize) -> Feeding {
        let shelf = Arc::<Shelf>::default();
        let set = |place| Shared::new(evaluator_of(&shelf, &division, place));
        let sets = match division.sessions_per() {
            SessionsPer::Thread => Vec::new(),
            SessionsPer::Device => (0..division.sessions()).map(set).collect(),
        };
        Feeding {
            division,
            planes_len,
            sets,
            shelf,
            batch: OnceLock::new(),
        }
    }

    /// How play is divided.
    pub fn division(&self) -> &Division {
        &self.division
    }

    /// Positions in one evaluation at most: what is settled, before that the most it may come to.
    pub fn batch(&self) -> usize {
        self.batch.get().copied().unwrap_or(self.division.batch().max())
    }

    /// How a thread plays.
    pub fn driver(&self, thread: usize) -> DriverOptions {
        DriverOptions {
            games: self.division.games_of(thread),
            batch_max: self.batch(),
            ..DriverOptions::default()
        }
    }

    /// What answers a thread.
    pub fn evaluator(&self, thread: usize) -> ThreadEvaluator {
        match self.sets.get(self.division.place_of(thread)) {
            Some(set) => ThreadEvaluator::Shared(set.clone()),
            None => ThreadEvaluator::Own(evaluator_of(&self.shelf, &self.division, thread)),
        }
    }

    /// How networks are loaded, for each device once.
    pub fn sessions(&self) -> Vec<SessionOptions> {
        let devices = self.division.devices().as_slice();
        devices.iter().map(|&device| sessions(&self.division, device)).collect()
    }

    /// Sessions of this file that are loaded already, as [`Feeding::sessions`] says, one for each device in its order: the
    /// first threads that want one take these. What no thread can want is dropped.
    pub fn offer(&self, model: &ModelBytes, sessions: Vec<Session>) {
        let devices = self.division.devices().as_slice();
        for (place, (session, &device)) in sessions.into_iter().zip(devices).enumerate() {
            let threads = self.division.sessions_on(place);
            self.shelf.put(model.file_id(), device, session, threads);
        }
    }

    /// Loads the sessions that threads will want for the games of `lease`, so that they need not: as many as there are
    /// threads without one, and no more than games. Blocks for as long as that takes, or until `go_on` (asked before each)
    /// says no; play goes on beside it.
    ///
    /// Where no thread has a session of any network, nothing is loaded: no game would be stopped, and the threads load theirs
    /// side by side. Sessions that still wait of networks which no lease names any more are dropped.
    ///
    /// # Errors
    /// When a network cannot be loaded. Threads will meet the same error.
    pub fn prepare(&self, lease: &Arc<Lease>, go_on: impl Fn() -> bool) -> Result<(), EvaluateError> {
        let sessions = self.sessions();
        self.shelf.keep_for(lease, self.division.devices().as_slice());
        if !self.shelf.is_in_use() {
            return Ok(());
        }
        let games = lease.order().plan.games() as usize;
        for model in lease.models() {
            let file = model.file_id();
            for (place, options) in sessions.iter().enumerate() {
                let threads = self.division.sessions_on(place);
                while go_on() && self.shelf.wants(file, options.device, games, threads) {
                    let loaded = Session::load(model.bytes(), options);
                    let session = loaded.map_err(|source| EvaluateError::Inference {
                        model: model.id(),
                        source,
                    })?;
                    self.shelf.put(file, options.device, session, threads);
                }
            }
        }
        Ok(())
    }

    /// Sessions that wait for a thread that wants them.
    pub fn sessions_waiting(&self) -> usize {
        self.shelf.waiting()
    }

    /// Evaluates `model` in batches of several sizes on the first device, about a second at most, and settles the size of a
    /// batch: what somebody fixed, else the smallest that is nearly as fast as the fastest. Does nothing, `None`, once it is
    /// settled. Further devices are taken to be like the first.
    ///
    /// # Errors
    /// When an evaluation fails; nothing is settled then.
    pub fn measure(&self, model: &Arc<ModelBytes>) -> Result<Option<Measured>, EvaluateError> {
        if self.batch.get().is_some() {
            return Ok(None);
        }
        let filled = self.division.batch_filled();
        let planes = vec![0; filled * self.planes_len];
        let mut out = Outputs::default();
        let mut evaluator = self.evaluator(0);
        let mut evaluate = |n: usize| {
            let begun = Instant::now();
            evaluator.evaluate(model, &planes[..n * self.planes_len], n, &mut out)?;
            Ok::<_, EvaluateError>(begun.elapsed())
        };
        // Loads the network.
        evaluate(1)?;
        let rates = measure::rates(&bucket_sizes(filled), &mut evaluate)?;
        let batch = match self.division.batch() {
            Batch::Told(batch) => batch,
            Batch::UpTo(batch_max) => measure::choose(&rates).unwrap_or(batch_max),
        };
        let measured = Measured {
            provider: evaluator.provider().unwrap_or_default(),
            batch,
            rates,
        };
        Ok(self.batch.set(batch).is_ok().then_some(measured))
    }
}

/// The sessions of one thread.
pub enum ThreadEvaluator {
    /// Its own.
    Own(SessionEvaluator),
    /// Those of its device.
    Shared(Shared<SessionEvaluator>),
}

impl ThreadEvaluator {
    /// The execution provider of the newest session; `None` before the first.
    pub fn provider(&self) -> Option<String> {
        let of = |sessions: &SessionEvaluator| sessions.provider().map(str::to_owned);
        match self {
            ThreadEvaluator::Own(sessions) => of(sessions),
            ThreadEvaluator::Shared(sessions) => sessions.look(of),
        }
    }

    /// Sessions that were loaded while a batch waited, by all threads that share them.
    pub fn loads(&self) -> u64 {
        match self {
            ThreadEvaluator::Own(sessions) => sessions.loads(),
            ThreadEvaluator::Shared(sessions) => sessions.look(SessionEvaluator::loads),
        }
    }
}

impl Evaluator for ThreadEvaluator {
    fn evaluate(
        &mut self,
        model: &Arc<ModelBytes>,
        planes: &[u8],
        n: usize,
        out: &mut Outputs,
    ) -> Result<(), EvaluateError> {
        match self {
            ThreadEvaluator::Own(sessions) => sessions.evaluate(model, planes, n, out),
            ThreadEvaluator::Shared(sessions) => sessions.evaluate(model, planes, n, out),
        }
    }
}

/// An evaluator for this thread, or for all threads of its device.
fn evaluator_of(shelf: &Arc<Shelf>, division: &Division, thread: usize) -> SessionEvaluator {
    SessionEvaluator::taking_from(Arc::clone(shelf), sessions(division, division.device_of(thread)))
}

/// Sessions on `device`, all alike: for the largest batch there may be, whatever is settled later, since a smaller one is padded
/// no further. A batch is spread over no further core: those belong to the other threads.
fn sessions(division: &Division, device: Device) -> SessionOptions {
    SessionOptions {
        device,
        intra_threads: 1,
        batch_max: division.batch().max(),
    }
}
