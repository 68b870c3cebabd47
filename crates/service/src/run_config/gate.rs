//! `[gate]`: what a candidate must pass. `docs/gates.md` says what each key does and costs.

use serde::{Deserialize, Serialize};

use super::{Check, faults_of};

/// `[gate]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GateSection {
    /// `none` promotes every candidate; `fixed` plays a match of fixed length; `sprt` plays until it is sure.
    pub kind: GateKind,
    /// `fixed`: match games; pairs of two share an opening.
    pub games: u32,
    /// `fixed`: score the candidate needs, in (0, 1]. 0.55 is AlphaGo Zero's.
    pub threshold: f32,
    /// `fixed`: the score must be greater than the threshold, not equal to it.
    pub strict: bool,
    /// `fixed`: so many successive candidates must each pass against the same champion; one failure begins the row anew,
    /// and the last of them is promoted.
    pub consecutive: u32,
    /// Root visits of each search in matches; 0 means as in self-play.
    pub simulations: u32,
    /// Greatest share of the leases that matches take while self-play wants work, in (0, 1].
    pub gate_share: f32,
    /// With three or more actors: the greatest share of a gate that one of them plays, in [0.4, 1].
    pub actor_share: f32,
    /// A candidate is cut every so many iterations.
    pub candidate_every: u32,
    /// What becomes of a candidate that comes while another waits for its gate.
    pub queue: QueuePolicy,
    /// What becomes of a match that wants more pairs than the game has distinct openings.
    pub exhausted_openings: ExhaustedOpenings,
    /// `sprt`: what it tells apart, and how surely.
    pub sprt: SprtSection,
    /// Earlier champions that a candidate must not lose to either.
    pub pool: PoolSection,
}

impl Default for GateSection {
    fn default() -> Self {
        GateSection {
            kind: GateKind::Fixed,
            games: 200,
            threshold: 0.55,
            strict: false,
            consecutive: 1,
            simulations: 0,
            gate_share: 0.5,
            actor_share: 0.5,
            candidate_every: 1,
            queue: QueuePolicy::Replace,
            exhausted_openings: ExhaustedOpenings::Shorten,
            sprt: SprtSection::default(),
            pool: PoolSection::default(),
        }
    }
}

/// Kinds of gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateKind {
    /// Every candidate is promoted.
    None,
    /// A match of fixed length against the champion.
    Fixed,
    /// A match that ends when it is sure: a pentanomial GSPRT.
    Sprt,
}

/// What becomes of a candidate that comes while another waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueuePolicy {
    /// It takes the other's place.
    Replace,
    /// It waits behind it. At most 16 wait; then the oldest gives way.
    Wait,
}

/// What becomes of a match that wants more pairs than there are distinct openings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExhaustedOpenings {
    /// It is shortened.
    Shorten,
    /// Openings are repeated, with the first moves after them sampled from the search.
    Sample,
}

/// `[gate.sprt]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SprtSection {
    /// What `lower` and `upper` are counted in.
    pub unit: SprtUnit,
    /// Strength of a candidate that is not wanted.
    pub lower: f64,
    /// Strength of one that is.
    pub upper: f64,
    /// How often a candidate of strength `lower` may pass, in (0, 0.5).
    pub alpha: f64,
    /// How often one of strength `upper` may fail, in (0, 0.5).
    pub beta: f64,
    /// Most match games; undecided after them keeps the champion.
    pub games_max: u32,
}

impl Default for SprtSection {
    /// 35 Elo is a score of 0.55, so that the default asks what `fixed` asks.
    fn default() -> Self {
        SprtSection {
            unit: SprtUnit::Elo,
            lower: 0.0,
            upper: 35.0,
            alpha: 0.05,
            beta: 0.05,
            games_max: 800,
        }
    }
}

/// What strengths are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SprtUnit {
    /// Points a game, in (0, 1).
    Score,
    /// Elo difference, -1000 to 1000.
    Elo,
    /// Elo difference in units of a game's standard deviation, -200 to 200.
    NormalizedElo,
}

impl SprtUnit {
    fn allows(self, strength: f64) -> bool {
        match self {
            SprtUnit::Score => strength > 0.0 && strength < 1.0,
            SprtUnit::Elo => strength.abs() <= 1_000.0,
            SprtUnit::NormalizedElo => strength.abs() <= 200.0,
        }
    }

    const fn range(self) -> &'static str {
        match self {
            SprtUnit::Score => "a score must be in (0, 1)",
            SprtUnit::Elo => "an Elo difference must be in [-1000, 1000]",
            SprtUnit::NormalizedElo => "a normalised Elo difference must be in [-200, 200]",
        }
    }
}

/// `[gate.pool]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PoolSection {
    /// How many earlier champions, the newest first; 0 for none.
    pub champions: u32,
    /// Games against each.
    pub games: u32,
    /// Score that the candidate needs against each, in (0, 1].
    pub threshold: f32,
}

impl Default for PoolSection {
    fn default() -> Self {
        PoolSection {
            champions: 0,
            games: 60,
            threshold: 0.5,
        }
    }
}

/// Most earlier champions of a pool.
const POOL_MAX: u32 = 16;

/// What is allowed of a number of games.
const EVEN: &str = "must be even, 2 to 100000";

