//! How near a file in a reduced precision has to be to the fp32 file that it was made from, and how it says so.

use tengen_inference::Fidelity;
use tengen_service::run_config::ExportSection;

/// What keeps it from being near enough, each with its limit; none when it is.
pub fn faults(fidelity: &Fidelity, limits: &ExportSection) -> Vec<String> {
    let checks = [
        (
            fidelity.policy_kl <= limits.policy_kl_max,
            "policy_kl",
            fidelity.policy_kl,
            "above export.policy_kl_max",
            limits.policy_kl_max,
        ),
        (
            fidelity.policy_agreement >= limits.policy_agreement_min,
            "policy_agreement",
            fidelity.policy_agreement,
            "below export.policy_agreement_min",
            limits.policy_agreement_min,
        ),
        (
            fidelity.value_error <= limits.value_error_max,
            "value_error",
            fidelity.value_error,
            "above export.value_error_max",
            limits.value_error_max,
        ),
    ];
    let broken = checks.into_iter().filter(|(holds, ..)| !holds);
    broken
        .map(|(_, what, found, side, limit)| format!("{what} {found:.5} is {side} = {limit}"))
        .collect()
}

/// The figures under keys of a file's metadata.
pub fn properties(fidelity: &Fidelity) -> [(&'static str, String); 4] {
    [
        ("fidelity_positions", fidelity.positions.to_string()),
        ("fidelity_policy_kl", fidelity.policy_kl.to_string()),
        ("fidelity_policy_agreement", fidelity.policy_agreement.to_string()),
        ("fidelity_value_error", fidelity.value_error.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_broken_limit_is_told() {
        let near = Fidelity {
            positions: 256,
            policy_kl: 0.0003,
            policy_agreement: 0.987,
            value_error: 0.011,
        };
        let limits = ExportSection::default();
        assert_eq!(faults(&near, &limits), Vec::<String>::new());
        let far = Fidelity {
            policy_kl: 0.2,
            policy_agreement: 0.5,
            value_error: f64::NAN,
            ..near
        };
        let told = faults(&far, &limits);
        assert_eq!(told.len(), 3, "{told:?}");
        assert_eq!(
            told[1],
            "policy_agreement 0.50000 is below export.policy_agreement_min = 0.95"
        );
    }
}
