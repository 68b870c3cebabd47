//! The fit: the strengths that make the results most probable, and how surely they are known.

use std::collections::{BTreeMap, BTreeSet};

use super::flow::{Factor, Network};
use super::results::{Counts, Results};
use super::{ELO_PER_NAT, PlayerId, VIRTUAL_DRAWS};
use crate::elo::Z;

/// Steps of Newton's method. It doubles the correct digits each time once it is near; the way there is a step for each
/// unit of log odds, of which even a billion games without a loss need only some twenty.
const STEPS_MAX: usize = 200;
/// A step this small in every strength ends it, nats: far below a thousandth of an Elo point.
const STEP_ENOUGH: f64 = 1e-10;

/// A player's rating on the Elo scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rating {
    /// The rating; the fixed player has 0.
    pub elo: f64,
    /// Its standard deviation; 0 for the fixed player.
    pub deviation: f64,
}

impl Rating {
    /// Lower end of the 95 % interval.
    pub fn low(self) -> f64 {
        self.elo - self.error()
    }

    /// Upper end of the 95 % interval.
    pub fn high(self) -> f64 {
        self.elo + self.error()
    }

    /// Half the width of the 95 % interval.
    pub fn error(self) -> f64 {
        Z * self.deviation
    }
}

/// Ratings of every player that games join to the fixed one.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    ratings: BTreeMap<PlayerId, Rating>,
}

impl Fit {
    /// Rates everybody in `results` with `anchor` fixed at 0.
    pub fn new(results: &Results, anchor: PlayerId) -> Fit {
        let field = Field::new(ties(results), anchor);
        let strengths = field.strengths();
        let variances = field.information(&strengths).inverse_diagonal();
        let mut ratings = BTreeMap::from([(
            anchor,
            Rating {
                elo: 0.0,
                deviation: 0.0,
            },
        )]);
        for (&player, &node) in &field.nodes {
            let rating = Rating {
                elo: strengths[node] * ELO_PER_NAT,
                deviation: variances[node].sqrt() * ELO_PER_NAT,
            };
            ratings.insert(player, rating);
        }
        Fit { ratings }
    }

    /// A player's rating; `None` when no chain of games joins it to the fixed player.
    pub fn rating(&self, player: PlayerId) -> Option<Rating> {
        self.ratings.get(&player).copied()
    }

    /// Every rated player.
    pub fn ratings(&self) -> impl Iterator<Item = (PlayerId, Rating)> + '_ {
        self.ratings.iter().map(|(&player, &rating)| (player, rating))
    }
}

/// What two players are to the likelihood: so many games, so many points of the first one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tie {
    pub(super) first: PlayerId,
    pub(super) second: PlayerId,
    pub(super) games: f64,
    pub(super) points: f64,
}

impl Tie {
    /// Games with the prior of their pairing.
    pub(super) fn new(first: PlayerId, second: PlayerId, counts: Counts) -> Tie {
        Tie {
            first,
            second,
            games: counts.games() as f64 + VIRTUAL_DRAWS,
            points: counts.points() + VIRTUAL_DRAWS / 2.0,
        }
    }
}

/// Every pairing with its prior.
pub(super) fn ties(results: &Results) -> Vec<Tie> {
    results
        .pairings()
        .map(|(pair, counts)| Tie::new(pair.low(), pair.high(), counts))
        .collect()
}

/// The players that games join to the anchor, numbered, with their ties. The anchor has no number.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) nodes: BTreeMap<PlayerId, usize>,
    ties: Vec<Tie>,
}

impl Field {
    pub(super) fn new(mut ties: Vec<Tie>, anchor: PlayerId) -> Field {
        let mut near: BTreeMap<PlayerId, Vec<PlayerId>> = BTreeMap::new();
        for tie in &ties {
            near.entry(tie.first).or_default().push(tie.second);
            near.entry(tie.second).or_default().push(tie.first);
        }
        let mut reached = BTreeSet::from([anchor]);
        let mut todo = vec![anchor];
        while let Some(player) = todo.pop() {
            for &other in near.get(&player).into_iter().flatten() {
                if reached.insert(other) {
                    todo.push(other);
                }
            }
        }
        ties.retain(|tie| reached.contains(&tie.first));
        let numbered = reached.into_iter().filter(|&player| player != anchor).enumerate();
        Field {
            nodes: numbered.map(|(node, player)| (player, node)).collect(),
            ties,
        }
    }

    /// Strengths in nats, by node: the maximum of the log likelihood.
    pub(super) fn strengths(&self) -> Vec<f64> {
        let mut strengths = vec![0.0; self.nodes.len()];
        let mut likelihood = self.log_likelihood(&strengths);
        for _ in 0..STEPS_MAX {
            let mut step = self.gradient(&strengths);
            self.information(&strengths).solve(&mut step);
            let size = step.iter().fold(0.0_f64, |size, part| size.max(part.abs()));
            if size < STEP_ENOUGH {
                break;
            }
            // The function is concave and the step points up: some part of it is an improvement, but for rounding at the
            // very top.
            let mut part = 1.0;
            loop {
                let next: Vec<f64> = strengths.iter().zip(&step).map(|(at, by)| at + part * by).collect();
                let reached = self.log_likelihood(&next);
                if reached >= likelihood || part * size < STEP_ENOUGH {
                    (strengths, likelihood) = (next, reached);
                    break;
                }
                part /= 2.0;
            }
        }
        strengths
    }

