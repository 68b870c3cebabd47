//! The same network in reduced precisions: written, compared with the fp32 file, and offered when it is near enough.
//!
//! Positions of the window are dealt to two sets without a common position: one tells the ranges of the activations, the
//! other compares the files in ONNX Runtime on the CPU. A GPU's own 16-bit arithmetic is not seen here: there the fp16 file
//! is computed in 32 bits from rounded weights. What computes on other hardware is for the actors to check, on the probes:
//! each file is offered with what it answered for them here.

use std::collections::HashSet;

use tch::Device;
use tengen_inference::{Fidelity, InferenceError, Outputs, Probe, Session, answered};
use tengen_network::{ActivationRanges, ReadError, Shape, Weights, WriteError, read_weights, write_onnx_as_stated};
use tengen_service::run_config::{ExportSection, ReducedPrecision};

use crate::calibration::calibrate;
use crate::export::{Export, PARITY_POSITIONS, session};
use crate::fidelity;
use crate::network::{Network, NetworkError};

/// Most positions that tell the ranges of the activations.
pub const CALIBRATION_POSITIONS: usize = 256;
/// Most positions that files are compared on.
pub const HELD_OUT_POSITIONS: usize = 256;

/// The greatest value between two layers that is offered in 16-bit floats. A quarter of what they hold: the positions of
/// games go beyond those of the calibration, and a value that does not fit is infinite on a GPU, and ends the game.
const FP16_VALUE_MAX: f32 = 65_504.0 / 4.0;

/// A network's file in a reduced precision that may be offered.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The precision.
    pub precision: ReducedPrecision,
    /// The ONNX file.
    pub file: Vec<u8>,
    /// Hash of its bytes.
    pub file_id: [u8; 32],
    /// How near it is to the fp32 file.
    pub fidelity: Fidelity,
    /// The network's probes with what this file answers for them, on the CPU that made it.
    pub answers: Vec<Probe>,
}

/// A network is not offered in a precision.
#[derive(Debug, thiserror::Error)]
pub enum VariantError {
    /// The fp32 file could not be read back.
    #[error("failed to read the fp32 file: {0}")]
    Read(#[from] ReadError),
    /// The network could not be run in libtorch.
    #[error("failed to calibrate: {0}")]
    Calibrate(#[from] NetworkError),
    /// The file could not be written.
    #[error("failed to write ONNX: {0}")]
    Write(#[from] WriteError),
    /// ONNX Runtime failed.
    #[error("failed to run the file: {0}")]
    Run(#[from] InferenceError),
    /// There is nothing to compare on.
    #[error("there are too few positions to compare it with fp32")]
    NoPositions,
    /// Its values may outgrow 16-bit floats.
    #[error("values between its layers reach {greatest}, and up to {FP16_VALUE_MAX} are sure to fit")]
    TooGreat {
        /// The greatest value of the calibration.
        greatest: f32,
    },
    /// It answers too differently.
    #[error("it is not near enough to fp32 ({fidelity}): {faults}")]
    Unfaithful {
        /// How near it is.
        fidelity: Fidelity,
        /// Which limits it breaks.
        faults: String,
    },
}

/// How many positions an export wants: fewer when nothing but fp32 is written.
pub fn positions_wanted(section: &ExportSection) -> usize {
    if section.precisions.is_empty() {
        PARITY_POSITIONS
    } else {
        PARITY_POSITIONS.max(CALIBRATION_POSITIONS + HELD_OUT_POSITIONS)
    }
}

/// The network of `export` in the precisions that `section` names, made and compared with positions of `planes`, u8
/// `[n, C, H, W]`, on so many threads.
///
/// One that cannot be made, or that is not near enough, is left out with a warning: fp32 plays just as well, only slower.
pub fn variants(
    shape: &Shape,
    export: &Export,
    planes: &[u8],
    section: &ExportSection,
    threads: usize,
) -> Vec<Variant> {
    if section.precisions.is_empty() {
        return Vec::new();
    }
    let model = export.model_id.short();
    let workshop = match Workshop::new(shape, export, planes, threads) {
        Ok(workshop) => workshop,
        Err(error) => {
            tracing::warn!(model, %error, "the network is offered in fp32 alone");
            return Vec::new();
        }
    };
    let mut variants = Vec::new();
    for &listed in &section.precisions {
        let precision = listed.precision().as_str();
        match workshop.make(listed, section) {
            Ok(variant) => {
                let fidelity = variant.fidelity;
                tracing::info!(model, precision, %fidelity, "the network is offered in another precision");
                variants.push(variant);
            }
            Err(error) => tracing::warn!(model, precision, %error, "the network is not offered in this precision"),
        }
    }
    variants
}

/// What variants are made from.
struct Workshop<'a> {
    shape: &'a Shape,
    export: &'a Export,
    weights: Weights,
    ranges: ActivationRanges,
    /// Positions that the ranges know nothing of, `[n, C, H, W]`.
    held_out: Vec<u8>,
    /// What the fp32 file answers for them.
    answers: Outputs,
    threads: usize,
}

impl Workshop<'_> {
    fn new<'a>(
        shape: &'a Shape,
        export: &'a Export,
        planes: &[u8],
        threads: usize,
    ) -> Result<Workshop<'a>, VariantError> {
        let [calibration, held_out] = deal(planes, shape.planes_len());
        let weights = read_weights(&export.file)?;
        // The exported network itself: batch norm folded, on the CPU whatever trains.
        let network = Network::new(shape, &weights, Device::Cpu)?;
        let ranges = calibrate(&network, &calibration).map_err(NetworkError::from)?;
        let answers = answers(&mut session(&export.file, threads)?, &held_out)?;
        Ok(Workshop {
            shape,
            export,
            weights,
            ranges,
            held_out,
            answers,
            threads,
        })
    }

