//! Rating matches: whether one is due, who plays it, and from which openings.
//!
//! A rating match is one lease: some pairs of games between two players. They decide nothing, so nothing waits for them;
//! they get a share of the games handed out and no more.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Pair, Plan, PlayerId, Results, most_telling};
use crate::lease::{Leases, Work};
use crate::log::GameScore;

/// Greatest share of the games handed out that rating matches may have: they must not starve the run they measure.
pub const RATING_SHARE_MAX: f64 = 0.5;

/// How rating matches are played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatingRules {
    /// Part of the games handed out that they take, `0..=RATING_SHARE_MAX`; 0 plays none.
    pub share: f64,
    /// Most pairs of one match, at least 1.
    pub pairs: u32,
    /// Openings that a pairing has: once they are used up it plays no more, because players that do not draw lots would
    /// play the same games again.
    pub openings: u32,
}

impl Default for RatingRules {
    /// No rating matches.
    fn default() -> RatingRules {
        RatingRules {
            share: 0.0,
            pairs: 10,
            openings: 0,
        }
    }
}

/// Games that were played before this process began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RatingState {
    /// The player whose rating is 0.
    pub anchor: Option<PlayerId>,
    /// Every match game.
    pub results: Results,
    /// Openings of each pairing that were handed out.
    pub used: BTreeMap<Pair, u32>,
}

/// A rating match to hand out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RatingMatch {
    pub(crate) pair: Pair,
    /// Which of the pairing's openings.
    pub(crate) openings: Range<u32>,
}

/// The desk that hands them out.
#[derive(Clone, Debug)]
pub(crate) struct Desk {
    state: RatingState,
    /// Games handed out since this process began.
    rating_games: u64,
    other_games: u64,
}

impl Desk {
    pub(crate) fn new(state: RatingState) -> Desk {
        Desk {
            state,
            rating_games: 0,
            other_games: 0,
        }
    }

    /// Takes in a match game.
    pub(crate) fn add(&mut self, first: PlayerId, second: PlayerId, score: GameScore) {
        self.state.results.add(first, second, score);
    }

    /// Notes games that were handed out for something else.
    pub(crate) fn note_other(&mut self, games: u32) {
        self.other_games += u64::from(games);
    }

    /// Whether rating matches have had less than their share.
    pub(crate) fn is_due(&self, rules: &RatingRules) -> bool {
        (self.rating_games as f64) * (1.0 - rules.share) < (self.other_games as f64) * rules.share
    }

    /// The next match for an actor that takes about `games` games, between two of `players`; `None` when none is due or
    /// nobody has openings left.
    pub(crate) fn hand_out(
        &mut self,
        rules: &RatingRules,
        players: &[PlayerId],
        games: u32,
        leases: &Leases,
    ) -> Option<RatingMatch> {
        let anchor = self.state.anchor.filter(|_| self.is_due(rules))?;
        let plan = Plan {
            results: &self.state.results,
            under_way: &under_way(leases),
            players,
            anchor,
        };
        let used = |pair: Pair| self.state.used.get(&pair).copied().unwrap_or(0);
        let pair = most_telling(&plan, |pair| used(pair) < rules.openings)?;
        let start = used(pair);
        let pairs = rules.pairs.min((games / 2).max(1)).min(rules.openings - start);
        let openings = start..start + pairs;
        self.state.used.insert(pair, openings.end);
        self.rating_games += u64::from(pairs) * 2;
        Some(RatingMatch { pair, openings })
    }
}

/// Rating games that are leased and not stored yet.
fn under_way(leases: &Leases) -> BTreeMap<Pair, u64> {
    let mut games = BTreeMap::new();
    for lease in leases.iter() {
        if let Work::Rating { pair, .. } = &lease.work {
            *games.entry(*pair).or_default() += u64::from(lease.games.saturating_sub(lease.stored));
        }
    }
    games
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: RatingRules = RatingRules {
        share: 0.1,
        pairs: 5,
        openings: 12,
    };

    fn desk() -> Desk {
        Desk::new(RatingState {
            anchor: Some(PlayerId(0)),
            ..RatingState::default()
        })
    }

    fn players() -> Vec<PlayerId> {
        (0..3).map(PlayerId).collect()
    }

    #[test]
    fn matches_keep_to_their_share() {
        let mut desk = desk();
        let leases = Leases::default();
        let (mut rating, mut other) = (0, 0);
        for _ in 0..40 {
            match desk.hand_out(&RULES, &players(), 100, &leases) {
                Some(found) => rating += found.openings.len() * 2,
                None => {
                    desk.note_other(8);
                    other += 8;
                }
            }
            // Never a whole match above the share.
            assert!(
                rating as f64 <= 0.1 * f64::from(other) / 0.9 + 10.0,
                "{rating} of {other}"
            );
        }
        assert!(rating > 0);
        let off = RatingRules { share: 0.0, ..RULES };
        assert_eq!(desk.hand_out(&off, &players(), 100, &leases), None);
        assert!(!desk.is_due(&off));
    }

    #[test]
    fn an_opening_is_handed_out_once_a_pairing() {
        let mut desk = desk();
        desk.note_other(1_000_000);
        let mut seen: BTreeMap<Pair, Vec<u32>> = BTreeMap::new();
        while let Some(found) = desk.hand_out(&RULES, &players(), 7, &Leases::default()) {
            assert!(
                found.openings.len() <= 3,
                "a lease is not larger than its actor's games"
            );
            seen.entry(found.pair).or_default().extend(found.openings);
        }
        assert_eq!(seen.len(), 3, "every pairing had its turn");
        assert!(
            seen.values().all(|openings| *openings == (0..12).collect::<Vec<_>>()),
            "{seen:?}"
        );
    }

    #[test]
    fn without_an_anchor_or_an_opponent_nothing_is_played() {
        let mut lost = Desk::new(RatingState::default());
        lost.note_other(1_000);
        assert_eq!(lost.hand_out(&RULES, &players(), 100, &Leases::default()), None);
        let mut alone = desk();
        alone.note_other(1_000);
        assert_eq!(alone.hand_out(&RULES, &players()[..1], 100, &Leases::default()), None);
    }
}
