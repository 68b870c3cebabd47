//! Which game would tell most: the one that makes all ratings together surest.

use std::collections::{BTreeMap, BTreeSet};

use super::fit::{Field, Tie, ties, variance};
use super::results::{Counts, Pair, Results};
use super::{PlayerId, VIRTUAL_DRAWS};

/// What is known when the next rating match is chosen.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Every game so far.
    pub results: &'a Results,
    /// Games that are being played: they will tell something, whatever it is.
    pub under_way: &'a BTreeMap<Pair, u64>,
    /// Who takes part.
    pub players: &'a [PlayerId],
    /// Whose rating is fixed.
    pub anchor: PlayerId,
}

/// Gains that differ by less, relatively, are the same: what rounding leaves must not choose.
const SAME_GAIN: f64 = 1e-9;

/// The pairing whose next game reduces the sum of the participants' variances most, of those that `may_play`; the first in
/// order when several do. While games do not join some participant to the fixed player, only pairings that do come into
/// question. `None` when nobody may play.
///
/// A-optimal design (Chaloner and Verdinelli 1995): with the covariance `C` of the ratings, a game of `a` and `b` that
/// holds the information `w` takes `w * |C (e_a - e_b)|^2 / (1 + w * (e_a - e_b)' C (e_a - e_b))` off the trace of `C`
/// (Sherman and Morrison 1950). For this choice alone every participant is given [`VIRTUAL_DRAWS`] draw against the fixed
/// player, so that one without games counts as very uncertain and near 0 instead of not at all.
pub fn most_telling(plan: &Plan, may_play: impl Fn(Pair) -> bool) -> Option<Pair> {
    let mut choices: Vec<Choice> = choices(plan.players).filter(|choice| may_play(choice.pair)).collect();
    if choices.is_empty() {
        return None;
    }
    let joined = joined(plan);
    let joins = |choice: &Choice| joined.contains(&choice.pair.low()) != joined.contains(&choice.pair.high());
    if choices.iter().any(joins) {
        choices.retain(joins);
    }
    let gains = Gains::new(plan);
    let mut best: Option<(f64, Pair)> = None;
    for Choice { places, pair } in choices {
        let gain = gains.of(places);
        let better = |(most, first): (f64, Pair)| {
            gain > most * (1.0 + SAME_GAIN) || (gain >= most * (1.0 - SAME_GAIN) && pair < first)
        };
        if best.is_none_or(better) {
            best = Some((gain, pair));
        }
    }
    best.map(|(_, pair)| pair)
}

/// A pairing that may play next.
struct Choice {
    /// Where its players stand among the participants.
    places: (usize, usize),
    pair: Pair,
}

fn choices(players: &[PlayerId]) -> impl Iterator<Item = Choice> + '_ {
    let places = (0..players.len()).flat_map(|a| (a + 1..players.len()).map(move |b| (a, b)));
    places.filter_map(|places| {
        let pair = Pair::new(players[places.0], players[places.1])?;
        Some(Choice { places, pair })
    })
}

/// Whom games, played or under way, join to the anchor.
fn joined(plan: &Plan) -> BTreeSet<PlayerId> {
    let mut all = ties(plan.results);
    let under_way = plan.under_way.keys();
    all.extend(under_way.map(|pair| Tie::new(pair.low(), pair.high(), Counts::default())));
    let mut joined: BTreeSet<PlayerId> = Field::new(all, plan.anchor).nodes.into_keys().collect();
    joined.insert(plan.anchor);
    joined
}

/// What is known of the participants when the next game is chosen, by their place among them.
struct Gains {
    strengths: Vec<f64>,
    covariance: Vec<Vec<f64>>,
}

impl Gains {
    fn new(plan: &Plan) -> Gains {
        let field = field(plan);
        let strengths = field.strengths();
        let information = field.information(&strengths);
        let nodes: Vec<Option<usize>> = plan.players.iter().map(|&player| field.node(player)).collect();
        // The anchor has no node: its rating is known. Players who do not take part are left out.
        let row = |node: &Option<usize>| {
            let column = node.map(|node| information.inverse_column(node));
            let entry = |other: &Option<usize>| column.as_ref().zip(*other).map_or(0.0, |(column, at)| column[at]);
            nodes.iter().map(entry).collect::<Vec<f64>>()
        };
        Gains {
            strengths: nodes
                .iter()
                .map(|node| node.map_or(0.0, |node| strengths[node]))
                .collect(),
            covariance: nodes.iter().map(row).collect(),
        }
    }

    /// What a game between these two takes off the sum of the variances.
    fn of(&self, (a, b): (usize, usize)) -> f64 {
        let held = variance(self.strengths[a] - self.strengths[b]);
        let spread: Vec<f64> = self.covariance[a]
            .iter()
            .zip(&self.covariance[b])
            .map(|(of_a, of_b)| of_a - of_b)
            .collect();
        let squares: f64 = spread.iter().map(|part| part * part).sum();
        held * squares / (1.0 + held * (spread[a] - spread[b]))
    }
}

