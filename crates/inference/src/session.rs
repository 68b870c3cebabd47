//! A loaded model: checked against the network contract (`docs/networks.md`) and run in padded batches.

use std::fmt;

use ort::memory::Allocator;
use serde::{Deserialize, Serialize};
use tengen_network::{POLICY_NAME, Shape, WDL_NAME};

use crate::Result;
use crate::batch::{Bucket, bucket_sizes, host_memory};
use crate::device::Device;
use crate::error::InferenceError;
use crate::load::{Opened, Optimisations, open, signature};
use crate::providers::CPU_PROVIDER;
use crate::runtime::environment;

/// How a session computes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionOptions {
    /// Where.
    pub device: Device,
    /// Threads of the CPU that one batch is spread over, the caller's own included. At least 1.
    pub intra_threads: usize,
    /// Positions that are computed together at most; longer batches are split. At least 1.
    pub batch_max: usize,
}

impl Default for SessionOptions {
    /// One thread, because an actor's threads each have a session; batches of 32, beyond which a CPU gains nothing.
    fn default() -> SessionOptions {
        SessionOptions {
            device: Device::Auto,
            intra_threads: 1,
            batch_max: 32,
        }
    }
}

/// The sizes by which a model fits a game or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// `[C, H, W]` of one position's planes.
    pub planes: [usize; 3],
    /// Number of actions (`A`).
    pub actions: usize,
}

impl Signature {
    /// Bytes of one position's planes, `C * H * W`.
    pub fn planes_len(&self) -> usize {
        self.planes.iter().product()
    }
}

impl From<&Shape> for Signature {
    fn from(shape: &Shape) -> Signature {
        Signature {
            planes: [shape.planes, shape.rows, shape.cols],
            actions: shape.actions(),
        }
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [planes, rows, cols] = self.planes;
        write!(f, "planes {planes}x{rows}x{cols} and {} actions", self.actions)
    }
}

/// The outputs of one batch, in buffers that are reused from call to call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outputs {
    /// Policy logits of all actions, legal or not, `[n, A]`.
    pub policy: Vec<f32>,
    /// Logits of win, draw and loss of the acting seat, `[n, 3]`.
    pub wdl: Vec<f32>,
}

impl Outputs {
    /// Number of positions.
    pub fn len(&self) -> usize {
        self.wdl.len() / 3
    }

    /// Whether there is no position.
    pub fn is_empty(&self) -> bool {
        self.wdl.is_empty()
    }

    /// Policy logits and win, draw, loss logits of one position of the batch.
    pub fn position(&self, index: usize) -> (&[f32], [f32; 3]) {
        let actions = self.policy.len() / self.len().max(1);
        let wdl = &self.wdl[3 * index..3 * index + 3];
        (
            &self.policy[actions * index..actions * (index + 1)],
            [wdl[0], wdl[1], wdl[2]],
        )
    }
}

/// One loaded model. It may move between threads and is used by one at a time.
pub struct Session {
    /// In ascending order of size; made when a batch first needs them. Fields end in this order: the buckets, the memory
    /// that their planes and answers lie in, the session that the memory may come from.
    buckets: Vec<(usize, Option<Bucket>)>,
    memory: Allocator,
    session: ort::session::Session,
    signature: Signature,
    provider: &'static str,
    cuda: Option<u32>,
    batch_max: usize,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("signature", &self.signature)
            .field("provider", &self.provider)
            .field("cuda", &self.cuda)
            .field("batch_max", &self.batch_max)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Loads the model file `model`. [`init`](crate::init) comes first.
    ///
    /// Refused are bytes that are no model, and models whose input and outputs are not those of `docs/networks.md`. Whether the
    /// model fits a game is for [`Session::check`] to say.
    pub fn load(model: &[u8], options: &SessionOptions) -> Result<Session> {
        Session::load_with(model, options, Optimisations::default())
    }

    /// The same, with so much made of the graph before it runs.
    ///
    /// # Errors
    /// As [`Session::load`].
    pub fn load_with(model: &[u8], options: &SessionOptions, optimisations: Optimisations) -> Result<Session> {
        for (option, value) in [
            ("intra_threads", options.intra_threads),
            ("batch_max", options.batch_max),
        ] {
            if value == 0 {
                return Err(InferenceError::Option { option, value });
            }
        }
        let Opened {
            session,
            provider,
            cuda,
        } = open(environment()?, model, options, optimisations)?;
        let signature = signature(&session)?;
        let buckets = bucket_sizes(options.batch_max)
            .into_iter()
            .map(|size| (size, None))
            .collect();
        let mut session = Session {
            buckets,
            memory: host_memory(&session, cuda),
            session,
            signature,
            provider,
            cuda,
            batch_max: options.batch_max,
        };
        if session.provider != CPU_PROVIDER {
            session.warm_up()?;
        }
        Ok(session)
    }