    fn make(&self, precision: ReducedPrecision, limits: &ExportSection) -> Result<Variant, VariantError> {
        let greatest = self.ranges.greatest();
        if precision == ReducedPrecision::Fp16 && greatest > FP16_VALUE_MAX {
            return Err(VariantError::TooGreat { greatest });
        }
        let fp32 = self.export.model_id.to_bytes();
        let mut metadata = self.export.metadata.in_precision(precision.precision(), fp32);
        let trial = write_onnx_as_stated(self.shape, &self.weights, &self.ranges, &metadata)?;
        let mut session = session(&trial, self.threads)?;
        let fidelity = Fidelity::of(&self.answers, &answers(&mut session, &self.held_out)?);
        if fidelity.positions == 0 {
            return Err(VariantError::NoPositions);
        }
        let faults = fidelity::faults(&fidelity, limits);
        if !faults.is_empty() {
            let faults = faults.join(", ");
            return Err(VariantError::Unfaithful { fidelity, faults });
        }
        // The same graph once more, now that it can say how near it is.
        let figures = fidelity::properties(&fidelity).map(|(key, value)| (key.to_owned(), value));
        metadata.extra.extend(figures);
        let file = write_onnx_as_stated(self.shape, &self.weights, &self.ranges, &metadata)?;
        Ok(Variant {
            precision,
            file_id: tengen_network::model_id(&file),
            file,
            fidelity,
            answers: answered(&mut session, &self.export.probes)?,
        })
    }
}

/// What a file answers for these positions.
fn answers(session: &mut Session, planes: &[u8]) -> Result<Outputs, InferenceError> {
    let (positions, mut outputs) = (planes.len() / session.planes_len(), Outputs::default());
    session.run(planes, positions, &mut outputs)?;
    Ok(outputs)
}

/// Positions for calibration and for comparison: each position once, dealt in turn, up to as many as are wanted.
fn deal(planes: &[u8], planes_len: usize) -> [Vec<u8>; 2] {
    let mut seen = HashSet::new();
    let distinct = planes
        .chunks_exact(planes_len)
        .filter(|position| seen.insert(*position))
        .take(CALIBRATION_POSITIONS + HELD_OUT_POSITIONS);
    let mut dealt = [Vec::new(), Vec::new()];
    for (index, position) in distinct.enumerate() {
        dealt[index % 2].extend_from_slice(position);
    }
    dealt
}

#[cfg(test)]
mod tests {
    use tengen_inference::{REPRODUCTION_TOLERANCE, run_probes};
    use tengen_network::{ActivationRange, FP32_MODEL, Metadata, Precision, read_metadata};

    use super::*;
    use crate::export::export;
    use crate::fixture;
    use crate::trainer::SmoothedLosses;

    /// Both precisions, as by default.
    fn both() -> ExportSection {
        ExportSection::default()
    }

    fn int8_alone() -> ExportSection {
        ExportSection {
            precisions: vec![ReducedPrecision::Int8],
            ..both()
        }
    }

    /// A network trained for so many steps, exported, and positions to make variants with.
    fn exported(game: &str, steps: u64) -> (Shape, Export, Vec<u8>) {
        tengen_inference::init(None).unwrap();
        let (trainer, positions) = fixture::trained(game, 60, steps);
        let shape = trainer.network().shape().clone();
        let metadata = Metadata {
            run: "test".to_owned(),
            ..Metadata::of_shape(&shape)
        };
        let export = export(&trainer, SmoothedLosses::default(), metadata, &positions, 1).unwrap();
        (shape, export, positions.batch.planes)
    }

    fn offered_after_training(game: &str) {
        for steps in [0, 60] {
            let (shape, export, planes) = exported(game, steps);
            let workshop = Workshop::new(&shape, &export, &planes, 1).unwrap();
            for precision in both().precisions {
                let variant = workshop.make(precision, &both());
                let variant = variant.unwrap_or_else(|error| panic!("{game}, {steps} steps, {precision:?}: {error}"));
                assert!(variant.fidelity.positions >= 50, "{game}: {}", variant.fidelity);
            }
            assert_eq!(variants(&shape, &export, &planes, &both(), 1).len(), 2);
        }
    }

    #[test]
    fn tic_tac_toe_is_offered_in_both_precisions() {
        offered_after_training("tic-tac-toe");
    }

