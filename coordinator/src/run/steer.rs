//! Orders of people about the run: checked against what is stored, carried out by the state machine, and committed with
//! their row in the audit.

use rusqlite::Connection;
use tengen_control::{Candidate, Evidence, GateId, Order, OrderRefused, SeenGate};
use tengen_proto::v1;
use tengen_records::ModelId;

use super::orders::{SteerRefused, Steered, Wish};
use super::owner::{Now, Outbox};
use super::state::{State, control_model};
use crate::messages;
use crate::store::gates::{Decided, GateState};
use crate::store::models::{ModelRow, ModelState};
use crate::store::trail::{self, Entry};
use crate::store::{StoreError, gates, models, steering};

impl State {
    /// Carries out an order of `by`.
    pub(super) fn steer(
        &mut self,
        connection: &Connection,
        (wish, reason): (Wish, &str),
        by: &str,
        now: Now,
        out: &mut Outbox,
    ) -> Result<Result<Steered, SteerRefused>, StoreError> {
        let order = match self.order_of(connection, &wish, &sentence(&wish, by, reason))? {
            Ok(order) => order,
            Err(refused) => return Ok(Err(refused)),
        };
        let before = Standing::of(self);
        let previous = self.champion.id;
        let effects = match self.control.steer(order) {
            Ok(effects) => effects,
            Err(refused) => return Ok(Err(self.in_words(&wish, refused))),
        };
        self.carry_out(connection, effects, now, out)?;
        if matches!(wish, Wish::End(_)) {
            self.steering_ended_ms = Some(now.unix_ms);
        }
        if let Wish::RollBack(model, ..) = wish {
            steering::insert_rollback(connection, model, previous, by, reason, now.unix_ms)?;
        }
        steering::save(connection, &self.steering_row())?;
        self.note(connection, (&wish, reason), by, &before, now)?;
        let model = match wish.model() {
            Some(id) => models::get(connection, id)?,
            None => None,
        };
        let steering = self.steering_message();
        Ok(Ok(Steered { steering, model }))
    }

    /// The state machine's order, when the networks it names are what it needs.
    fn order_of(
        &self,
        connection: &Connection,
        wish: &Wish,
        reason: &str,
    ) -> Result<Result<Order, SteerRefused>, StoreError> {
        let reason = reason.to_owned();
        Ok(match wish {
            Wish::Pause(activity) => Ok(Order::Pause(*activity)),
            Wish::Resume(activity) => Ok(Order::Resume(*activity)),
            Wish::Pin(expected) => Ok(Order::Pin(expected.seen())),
            Wish::Unpin(expected) => Ok(Order::Unpin(expected.seen())),
            Wish::End(run) if run != self.facts.id.as_str() => Err(SteerRefused::OtherRun {
                expected: run.clone(),
                found: self.facts.id.to_string(),
            }),
            Wish::End(_) => Ok(Order::End { reason }),
            Wish::Reject(id, expected) => usable(connection, *id)?.map(|_| Order::Reject {
                model: control_model(*id),
                seen: expected.seen(),
                reason,
            }),
            Wish::Promote(id, expected) => usable(connection, *id)?.and_then(|row| match (row.generation, row.state) {
                (Some(generation), ModelState::FormerChampion) => {
                    Err(SteerRefused::WasChampion { id: *id, generation })
                }
                _ => Ok(Order::Promote {
                    model: control_model(*id),
                    seen: expected.seen(),
                    reason,
                }),
            }),
            Wish::RollBack(id, expected, then) => usable(connection, *id)?.and_then(|row| {
                let generation = row.generation.ok_or(SteerRefused::NeverChampion(*id))?;
                Ok(Order::RollBack {
                    model: control_model(*id),
                    generation,
                    seen: expected.seen(),
                    reason,
                    then: *then,
                })
            }),
        })
    }