    /// Runs the model on `n` positions, `planes` being u8 `[n, C, H, W]`, and overwrites `out`.
    ///
    /// Batches are padded to the next bucket, and split when longer than `batch_max`. After an error `out` holds
    /// nothing of use.
    pub fn run(&mut self, planes: &[u8], n: usize, out: &mut Outputs) -> Result<()> {
        out.policy.clear();
        out.wdl.clear();
        let expected = n.saturating_mul(self.signature.planes_len());
        if planes.len() != expected {
            return Err(InferenceError::PlanesLen {
                n,
                len: planes.len(),
                expected,
            });
        }
        for chunk in planes.chunks(self.batch_max * self.signature.planes_len()) {
            self.run_chunk(chunk, out)?;
        }
        check_finite(POLICY_NAME, &out.policy, self.signature.actions)?;
        check_finite(WDL_NAME, &out.wdl, 3)
    }

    /// Refuses the model unless it fits a game of these sizes.
    pub fn check(&self, expected: Signature) -> Result<()> {
        if self.signature == expected {
            Ok(())
        } else {
            Err(InferenceError::Signature {
                expected,
                actual: self.signature,
            })
        }
    }

    /// The execution provider really used, for example `CPUExecutionProvider`.
    pub fn provider(&self) -> &str {
        self.provider
    }

    /// The GPU really used, as CUDA counts those that it shows to this process; `None` on the CPU.
    pub fn cuda(&self) -> Option<u32> {
        self.cuda
    }

    /// The model's sizes.
    pub fn signature(&self) -> Signature {
        self.signature
    }

    /// Number of actions (`A`).
    pub fn actions(&self) -> usize {
        self.signature.actions
    }

    /// Bytes of one position's planes, `C * H * W`.
    pub fn planes_len(&self) -> usize {
        self.signature.planes_len()
    }

    /// Positions that are computed together at most.
    pub fn batch_max(&self) -> usize {
        self.batch_max
    }

    /// Runs every bucket once, so that what is chosen or compiled for its size is not paid for in the middle of a game.
    fn warm_up(&mut self) -> Result<()> {
        let mut out = Outputs::default();
        for size in bucket_sizes(self.batch_max) {
            self.run_chunk(&vec![0; size * self.planes_len()], &mut out)?;
        }
        Ok(())
    }

    /// Runs at most `batch_max` positions and appends their outputs.
    fn run_chunk(&mut self, planes: &[u8], out: &mut Outputs) -> Result<()> {
        let n = planes.len() / self.signature.planes_len();
        let run = |error: ort::Error| InferenceError::Run(error.to_string());
        let bucket = bucket(&mut self.buckets, n, self.signature, &self.memory).map_err(run)?;
        bucket.fill(planes);
        let outputs = self
            .session
            .run_with_options(ort::inputs![&bucket.planes], &bucket.options)
            .map_err(run)?;
        for (name, len, buffer) in [
            (POLICY_NAME, n * self.signature.actions, &mut out.policy),
            (WDL_NAME, n * 3, &mut out.wdl),
        ] {
            let (_, values) = outputs[name].try_extract_tensor::<f32>().map_err(run)?;
            let values = values.get(..len).ok_or_else(|| InferenceError::Contract {
                name: format!("output {name} for a batch of {n}"),
                expected: format!("at least {len} values"),
                actual: format!("{} values", values.len()),
            })?;
            buffer.extend_from_slice(values);
        }
        Ok(())
    }
}

/// The smallest bucket for `n` positions, which are at most `batch_max`.
fn bucket<'a>(
    buckets: &'a mut [(usize, Option<Bucket>)],
    n: usize,
    signature: Signature,
    memory: &Allocator,
) -> ort::Result<&'a mut Bucket> {
    let index = buckets.partition_point(|(size, _)| *size < n).min(buckets.len() - 1);
    let (size, slot) = &mut buckets[index];
    match slot {
        Some(bucket) => Ok(bucket),
        None => Ok(slot.insert(Bucket::new(*size, signature, memory)?)),
    }
}

/// Refuses values that no search can use.
fn check_finite(output: &'static str, values: &[f32], width: usize) -> Result<()> {
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(at) => Err(InferenceError::NotFinite {
            output,
            position: at / width,
            index: at % width,
            value: values[at],
        }),
    }
}
