//! One gate: a candidate against the champion, and perhaps against earlier ones, decided from its log.
//!
//! A [`Gate`] is one match after another: the champion's first, and once that is passed those of the pool, all at once.
//! Pairs are numbered through. The gate adds to the log only who holds which pair, and which actor played it.

use std::collections::BTreeMap;

use crate::elo::{Elo, elo_of_pairs};
use crate::ids::{ActorId, GateId, LeaseId, ModelId};
use crate::log::{Count, Decision, LogEntry, Standing, Tally};
use crate::match_rule::MatchRule;
use crate::words;

/// A published network that has not been decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The network.
    pub model: ModelId,
    /// Iterations that had ended when it was cut.
    pub iteration: u32,
}

/// The openings that were drawn for a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Openings {
    /// Pairs that have one.
    pub pairs: u32,
    /// How many of these have one that an earlier pair has too, and sample their first moves.
    pub repeated: u32,
}

impl Openings {
    /// As many openings as pairs, each another one.
    pub fn distinct(pairs: u32) -> Openings {
        Openings { pairs, repeated: 0 }
    }
}

/// One match of a gate, as it is set up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatchPlan {
    /// Whom the candidate meets.
    pub opponent: ModelId,
    /// What decides, over as many pairs as are wanted.
    pub rule: MatchRule,
    /// What it is played from; fewer pairs than wanted shorten the match.
    pub openings: Openings,
}

/// A match in progress or decided.
#[derive(Clone, Debug)]
pub struct Match {
    plan: MatchPlan,
    /// Its first pair within the gate.
    first_pair: u32,
    count: Count,
}

impl Match {
    /// As it was set up.
    pub fn plan(&self) -> MatchPlan {
        self.plan
    }

    /// The rule in force, over the pairs that can be played.
    pub fn rule(&self) -> MatchRule {
        self.count.rule()
    }

    /// What counts so far.
    pub fn tally(&self) -> Tally {
        self.count.tally()
    }

    /// The decision, once there is one.
    pub fn decision(&self) -> Option<Decision> {
        self.count.decision()
    }

    /// Its pairs within the gate.
    pub fn pairs(&self) -> std::ops::Range<u32> {
        self.first_pair..self.first_pair + self.rule().pairs()
    }
}

/// Who holds a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Holder {
    lease: LeaseId,
    actor: ActorId,
}

/// How a gate ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The candidate becomes champion.
    Promoted {
        /// Successive candidates that have passed, this one included.
        streak: u32,
    },
    /// It passed, and the champion stays until enough successive candidates have.
    Passed {
        /// Successive candidates that have passed, this one included.
        streak: u32,
    },
    /// The champion stays.
    Rejected,
}

/// What a decision rests on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// The counted pairs against the champion.
    pub tally: Tally,
    /// The log-likelihood ratio, where the rule goes by one.
    pub llr: Option<f64>,
    /// The Elo difference that the score suggests; nothing without a pair.
    pub elo: Option<Elo>,
    /// The matches with earlier champions.
    pub pool: Vec<MatchEvidence>,
}

/// What one match has brought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatchEvidence {
    /// The match as it was set up.
    pub plan: MatchPlan,
    /// The counted pairs.
    pub tally: Tally,
    /// The decision, once there is one.
    pub decision: Option<Decision>,
}

/// A gate in progress or decided.
#[derive(Clone, Debug)]
pub struct Gate {
    id: GateId,
    candidate: Candidate,
    /// The champion's first, then the pool's.
    matches: Vec<Match>,
    log: Vec<LogEntry>,
    holders: Vec<Option<Holder>>,
    /// Who played the leases that count, for the share of each.
    players: BTreeMap<LeaseId, ActorId>,
    in_a_row: u32,
}

/// Counted and held pairs up to which an actor's share of a gate is not looked at: a beginning has no shares yet.
pub const PAIRS_BEFORE_SHARES: u32 = 8;