    /// A refusal of the state machine with the names people use.
    fn in_words(&self, wish: &Wish, refused: OrderRefused) -> SteerRefused {
        let id = wish.model().unwrap_or(self.champion.id);
        match refused {
            OrderRefused::Champion { expected, found } => SteerRefused::Stale {
                what: "the champion",
                expected: ModelId(expected.0).to_string(),
                found: ModelId(found.0).to_string(),
            },
            OrderRefused::Gate { expected, found } => SteerRefused::Stale {
                what: "the gate in progress",
                expected: gate_in_words(expected),
                found: gate_in_words(found),
            },
            OrderRefused::IsChampion => SteerRefused::IsChampion(id),
            OrderRefused::NoCandidate { gating, waiting } => {
                let name = |candidate: Candidate| ModelId(candidate.model.0).to_string();
                let waiting: Vec<String> = waiting.into_iter().map(name).collect();
                let now = match (gating, waiting.as_slice()) {
                    (None, []) => "there is none".to_owned(),
                    (Some(gating), []) => format!("{} is in its gate", name(gating)),
                    (None, waiting) => waits(waiting),
                    (Some(gating), waiting) => format!("{} is in its gate and {}", name(gating), waits(waiting)),
                };
                SteerRefused::NoCandidate { id, now }
            }
            OrderRefused::Ended => SteerRefused::Ended,
        }
    }

    /// The row in the audit, when something changed.
    fn note(
        &self,
        connection: &Connection,
        (wish, reason): (&Wish, &str),
        by: &str,
        before: &Standing,
        now: Now,
    ) -> Result<(), StoreError> {
        let after = Standing::of(self);
        if *before == after {
            return Ok(());
        }
        let subject = match wish {
            Wish::Pause(activity) | Wish::Resume(activity) => messages::activity(*activity).name().to_owned(),
            Wish::Promote(id, _) | Wish::Reject(id, _) | Wish::RollBack(id, ..) => id.to_string(),
            Wish::Pin(_) | Wish::Unpin(_) => self.champion.id.to_string(),
            Wish::End(run) => run.clone(),
        };
        let (old, new) = (before.about(wish), after.about(wish));
        let entry = Entry {
            who: by,
            action: wish.action(),
            detail: &with_reason(subject, reason),
            old: &old,
            new: &new,
        };
        tracing::info!(
            by,
            action = entry.action,
            detail = entry.detail,
            old,
            new,
            "the run is steered"
        );
        trail::append(connection, &entry, now.unix_ms)
    }

    /// Notes that a gate was closed before it was decided.
    pub(super) fn void_gate(
        &mut self,
        connection: &Connection,
        gate: GateId,
        evidence: &Evidence,
        reason: &str,
        now: Now,
    ) -> Result<(), StoreError> {
        let decided = Decided {
            state: GateState::Void,
            evidence,
            streak: 0,
            reason,
        };
        gates::decide(connection, gate, decided, now.unix_ms)?;
        self.gates_decided += 1;
        tracing::info!(gate = gate.0, reason, "gate closed");
        Ok(())
    }

    /// Moves a network to a state, with the sentence why.
    pub(super) fn settle_model(
        &self,
        connection: &Connection,
        model: tengen_control::ModelId,
        state: ModelState,
        reason: &str,
    ) -> Result<(), StoreError> {
        let id = ModelId(model.0);
        models::set_state(connection, id, state)?;
        models::set_verdict(connection, id, reason)?;
        tracing::info!(model = %id.short(), state = state.as_str(), reason, "candidate settled");
        Ok(())
    }

    /// Changes the champion to an earlier one, if it is the one the order was about.
    pub(super) fn roll_back(
        &mut self,
        connection: &Connection,
        model: tengen_control::ModelId,
        previous: tengen_control::ModelId,
        reason: &str,
        out: &mut Outbox,
    ) -> Result<(), StoreError> {
        let (model, previous) = (ModelId(model.0), ModelId(previous.0));
        if !models::roll_back(connection, model, previous, reason)? {
            return Err(StoreError::corrupt(
                "champion",
                format!("it is not {previous} when {model} is taken back"),
            ));
        }
        out.new_champion = Some(self.champion_message(connection)?);
        tracing::info!(model = %model.short(), reason, "rolled back");
        Ok(())
    }

