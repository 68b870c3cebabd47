//! The gate from a candidate's arrival to its decision: who waits, whose match begins, what each game does to it, and who
//! becomes champion.

use super::{Control, GateState};
use crate::event::Effect;
use crate::gate::{Candidate, Gate, MatchPlan, Openings, Outcome};
use crate::ids::{GateId, LeaseId, ModelId};
use crate::lease::{Lease, LeaseEnd, Work};
use crate::log::{Decision, GameScore, Leg, LogEntry, Standing};
use crate::rules::GateRule;
use crate::steering::Activity;

impl Control {
    pub(super) fn log_match_game(
        &mut self,
        lease: LeaseId,
        id: GateId,
        pair: u32,
        leg: Leg,
        score: GameScore,
        effects: &mut Vec<Effect>,
    ) {
        let standing = match &mut self.gate {
            GateState::Open { gate, .. } if gate.id() == id => {
                let standing = gate.standing(lease, pair);
                gate.append(LogEntry {
                    lease,
                    pair,
                    leg,
                    score,
                    standing,
                });
                standing
            }
            _ => Standing::Late,
        };
        effects.push(Effect::MatchLogged(standing));
    }

    /// Matches of the gate in progress that are decided.
    pub(super) fn matches_decided(&self) -> usize {
        self.gate().map_or(0, Gate::matches_decided)
    }

    /// Calls off the leases of the decided matches of a gate that goes on.
    pub(super) fn cancel_pointless(&mut self, effects: &mut Vec<Effect>) {
        let GateState::Open { gate, .. } = &self.gate else {
            return;
        };
        if gate.decision().is_some() {
            return;
        }
        let pointless = |lease: &&Lease| match &lease.work {
            Work::Match { gate: id, pairs, .. } => *id == gate.id() && !pairs.iter().any(|&pair| gate.wants(pair)),
            Work::SelfPlay { .. } | Work::Rating { .. } => false,
        };
        let leases: Vec<LeaseId> = self.leases.iter().filter(pointless).map(|lease| lease.id).collect();
        for lease in leases {
            self.close(lease, LeaseEnd::Cancelled, effects);
        }
    }

    pub(super) fn take_candidate(&mut self, candidate: Candidate, effects: &mut Vec<Effect>) {
        self.published_iteration = self.published_iteration.max(candidate.iteration);
        self.waiting.push_back(candidate);
        self.bound_queue(effects);
    }

    /// Lets the candidates that have waited longest go, beyond what the policy keeps.
    pub(super) fn bound_queue(&mut self, effects: &mut Vec<Effect>) {
        while self.waiting.len() > self.rules.queue.waiting_max()
            && let Some(oldest) = self.waiting.pop_front()
        {
            effects.push(Effect::Superseded(oldest.model));
        }
    }

    /// Closes a decided gate and begins what is next, until nothing changes.
    pub(super) fn settle_gate(&mut self, effects: &mut Vec<Effect>) {
        if let GateState::Open { gate, .. } = &self.gate
            && let Some(decision) = gate.decision()
        {
            let gate = gate.as_ref().clone();
            self.end_gate(&gate, decision, effects);
        }
        while matches!(self.gate, GateState::Idle)
            && self.goes_on(Activity::Gating)
            && let Some(candidate) = self.waiting.pop_front()
        {
            match self.rules.gate {
                GateRule::None => self.pass(candidate.model, "promoted: this run has no gate".to_owned(), effects),
                GateRule::Play(play) => {
                    self.gates += 1;
                    let gate = GateId(self.gates);
                    self.gate = GateState::Drawing { gate, candidate, play };
                    effects.push(Effect::GateWanted {
                        gate,
                        candidate,
                        champion: self.champion,
                        play,
                    });
                }
            }
        }
    }

    pub(super) fn open_gate(&mut self, id: GateId, openings: Openings, pool: &[MatchPlan], effects: &mut Vec<Effect>) {
        let GateState::Drawing { gate, candidate, play } = self.gate else {
            return;
        };
        if gate != id {
            return;
        }
        let plan = MatchPlan {
            opponent: self.champion,
            rule: play.rule,
            openings,
        };
        let open = Gate::new(id, candidate, plan)
            .with_pool(pool)
            .with_in_a_row(play.in_a_row);
        effects.push(Effect::GateOpened {
            gate,
            pairs: open.champion_match().rule().pairs(),
        });
        self.gate = GateState::open(open, &self.leases);
    }

    pub(super) fn end_gate(&mut self, gate: &Gate, decision: Decision, effects: &mut Vec<Effect>) {
        self.gate = GateState::Idle;
        let streak = self.streak + 1;
        let outcome = match decision {
            Decision::Reject => Outcome::Rejected,
            Decision::Promote if streak < gate.in_a_row() => Outcome::Passed { streak },
            Decision::Promote => Outcome::Promoted { streak },
        };
        let reason = gate.reason(outcome);
        effects.push(Effect::GateDecided {
            gate: gate.id(),
            candidate: gate.candidate().model,
            outcome,
            evidence: gate.evidence(),
            reason: reason.clone(),
        });
        let of_gate = |lease: &&Lease| matches!(lease.work, Work::Match { gate: id, .. } if id == gate.id());
        let open: Vec<LeaseId> = self.leases.iter().filter(of_gate).map(|lease| lease.id).collect();
        for lease in open {
            self.close(lease, LeaseEnd::Cancelled, effects);
        }
        match outcome {
            Outcome::Rejected => self.streak = 0,
            Outcome::Passed { streak } => {
                self.streak = streak;
                effects.push(Effect::Superseded(gate.candidate().model));
            }
            Outcome::Promoted { .. } => self.pass(gate.candidate().model, reason, effects),
        }
    }

    /// Successive candidates that must pass: as the gate in progress has it, else the next one.
    pub(super) fn in_a_row(&self) -> u32 {
        match (&self.gate, &self.rules.gate) {
            (GateState::Open { gate, .. }, _) => gate.in_a_row(),
            (GateState::Drawing { play, .. }, _) | (GateState::Idle, GateRule::Play(play)) => play.in_a_row,
            (GateState::Idle, GateRule::None) => 1,
        }
    }

    /// Promotes whoever passed, unless the champion is pinned.
    pub(super) fn pass(&mut self, model: ModelId, reason: String, effects: &mut Vec<Effect>) {
        if self.steering.pinned {
            // Whoever comes next must pass as often: the streak led to somebody.
            self.streak = 0;
            let reason = format!("{reason}; not promoted, because the champion is pinned");
            return effects.push(Effect::Held { model, reason });
        }
        self.promote(model, reason, effects);
    }

    pub(super) fn promote(&mut self, model: ModelId, reason: String, effects: &mut Vec<Effect>) {
        let previous = std::mem::replace(&mut self.champion, model);
        self.newest_generation += 1;
        self.generation = self.newest_generation;
        self.streak = 0;
        effects.push(Effect::Promoted {
            model,
            generation: self.generation,
            previous,
            reason,
        });
    }
}
