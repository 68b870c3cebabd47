//! Audit by re-evaluation: a record says what its network saw, and the network is asked again.
//!
//! A search block states the network's own view of its position (`net_wdl`, `net_policy_top`) before noise and search.
//! [`audit`] replays the game, evaluates some of its positions with the network that the record names, in the precision
//! and under the symmetry it names, and says how far the two views are apart. That catches games played by another network and
//! hardware that computes wrongly. It says nothing of what was made of a right evaluation: visits and targets are not
//! searched again.
//!
//! **Which games are audited, and what becomes of an actor, is not decided here.**

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use rand::RngExt;
use tengen_games::{Action, Game, IllegalAction, State};
use tengen_inference::{
    Device, Outputs, PARITY_TOLERANCE, Probe, REPRODUCTION_TOLERANCE, Session, SessionOptions, compare_precisions,
    run_probes, softmax,
};
use tengen_records::{ModelId, NET_POLICY_TOP_MAX, Precision, Record, SearchBlock};
use tengen_search::Wdl;

use crate::evaluator::{EvaluateError, Evaluator, SessionEvaluator};
use crate::model::ModelBytes;
use crate::seed::game_rng;

pub use tengen_inference::{Fidelity, InferenceError, forbid_telemetry};

/// Difference of a probability that no honest actor on a CPU reaches with a network in 32-bit floating point. Measured:
/// docs/audit.md.
pub const TOLERANCE_CPU: f32 = 2e-5;

/// The same for other devices, whose kernels may multiply in fewer bits. Not measured: it is what the probes of a network
/// allow the hardware of an actor.
pub const TOLERANCE_OTHER: f32 = PARITY_TOLERANCE;

/// Difference of a probability that no honest actor on a CPU reaches with a network in a reduced precision.
///
/// A sum of 8-bit products is the same everywhere, but what is rounded to the next sum's input comes from a multiplication
/// in floating point, whose last digit may tip it: one activation is then a step away, and with it, in part, the next
/// layer's. Such differences stay below what all the rounding of the network does, and that moves win minus loss by 0.05 on
/// average at most, or the network is not faithful. Measured on one CPU and two emulated ones: docs/audit.md.
pub const TOLERANCE_REDUCED: f32 = 0.02;

/// The same for other devices, which take a file's rounding otherwise: where a CPU adds integers they add floats, and they
/// compute 16-bit floats in 16 bits, where a CPU computes them in 32.
///
/// Not measured. It is what an actor allows a GPU, and anything else that is not a CPU, on average: two policies that diverge by 0.02 nats
/// ([`FAITHFUL_KL_MAX`](tengen_inference::FAITHFUL_KL_MAX)) are at most 0.1 apart in any probability, by Pinsker's inequality.
/// More on it in docs/audit.md.
pub const TOLERANCE_REDUCED_OTHER: f32 = 0.1;

const _: () = assert!(
    2.0 * REPRODUCTION_TOLERANCE <= TOLERANCE_REDUCED && TOLERANCE_REDUCED <= TOLERANCE_REDUCED_OTHER,
    "who plays and who looks may each be that far from where the file was made, and other devices farther"
);

/// How far apart honest statements may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerances {
    /// Of networks in fp32.
    pub fp32: f32,
    /// Of networks in a reduced precision.
    pub reduced: f32,
}

impl Default for Tolerances {
    /// Those of an actor on a CPU.
    fn default() -> Tolerances {
        Tolerances {
            fp32: TOLERANCE_CPU,
            reduced: TOLERANCE_REDUCED,
        }
    }
}

impl Tolerances {
    /// The smallest difference that is not honest in this precision.
    pub fn of(&self, precision: Precision) -> f32 {
        match precision {
            Precision::Fp32 => self.fp32,
            Precision::Fp16 | Precision::Int8 => self.reduced,
        }
    }
}

/// An audit could not be done. It says nothing against the record.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The network could not be run.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    /// The record names a network that was not given.
    #[error("ply {ply} was chosen by model {model}, which is not at hand")]
    Model {
        /// The ply.
        ply: usize,
        /// Its model.
        model: String,
    },
    /// The record does not replay: it was never checked.
    #[error("ply {ply} does not replay: {source}")]
    Illegal {
        /// The ply.
        ply: usize,
        /// What the rules say.
        #[source]
        source: IllegalAction,
    },
    /// The record names a symmetry the game does not have: it was never checked.
    #[error("ply {ply} was evaluated under symmetry {symmetry}, which the game does not have")]
    Symmetry {
        /// The ply.
        ply: usize,
        /// The symmetry's index.
        symmetry: u16,
    },
    /// The network is of another game.
    #[error("model {model} gave {policy} policy outputs for a game of {actions} actions")]
    Shape {
        /// The model.
        model: ModelId,
        /// Length of its policy.
        policy: usize,
        /// Actions of the game.
        actions: usize,
    },
}