    /// What people have set, as it is stored.
    fn steering_row(&self) -> steering::SteeringRow {
        steering::SteeringRow {
            steering: self.control.steering().clone(),
            ended_ms: self.steering_ended_ms,
        }
    }

    /// What people have set, for the status.
    pub(super) fn steering_message(&self) -> v1::Steering {
        messages::steering(&self.steering_row())
    }
}

/// A network that somebody could play with.
fn usable(connection: &Connection, id: ModelId) -> Result<Result<ModelRow, SteerRefused>, StoreError> {
    Ok(match models::get(connection, id)? {
        None => Err(SteerRefused::NoSuchModel(id)),
        Some(row) if row.removed_ms.is_some() => Err(SteerRefused::FileGone(id)),
        Some(row) => Ok(row),
    })
}

/// What the audit compares.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Standing {
    steering: tengen_control::Steering,
    champion: String,
    gate: SeenGate,
    waiting: Vec<Candidate>,
}

impl Standing {
    fn of(state: &State) -> Standing {
        let control = &state.control;
        Standing {
            steering: control.steering().clone(),
            champion: format!(
                "generation {} ({})",
                control.generation(),
                ModelId(control.champion().0)
            ),
            gate: control.seen_gate(),
            waiting: control.waiting().collect(),
        }
    }

    /// The part of it that an order is about.
    fn about(&self, wish: &Wish) -> String {
        let either = |holds: bool, yes: &str, no: &str| if holds { yes.to_owned() } else { no.to_owned() };
        match wish {
            Wish::Pause(activity) | Wish::Resume(activity) => {
                either(self.steering.paused.contains(activity), "paused", "goes on")
            }
            Wish::Pin(_) | Wish::Unpin(_) => either(self.steering.pinned, "pinned", "not pinned"),
            Wish::End(_) => either(self.steering.ended, "ended", "goes on"),
            Wish::Promote(..) => self.champion.clone(),
            Wish::RollBack(..) if self.steering.pinned => format!("{}, pinned", self.champion),
            Wish::RollBack(..) => self.champion.clone(),
            Wish::Reject(..) => {
                let name = |candidate: &Candidate| ModelId(candidate.model.0).short();
                let waiting: Vec<String> = self.waiting.iter().map(name).collect();
                match (self.gate, waiting.as_slice()) {
                    (SeenGate::None, []) => "no candidate".to_owned(),
                    (gate, []) => gate_in_words(gate),
                    (gate, waiting) => format!("{}, {}", gate_in_words(gate), waits(waiting)),
                }
            }
        }
    }
}

/// Who waits for a gate.
fn waits(names: &[String]) -> String {
    let verb = if names.len() == 1 { "waits" } else { "wait" };
    format!("{} {verb}", names.join(", "))
}

fn gate_in_words(gate: SeenGate) -> String {
    match gate {
        SeenGate::None => "none".to_owned(),
        SeenGate::Open(gate) => format!("gate {}", gate.0),
    }
}

/// What networks and gates say about an order.
fn sentence(wish: &Wish, by: &str, reason: &str) -> String {
    let what = match wish {
        Wish::Promote(..) => "promoted",
        Wish::Reject(..) => "rejected",
        Wish::RollBack(..) => "taken back",
        Wish::End(_) => "the run was ended",
        Wish::Pause(_) | Wish::Resume(_) | Wish::Pin(_) | Wish::Unpin(_) => "steered",
    };
    with_reason(format!("{what} by hand ({by})"), reason)
}

fn with_reason(text: String, reason: &str) -> String {
    if reason.is_empty() {
        text
    } else {
        format!("{text}: {reason}")
    }
}
