//! The constants of a search, each with its source, and the check that lists every fault in them.

use serde::{Deserialize, Serialize};

/// Greatest number of simulations of one search (2^20). It keeps every arena index inside 32 bits: each simulation
/// adds at most one node, and a node of any game here has fewer than 4,096 legal actions.
pub const SIMULATIONS_MAX: u32 = 1 << 20;

/// The constants of a search. Defaults stand beside the fields' sources; unknown keys are refused.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Root visits at the end of a search, reused ones included; the root's own evaluation is the first. 1 is the
    /// network's policy alone. Default 800 (AlphaZero, Silver et al. 2018, self-play of all three games).
    pub simulations: u32,
    /// Exploration rate for few visits, `c_init`. Default 1.25 (AlphaZero, Silver et al. 2018, supplementary
    /// pseudocode, `pb_c_init`).
    pub cpuct_init: f32,
    /// Visits at which the exploration rate begins to grow, `c_base`: the rate is
    /// `ln((visits + c_base + 1) / c_base) + c_init`. Default 19,652 (same pseudocode, `pb_c_base`).
    pub cpuct_base: f32,
    /// First-play urgency: a child without visits is taken to be worth its parent's mean minus
    /// `fpu_reduction * sqrt(prior mass of the visited children)`. Not applied at a noisy root. Default 0.2 on the
    /// scale -1..1 (KataGo's `fpuReductionMax`, `cpp/search/searchparams.cpp`; the formula and the exception for a
    /// noisy root come from Leela Zero's `UCTNode.cpp`, whose 0.25 is on the scale 0..1).
    pub fpu_reduction: f32,
    /// Concentration of the root's Dirichlet noise per legal action; 0 means 10 / (legal actions). Default 0
    /// (AlphaZero scales it "in inverse proportion to the approximate number of legal moves": 0.3 in chess, 0.15 in
    /// shogi, 0.03 in Go, each near 10 / moves; KataGo fixes the total at 10.83).
    pub dirichlet_alpha: f32,
    /// Part of the root's priors that is noise. Default 0.25 (AlphaGo Zero, Silver et al. 2017, and AlphaZero).
    pub noise_fraction: f32,
    /// Exponent `1 / temperature` on the visit counts when an action is drawn; 0 plays the most visited. Default 1
    /// (AlphaGo Zero, Silver et al. 2017).
    pub temperature: f32,
    /// Number of turns, from the start of the game, that are drawn with `temperature`; later ones play the most
    /// visited action. Counted in whole turns, not in stages. Default 30 (AlphaGo Zero, Silver et al. 2017).
    pub temperature_turns: u32,
    /// Whether the subtree of the played action is kept. Default true (AlphaGo Zero, Silver et al. 2017).
    pub tree_reuse: bool,
    /// Whether whoever evaluates a leaf sees it through a symmetry of the rules that the position itself chooses, instead
    /// of as it is. A tree takes the answers as they come and does not look at this. Default false (AlphaZero, Silver et
    /// al. 2018, which "does not transform the board position during MCTS"; AlphaGo Zero drew a symmetry at random for
    /// each leaf).
    pub random_symmetry: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            simulations: 800,
            cpuct_init: 1.25,
            cpuct_base: 19_652.0,
            fpu_reduction: 0.2,
            dirichlet_alpha: 0.0,
            noise_fraction: 0.25,
            temperature: 1.0,
            temperature_turns: 30,
            tree_reuse: true,
            random_symmetry: false,
        }
    }
}

/// Everything that is wrong with some settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bad search settings: {}", faults.join("; "))]
pub struct SettingsError {
    /// One sentence per fault, each naming the key, its value and what is allowed.
    pub faults: Vec<String>,
}

impl Settings {
    /// The temperature in the given turn of a game (counted from 0).
    pub fn temperature_at(&self, turn: u32) -> f32 {
        if turn < self.temperature_turns {
            self.temperature
        } else {
            0.0
        }
    }

    /// Checks every field and lists all faults at once.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let mut faults = Vec::new();
        if self.simulations == 0 || self.simulations > SIMULATIONS_MAX {
            faults.push(format!(
                "simulations is {}, not in 1..={SIMULATIONS_MAX}",
                self.simulations
            ));
        }
        let ranges = [
            ("cpuct_init", self.cpuct_init, 0.0, 100.0),
            ("cpuct_base", self.cpuct_base, 1.0, 1e9),
            ("fpu_reduction", self.fpu_reduction, 0.0, 2.0),
            ("dirichlet_alpha", self.dirichlet_alpha, 0.0, 100.0),
            ("noise_fraction", self.noise_fraction, 0.0, 1.0),
            ("temperature", self.temperature, 0.0, 100.0),
        ];
        for (key, value, least, greatest) in ranges {
            // A NaN lies in no range.
            if !(least..=greatest).contains(&value) {
                faults.push(format!("{key} is {value}, not in {least}..={greatest}"));
            }
        }
        if faults.is_empty() {
            Ok(())
        } else {
            Err(SettingsError { faults })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid() {
        assert_eq!(Settings::default().validate(), Ok(()));
    }

    #[test]
    fn every_fault_is_listed() {
        let settings = Settings {
            simulations: 0,
            cpuct_init: f32::NAN,
            cpuct_base: 0.0,
            fpu_reduction: -0.5,
            dirichlet_alpha: f32::INFINITY,
            noise_fraction: 1.5,
            temperature: -1.0,
            ..Settings::default()
        };
        let faults = settings.validate().unwrap_err().faults;
        let keys: Vec<_> = faults.iter().map(|fault| fault.split(' ').next().unwrap()).collect();
        let expected = [
            "simulations",
            "cpuct_init",
            "cpuct_base",
            "fpu_reduction",
            "dirichlet_alpha",
            "noise_fraction",
            "temperature",
        ];
        assert_eq!(keys, expected);
    }

    #[test]
    fn unknown_keys_are_refused_and_missing_ones_have_defaults() {
        let settings: Settings = serde_json::from_str(r#"{"simulations": 64}"#).unwrap();
        assert_eq!(
            settings,
            Settings {
                simulations: 64,
                ..Settings::default()
            }
        );
        let fault = serde_json::from_str::<Settings>(r#"{"cpuct": 1.0}"#)
            .unwrap_err()
            .to_string();
        assert!(fault.contains("cpuct"), "{fault}");
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings);
    }

    #[test]
    fn temperature_goes_by_turn() {
        let settings = Settings {
            temperature: 0.5,
            temperature_turns: 2,
            ..Settings::default()
        };
        assert_eq!(
            [0, 1, 2, 99].map(|turn| settings.temperature_at(turn)),
            [0.5, 0.5, 0.0, 0.0]
        );
    }
}
