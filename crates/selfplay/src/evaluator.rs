//! Who answers a batch of positions: a network in ONNX Runtime, or a stand-in for tests and untrained play.

use std::sync::{Arc, Weak};

use tengen_inference::{InferenceError, Outputs, Session, SessionOptions};
use tengen_records::ModelId;

use crate::model::ModelBytes;
use crate::seed::mix;
use crate::shelf::{Counted, Shelf};

/// A batch could not be evaluated. Nothing in play can go on without the answer.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    /// ONNX Runtime refused the model or the batch.
    #[error("model {model} failed: {source}")]
    Inference {
        /// The model.
        model: ModelId,
        /// What the runtime said.
        #[source]
        source: InferenceError,
    },
    /// The answer's length does not fit the game.
    #[error(
        "model {model} gave {policy} policy and {wdl} value outputs for {positions} positions of {actions} actions"
    )]
    Shape {
        /// The model.
        model: ModelId,
        /// Length of the policy outputs.
        policy: usize,
        /// Length of the value outputs.
        wdl: usize,
        /// Positions in the batch.
        positions: usize,
        /// Actions of the game.
        actions: usize,
    },
}

/// Evaluates batches of positions for one thread.
pub trait Evaluator {
    /// Evaluates `n` positions of `model`. `planes` is `u8 [n, C, H, W]`; `out` is overwritten with `policy` logits
    /// `[n, A]` (unmasked) and `wdl` logits `[n, 3]` of each position's acting seat.
    fn evaluate(
        &mut self,
        model: &Arc<ModelBytes>,
        planes: &[u8],
        n: usize,
        out: &mut Outputs,
    ) -> Result<(), EvaluateError>;
}

/// Networks in ONNX Runtime: one session a file, kept while somebody holds the model.
pub struct SessionEvaluator {
    options: SessionOptions,
    /// Where sessions wait that need not be loaded any more.
    shelf: Arc<Shelf>,
    sessions: Vec<Held>,
    provider: Option<String>,
    loads: u64,
}

/// A session in use.
struct Held {
    model: Weak<ModelBytes>,
    file: ModelId,
    session: Session,
    _counted: Counted,
}

impl SessionEvaluator {
    /// Sessions will be made with `options`, each when its model is first needed.
    pub fn new(options: SessionOptions) -> SessionEvaluator {
        SessionEvaluator::taking_from(Arc::default(), options)
    }

    /// The same, but sessions that wait on `shelf`, which were made with the same options, are taken from there.
    pub(crate) fn taking_from(shelf: Arc<Shelf>, options: SessionOptions) -> SessionEvaluator {
        SessionEvaluator {
            options,
            shelf,
            sessions: Vec::new(),
            provider: None,
            loads: 0,
        }
    }

    /// The execution provider of the newest session; `None` before the first.
    pub fn provider(&self) -> Option<&str> {
        self.provider.as_deref()
    }

    /// Sessions that it loaded itself, while a batch waited.
    pub fn loads(&self) -> u64 {
        self.loads
    }

    fn session(&mut self, model: &Arc<ModelBytes>) -> Result<&mut Session, InferenceError> {
        let file = model.file_id();
        if let Some(at) = self.sessions.iter().position(|held| held.file == file) {
            let held = &mut self.sessions[at];
            // The file was let go of and has come again.
            if held.model.strong_count() == 0 {
                held.model = Arc::downgrade(model);
            }
            return Ok(&mut held.session);
        }
        // A new model is the moment to let go of those that nobody plays with any more.
        self.sessions.retain(|held| held.model.strong_count() > 0);
        let (id, precision) = (model.id(), model.precision());
        let (waiting, counted) = self.shelf.take(file, self.options.device);
        let session = match waiting {
            Some(session) => {
                tracing::debug!(model = %id, %precision, provider = session.provider(), "a session was ready");
                session
            }
            None => {
                self.loads += 1;
                let session = Session::load(model.bytes(), &self.options)?;
                tracing::debug!(model = %id, %precision, provider = session.provider(), "session loaded");
                session
            }
        };
        self.provider = Some(session.provider().to_owned());
        self.sessions.push(Held {
            model: Arc::downgrade(model),
            file,
            session,
            _counted: counted,
        });
        let last = self.sessions.len() - 1;
        Ok(&mut self.sessions[last].session)
    }
}

impl Evaluator for SessionEvaluator {
    fn evaluate(
        &mut self,
        model: &Arc<ModelBytes>,
        planes: &[u8],
        n: usize,
        out: &mut Outputs,
    ) -> Result<(), EvaluateError> {
        let failed = |source| EvaluateError::Inference {
            model: model.id(),
            source,
        };
        self.session(model).map_err(failed)?.run(planes, n, out).map_err(failed)
    }
}

/// Knows nothing: equal logits everywhere, whatever the model.
#[derive(Clone, Copy, Debug)]
pub struct UniformEvaluator {
    /// Actions of the game (`A`).
    pub actions: usize,
}

impl Evaluator for UniformEvaluator {
    fn evaluate(
        &mut self,
        _model: &Arc<ModelBytes>,
        _planes: &[u8],
        n: usize,
        out: &mut Outputs,
    ) -> Result<(), EvaluateError> {
        out.policy.clear();
        out.policy.resize(n * self.actions, 0.0);
        out.wdl.clear();
        out.wdl.resize(n * 3, 0.0);
        Ok(())
    }
}

/// Arbitrary opinions: logits in [-1, 1) that follow from model and planes alone, so that they do not depend on what
/// shares the batch. Stands for a network where a test needs one that is exactly batch-invariant.
#[derive(Clone, Copy, Debug)]
pub struct HashEvaluator {
    /// Actions of the game (`A`).
    pub actions: usize,
}

impl Evaluator for HashEvaluator {
    fn evaluate(
        &mut self,
        model: &Arc<ModelBytes>,
        planes: &[u8],
        n: usize,
        out: &mut Outputs,
    ) -> Result<(), EvaluateError> {
        let file = model.file_id().0;
        let salt = file.iter().fold(0, |salt, &byte| mix(salt ^ u64::from(byte)));
        out.policy.clear();
        out.wdl.clear();
        for position in planes.chunks_exact((planes.len() / n.max(1)).max(1)) {
            let seen = position
                .iter()
                .fold(salt, |hash, &byte| mix(hash.rotate_left(8) ^ u64::from(byte) ^ 0xA5));
            out.policy
                .extend((0..self.actions as u64).map(|action| unit(mix(seen ^ action.wrapping_mul(0x9E37)))));
            out.wdl.extend((0..3).map(|part| unit(mix(seen ^ mix(0x1000 + part)))));
        }
        Ok(())
    }
}

/// 24 of the bits as a number in [-1, 1).
fn unit(bits: u64) -> f32 {
    (bits >> 40) as f32 / (1 << 23) as f32 - 1.0
}