/// How far a record's statement about one position is from what its network says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Index of the ply among the record's plies.
    pub ply: usize,
    /// The model that the record names for it.
    pub model: ModelId,
    /// Greatest difference of win, draw or loss, in `[0, 1]`.
    pub wdl: f32,
    /// Greatest difference of a prior, in `[0, 1]`; see [`audit`] for priors that the record leaves out.
    pub policy: f32,
    /// The precision that the record states.
    pub precision: Precision,
    /// Whether the network was at hand in it. A false statement was compared with the network in another one.
    pub offered: bool,
}

impl Difference {
    /// The greater of the two differences.
    pub fn greatest(&self) -> f32 {
        self.wdl.max(self.policy)
    }

    /// The plainest of them: a false precision before a true one, then what is farthest beyond its tolerance.
    pub fn worst(differences: &[Difference], tolerances: &Tolerances) -> Option<Difference> {
        let rank = |found: &Difference| (!found.offered, found.greatest() / tolerances.of(found.precision));
        let worse = |one: Difference, other: Difference| if rank(&other) > rank(&one) { other } else { one };
        differences.iter().copied().reduce(worse)
    }

    /// What is wrong, in a sentence for people; `None` when the difference is one that honest hardware shows.
    pub fn fault(&self, tolerances: &Tolerances) -> Option<String> {
        if !self.offered {
            return Some(format!(
                "ply {}: the record states {}, in which network {} does not come",
                self.ply,
                self.precision,
                self.model.short()
            ));
        }
        let tolerance = tolerances.of(self.precision);
        (self.greatest() >= tolerance).then(|| {
            format!(
                "ply {}: the record is {:.2e} (win, draw, loss) and {:.2e} (policy) away from network {}, less than \
                 {tolerance:.0e} is honest",
                self.ply,
                self.wdl,
                self.policy,
                self.model.short()
            )
        })
    }
}

/// Up to `positions` of the record's searched plies, drawn without replacement by `seed`, in ascending order.
pub fn draw_plies(record: &Record, positions: usize, seed: u64) -> Vec<usize> {
    let searched = record.plies.iter().enumerate().filter(|(_, ply)| ply.search.is_some());
    let mut plies: Vec<usize> = searched.map(|(n, _)| n).collect();
    let mut rng = game_rng(seed);
    let drawn = positions.min(plies.len());
    for place in 0..drawn {
        let other = rng.random_range(place..plies.len());
        plies.swap(place, other);
    }
    plies.truncate(drawn);
    plies.sort_unstable();
    plies
}

/// What is needed to audit `plies` of a record: each network with each precision that is stated for it.
pub fn networks(record: &Record, plies: &[usize]) -> BTreeSet<(ModelId, Precision)> {
    let plies = plies.iter().filter_map(|&n| record.plies.get(n));
    plies
        .filter_map(|ply| Some((record.network(ply.model)?, ply.search.as_ref()?.precision)))
        .collect()
}

/// Evaluates `plies` (ascending; those without a search are passed over) of a checked record again and compares.
///
/// `models` holds the networks of the record in any order, each in the precisions that are stated for it. A network that is
/// there, but not in the stated precision, does not come in it: the statement is false. The priors a record leaves out of `net_policy_top` must not
/// be greater than the smallest it lists, or than nothing when it lists fewer than it could: what is above that counts
/// as their difference.
pub fn audit<G: Game>(
    game: &G,
    record: &Record,
    plies: &[usize],
    models: &[Arc<ModelBytes>],
    evaluator: &mut dyn Evaluator,
) -> Result<Vec<Difference>, AuditError> {
    let illegal = |ply| move |source| AuditError::Illegal { ply, source };
    let mut state = game.start();
    for &action in &record.opening {
        state.apply(action).map_err(illegal(0))?;
    }
    let mut view = View::new(game);
    let mut differences = Vec::with_capacity(plies.len());
    for (n, ply) in record.plies.iter().enumerate() {
        if differences.len() == plies.len() {
            break;
        }
        if let (true, Some(claim)) = (plies.binary_search(&n).is_ok(), &ply.search) {
            let named = record.network(ply.model);
            let of_network = || models.iter().filter(move |model| Some(model.id()) == named);
            let as_stated = of_network().find(|model| model.precision() == claim.precision);
            let model = as_stated.or_else(|| of_network().next());
            let model = model.ok_or_else(|| AuditError::Model {
                ply: n,
                model: named.map_or_else(|| ply.model.0.to_string(), |id| id.to_string()),
            })?;
            view.evaluate(game, &state, n, claim.symmetry, model, evaluator)?;
            differences.push(view.compare(n, model, claim));
        }
        state.apply(ply.action).map_err(illegal(n))?;
    }
    Ok(differences)
}

