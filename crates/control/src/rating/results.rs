//! What was played: games by pairing.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use super::PlayerId;
use crate::log::GameScore;

/// Two different players, the smaller id first: a pairing whichever way it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pair {
    low: PlayerId,
    high: PlayerId,
}

impl Pair {
    /// The pairing of two players; `None` for a player with itself, whose games say nothing.
    pub fn new(one: PlayerId, other: PlayerId) -> Option<Pair> {
        (one != other).then(|| Pair {
            low: one.min(other),
            high: one.max(other),
        })
    }

    /// The player with the smaller id.
    pub fn low(self) -> PlayerId {
        self.low
    }

    /// The player with the greater id.
    pub fn high(self) -> PlayerId {
        self.high
    }
}

/// Games of a pairing, from the view of its low player.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Games won.
    pub wins: u64,
    /// Games drawn.
    pub draws: u64,
    /// Games lost.
    pub losses: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Counts) {
        self.wins += more.wins;
        self.draws += more.draws;
        self.losses += more.losses;
    }
}

impl Counts {
    /// Games in all.
    pub fn games(&self) -> u64 {
        self.wins + self.draws + self.losses
    }

    /// Wins and half the draws.
    pub fn points(&self) -> f64 {
        self.wins as f64 + self.draws as f64 / 2.0
    }

    /// The same games as the other player sees them.
    #[must_use]
    pub fn reversed(self) -> Counts {
        Counts {
            wins: self.losses,
            draws: self.draws,
            losses: self.wins,
        }
    }
}

/// Every game, by pairing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Results {
    pairings: BTreeMap<Pair, Counts>,
}

impl Results {
    /// Adds one game; `score` is the first player's. A game of a player with itself is passed over.
    pub fn add(&mut self, first: PlayerId, second: PlayerId, score: GameScore) {
        let mut counts = Counts::default();
        match score {
            GameScore::Win => counts.wins = 1,
            GameScore::Draw => counts.draws = 1,
            GameScore::Loss => counts.losses = 1,
        }
        self.add_counts(first, second, counts);
    }

    /// Adds many games at once, counted from the first player's view.
    pub fn add_counts(&mut self, first: PlayerId, second: PlayerId, counts: Counts) {
        let Some(pair) = Pair::new(first, second).filter(|_| counts.games() > 0) else {
            return;
        };
        let counts = if pair.low == first { counts } else { counts.reversed() };
        *self.pairings.entry(pair).or_default() += counts;
    }

    /// Every pairing that has games.
    pub fn pairings(&self) -> impl Iterator<Item = (Pair, Counts)> + '_ {
        self.pairings.iter().map(|(&pair, &counts)| (pair, counts))
    }

    /// Games of one player against everybody.
    pub fn of(&self, player: PlayerId) -> Counts {
        let mut sum = Counts::default();
        for (pair, counts) in self.pairings() {
            match player {
                id if id == pair.low => sum += counts,
                id if id == pair.high => sum += counts.reversed(),
                _ => {}
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pairing_is_the_same_from_both_sides() {
        let (a, b) = (PlayerId(4), PlayerId(2));
        let mut results = Results::default();
        results.add(a, b, GameScore::Win);
        results.add(b, a, GameScore::Win);
        results.add(b, a, GameScore::Draw);
        results.add(a, a, GameScore::Win);
        let pairings: Vec<_> = results.pairings().collect();
        let counts = Counts {
            wins: 1,
            draws: 1,
            losses: 1,
        };
        assert_eq!(pairings, [(Pair { low: b, high: a }, counts)]);
        results.add(a, b, GameScore::Win);
        assert_eq!((results.of(a).wins, results.of(b).losses), (2, 2));
        assert_eq!(results.of(PlayerId(9)).games(), 0);
    }
}
