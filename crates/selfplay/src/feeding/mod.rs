//! Who feeds which device.
//!
//! A core of a CPU is fed by an independent thread with a session of its own, in small batches over many trees. A GPU is
//! fed by a *set* of threads, which share its sessions and take turns: while the batch of one is on the device, the others
//! walk their trees. Of what nobody fixed, the numbers follow from the device ([`Division`]), and the size of a batch from
//! how fast the first network is here ([`Feeding::measure`]).
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
use tengen_inference::{Device, Devices, InferenceError, Outputs, SessionOptions, bucket_sizes};
use tengen_network::{Config, Metadata, Shape, ShapeError, WriteError, random_weights, write_onnx};

use crate::driver::DriverOptions;
use crate::evaluator::{EvaluateError, Evaluator, SessionEvaluator};
use crate::model::ModelBytes;

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
        let set = |place| SessionEvaluator::new(sessions(division.device_of(place), division.batch().max()));
        let sets = match division.sessions_per() {
            SessionsPer::Thread => Vec::new(),
            SessionsPer::Device => (0..division.sessions()).map(|place| Shared::new(set(place))).collect(),
        };
        Feeding {
            division,
            planes_len,
            sets,
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
        self.evaluator_for(thread, self.batch())
    }

    /// How networks are loaded, for each device once.
    pub fn sessions(&self) -> Vec<SessionOptions> {
        let devices = self.division.devices().as_slice();
        devices.iter().map(|&device| sessions(device, self.batch())).collect()
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
        let mut evaluator = self.evaluator_for(0, self.division.batch().max());
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

    fn evaluator_for(&self, thread: usize, batch_max: usize) -> ThreadEvaluator {
        match self.sets.get(self.division.place_of(thread)) {
            Some(set) => ThreadEvaluator::Shared(set.clone()),
            None => {
                let options = sessions(self.division.device_of(thread), batch_max);
                ThreadEvaluator::Own(SessionEvaluator::new(options))
            }
        }
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

/// Sessions on `device`. A batch is spread over no further core: those belong to the other threads.
fn sessions(device: Device, batch_max: usize) -> SessionOptions {
    SessionOptions {
        device,
        intra_threads: 1,
        batch_max,
    }
}
