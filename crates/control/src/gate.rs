//! One gate: a candidate against the champion in pairs of games, decided from its log.
//!
//! A [`Gate`] counts its log anew after every entry, and adds only who holds which pair.

use crate::elo::elo_of;
use crate::ids::{GateId, LeaseId, ModelId};
use crate::log::{Count, Decision, FixedRule, LogEntry, Standing, Tally, count};

/// A published network that has not been decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The network.
    pub model: ModelId,
    /// Iterations that had ended when it was cut.
    pub iteration: u32,
}

/// A gate in progress or decided.
#[derive(Clone, Debug)]
pub struct Gate {
    id: GateId,
    candidate: Candidate,
    champion: ModelId,
    rule: FixedRule,
    pairs_wanted: u32,
    log: Vec<LogEntry>,
    holders: Vec<Option<LeaseId>>,
    count: Count,
}

impl Gate {
    /// A gate with `pairs_drawn` openings; fewer than the rule wants shorten the match.
    pub fn new(id: GateId, candidate: Candidate, champion: ModelId, rule: FixedRule, pairs_drawn: u32) -> Gate {
        let pairs_wanted = rule.pairs;
        let rule = FixedRule {
            pairs: pairs_drawn.min(pairs_wanted),
            ..rule
        };
        let count = count(&rule, &[]);
        let holders = vec![None; rule.pairs as usize];
        Gate {
            id,
            candidate,
            champion,
            rule,
            pairs_wanted,
            log: Vec::new(),
            holders,
            count,
        }
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
        self.champion
    }

    /// The rule in force, with the pairs that are really played.
    pub fn rule(&self) -> FixedRule {
        self.rule
    }

    /// Every match game stored, in commit order.
    pub fn log(&self) -> &[LogEntry] {
        &self.log
    }

    /// What counts so far.
    pub fn tally(&self) -> Tally {
        self.count.tally
    }

    /// The decision, once there is one.
    pub fn decision(&self) -> Option<Decision> {
        self.count.decision
    }

    /// Appends an entry with the standing it had when it was committed.
    pub fn append(&mut self, entry: LogEntry) {
        self.log.push(entry);
        if self.count.decision.is_none() {
            self.count = count(&self.rule, &self.log);
        }
    }

    /// The standing of a game that `lease` delivers now.
    pub fn standing(&self, lease: LeaseId, pair: u32) -> Standing {
        let holds = self.holders.get(pair as usize) == Some(&Some(lease));
        if holds && self.count.decision.is_none() {
            Standing::Counts
        } else {
            Standing::Late
        }
    }