impl Gate {
    /// A gate against the champion alone.
    pub fn new(id: GateId, candidate: Candidate, champion: MatchPlan) -> Gate {
        let mut gate = Gate {
            id,
            candidate,
            matches: Vec::new(),
            log: Vec::new(),
            holders: Vec::new(),
            players: BTreeMap::new(),
            in_a_row: 1,
        };
        gate.add_match(champion);
        gate
    }

    /// The same with earlier champions to be met after the champion. Before any game.
    #[must_use]
    pub fn with_pool(mut self, pool: &[MatchPlan]) -> Gate {
        pool.iter().for_each(|plan| self.add_match(*plan));
        self
    }

    /// Makes it a gate that so many successive candidates must pass.
    #[must_use]
    pub fn with_in_a_row(mut self, in_a_row: u32) -> Gate {
        self.in_a_row = in_a_row;
        self
    }

    /// Successive candidates that must pass, this one included.
    pub fn in_a_row(&self) -> u32 {
        self.in_a_row
    }

    fn add_match(&mut self, plan: MatchPlan) {
        let rule = plan.rule.shortened_to(plan.openings.pairs);
        let first_pair = self.holders.len() as u32;
        self.holders.resize(self.holders.len() + rule.pairs() as usize, None);
        self.matches.push(Match {
            plan,
            first_pair,
            count: Count::new(rule),
        });
    }

    /// The gate's number.
    pub fn id(&self) -> GateId {
        self.id
    }

    /// Who wants to become champion.
    pub fn candidate(&self) -> Candidate {
        self.candidate
    }

    /// Who is champion.
    pub fn champion(&self) -> ModelId {
        self.champion_match().plan.opponent
    }

    /// The match with the champion.
    pub fn champion_match(&self) -> &Match {
        &self.matches[0]
    }

    /// The matches with earlier champions.
    pub fn pool(&self) -> &[Match] {
        &self.matches[1..]
    }

    /// Every match game stored, in commit order.
    pub fn log(&self) -> &[LogEntry] {
        &self.log
    }

    /// What counts so far in the match with the champion.
    pub fn tally(&self) -> Tally {
        self.champion_match().tally()
    }

    /// The gate in figures.
    pub fn evidence(&self) -> Evidence {
        let tally = self.tally();
        let pool = self.pool().iter().map(|played| MatchEvidence {
            plan: played.plan,
            tally: played.tally(),
            decision: played.decision(),
        });
        Evidence {
            tally,
            llr: self.champion_match().rule().llr(&tally),
            elo: elo_of_pairs(tally.pairs_by_half_points),
            pool: pool.collect(),
        }
    }

    /// The decision, once there is one: passed when the champion's match is, and every one of the pool.
    pub fn decision(&self) -> Option<Decision> {
        let decisions = || self.matches.iter().map(Match::decision);
        if decisions().any(|decision| decision == Some(Decision::Reject)) {
            Some(Decision::Reject)
        } else if decisions().all(|decision| decision == Some(Decision::Promote)) {
            Some(Decision::Promote)
        } else {
            None
        }
    }

    /// Appends an entry with the standing it had when it was committed.
    pub fn append(&mut self, entry: LogEntry) {
        self.log.push(entry);
        let Some(number) = self.match_of(entry.pair).filter(|&number| self.is_on(number)) else {
            return;
        };
        let played = &mut self.matches[number];
        let pair = entry.pair - played.first_pair;
        played.count.push(LogEntry { pair, ..entry });
    }

    /// Says who played a lease of the log, so that it counts towards that actor's share.
    pub fn played_by(&mut self, lease: LeaseId, actor: ActorId) {
        self.players.insert(lease, actor);
    }

    /// The standing of a game that `lease` delivers now.
    pub fn standing(&self, lease: LeaseId, pair: u32) -> Standing {
        let holder = self.holders.get(pair as usize).copied().flatten();
        let holds = holder.is_some_and(|holder| holder.lease == lease);
        if holds && self.match_of(pair).is_some_and(|number| self.is_on(number)) {
            Standing::Counts
        } else {
            Standing::Late
        }
    }

    /// The match that a pair belongs to.
    fn match_of(&self, pair: u32) -> Option<usize> {
        self.matches.iter().position(|played| played.pairs().contains(&pair))
    }