/// A network's view of one position, in buffers that are reused.
struct View {
    planes: Vec<u8>,
    outputs: Outputs,
    playable: Vec<Action>,
    /// Priors of `playable`, in its order.
    priors: Vec<f32>,
    wdl: [f32; 3],
}

impl View {
    fn new<G: Game>(game: &G) -> View {
        View {
            planes: vec![0; game.spec().planes_len()],
            outputs: Outputs::default(),
            playable: Vec::new(),
            priors: Vec::new(),
            wdl: [0.0; 3],
        }
    }

    fn evaluate<G: Game>(
        &mut self,
        game: &G,
        state: &G::State,
        ply: usize,
        symmetry: u16,
        model: &Arc<ModelBytes>,
        evaluator: &mut dyn Evaluator,
    ) -> Result<(), AuditError> {
        let images = &game.spec().symmetries;
        let image = images
            .get(usize::from(symmetry))
            .ok_or(AuditError::Symmetry { ply, symmetry })?;
        state.transform(image).planes(&mut self.planes);
        evaluator.evaluate(model, &self.planes, 1, &mut self.outputs)?;
        let actions = game.spec().actions.len();
        if self.outputs.policy.len() != actions || self.outputs.wdl.len() != 3 {
            return Err(AuditError::Shape {
                model: model.id(),
                policy: self.outputs.policy.len(),
                actions,
            });
        }
        let (policy, wdl) = self.outputs.position(0);
        state.playable(&mut self.playable);
        let logits: Vec<f32> = self
            .playable
            .iter()
            .map(|action| policy[usize::from(image.actions[action.index()])])
            .collect();
        self.priors = softmax(&logits);
        let Wdl { win, draw, loss } = Wdl::from_logits(wdl);
        self.wdl = [win, draw, loss];
        Ok(())
    }

    fn compare(&self, ply: usize, model: &ModelBytes, claim: &SearchBlock) -> Difference {
        let listed = &claim.net_policy_top;
        let unlisted_max = if listed.len() < NET_POLICY_TOP_MAX {
            0.0
        } else {
            listed.iter().map(|&(_, prior)| prior).fold(1.0, f32::min)
        };
        let policy = self.playable.iter().zip(&self.priors).map(|(action, &prior)| {
            match listed.iter().find(|(listed, _)| listed == action) {
                Some(&(_, stated)) => (stated - prior).abs(),
                None => (prior - unlisted_max).max(0.0),
            }
        });
        let wdl = self
            .wdl
            .iter()
            .zip(claim.net_wdl)
            .map(|(seen, stated)| (seen - stated).abs());
        Difference {
            ply,
            model: model.id(),
            wdl: wdl.fold(0.0, f32::max),
            policy: policy.fold(0.0, f32::max),
            precision: claim.precision,
            offered: model.precision() == claim.precision,
        }
    }
}

/// Loads ONNX Runtime, from `runtime` (the library or its folder) if given; see [`tengen_inference::init`].
pub fn load_runtime(runtime: Option<&Path>) -> Result<(), InferenceError> {
    tengen_inference::init(runtime)
}

/// How audits compute: on the CPU, on the calling thread alone, one position at a time.
fn sessions() -> SessionOptions {
    SessionOptions {
        device: Device::Cpu,
        intra_threads: 1,
        batch_max: 1,
    }
}

/// An evaluator for audits: on the CPU, on the calling thread alone, one position at a time.
pub fn evaluator() -> SessionEvaluator {
    SessionEvaluator::new(sessions())
}

/// How far a file in a reduced precision is on this CPU from what it answered where it was made: the greatest difference of a
/// probability or of win minus loss, 0 for one that came without answers.
///
/// # Errors
/// When it is beyond [`REPRODUCTION_TOLERANCE`], and when the file cannot be run. Either way this CPU can prove nothing about
/// anybody's games with it.
pub fn reproduction(file: &ModelBytes, own: &[Probe]) -> Result<f32, InferenceError> {
    let mut session = Session::load(file.bytes(), &sessions())?;
    run_probes(&mut session, own, REPRODUCTION_TOLERANCE)
}

/// How far a network's file in a reduced precision is from its file in fp32 on this CPU, over the positions in `planes`,
/// u8 `[n, C, H, W]`. On a CPU where it is not faithful it can prove nothing about anybody's games.
pub fn divergence(
    fp32: &ModelBytes,
    reduced: &ModelBytes,
    planes: &[u8],
    n: usize,
) -> Result<Fidelity, InferenceError> {
    let mut whole = Session::load(fp32.bytes(), &sessions())?;
    let mut coarse = Session::load(reduced.bytes(), &sessions())?;
    compare_precisions(&mut whole, &mut coarse, planes, n)
}
