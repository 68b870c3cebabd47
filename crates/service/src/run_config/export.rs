//! `[export]`: the precisions that a network is published in beside fp32, and how near to it they must be.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tengen_network::Precision;

use super::faults_of;

/// `[export]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExportSection {
    /// Precisions that each network is offered in beside fp32: `int8`, which is much faster on a CPU, and `fp16`, for
    /// GPUs. An empty list offers fp32 alone. Both, unless somebody says otherwise: nobody knows which actors will come, and
    /// one whose precision is missing plays fp32 for as long as the run goes on.
    pub precisions: Vec<ReducedPrecision>,
    /// Greatest mean Kullback-Leibler divergence of the policies, fp32 to reduced, nats.
    pub policy_kl_max: f64,
    /// Smallest share of positions where both prefer the same action, or one as good as the same.
    pub policy_agreement_min: f64,
    /// Greatest mean absolute difference of win minus loss, 0 to 2.
    pub value_error_max: f64,
}

impl Default for ExportSection {
    /// Limits that a sound export keeps with room to spare and a bad calibration does not: a trained gomoku network with
    /// fp32 heads was at 0.0003 nats, 0.987 and 0.011 in int8.
    fn default() -> Self {
        ExportSection {
            precisions: vec![ReducedPrecision::Int8, ReducedPrecision::Fp16],
            policy_kl_max: 0.01,
            policy_agreement_min: 0.95,
            value_error_max: 0.03,
        }
    }
}

/// A precision other than fp32, in which every network is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReducedPrecision {
    /// Convolutions of the tower in 8-bit integers.
    Int8,
    /// The tower in 16-bit floats.
    Fp16,
}

impl ReducedPrecision {
    /// The precision as networks know it.
    pub const fn precision(self) -> Precision {
        match self {
            ReducedPrecision::Int8 => Precision::Int8,
            ReducedPrecision::Fp16 => Precision::Fp16,
        }
    }
}

/// What actors and audits take at most on the probes (`tengen_inference`): a file beyond would be offered to nobody.
const FAITHFUL_KL_MAX: f64 = 0.02;
const FAITHFUL_VALUE_ERROR_MAX: f64 = 0.05;

impl ExportSection {
    /// What is wrong with it.
    pub(super) fn faults(&self) -> Vec<String> {
        let names: Vec<&str> = self
            .precisions
            .iter()
            .map(|listed| listed.precision().as_str())
            .collect();
        let distinct: BTreeSet<&str> = names.iter().copied().collect();
        let checks = [
            (
                distinct.len() == names.len(),
                "precisions",
                format!("{names:?}"),
                "must name each precision once",
            ),
            (
                (0.0..=FAITHFUL_KL_MAX).contains(&self.policy_kl_max),
                "policy_kl_max",
                self.policy_kl_max.to_string(),
                "must be 0 to 0.02: actors play nothing farther away",
            ),
            (
                (0.0..=1.0).contains(&self.policy_agreement_min),
                "policy_agreement_min",
                self.policy_agreement_min.to_string(),
                "must be 0 to 1",
            ),
            (
                (0.0..=FAITHFUL_VALUE_ERROR_MAX).contains(&self.value_error_max),
                "value_error_max",
                self.value_error_max.to_string(),
                "must be 0 to 0.05: actors play nothing farther away",
            ),
        ];
        faults_of("export", checks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_named() {
        assert_eq!(ExportSection::default().faults(), Vec::<String>::new());
        let bad = ExportSection {
            precisions: vec![ReducedPrecision::Int8, ReducedPrecision::Int8],
            policy_kl_max: f64::NAN,
            policy_agreement_min: 95.0,
            value_error_max: -0.1,
        };
        let faults = bad.faults();
        assert_eq!(faults.len(), 4, "{faults:?}");
        assert!(faults[2].starts_with("export.policy_agreement_min = 95"), "{faults:?}");
    }

    #[test]
    fn precisions_have_the_names_that_files_use() {
        for precision in [ReducedPrecision::Int8, ReducedPrecision::Fp16] {
            let name = precision.precision().to_string();
            let section: ExportSection = toml::from_str(&format!("precisions = [\"{name}\"]")).unwrap();
            assert_eq!(section.precisions, [precision]);
        }
        assert!(
            toml::from_str::<ExportSection>("precisions = []")
                .unwrap()
                .precisions
                .is_empty()
        );
        let error = toml::from_str::<ExportSection>("precisions = [\"fp32\"]").unwrap_err();
        assert!(error.to_string().contains("fp32"), "{error}");
    }
}
