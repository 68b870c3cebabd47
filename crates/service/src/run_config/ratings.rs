//! `[ratings]`: matches that tell how strong the run's players are, and decide nothing.

use serde::{Deserialize, Serialize};

/// `[ratings]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RatingsSection {
    /// Share of the games handed out that rating matches take, 0 to 0.5; 0 plays none. The games of gates are rated all the
    /// same.
    pub share: f32,
    /// Players beside the champions: `random`, `one-ply`, `rollout:N`, `champion`, `gen:N`, and networks with their search
    /// behind them, for example `champion:policy` or `gen:3:200` (docs/ratings.md).
    pub baselines: Vec<String>,
    /// Most pairs of games in one match.
    pub pairs: u32,
    /// Newest former champions that take part, beside generation 0 and the champion, which always do.
    pub champions: u32,
}

impl Default for RatingsSection {
    /// Off. Random and one-ply cost nothing; a hundred playouts are weak enough to stay near early networks.
    fn default() -> Self {
        RatingsSection {
            share: 0.0,
            baselines: ["random", "one-ply", "rollout:100"].map(str::to_owned).into(),
            pairs: 10,
            champions: 6,
        }
    }
}

/// Most players of a run's rating matches: choosing a match looks at every pairing.
const PLAYERS_MAX: usize = 64;

impl RatingsSection {
    /// What is wrong with it. Whether a baseline is one is known where players are.
    pub(super) fn faults(&self) -> Vec<String> {
        let players = self.baselines.len() + self.champions as usize;
        let checks = [
            (
                (0.0..=0.5).contains(&self.share),
                "share",
                self.share.to_string(),
                "must be 0 to 0.5",
            ),
            (
                (1..=1_000).contains(&self.pairs),
                "pairs",
                self.pairs.to_string(),
                "must be 1 to 1000",
            ),
            (
                players <= PLAYERS_MAX,
                "baselines",
                format!("{:?}", self.baselines),
                "must be, together with ratings.champions, at most 64 players",
            ),
        ];
        super::faults_of("ratings", checks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_named() {
        assert_eq!(RatingsSection::default().faults(), Vec::<String>::new());
        let bad = RatingsSection {
            share: 0.7,
            pairs: 0,
            champions: 60,
            baselines: vec!["random".to_owned(); 5],
        };
        let faults = bad.faults();
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert!(faults[0].starts_with("ratings.share"), "{faults:?}");
    }
}
