//! From a network in training to a published file: fold, write, and prove in ONNX Runtime that both compute the same.

use std::collections::HashSet;
use std::time::SystemTime;

use crate::batches::Positions;
use crate::network::NetworkError;
use crate::trainer::{SmoothedLosses, Trainer, TrainerError};
use tengen_inference::{Device, InferenceError, PARITY_TOLERANCE, Probe, Session, SessionOptions, run_probes};
use tengen_network::{Metadata, WriteError, write_onnx};
use tengen_records::ModelId;

/// Key of the metadata: trainable positions of the run that were known when the network was cut.
pub const TRAIN_POSITIONS: &str = "train_positions";
/// Positions that the parity check runs on.
pub const PARITY_POSITIONS: usize = 128;
/// Positions that travel with the file.
const PROBES: usize = 16;

/// A network could not be exported, or its file computes something else.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Batch norm could not be folded.
    #[error("failed to export: {0}")]
    Fold(#[from] NetworkError),
    /// The learner's own forward failed.
    #[error("failed to run the learner's own network: {0}")]
    Forward(#[from] TrainerError),
    /// The file could not be written.
    #[error("failed to write ONNX: {0}")]
    Write(#[from] WriteError),
    /// ONNX Runtime failed, or the outputs differ.
    #[error("the exported file failed its parity check on {positions} positions, it is not published: {source}")]
    Parity {
        /// Number of positions.
        positions: usize,
        /// What is wrong.
        #[source]
        source: InferenceError,
    },
}

impl ExportError {
    /// How far the file's answers were off, where it gave any: the greatest difference of a probability or value.
    pub fn difference(&self) -> Option<f32> {
        match self {
            ExportError::Parity {
                source: InferenceError::ProbeDiffers { difference, .. },
                ..
            } => Some(*difference).filter(|difference| difference.is_finite()),
            _ => None,
        }
    }
}

/// A file ready to be published.
#[derive(Clone, Debug)]
pub struct Export {
    /// The ONNX file.
    pub file: Vec<u8>,
    /// Its id.
    pub model_id: ModelId,
    /// What it says about itself.
    pub metadata: Metadata,
    /// Greatest difference of a probability or value from the learner's own forward.
    pub parity: f32,
    /// Mean probability that its policy puts on illegal actions in the checked positions, 0 to 1: what masking takes away.
    pub illegal_mass: f32,
    /// A few of the checked positions.
    pub probes: Vec<Probe>,
}

/// Exports the network that others are to see, as it is now, and checks the file on real positions, [`PARITY_POSITIONS`] at
/// most, with so many threads.
///
/// `metadata` says which network of which run it is; what training knows (step, time, parameters) is added here.
pub fn export(
    trainer: &Trainer,
    losses: SmoothedLosses,
    metadata: Metadata,
    positions: &Positions,
    threads: usize,
) -> Result<Export, ExportError> {
    let network = trainer.published();
    let planes = &positions.batch.planes;
    let checked = planes.len().min(PARITY_POSITIONS * network.shape().planes_len());
    let probes = trainer.probes(&planes[..checked])?;
    let illegal_mass = illegal_mass(&probes, &positions.legal);
    let metadata = describe(trainer, losses, illegal_mass, metadata);
    let file = write_onnx(network.shape(), &network.fold()?, &metadata)?;
    let probes = distinct(probes);
    let parity = check(&file, &probes, threads)?;
    let model_id = ModelId(tengen_network::model_id(&file));
    Ok(Export {
        file,
        model_id,
        metadata,
        parity,
        illegal_mass,
        probes: spread(probes),
    })
}

/// Mean probability on illegal actions; `legal` is `[B, A]` for the probes in order.
fn illegal_mass(probes: &[Probe], legal: &[bool]) -> f32 {
    let masses = probes
        .iter()
        .flat_map(|probe| &probe.policy)
        .zip(legal)
        .filter(|&(_, &legal)| !legal)
        .map(|(&probability, _)| f64::from(probability));
    (masses.sum::<f64>() / probes.len().max(1) as f64) as f32
}

/// Greatest difference between the file in ONNX Runtime and the probes' own answers.
fn check(file: &[u8], probes: &[Probe], threads: usize) -> Result<f32, ExportError> {
    let differs = |source| ExportError::Parity {
        positions: probes.len(),
        source,
    };
    let mut session = session(file, threads).map_err(differs)?;
    run_probes(&mut session, probes, PARITY_TOLERANCE).map_err(differs)
}

/// The file in ONNX Runtime on the CPU.
pub(crate) fn session(file: &[u8], threads: usize) -> Result<Session, InferenceError> {
    let options = SessionOptions {
        device: Device::Cpu,
        intra_threads: threads,
        batch_max: 32,
    };
    Session::load(file, &options)
}

/// Each position once; a small window gives some of them several times.
fn distinct(probes: Vec<Probe>) -> Vec<Probe> {
    let mut seen = HashSet::new();
    probes
        .into_iter()
        .filter(|probe| seen.insert(probe.planes.clone()))
        .collect()
}

/// The first few; the positions were drawn at random already.
fn spread(mut probes: Vec<Probe>) -> Vec<Probe> {
    probes.truncate(PROBES);
    probes
}

/// Adds what training knows: step, time, and the training parameters under keys of their own.
fn describe(trainer: &Trainer, losses: SmoothedLosses, illegal_mass: f32, metadata: Metadata) -> Metadata {
    let config = trainer.config();
    let mut extra = metadata.extra.clone();
    extra.extend(
        [
            ("train_learning_rate", trainer.rate().to_string()),
            ("train_momentum", config.sgd.momentum.to_string()),
            ("train_weight_decay", config.sgd.weight_decay.to_string()),
            ("train_value_loss_weight", config.value_loss_weight.to_string()),
            ("train_ema_decay", config.ema_decay.unwrap_or(0.0).to_string()),
            ("train_policy_loss", losses.policy.to_string()),
            ("train_value_loss", losses.value.to_string()),
            ("train_illegal_mass", illegal_mass.to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    );
    Metadata {
        step: trainer.step(),
        created: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        extra,
        ..metadata
    }
}

#[cfg(test)]
mod tests {
    use tengen_network::{random_weights, read_metadata, read_weights};

    use super::*;
    use crate::config::TrainingConfig;
    use crate::fixture;

    /// A network trained for so many steps, and positions of the same games.
    fn trained(game: &str, steps: u64) -> (Trainer, Positions) {
        fixture::trained(game, 12, steps)
    }

    fn exported(trainer: &Trainer, positions: &Positions) -> Result<Export, ExportError> {
        tengen_inference::init(None).unwrap();
        let metadata = Metadata {
            run: "test".to_owned(),
            iteration: 3,
            ..Metadata::of_shape(trainer.network().shape())
        };
        export(
            trainer,
            SmoothedLosses {
                policy: 1.5,
                value: 0.5,
            },
            metadata,
            positions,
            1,
        )
    }

    fn parity_after_training(game: &str) {
        for steps in [0, 40] {
            let (trainer, positions) = trained(game, steps);
            let export = exported(&trainer, &positions).unwrap();
            assert!(
                export.parity <= PARITY_TOLERANCE,
                "{game} after {steps} steps: {}",
                export.parity
            );
            assert_eq!(export.probes.len(), PROBES);
        }
    }

    #[test]
    fn the_file_computes_what_the_learner_does_in_tic_tac_toe() {
        parity_after_training("tic-tac-toe");
    }

    #[test]
    fn the_file_computes_what_the_learner_does_in_connect_four() {
        parity_after_training("connect-four");
    }

    #[test]
    fn the_file_computes_what_the_learner_does_in_caro5() {
        parity_after_training("caro5?size=9");
    }

    #[test]
    fn the_file_computes_what_the_learner_does_on_a_triangle() {
        parity_after_training("black-hole?rows=5");
    }

    #[test]
    fn the_file_holds_the_average_where_one_is_kept_and_says_so() {
        let (mut trainer, positions) = trained("tic-tac-toe", 5);
        let averaging = TrainingConfig {
            ema_decay: Some(0.5),
            ..trainer.config().clone()
        };
        trainer.follow(averaging).unwrap();
        for _ in 0..3 {
            trainer.train(&positions.batch).unwrap();
        }
        let export = exported(&trainer, &positions).unwrap();
        assert_eq!(export.metadata.extra["train_ema_decay"], "0.5");
        let weights = read_weights(&export.file).unwrap();
        assert_eq!(weights, trainer.published().fold().unwrap());
        assert_ne!(weights, trainer.network().fold().unwrap());
    }

    #[test]
    fn the_mass_on_illegal_actions_is_the_mean_over_positions() {
        let probe = |policy: &[f32]| Probe {
            planes: Vec::new(),
            policy: policy.to_vec(),
            wdl: [0.0; 3],
        };
        let probes = [probe(&[0.5, 0.25, 0.25]), probe(&[0.0, 1.0, 0.0])];
        let mass = illegal_mass(&probes, &[true, false, true, true, true, false]);
        assert_eq!(mass, 0.125);
        assert_eq!(illegal_mass(&[], &[]), 0.0);
    }

    /// The random network's policy is even, so that mass is the share of illegal actions; training takes most of it away.
    #[test]
    fn training_moves_the_policy_off_illegal_actions() {
        let mass = |steps| {
            let (trainer, positions) = trained("tic-tac-toe", steps);
            let illegal = positions.legal.iter().filter(|&&legal| !legal).count();
            let export = exported(&trainer, &positions).unwrap();
            (export.illegal_mass, illegal as f32 / positions.legal.len() as f32)
        };
        let (untrained, share) = mass(0);
        assert!((untrained - share).abs() < 0.05, "{untrained}, {share} of the actions");
        let (trained, _) = mass(200);
        assert!(trained < untrained / 2.0, "{untrained} to {trained}");
    }

    #[test]
    fn folding_before_training_gives_generation_zeros_weights_back() {
        let (trainer, _) = trained("tic-tac-toe", 0);
        let shape = trainer.network().shape();
        let folded = trainer.network().fold().unwrap();
        for (name, tensor) in random_weights(shape, 2).iter() {
            for (folded, original) in folded.get(name).unwrap().data().iter().zip(tensor.data()) {
                assert!(
                    (folded - original).abs() <= 1e-6 * original.abs(),
                    "{name}: {folded} {original}"
                );
            }
        }
    }

    #[test]
    fn the_file_says_how_it_was_trained() {
        let (trainer, positions) = trained("tic-tac-toe", 5);
        let export = exported(&trainer, &positions).unwrap();
        let read = read_metadata(&export.file).unwrap();
        assert_eq!(read, export.metadata);
        assert_eq!((read.step, read.iteration, read.blocks, read.channels), (5, 3, 2, 16));
        assert_eq!(read.extra["train_policy_loss"], "1.5");
        assert_eq!(read.extra["train_illegal_mass"], export.illegal_mass.to_string());
        assert_eq!(read.extra["train_ema_decay"], "0");
        assert_eq!(
            read.extra["train_learning_rate"],
            fixture::training().rates.at(0).to_string()
        );
        assert_eq!(read_weights(&export.file).unwrap(), trainer.network().fold().unwrap());
    }

    #[test]
    fn a_file_that_computes_something_else_is_not_published() {
        let (trainer, positions) = trained("tic-tac-toe", 40);
        let (other, _) = trained("tic-tac-toe", 0);
        tengen_inference::init(None).unwrap();
        let shape = other.network().shape();
        let file = write_onnx(shape, &other.network().fold().unwrap(), &Metadata::of_shape(shape)).unwrap();
        let error = check(&file, &trainer.probes(&positions.batch.planes).unwrap(), 1).unwrap_err();
        assert!(matches!(error, ExportError::Parity { .. }), "{error}");
        assert!(error.to_string().contains("not published"), "{error}");
        assert!(error.difference() > Some(PARITY_TOLERANCE), "{error}");
    }
}