/// The games so far, those under way as if they would end as expected, and a virtual draw of each participant with the
/// anchor.
fn field(plan: &Plan) -> Field {
    let mut all = ties(plan.results);
    for &player in plan.players.iter().filter(|&&player| player != plan.anchor) {
        all.push(Tie::new(player, plan.anchor, Counts::default()));
    }
    let known = Field::new(all.clone(), plan.anchor);
    let strengths = known.strengths();
    let strength = |player: PlayerId| known.node(player).map_or(0.0, |node| strengths[node]);
    for (pair, &games) in plan.under_way {
        let lead = strength(pair.low()) - strength(pair.high());
        let games = games as f64;
        all.push(Tie {
            first: pair.low(),
            second: pair.high(),
            games,
            points: games * super::fit::chance(lead),
        });
    }
    // Without the prior, participants that have no games would have no way to the anchor.
    const { assert!(VIRTUAL_DRAWS > 0.0) };
    Field::new(all, plan.anchor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rating::Fit;

    fn players(n: u32) -> Vec<PlayerId> {
        (0..n).map(PlayerId).collect()
    }

    fn even(results: &mut Results, one: u32, other: u32, games: u64) {
        let counts = Counts {
            wins: games / 2,
            draws: 0,
            losses: games - games / 2,
        };
        results.add_counts(PlayerId(one), PlayerId(other), counts);
    }

    fn choose(results: &Results, under_way: &[(u32, u32, u64)], n: u32) -> Option<(u32, u32)> {
        let under_way = under_way
            .iter()
            .map(|&(one, other, games)| (Pair::new(PlayerId(one), PlayerId(other)).unwrap(), games))
            .collect();
        let plan = Plan {
            results,
            under_way: &under_way,
            players: &players(n),
            anchor: PlayerId(0),
        };
        most_telling(&plan, |_| true).map(|pair| (pair.low().0, pair.high().0))
    }

    #[test]
    fn a_player_without_games_comes_first_and_once_it_is_at_it_the_next_one() {
        let mut results = Results::default();
        even(&mut results, 0, 1, 100);
        assert_eq!(choose(&results, &[], 3), Some((0, 2)));
        assert_eq!(choose(&results, &[(0, 2, 10)], 4), Some((0, 3)));
    }

    #[test]
    fn who_has_no_rating_yet_is_joined_to_those_who_have() {
        // Two newcomers would tell more about each other than each about the rest, and neither would have a rating.
        assert_eq!(choose(&Results::default(), &[], 3), Some((0, 1)));
        let mut results = Results::default();
        even(&mut results, 1, 2, 50);
        assert_eq!(choose(&results, &[], 3), Some((0, 1)));
        assert_eq!(choose(&results, &[(0, 1, 4)], 3), Some((0, 2)));
    }

    #[test]
    fn the_least_known_of_equals_is_asked_next() {
        let mut results = Results::default();
        for (one, other, games) in [(0, 1, 400), (0, 2, 20), (0, 3, 400)] {
            even(&mut results, one, other, games);
        }
        let (_, other) = choose(&results, &[], 4).unwrap();
        assert_eq!(other, 2);
    }

    #[test]
    fn a_game_that_is_lost_before_it_begins_tells_little() {
        let mut results = Results::default();
        // 2 and 3 are far above 0 and 1, equally well known.
        even(&mut results, 0, 1, 40);
        results.add_counts(
            PlayerId(2),
            PlayerId(0),
            Counts {
                wins: 400,
                draws: 0,
                losses: 1,
            },
        );
        even(&mut results, 2, 3, 10);
        assert_eq!(choose(&results, &[], 4), Some((2, 3)));
    }

    #[test]
    fn nobody_plays_whom_nobody_lets() {
        let results = Results::default();
        let under_way = BTreeMap::new();
        let plan = Plan {
            results: &results,
            under_way: &under_way,
            players: &players(3),
            anchor: PlayerId(0),
        };
        assert_eq!(most_telling(&plan, |_| false), None);
        let only = Pair::new(PlayerId(1), PlayerId(2)).unwrap();
        assert_eq!(most_telling(&plan, |pair| pair == only), Some(only));
        assert_eq!(
            most_telling(
                &Plan {
                    players: &players(1),
                    ..plan
                },
                |_| true
            ),
            None
        );
    }

    /// What the formula promises is what a fit with that game really shows, up to the change of the estimate itself.
    #[test]
    fn the_promised_gain_is_had() {
        let mut results = Results::default();
        // Every pairing has games: its first ones would bring the prior's draw along.
        let pairings = [(0, 1, 60), (1, 2, 30), (2, 3, 90), (0, 3, 6), (0, 2, 10), (1, 3, 24)];
        for (one, other, games) in pairings {
            even(&mut results, one, other, games);
        }
        let total = |results: &Results| -> f64 {
            let fit = Fit::new(results, PlayerId(0));
            fit.ratings().map(|(_, rating)| rating.deviation.powi(2)).sum()
        };
        let (one, other) = choose(&results, &[], 4).unwrap();
        let mut gains = Vec::new();
        for a in 0..4 {
            for b in a + 1..4 {
                let mut more = results.clone();
                // Two games: the estimate stays where it is.
                even(&mut more, a, b, 2);
                gains.push((total(&results) - total(&more), (a, b)));
            }
        }
        gains.sort_by(|x, y| y.0.total_cmp(&x.0));
        assert_eq!(gains[0].1, (one, other), "{gains:?}");
    }
}