    /// Pairs that nobody holds and that do not count yet.
    pub fn unassigned(&self) -> impl Iterator<Item = u32> + '_ {
        let free = |&pair: &u32| self.holders[pair as usize].is_none() && !self.count.counted[pair as usize];
        (0..self.rule.pairs).filter(free)
    }

    /// Gives pairs to a lease; pairs that do not exist are passed over.
    pub fn assign(&mut self, pairs: &[u32], lease: LeaseId) {
        for &pair in pairs {
            if let Some(holder) = self.holders.get_mut(pair as usize) {
                *holder = Some(lease);
            }
        }
    }

    /// Takes back what `lease` holds: its unfinished pairs are handed on, its half pairs are void.
    pub fn release(&mut self, lease: LeaseId) {
        for holder in self.holders.iter_mut().filter(|holder| **holder == Some(lease)) {
            *holder = None;
        }
    }

    /// Where the gate stands, in a sentence.
    pub fn reason(&self) -> String {
        let Tally {
            pairs,
            wins,
            draws,
            losses,
        } = self.count.tally;
        let verdict = match self.count.decision {
            Some(Decision::Promote) => "promoted",
            Some(Decision::Reject) => "rejected",
            None => "undecided",
        };
        let games = self.count.tally.games();
        if games == 0 {
            return format!("{verdict}: no pair of {} was counted", self.pairs_wanted);
        }
        let elo = elo_of(self.count.tally.points(), games);
        let mut text = format!(
            "{verdict}: {wins} wins, {draws} draws and {losses} losses in {pairs} of {} pairs score {:.1} % where {} {:.1} % was \
             needed; Elo {:+.0} ± {:.0}",
            self.rule.pairs,
            self.count.tally.score() * 100.0,
            if self.rule.strict { "more than" } else { "at least" },
            self.rule.threshold() * 100.0,
            elo.difference,
            elo.error(),
        );
        if self.count.decision.is_some() && pairs < self.rule.pairs {
            text.push_str("; the pairs still to come could not have changed it");
        }
        if self.rule.pairs < self.pairs_wanted {
            let fewer = format!(
                "; shortened from {} pairs: the game has no more distinct openings",
                self.pairs_wanted
            );
            text.push_str(&fewer);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{GameScore, Leg};

    const LEASE: LeaseId = LeaseId([1; 16]);

    fn gate(games: u32, threshold: f64, strict: bool) -> Gate {
        let candidate = Candidate {
            model: ModelId([1; 32]),
            iteration: 1,
        };
        let rule = FixedRule::new(games, threshold, strict).unwrap();
        let mut gate = Gate::new(GateId(1), candidate, ModelId([0; 32]), rule, rule.pairs);
        gate.assign(&(0..rule.pairs).collect::<Vec<_>>(), LEASE);
        gate
    }

    fn play(gate: &mut Gate, lease: LeaseId, pair: u32, leg: Leg, score: GameScore) {
        let standing = gate.standing(lease, pair);
        gate.append(LogEntry {
            lease,
            pair,
            leg,
            score,
            standing,
        });
    }

    fn play_pair(gate: &mut Gate, pair: u32, first: GameScore, second: GameScore) {
        play(gate, LEASE, pair, Leg::CandidateFirst, first);
        play(gate, LEASE, pair, Leg::ChampionFirst, second);
    }

    #[test]
    fn strict_needs_more_than_the_threshold() {
        for (strict, decision) in [(false, Decision::Promote), (true, Decision::Reject)] {
            let mut gate = gate(4, 0.5, strict);
            play_pair(&mut gate, 0, GameScore::Win, GameScore::Loss);
            assert_eq!(gate.decision(), None);
            play_pair(&mut gate, 1, GameScore::Draw, GameScore::Draw);
            assert_eq!(gate.decision(), Some(decision));
        }
    }

    #[test]
    fn decided_early_in_both_directions_and_frozen() {
        let mut winning = gate(20, 0.55, false);
        for pair in 0..6 {
            assert_eq!(winning.decision(), None);
            play_pair(&mut winning, pair, GameScore::Win, GameScore::Win);
        }
        assert_eq!(winning.decision(), Some(Decision::Promote));
        let tally = winning.tally();
        play_pair(&mut winning, 6, GameScore::Loss, GameScore::Loss);
        assert_eq!(winning.tally(), tally);
        assert_eq!(winning.log().last().map(|entry| entry.standing), Some(Standing::Late));

        let mut losing = gate(20, 0.55, false);
        for pair in 0..5 {
            assert_eq!(losing.decision(), None);
            play_pair(&mut losing, pair, GameScore::Loss, GameScore::Loss);
        }
        assert_eq!(losing.decision(), Some(Decision::Reject));
        assert!(
            losing.reason().contains("could not have changed"),
            "{}",
            losing.reason()
        );
    }

    #[test]
    fn a_half_pair_of_a_lapsed_lease_is_void() {
        let mut gate = gate(4, 0.55, false);
        let other = LeaseId([2; 16]);
        play(&mut gate, LEASE, 0, Leg::CandidateFirst, GameScore::Win);
        gate.release(LEASE);
        assert_eq!(gate.unassigned().collect::<Vec<_>>(), [0, 1]);
        gate.assign(&[0], other);
        play(&mut gate, LEASE, 0, Leg::ChampionFirst, GameScore::Win);
        play(&mut gate, other, 0, Leg::ChampionFirst, GameScore::Loss);
        assert_eq!(gate.tally().pairs, 0);
        play(&mut gate, other, 0, Leg::CandidateFirst, GameScore::Loss);
        assert_eq!(
            gate.tally(),
            Tally {
                pairs: 1,
                wins: 0,
                draws: 0,
                losses: 2
            }
        );
        assert_eq!(gate.log()[1].standing, Standing::Late);
        assert_eq!(gate.unassigned().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn a_shortened_match_says_so() {
        let candidate = Candidate {
            model: ModelId([1; 32]),
            iteration: 1,
        };
        let rule = FixedRule::new(60, 0.55, false).unwrap();
        let mut gate = Gate::new(GateId(1), candidate, ModelId([0; 32]), rule, 9);
        assert_eq!(gate.rule().pairs, 9);
        gate.assign(&[0], LEASE);
        play_pair(&mut gate, 0, GameScore::Win, GameScore::Draw);
        assert!(gate.reason().contains("shortened from 30 pairs"), "{}", gate.reason());
        let none = Gate::new(GateId(1), candidate, ModelId([0; 32]), rule, 0);
        assert_eq!(none.decision(), Some(Decision::Reject));
        assert_eq!(none.reason(), "rejected: no pair of 30 was counted");
    }
}