    #[test]
    fn connect_four_is_offered_in_both_precisions() {
        offered_after_training("connect-four");
    }

    #[test]
    fn caro5_is_offered_in_both_precisions() {
        offered_after_training("caro5?size=9");
    }

    #[test]
    fn a_variant_says_what_it_was_made_from_and_how_near_it_is() {
        let (shape, export, planes) = exported("tic-tac-toe", 20);
        let made = variants(&shape, &export, &planes, &int8_alone(), 1);
        let [int8] = made.as_slice() else {
            panic!("{} variants", made.len())
        };
        assert_eq!(int8.file_id, tengen_network::model_id(&int8.file));
        assert_ne!(int8.file_id, export.model_id.to_bytes());
        let mut metadata = read_metadata(&int8.file).unwrap();
        assert_eq!(metadata.precision, Precision::Int8);
        assert_eq!(metadata.extra.remove(FP32_MODEL), Some(export.model_id.to_string()));
        for (key, value) in fidelity::properties(&int8.fidelity) {
            assert_eq!(metadata.extra.remove(key), Some(value), "{key}");
        }
        metadata.precision = Precision::Fp32;
        assert_eq!(metadata, export.metadata, "all else is what the fp32 file says");
        // What it answers for the probes is told with it: its own answers, not those of the fp32 file.
        let mut again = session(&int8.file, 2).unwrap();
        let difference = run_probes(&mut again, &int8.answers, REPRODUCTION_TOLERANCE);
        assert!(difference.is_ok(), "{difference:?}");
        let asked = |probes: &[Probe]| probes.iter().map(|probe| probe.planes.clone()).collect::<Vec<_>>();
        assert_eq!(asked(&int8.answers), asked(&export.probes));
        assert_ne!(int8.answers, export.probes, "it is rounded");
        // The same again, byte for byte.
        let again = variants(&shape, &export, &planes, &int8_alone(), 1);
        assert_eq!(again[0].file, int8.file);
    }

    #[test]
    fn a_network_with_bad_ranges_is_not_offered() {
        // Trained long enough that the policy is anything but even.
        let (shape, export, planes) = exported("tic-tac-toe", 200);
        let mut workshop = Workshop::new(&shape, &export, &planes, 1).unwrap();
        // A twentieth of the range of every value: what is greater is cut off.
        let narrow = shape.activations().map(|activation| {
            let ActivationRange { min, max } = workshop.ranges.get(activation).unwrap();
            let range = ActivationRange {
                min: 0.05 * min,
                max: 0.05 * max,
            };
            (activation, range)
        });
        let mut ranges = ActivationRanges::new();
        narrow.for_each(|(activation, range)| ranges.include(activation, range));
        workshop.ranges = ranges;
        let error = workshop.make(ReducedPrecision::Int8, &both()).unwrap_err();
        let VariantError::Unfaithful { fidelity, faults } = error else {
            panic!("{error}")
        };
        assert!(fidelity.policy_kl > 0.01, "{fidelity}");
        assert!(faults.contains("export.policy_kl_max"), "{faults}");
        // Ranges are no matter of 16-bit floats.
        workshop.make(ReducedPrecision::Fp16, &both()).unwrap();
    }

    #[test]
    fn limits_that_rounding_cannot_keep_offer_fp32_alone() {
        let (shape, export, planes) = exported("tic-tac-toe", 20);
        let exact = ExportSection {
            value_error_max: 0.0,
            ..both()
        };
        assert!(variants(&shape, &export, &planes, &exact, 1).is_empty());
        let none = ExportSection {
            precisions: Vec::new(),
            ..both()
        };
        assert!(variants(&shape, &export, &planes, &none, 1).is_empty());
    }

    #[test]
    fn nothing_is_offered_that_could_not_be_compared() {
        let (shape, export, planes) = exported("tic-tac-toe", 0);
        let workshop = Workshop::new(&shape, &export, &planes[..shape.planes_len()], 1).unwrap();
        let error = workshop.make(ReducedPrecision::Int8, &both()).unwrap_err();
        assert!(matches!(error, VariantError::NoPositions), "{error}");
    }

    #[test]
    fn no_position_is_both_calibrated_and_compared_on() {
        let planes: Vec<u8> = (0..2_000).map(|index| (index % 7) as u8).collect();
        let [calibration, held_out] = deal(&planes, 2);
        // Pairs begin at seven places of the row, and each is dealt once.
        assert_eq!((calibration.len(), held_out.len()), (2 * 4, 2 * 3));
        let calibration: HashSet<&[u8]> = calibration.chunks(2).collect();
        assert!(held_out.chunks(2).all(|position| !calibration.contains(position)));
        let many: Vec<u8> = (0..2_000u16).flat_map(u16::to_le_bytes).collect();
        let [calibration, held_out] = deal(&many, 2);
        assert_eq!(
            (calibration.len(), held_out.len()),
            (2 * CALIBRATION_POSITIONS, 2 * HELD_OUT_POSITIONS)
        );
    }
}
