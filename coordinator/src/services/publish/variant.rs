//! The reduced precisions that a network is published in: each announced once, and each file what it is announced as.

use prost::Message;
use sha2::{Digest, Sha256};
use tengen_network::{Metadata, Shape, read_metadata};
use tengen_proto::v1;
use tengen_records::{ModelId, Precision, precision_from_wire};
use tengen_selfplay::check_variant;
use tonic::Status;

use super::{errors, fit, hashed};
use crate::files::ModelFiles;
use crate::store::variants::{Fidelity, VariantRow};

/// The network that a file in a reduced precision should be.
pub(super) struct Of<'a> {
    pub(super) id: ModelId,
    pub(super) metadata: &'a Metadata,
    pub(super) shape: &'a Shape,
    /// How many probes it comes with.
    pub(super) probes: usize,
}

/// The precisions that are announced, in order. Known before any byte is taken.
pub(super) fn precisions(model: &v1::Model) -> Result<Vec<Precision>, Status> {
    let mut precisions = Vec::with_capacity(model.variants.len());
    for (n, announced) in model.variants.iter().enumerate() {
        let field = format!("header.model.variants[{n}].precision");
        match precision_from_wire(announced.precision) {
            None | Some(Precision::Fp32) => {
                let fault = format!("{} is no reduced precision", announced.precision);
                return Err(errors::bad_field(&field, fault));
            }
            Some(precision) if precisions.contains(&precision) => {
                return Err(errors::bad_field(&field, format!("{precision} is announced twice")));
            }
            Some(precision) => precisions.push(precision),
        }
    }
    Ok(precisions)
}

/// Checks that the file is the network in this precision; `field` names its description.
pub(super) fn examine(
    field: &str,
    announced: &v1::ModelVariant,
    precision: Precision,
    bytes: &[u8],
    network: &Of<'_>,
) -> Result<VariantRow, Status> {
    let file = hashed(&format!("{field}.file_id"), &announced.file_id, bytes)?;
    let metadata = read_metadata(bytes).map_err(|error| errors::bad_field(field, error))?;
    let other = |error: &dyn std::fmt::Display| errors::precondition("OTHER_NETWORK", field, error);
    check_variant(&metadata, precision, network.id, network.metadata).map_err(|error| other(&error))?;
    metadata.check(network.shape).map_err(|error| other(&error))?;
    Ok(VariantRow {
        model: network.id,
        precision,
        file,
        size_bytes: bytes.len() as u64,
        sha256: Sha256::digest(bytes).to_vec(),
        file_name: ModelFiles::name(file),
        fidelity: fidelity(&format!("{field}.fidelity"), announced.fidelity)?,
        answers: answers(&format!("{field}.answers"), &announced.answers, network)?,
    })
}

/// What it answered for the network's probes, encoded to be stored. There are none from learners of an older build.
fn answers(field: &str, stated: &[v1::ProbeAnswer], network: &Of<'_>) -> Result<Vec<u8>, Status> {
    let (answers, probes) = (stated.len(), network.probes);
    if answers != 0 && answers != probes {
        return Err(errors::bad_field(
            field,
            format!("there are {answers} for {probes} probes"),
        ));
    }
    let fits = |answer: &v1::ProbeAnswer| fit(&answer.policy, &answer.wdl, network.shape.actions());
    if let Some(n) = stated.iter().position(|answer| !fits(answer)) {
        return Err(errors::bad_field(field, format!("answer {n} does not fit the game")));
    }
    let stored = v1::ModelVariant {
        answers: stated.to_vec(),
        ..v1::ModelVariant::default()
    };
    Ok(stored.encode_to_vec())
}

/// What was measured: numbers in their ranges. What is near enough is for who made the file to say, and for who takes it.
fn fidelity(field: &str, stated: Option<v1::Fidelity>) -> Result<Fidelity, Status> {
    let stated = stated.ok_or_else(|| errors::bad_field(field, "it is missing"))?;
    let v1::Fidelity {
        positions,
        policy_kl,
        policy_agreement,
        value_error,
    } = stated;
    let holds = positions > 0
        && policy_kl.is_finite()
        && (0.0..=1.0).contains(&policy_agreement)
        && (0.0..=2.0).contains(&value_error);
    if !holds {
        return Err(errors::bad_field(field, format!("{stated:?} is no comparison")));
    }
    Ok(Fidelity {
        positions,
        policy_kl,
        policy_agreement,
        value_error,
    })
}