impl GateSection {
    pub(super) fn faults(&self) -> Vec<String> {
        let simulations_fit = self.simulations == 0 || (2..=100_000).contains(&self.simulations);
        let in_a_row = self.consecutive == 1 || self.kind == GateKind::Fixed;
        let checks: [Check; 10] = [
            (even(self.games), "games", self.games.to_string(), EVEN),
            (
                in_unit(self.threshold),
                "threshold",
                self.threshold.to_string(),
                "must be in (0, 1]",
            ),
            (
                !(self.strict && self.threshold >= 1.0),
                "strict",
                self.strict.to_string(),
                "no score is greater than the threshold 1; lower gate.threshold or set false",
            ),
            (
                (1..=100).contains(&self.consecutive),
                "consecutive",
                self.consecutive.to_string(),
                "must be 1 to 100",
            ),
            (
                in_a_row,
                "consecutive",
                self.consecutive.to_string(),
                "several candidates in a row are for gate.kind = \"fixed\"; set 1",
            ),
            (
                simulations_fit,
                "simulations",
                self.simulations.to_string(),
                "must be 0 or 2 to 100000",
            ),
            (
                in_unit(self.gate_share),
                "gate_share",
                self.gate_share.to_string(),
                "must be in (0, 1]",
            ),
            (
                (0.4..=1.0).contains(&self.actor_share),
                "actor_share",
                self.actor_share.to_string(),
                "must be in [0.4, 1]: with less, three actors at their limit would leave pairs that nobody may play",
            ),
            (
                self.candidate_every >= 1,
                "candidate_every",
                self.candidate_every.to_string(),
                "must be at least 1",
            ),
            (
                self.pool.champions == 0 || self.kind != GateKind::None,
                "pool.champions",
                self.pool.champions.to_string(),
                "gate.kind = \"none\" plays no match; set 0",
            ),
        ];
        let mut faults = faults_of("gate", checks);
        faults.extend(self.sprt.faults());
        faults.extend(self.pool.faults());
        faults
    }
}

impl SprtSection {
    fn faults(&self) -> Vec<String> {
        let rate = |rate: f64| rate > 0.0 && rate < 0.5;
        let ascending = self.lower < self.upper || !self.unit.allows(self.lower) || !self.unit.allows(self.upper);
        let checks: [Check; 6] = [
            (
                self.unit.allows(self.lower),
                "lower",
                self.lower.to_string(),
                self.unit.range(),
            ),
            (
                self.unit.allows(self.upper),
                "upper",
                self.upper.to_string(),
                self.unit.range(),
            ),
            (
                ascending,
                "upper",
                self.upper.to_string(),
                "must be greater than gate.sprt.lower",
            ),
            (rate(self.alpha), "alpha", self.alpha.to_string(), "must be in (0, 0.5)"),
            (rate(self.beta), "beta", self.beta.to_string(), "must be in (0, 0.5)"),
            (even(self.games_max), "games_max", self.games_max.to_string(), EVEN),
        ];
        faults_of("gate.sprt", checks)
    }
}

impl PoolSection {
    fn faults(&self) -> Vec<String> {
        let checks: [Check; 3] = [
            (
                self.champions <= POOL_MAX,
                "champions",
                self.champions.to_string(),
                "must be 0 to 16",
            ),
            (even(self.games), "games", self.games.to_string(), EVEN),
            (
                in_unit(self.threshold),
                "threshold",
                self.threshold.to_string(),
                "must be in (0, 1]",
            ),
        ];
        faults_of("gate.pool", checks)
    }
}

fn even(games: u32) -> bool {
    games.is_multiple_of(2) && (2..=100_000).contains(&games)
}

fn in_unit(share: f32) -> bool {
    share > 0.0 && share <= 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_names_key_value_and_what_is_allowed() {
        let faulty = GateSection {
            games: 3,
            consecutive: 0,
            actor_share: 0.3,
            sprt: SprtSection {
                unit: SprtUnit::Score,
                upper: 0.55,
                alpha: 0.5,
                ..SprtSection::default()
            },
            pool: PoolSection {
                champions: 99,
                ..PoolSection::default()
            },
            ..GateSection::default()
        };
        let faults = faulty.faults().join("\n");
        for fault in [
            "gate.games = 3: must be even, 2 to 100000",
            "gate.consecutive = 0: must be 1 to 100",
            "gate.actor_share = 0.3: must be in [0.4, 1]",
            "gate.sprt.lower = 0: a score must be in (0, 1)",
            "gate.sprt.alpha = 0.5: must be in (0, 0.5)",
            "gate.pool.champions = 99: must be 0 to 16",
        ] {
            assert!(faults.contains(fault), "{fault} in\n{faults}");
        }
        assert_eq!(GateSection::default().faults(), [] as [String; 0]);
    }

    #[test]
    fn keys_that_do_not_go_together_are_refused() {
        let row = GateSection {
            kind: GateKind::Sprt,
            consecutive: 5,
            ..GateSection::default()
        };
        assert!(row.faults()[0].contains("gate.consecutive = 5"), "{:?}", row.faults());
        let pool = GateSection {
            kind: GateKind::None,
            pool: PoolSection {
                champions: 2,
                ..PoolSection::default()
            },
            ..GateSection::default()
        };
        assert!(
            pool.faults()[0].contains("gate.pool.champions = 2"),
            "{:?}",
            pool.faults()
        );
        let descending = SprtSection {
            lower: 10.0,
            upper: 10.0,
            ..SprtSection::default()
        };
        assert!(descending.faults()[0].contains("greater than gate.sprt.lower"));
    }
}