    /// The observed information at these strengths: what is not known of a player is its inverse's diagonal.
    pub(super) fn information(&self, strengths: &[f64]) -> Factor {
        let mut network = Network::new(self.nodes.len());
        for tie in &self.ties {
            let (first, second) = (self.node(tie.first), self.node(tie.second));
            let conductance = tie.games * variance(self.lead(tie, strengths));
            network.connect(first, second, conductance);
        }
        network.factor()
    }

    fn log_likelihood(&self, strengths: &[f64]) -> f64 {
        let of_tie = |tie: &Tie| {
            let lead = self.lead(tie, strengths);
            tie.points * log_chance(lead) + (tie.games - tie.points) * log_chance(-lead)
        };
        self.ties.iter().map(of_tie).sum()
    }

    fn gradient(&self, strengths: &[f64]) -> Vec<f64> {
        let mut gradient = vec![0.0; strengths.len()];
        for tie in &self.ties {
            let surplus = tie.points - tie.games * chance(self.lead(tie, strengths));
            if let Some(node) = self.node(tie.first) {
                gradient[node] += surplus;
            }
            if let Some(node) = self.node(tie.second) {
                gradient[node] -= surplus;
            }
        }
        gradient
    }

    /// By how much the first of a tie is stronger, nats.
    fn lead(&self, tie: &Tie, strengths: &[f64]) -> f64 {
        let strength = |player| self.node(player).map_or(0.0, |node| strengths[node]);
        strength(tie.first) - strength(tie.second)
    }

    pub(super) fn node(&self, player: PlayerId) -> Option<usize> {
        self.nodes.get(&player).copied()
    }
}

/// The expected score of somebody who is this much stronger, nats.
pub(super) fn chance(lead: f64) -> f64 {
    1.0 / (1.0 + (-lead).exp())
}

/// The information that one game between players this far apart holds.
pub(super) fn variance(lead: f64) -> f64 {
    chance(lead) * chance(-lead)
}

/// Logarithm of [`chance`] that neither overflows nor loses small numbers.
fn log_chance(lead: f64) -> f64 {
    if lead >= 0.0 {
        -(-lead).exp().ln_1p()
    } else {
        lead - lead.exp().ln_1p()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::GameScore;

    const A: PlayerId = PlayerId(0);
    const B: PlayerId = PlayerId(1);
    const C: PlayerId = PlayerId(2);

    fn counts(wins: u64, draws: u64, losses: u64) -> Counts {
        Counts { wins, draws, losses }
    }

    #[test]
    fn two_players_have_the_logit_of_their_score_with_a_virtual_draw() {
        let mut results = Results::default();
        results.add_counts(B, A, counts(70, 20, 9));
        let fit = Fit::new(&results, A);
        // 80.5 points of 100 with the virtual draw.
        let rating = fit.rating(B).unwrap();
        assert!(
            (rating.elo - 400.0 * (80.5_f64 / 19.5).log10()).abs() < 1e-6,
            "{rating:?}"
        );
        let deviation = 1.0 / (100.0 * 0.805 * 0.195_f64).sqrt() * ELO_PER_NAT;
        assert!((rating.deviation - deviation).abs() < 1e-6, "{rating:?}");
        assert!((rating.high() - rating.low() - 2.0 * rating.error()).abs() < 1e-9);
        let fixed = fit.rating(A).unwrap();
        assert_eq!((fixed.elo, fixed.deviation), (0.0, 0.0));
    }

    #[test]
    fn a_chain_adds_differences_and_variances() {
        let mut results = Results::default();
        results.add_counts(B, A, counts(30, 0, 9));
        results.add_counts(C, B, counts(30, 0, 9));
        let fit = Fit::new(&results, A);
        let (b, c) = (fit.rating(B).unwrap(), fit.rating(C).unwrap());
        assert!((c.elo - 2.0 * b.elo).abs() < 1e-6);
        assert!((c.deviation - b.deviation * 2.0_f64.sqrt()).abs() < 1e-6);
    }

    #[test]
    fn a_player_that_never_lost_keeps_a_finite_rating() {
        let mut results = Results::default();
        results.add_counts(B, A, counts(1_000_000_000, 0, 0));
        let rating = Fit::new(&results, A).rating(B).unwrap();
        let expected = 400.0 * (1_000_000_000.5_f64 / 0.5).log10();
        assert!((rating.elo - expected).abs() < 1e-3, "{rating:?} against {expected}");
        assert!(rating.deviation.is_finite() && rating.deviation > 100.0, "{rating:?}");
    }

    #[test]
    fn who_is_not_joined_to_the_fixed_player_has_no_rating() {
        let mut results = Results::default();
        results.add(B, C, GameScore::Win);
        let fit = Fit::new(&results, A);
        assert_eq!((fit.rating(B), fit.rating(C)), (None, None));
        assert!(fit.rating(A).is_some());
        results.add(C, A, GameScore::Loss);
        let fit = Fit::new(&results, A);
        assert!(fit.rating(B).is_some() && fit.rating(C).is_some());
    }
}
