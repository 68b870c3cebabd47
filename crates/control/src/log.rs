//! The log of a match and what it amounts to.
//!
//! The log is everything: [`Count`] takes its entries in order, counts complete pairs until the match is decided, and is
//! frozen there. Nothing here knows who plays, or what decides.

use crate::ids::LeaseId;
use crate::match_rule::MatchRule;

/// Result of one match game from the candidate's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GameScore {
    /// The candidate won.
    Win,
    /// Nobody won.
    Draw,
    /// The opponent won.
    Loss,
}

impl GameScore {
    fn half_points(self) -> usize {
        match self {
            GameScore::Win => 2,
            GameScore::Draw => 1,
            GameScore::Loss => 0,
        }
    }
}

/// Which game of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leg {
    /// The candidate has seat 0.
    CandidateFirst,
    /// The champion, or whichever opponent the pair is against, has seat 0.
    ChampionFirst,
}

impl Leg {
    /// Both games of a pair, in the order they are handed out.
    pub const BOTH: [Leg; 2] = [Leg::CandidateFirst, Leg::ChampionFirst];
}

/// Whether a match game was delivered in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// By the lease that held the pair, before the decision.
    Counts,
    /// Later: kept, not counted.
    Late,
}

/// One match game in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The lease that played it.
    pub lease: LeaseId,
    /// Its pair within the gate, from 0.
    pub pair: u32,
    /// Which game of the pair.
    pub leg: Leg,
    /// The result.
    pub score: GameScore,
    /// Whether it arrived in time.
    pub standing: Standing,
}

/// What the counted pairs add up to, from the candidate's view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Complete pairs counted.
    pub pairs: u32,
    /// Games won.
    pub wins: u32,
    /// Games drawn.
    pub draws: u32,
    /// Games lost.
    pub losses: u32,
    /// The same pairs by what each brought, 0 to 4 half points: the pentanomial that says how sure the score is.
    pub pairs_by_half_points: [u32; 5],
}

impl Tally {
    /// Counts a complete pair.
    pub fn add_pair(&mut self, first: GameScore, second: GameScore) {
        self.pairs += 1;
        self.pairs_by_half_points[first.half_points() + second.half_points()] += 1;
        for score in [first, second] {
            match score {
                GameScore::Win => self.wins += 1,
                GameScore::Draw => self.draws += 1,
                GameScore::Loss => self.losses += 1,
            }
        }
    }

    /// Games counted.
    pub fn games(&self) -> u32 {
        self.wins + self.draws + self.losses
    }

    /// Wins and half the draws.
    pub fn points(&self) -> f64 {
        f64::from(self.wins) + f64::from(self.draws) / 2.0
    }

    /// Points a game in [0, 1]; 0 without games.
    pub fn score(&self) -> f64 {
        if self.games() == 0 {
            0.0
        } else {
            self.points() / f64::from(self.games())
        }
    }

    pub(crate) fn half_points(&self) -> u64 {
        u64::from(self.wins) * 2 + u64::from(self.draws)
    }
}

/// How a match, or a whole gate, ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The candidate has passed.
    Promote,
    /// The champion stays.
    Reject,
}

/// What the log of one match amounts to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Count {
    rule: MatchRule,
    tally: Tally,
    decision: Option<Decision>,
    /// By pair: the lease that it was counted from.
    counted: Vec<Option<LeaseId>>,
    /// By pair: a first game that waits for its second.
    halves: Vec<Option<LogEntry>>,
}

impl Count {
    /// An empty log, judged by `rule`.
    pub(crate) fn new(rule: MatchRule) -> Count {
        let tally = Tally::default();
        let pairs = rule.pairs() as usize;
        Count {
            rule,
            tally,
            decision: rule.decide(&tally),
            counted: vec![None; pairs],
            halves: vec![None; pairs],
        }
    }

    /// Takes the log's next entry, its `pair` counted within this match. A pair counts once, when both its games came in
    /// time from one lease (half pairs are void), and nothing counts after the decision.
    pub(crate) fn push(&mut self, entry: LogEntry) {
        let pair = entry.pair as usize;
        let done = self.counted.get(pair).is_none_or(Option::is_some);
        if entry.standing == Standing::Late || self.decision.is_some() || done {
            return;
        }
        match self.halves[pair] {
            Some(half) if half.lease == entry.lease => {
                if half.leg != entry.leg {
                    self.counted[pair] = Some(entry.lease);
                    self.tally.add_pair(half.score, entry.score);
                    self.decision = self.rule.decide(&self.tally);
                }
            }
            _ => self.halves[pair] = Some(entry),
        }
    }

    /// The rule in force.
    pub(crate) fn rule(&self) -> MatchRule {
        self.rule
    }

    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    pub(crate) fn decision(&self) -> Option<Decision> {
        self.decision
    }

    /// By pair: the lease that it was counted from.
    pub(crate) fn counted(&self) -> &[Option<LeaseId>] {
        &self.counted
    }
}
