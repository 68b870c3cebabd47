//! The reduced precisions that a network comes in: which there are, how near they are to fp32, and what their files are
//! called.

use std::fmt::Write;

use indicatif::HumanBytes;
use serde_json::{Value, json};
use tengen_proto::v1::{Fidelity, Model, ModelVariant};
use tengen_records::{Precision, precision_from_wire};

use crate::json::shortest;

/// The file's name in a pulled folder.
pub(crate) const fn file_name(precision: Precision) -> &'static str {
    match precision {
        Precision::Fp32 => "model.onnx",
        Precision::Fp16 => "model.fp16.onnx",
        Precision::Int8 => "model.int8.onnx",
    }
}

/// The reduced precisions of a network that this build knows.
pub(crate) fn all(model: &Model) -> impl Iterator<Item = (Precision, &ModelVariant)> {
    let variants = model.variants.iter();
    variants.filter_map(|variant| Some((precision_from_wire(variant.precision)?, variant)))
}

/// The network in this reduced precision.
pub(crate) fn find(model: &Model, precision: Precision) -> Option<&ModelVariant> {
    all(model)
        .find(|(known, _)| *known == precision)
        .map(|(_, variant)| variant)
}

/// What `model.json` says of one.
pub(super) fn json(precision: Precision, variant: &ModelVariant) -> Value {
    let fidelity = variant.fidelity.unwrap_or_default();
    json!({
        "precision": precision.as_str(),
        "file": file_name(precision),
        "file_id": hex::encode(&variant.file_id),
        "sha256": hex::encode(&variant.sha256),
        "size_bytes": variant.size_bytes,
        "fidelity": {
            "positions": fidelity.positions,
            "policy_kl": shortest(fidelity.policy_kl),
            "policy_agreement": shortest(fidelity.policy_agreement),
            "value_error": shortest(fidelity.value_error),
        },
    })
}

/// One in a line.
pub(crate) fn in_words(precision: Precision, variant: &ModelVariant) -> String {
    let fidelity = variant.fidelity.unwrap_or_default();
    format!(
        "{precision}: {}, {}",
        HumanBytes(variant.size_bytes),
        nearness(&fidelity)
    )
}

fn nearness(fidelity: &Fidelity) -> String {
    let Fidelity {
        positions,
        policy_kl,
        policy_agreement,
        value_error,
    } = fidelity;
    format!(
        "policies {policy_kl:.4} nats and values {value_error:.3} from fp32, the same best action in {:.1} % of {positions} \
         positions",
        policy_agreement * 100.0
    )
}

/// The section of the model card; empty for a network that comes in fp32 alone.
pub(super) fn section(model: &Model) -> String {
    let mut rows = String::new();
    for (precision, variant) in all(model) {
        let fidelity = variant.fidelity.unwrap_or_default();
        let _ = writeln!(
            rows,
            "| `{}` | {precision} | {} bytes | {} | `{}` |",
            file_name(precision),
            variant.size_bytes,
            nearness(&fidelity),
            hex::encode(&variant.sha256)
        );
    }
    match rows.is_empty() {
        true => rows,
        false => format!(
            "\n## In other precisions\n\nThe same network in other arithmetic, with the same inputs and outputs; `model.onnx` is in \
             fp32. How near each is was measured where it was made, on positions that it was not calibrated on. A processor \
             may compute it otherwise: compare the two where you use it.\n\n| file | precision | size | how near | SHA-256 \
             |\n|---|---|---|---|---|\n{rows}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_model;
    use super::*;

    /// A network in int8, and in a precision that a later build may know.
    fn reduced() -> Model {
        let int8 = ModelVariant {
            precision: tengen_proto::v1::Precision::Int8.into(),
            file_id: vec![5; 32],
            size_bytes: 2_048,
            sha256: vec![6; 32],
            fidelity: Some(Fidelity {
                positions: 512,
                policy_kl: 0.0003,
                policy_agreement: 0.987,
                value_error: 0.011,
            }),
            answers: Vec::new(),
        };
        let later = ModelVariant {
            precision: 77,
            ..ModelVariant::default()
        };
        Model {
            variants: vec![later, int8],
            ..test_model(b"x")
        }
    }

    #[test]
    fn a_precision_is_told_with_its_size_and_how_near_it_is() {
        let model = reduced();
        assert_eq!(all(&model).count(), 1, "what this build does not know is passed over");
        let variant = find(&model, Precision::Int8).expect("it is there");
        assert_eq!(
            in_words(Precision::Int8, variant),
            "int8: 2.00 KiB, policies 0.0003 nats and values 0.011 from fp32, the same best action in 98.7 % of 512 positions"
        );
        let json = json(Precision::Int8, variant);
        assert_eq!(json["file"], "model.int8.onnx");
        assert_eq!(json["fidelity"]["policy_kl"].to_string(), "0.0003");
        assert_eq!(find(&model, Precision::Fp16), None);
    }

    #[test]
    fn the_card_has_a_section_for_them_where_there_are_any() {
        let section = section(&reduced());
        for part in [
            "| `model.int8.onnx` | int8 | 2048 bytes |",
            "98.7 % of 512",
            &"06".repeat(32),
        ] {
            assert!(section.contains(part), "{part:?} in {section}");
        }
        assert_eq!(super::section(&test_model(b"x")), "");
    }
}
