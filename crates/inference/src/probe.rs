//! Probes: positions that travel with a model, and the outputs its author computed for them.
//!
//! The learner checks its export with them before it publishes, and an actor checks its own hardware with them before
//! it plays. A file in a reduced precision has answers of its own to them: what it gave where it was made is what it must
//! give elsewhere.

use crate::Result;
use crate::error::InferenceError;
use crate::session::{Outputs, Session};

/// Greatest difference in probabilities and values that a published model may show (`docs/networks.md`).
pub const PARITY_TOLERANCE: f32 = 1e-3;

/// Greatest difference in probabilities and values that a file in a reduced precision may show from what it answered where it
/// was made. Its integer sums are the same on every CPU; only a rounding that tips is a step away. Audits allow twice as much:
/// who played and who looks may each be so far from there. Sums that saturate show some tenths.
pub const REPRODUCTION_TOLERANCE: f32 = 0.01;

/// A position with the outputs that are right for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// Feature planes, `[C, H, W]`.
    pub planes: Vec<u8>,
    /// Probabilities over all actions, before any masking, length `A`.
    pub policy: Vec<f32>,
    /// Probabilities of win, draw and loss of the acting seat.
    pub wdl: [f32; 3],
}

/// Runs the session on every probe and returns the greatest difference of a probability or of a value (win minus
/// loss). A difference above `tolerance`, or one that is not a number, is an error.
pub fn run_probes(session: &mut Session, probes: &[Probe], tolerance: f32) -> Result<f32> {
    for (index, probe) in probes.iter().enumerate() {
        let lens = [
            ("planes", probe.planes.len(), session.planes_len()),
            ("policy", probe.policy.len(), session.actions()),
        ];
        for (what, len, expected) in lens {
            if len != expected {
                return Err(InferenceError::ProbeShape {
                    index,
                    what,
                    len,
                    expected,
                });
            }
        }
    }
    let planes: Vec<u8> = probes.iter().flat_map(|probe| &probe.planes).copied().collect();
    let mut outputs = Outputs::default();
    session.run(&planes, probes.len(), &mut outputs)?;

    let differences = (0..probes.len()).map(|index| difference(&probes[index], &outputs, index));
    let (worst, greatest) = differences.enumerate().fold((0, 0.0f32), |greatest, next| {
        if greatest.1.is_nan() || next.1 <= greatest.1 {
            greatest
        } else {
            next
        }
    });
    if greatest <= tolerance {
        Ok(greatest)
    } else {
        Err(InferenceError::ProbeDiffers {
            index: worst,
            difference: greatest,
            tolerance,
        })
    }
}

/// The same positions with what the session answers for them.
///
/// # Errors
/// When the session cannot be run on them, or gives what is not finite.
pub fn answered(session: &mut Session, positions: &[Probe]) -> Result<Vec<Probe>> {
    let planes: Vec<u8> = positions
        .iter()
        .flat_map(|position| &position.planes)
        .copied()
        .collect();
    let mut outputs = Outputs::default();
    session.run(&planes, positions.len(), &mut outputs)?;
    let answers = positions.iter().enumerate().map(|(index, position)| {
        let (policy, wdl) = outputs.position(index);
        let (policy, wdl) = (softmax(policy), softmax(&wdl));
        Probe {
            planes: position.planes.clone(),
            policy,
            wdl: [wdl[0], wdl[1], wdl[2]],
        }
    });
    Ok(answers.collect())
}

/// Greatest difference between a probe and one position of the outputs; not a number if the probe has such an element.
fn difference(probe: &Probe, outputs: &Outputs, index: usize) -> f32 {
    let (policy, wdl) = outputs.position(index);
    let (policy, wdl) = (softmax(policy), softmax(&wdl));
    let value = (wdl[0] - wdl[2]) - (probe.wdl[0] - probe.wdl[2]);
    let pairs = policy.iter().zip(&probe.policy).chain(wdl.iter().zip(&probe.wdl));
    pairs
        .map(|(actual, expected)| actual - expected)
        .chain([value])
        .map(f32::abs)
        .fold(0.0, worse)
}

/// The greater of two differences, where what is not a number is greater than all.
fn worse(one: f32, other: f32) -> f32 {
    if one.is_nan() || other <= one { one } else { other }
}

/// The probabilities of these logits; empty for none.
pub fn softmax(logits: &[f32]) -> Vec<f32> {
    let greatest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f32> = logits.iter().map(|logit| (logit - greatest).exp()).collect();
    let sum: f32 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}
