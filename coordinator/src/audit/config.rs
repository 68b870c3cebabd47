//! The section `[audit]` of the process's configuration.

use serde::{Deserialize, Serialize};
use tengen_selfplay::audit::{TOLERANCE_CPU, TOLERANCE_OTHER, TOLERANCE_REDUCED, TOLERANCE_REDUCED_OTHER, Tolerances};

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
    /// The same for searches with networks in int8 or fp16 of actors on a CPU.
    pub tolerance_reduced: f32,
    /// The same for searches with networks in int8 or fp16 of actors on other devices.
    pub tolerance_reduced_other: f32,
}

/// Where an actor computes, as far as it has said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On CPUs alone.
    Cpu,
    /// On other devices, or nobody knows.
    Elsewhere,
}

impl Place {
    /// By the execution providers that an actor names, with commas between them.
    ///
    /// One that has named none yet gets the benefit of the doubt: games may come before it has, and were played anywhere. That
    /// saves honest GPUs and serves no liar, who could as well name one.
    pub(crate) fn of(providers: Option<&str>) -> Place {
        let is_on_cpu = |providers: &str| providers.split(',').all(|provider| provider.contains("CPU"));
        match providers.is_some_and(is_on_cpu) {
            true => Place::Cpu,
            false => Place::Elsewhere,
        }
    }
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
            tolerance_reduced_other: TOLERANCE_REDUCED_OTHER,
        }
    }
}

impl AuditConfig {
    /// What the statements of an actor that computes there are held to. Nowhere are they held to nothing.
    pub(crate) fn tolerances(&self, place: Place) -> Tolerances {
        let (fp32, reduced) = match place {
            Place::Cpu => (self.tolerance_cpu, self.tolerance_reduced),
            Place::Elsewhere => (self.tolerance_other, self.tolerance_reduced_other),
        };
        Tolerances {
            fp32,
            reduced: reduced.max(fp32),
        }
    }

    /// What is wrong with the values, a sentence each.
    pub(crate) fn faults(&self) -> Vec<String> {
        let AuditConfig {
            share,
            positions,
            strikes,
            tolerance_cpu,
            tolerance_other,
            tolerance_reduced,
            tolerance_reduced_other,
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
            above_none("tolerance_reduced_other", tolerance_reduced_other),
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
            tolerance_reduced_other: -1.0,
        };
        let faults = broken.faults();
        for part in [
            "share = NaN",
            "positions = 0",
            "strikes = 0",
            "cpu = 2",
            "other = 0",
            "reduced = 1.5",
            "reduced_other = -1",
        ] {
            assert!(faults.iter().any(|fault| fault.contains(part)), "{part}: {faults:?}");
        }
        assert_eq!(faults.len(), 7);
    }

    #[test]
    fn strict_tolerances_are_for_whoever_says_that_it_computes_on_a_cpu_alone() {
        for (providers, place) in [
            (Some("CPU"), Place::Cpu),
            (Some("CPUExecutionProvider"), Place::Cpu),
            (Some("CUDAExecutionProvider"), Place::Elsewhere),
            (Some("CUDAExecutionProvider, CPUExecutionProvider"), Place::Elsewhere),
            (Some("none yet"), Place::Elsewhere),
            (Some(""), Place::Elsewhere),
            (None, Place::Elsewhere),
        ] {
            assert_eq!(Place::of(providers), place, "{providers:?}");
        }
        let mut config = AuditConfig::default();
        assert_eq!(config.tolerances(Place::Cpu), Tolerances::default());
        let elsewhere = Tolerances {
            fp32: TOLERANCE_OTHER,
            reduced: TOLERANCE_REDUCED_OTHER,
        };
        assert_eq!(config.tolerances(Place::Elsewhere), elsewhere);
        // A rounded network is never held to more than a whole one.
        (config.tolerance_cpu, config.tolerance_other) = (0.5, 0.7);
        let reduced = [Place::Cpu, Place::Elsewhere].map(|place| config.tolerances(place).reduced);
        assert_eq!(reduced, [0.5, 0.7]);
    }
}
