//! The section `[audit]` of the process's configuration.

use serde::{Deserialize, Serialize};
use tengen_selfplay::audit::{TOLERANCE_CPU, TOLERANCE_OTHER, TOLERANCE_REDUCED};

/// Most positions of one game that are evaluated again.
const POSITIONS_MAX: u32 = 256;

/// How stored games are audited. Writing the section down asks for audits: without ONNX Runtime the process then does
/// not start, where it otherwise goes on without audits. `share = 0` turns them off.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditConfig {
    /// Share of the stored games that are audited, in `[0, 1]`.
    pub share: f64,
    /// Positions of each that are evaluated again, 1 to 256.
    pub positions: u32,
    /// Failed audits after which an actor is suspended, at least 1.
    pub strikes: u32,
    /// Smallest difference of a probability that fails a position of an actor on a CPU, above 0 and at most 1. Measured:
    /// docs/audit.md.
    pub tolerance_cpu: f32,
    /// The same for actors on other devices.
    pub tolerance_other: f32,
    /// The same for searches with networks in int8 or fp16, on whatever device.
    pub tolerance_reduced: f32,
}

impl Default for AuditConfig {
    fn default() -> AuditConfig {
        AuditConfig {
            share: 0.02,
            positions: 4,
            strikes: 3,
            tolerance_cpu: TOLERANCE_CPU,
            tolerance_other: TOLERANCE_OTHER,
            tolerance_reduced: TOLERANCE_REDUCED,
        }
    }
}

impl AuditConfig {
    /// What is wrong with the values, a sentence each.
    pub(crate) fn faults(&self) -> Vec<String> {
        let AuditConfig {
            share,
            positions,
            strikes,
            tolerance_cpu,
            tolerance_other,
            tolerance_reduced,
        } = *self;
        let above_none = |key: &str, tolerance: f32| {
            (
                tolerance > 0.0 && tolerance <= 1.0,
                format!("audit.{key} = {tolerance} is not above 0 and at most 1"),
            )
        };
        let rules = [
            (
                (0.0..=1.0).contains(&share),
                format!("audit.share = {share} is not in 0..=1"),
            ),
            (
                (1..=POSITIONS_MAX).contains(&positions),
                format!("audit.positions = {positions} is not in 1..={POSITIONS_MAX}"),
            ),
            (strikes >= 1, format!("audit.strikes = {strikes} is not at least 1")),
            above_none("tolerance_cpu", tolerance_cpu),
            above_none("tolerance_other", tolerance_other),
            above_none("tolerance_reduced", tolerance_reduced),
        ];
        let broken = rules.into_iter().filter(|(holds, _)| !holds);
        broken.map(|(_, fault)| fault).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_hold_and_every_broken_rule_is_named_with_key_and_value() {
        assert!(AuditConfig::default().faults().is_empty());
        let broken = AuditConfig {
            share: f64::NAN,
            positions: 0,
            strikes: 0,
            tolerance_cpu: 2.0,
            tolerance_other: 0.0,
            tolerance_reduced: 1.5,
        };
        let faults = broken.faults();
        for part in [
            "share = NaN",
            "positions = 0",
            "strikes = 0",
            "cpu = 2",
            "other = 0",
            "reduced = 1.5",
        ] {
            assert!(faults.iter().any(|fault| fault.contains(part)), "{part}: {faults:?}");
        }
        assert_eq!(faults.len(), 6);
    }
}