    /// Whether a match is to be played now: the pool waits until the champion's match is passed.
    fn is_on(&self, number: usize) -> bool {
        let open = |number: usize| self.matches[number].decision().is_none();
        let reached = number == 0 || self.champion_match().decision() == Some(Decision::Promote);
        self.decision().is_none() && reached && open(number)
    }

    /// Whether a game of this pair could still count.
    pub fn wants(&self, pair: u32) -> bool {
        self.match_of(pair).is_some_and(|number| self.is_on(number))
    }

    /// Matches that are decided.
    pub(crate) fn matches_decided(&self) -> usize {
        self.matches.iter().filter(|played| played.decision().is_some()).count()
    }

    /// Pairs that nobody holds and that do not count yet, of the matches that are on.
    pub fn unassigned(&self) -> impl Iterator<Item = u32> + '_ {
        self.free_by_match().flat_map(|(_, pairs)| pairs)
    }

    /// The next opponent that has free pairs, with these pairs.
    pub(crate) fn free(&self) -> Option<(ModelId, Vec<u32>)> {
        self.free_by_match()
            .map(|(played, pairs)| (played.plan.opponent, pairs.collect::<Vec<_>>()))
            .find(|(_, pairs)| !pairs.is_empty())
    }

    fn free_by_match(&self) -> impl Iterator<Item = (&Match, impl Iterator<Item = u32> + '_)> + '_ {
        let on = (0..self.matches.len()).filter(|&number| self.is_on(number));
        on.map(move |number| {
            let played = &self.matches[number];
            let counted = played.count.counted();
            let free = move |&pair: &u32| {
                self.holders[pair as usize].is_none() && counted[(pair - played.first_pair) as usize].is_none()
            };
            (played, played.pairs().filter(free))
        })
    }

    /// Gives pairs to a lease; pairs that do not exist are passed over.
    pub fn assign(&mut self, pairs: &[u32], lease: LeaseId, actor: ActorId) {
        self.players.insert(lease, actor);
        for &pair in pairs {
            if let Some(holder) = self.holders.get_mut(pair as usize) {
                *holder = Some(Holder { lease, actor });
            }
        }
    }

    /// Takes back what `lease` holds: its unfinished pairs are handed on, its half pairs are void.
    pub fn release(&mut self, lease: LeaseId) {
        let held = |holder: &&mut Option<Holder>| holder.is_some_and(|holder| holder.lease == lease);
        for holder in self.holders.iter_mut().filter(held) {
            *holder = None;
        }
    }

    /// Most further pairs that `actor` may take, so that at no time more than `share` (in (0, 1]) of the counted pairs are
    /// its own, whichever of those that are out come in first. The first [`PAIRS_BEFORE_SHARES`] are free.
    pub fn room(&self, actor: ActorId, share: f64) -> u32 {
        let counted = || self.matches.iter().flat_map(|played| played.count.counted()).flatten();
        let own = |lease: &&LeaseId| self.players.get(lease) == Some(&actor);
        let (all, counted_own) = (counted().count() as f64, counted().filter(own).count() as u32);
        let held = self.holders_of(actor);
        let free = PAIRS_BEFORE_SHARES.saturating_sub(counted_own + held);
        if share >= 1.0 {
            return u32::MAX;
        }
        // The greatest n with own + held + n <= share * (all + held + n). The conversion saturates, at 0 too.
        let (counted_own, held) = (f64::from(counted_own), f64::from(held));
        let n = (share * (all + held) - counted_own - held) / (1.0 - share);
        free.max((n + 1e-9).floor() as u32)
    }

    /// Uncounted pairs that an actor holds.
    fn holders_of(&self, actor: ActorId) -> u32 {
        let played = self.matches.iter().flat_map(|played| played.count.counted());
        let pairs = self.holders.iter().zip(played);
        let held =
            pairs.filter(|(holder, counted)| counted.is_none() && holder.is_some_and(|holder| holder.actor == actor));
        held.count() as u32
    }

    /// The decision in a sentence.
    pub fn reason(&self, outcome: Outcome) -> String {
        words::reason(self, outcome)
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
