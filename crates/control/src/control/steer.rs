//! Orders of people, carried out or refused: pausing, pinning, ending, and everything that changes the champion by hand.
//!
//! An order names what it was based on; when that is no longer so it is refused and changes nothing. **Nothing here asks
//! who may give it.**

use super::{Control, GateState};
use crate::event::Effect;
use crate::gate::{Candidate, Evidence};
use crate::ids::ModelId;
use crate::lease::{LeaseEnd, Work};
use crate::rules::{Rules, RulesError};
use crate::steering::{Activity, Order, OrderRefused, Seen, SeenGate, Steering, Then};

impl Control {
    /// Carries out an order, or says why not.
    pub fn steer(&mut self, order: Order) -> Result<Vec<Effect>, OrderRefused> {
        let mut effects = Vec::new();
        if self.steering.ended {
            return Err(OrderRefused::Ended);
        }
        match order {
            Order::Pause(activity) => _ = self.steering.paused.insert(activity),
            Order::Resume(activity) => _ = self.steering.paused.remove(&activity),
            Order::Pin(seen) => {
                self.check(seen)?;
                self.steering.pinned = true;
            }
            Order::Unpin(seen) => {
                self.check(seen)?;
                self.steering.pinned = false;
            }
            Order::End { reason } => {
                self.close_gate(&reason, Fate::Waits, &mut effects);
                self.steering.ended = true;
            }
            Order::Promote { model, seen, reason } => {
                self.check_change(model, seen)?;
                self.leave(model, &reason, &mut effects);
                // A gate against the champion of before would decide nothing.
                self.close_gate(&reason, Fate::Waits, &mut effects);
                self.promote(model, reason, &mut effects);
            }
            Order::Reject { model, seen, reason } => {
                self.check(seen)?;
                if !self.leave(model, &reason, &mut effects) {
                    return Err(OrderRefused::NoCandidate {
                        gating: self.gating(),
                        waiting: self.waiting.iter().copied().collect(),
                    });
                }
                effects.push(Effect::Rejected { model, reason });
            }
            Order::RollBack {
                model,
                generation,
                seen,
                reason,
                then,
            } => {
                self.check_change(model, seen)?;
                self.close_gate(&reason, Fate::Waits, &mut effects);
                self.steering.pinned |= then == Then::Pin;
                let previous = std::mem::replace(&mut self.champion, model);
                self.generation = generation;
                self.streak = 0;
                effects.push(Effect::RolledBack {
                    model,
                    previous,
                    reason,
                });
            }
        }
        self.settle_gate(&mut effects);
        Ok(effects)
    }

    /// Goes on under other rules. A gate in progress goes on under its own.
    pub fn follow(&mut self, rules: Rules) -> Result<Vec<Effect>, RulesError> {
        rules.validate()?;
        self.rules = rules;
        let mut effects = Vec::new();
        self.end_iterations(&mut effects);
        self.bound_queue(&mut effects);
        self.settle_gate(&mut effects);
        Ok(effects)
    }

    /// What people have set.
    pub fn steering(&self) -> &Steering {
        &self.steering
    }

    /// Whether this goes on.
    pub(super) fn goes_on(&self, activity: Activity) -> bool {
        !self.steering.ended && !self.steering.paused.contains(&activity)
    }

    /// The gate in progress, for orders to name.
    pub fn seen_gate(&self) -> SeenGate {
        match &self.gate {
            GateState::Idle => SeenGate::None,
            GateState::Drawing { gate, .. } => SeenGate::Open(*gate),
            GateState::Open { gate, .. } => SeenGate::Open(gate.id()),
        }
    }

    fn check(&self, seen: Seen) -> Result<(), OrderRefused> {
        if seen.champion != self.champion {
            return Err(OrderRefused::Champion {
                expected: seen.champion,
                found: self.champion,
            });
        }
        let found = self.seen_gate();
        match seen.gate {
            Some(expected) if expected != found => Err(OrderRefused::Gate { expected, found }),
            _ => Ok(()),
        }
    }

    fn check_change(&self, model: ModelId, seen: Seen) -> Result<(), OrderRefused> {
        self.check(seen)?;
        if model == self.champion {
            return Err(OrderRefused::IsChampion);
        }
        Ok(())
    }

    /// The candidate whose gate is being drawn or played.
    fn gating(&self) -> Option<Candidate> {
        match &self.gate {
            GateState::Idle => None,
            GateState::Drawing { candidate, .. } => Some(*candidate),
            GateState::Open { gate, .. } => Some(gate.candidate()),
        }
    }

    /// Takes a candidate out of its gate, which is closed, or out of waiting; false when it is in neither.
    fn leave(&mut self, model: ModelId, reason: &str, effects: &mut Vec<Effect>) -> bool {
        if let Some(place) = self.waiting.iter().position(|waiting| waiting.model == model) {
            self.waiting.remove(place);
            return true;
        }
        if self.gating().is_some_and(|candidate| candidate.model == model) {
            self.close_gate(reason, Fate::Leaves, effects);
            return true;
        }
        false
    }

    /// Closes the gate in progress, if there is one, before its games decide it.
    pub(super) fn close_gate(&mut self, reason: &str, fate: Fate, effects: &mut Vec<Effect>) {
        let (gate, candidate, evidence) = match std::mem::replace(&mut self.gate, GateState::Idle) {
            GateState::Idle => return,
            GateState::Drawing { gate, candidate, .. } => (gate, candidate, Evidence::default()),
            GateState::Open { gate, .. } => (gate.id(), gate.candidate(), gate.evidence()),
        };
        effects.push(Effect::GateVoid {
            gate,
            evidence,
            reason: format!("void: {reason}"),
        });
        let of_gate = |work: &Work| matches!(work, Work::Match { gate: id, .. } if *id == gate);
        let leases: Vec<_> = self
            .leases
            .iter()
            .filter(|lease| of_gate(&lease.work))
            .map(|lease| lease.id)
            .collect();
        for lease in leases {
            self.close(lease, LeaseEnd::Cancelled, effects);
        }
        if fate == Fate::Leaves {
            return;
        }
        if self.waiting.len() < self.rules.queue.waiting_max() {
            // It is the oldest.
            self.waiting.push_front(candidate);
            effects.push(Effect::Waits(candidate.model));
        } else {
            effects.push(Effect::Superseded(candidate.model));
        }
    }
}

/// What becomes of the candidate of a gate that is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is dealt with apart.
    Leaves,
    /// It waits for a new gate, unless as many newer ones do as may.
    Waits,
}
