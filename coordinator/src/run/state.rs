//! The run's state in memory: the state machine, and what the status shows beside it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rusqlite::Connection;
use tengen_control::{
    ActorId, Candidate, CandidateDue, Control, Effect, Event, Gate, Lease, LeaseEnd, LeaseRules, Snapshot, Work,
};
use tengen_records::{LeaseId, ModelId};
use tengen_selfplay::Plan;
use tengen_service::usage::UsageMeter;

use super::gates::Wanted;
use super::owner::{Now, Outbox, OwnerError};
use super::ratings::{self, PlayerBook};
use super::request::Request;
use super::status::{ActorLive, LearnerLive, Rate, WindowAge};
use crate::facts::RunFacts;
use crate::store::actors::{self, ActorRow};
use crate::store::audits::{self, AuditCount};
use crate::store::gates::{self, GateRow, StoredOpening};
use crate::store::leases::{self, LeaseRow, LeaseState};
use crate::store::models::{self, ModelState};
use crate::store::progress::{self, Progress};
use crate::store::ratings::rated_games;
use crate::store::{StoreError, games, steering};
use crate::window::WindowStanding;

/// Everything the owner knows. What is not in the database (`live` things) survives a reload.
pub(super) struct State {
    pub(super) facts: Arc<RunFacts>,
    pub(super) lease_rules: LeaseRules,
    pub(super) control: Control,
    /// Effects of taking up the run that are not carried out yet.
    pending: Vec<Effect>,
    progress: Progress,
    saved: Progress,
    pub(super) openings: Vec<StoredOpening>,
    pub(super) gate_opened_ms: i64,
    pub(super) gates_decided: u32,
    pub(super) rejected: BTreeMap<String, u64>,
    pub(super) opening_paths: BTreeMap<String, u64>,
    pub(super) actors: BTreeMap<String, ActorRow>,
    pub(super) audits: BTreeMap<String, AuditCount>,
    /// What audits do not judge on this machine and why; empty when they judge everything.
    pub(super) withheld: String,
    pub(super) champion: models::ModelRow,
    pub(super) players: PlayerBook,
    /// Games of rating matches stored.
    pub(super) rating_games: u64,
    pub(super) live_actors: BTreeMap<String, ActorLive>,
    pub(super) live_learner: Option<LearnerLive>,
    pub(super) rate: Rate,
    pub(super) match_rate: Rate,
    pub(super) window_age: WindowAge,
    pub(super) usage: Arc<UsageMeter>,
    pub(super) draining: bool,
    /// When the run was ended.
    pub(super) steering_ended_ms: Option<i64>,
}

impl State {
    /// Reads the state from the database.
    pub(super) fn load(
        connection: &Connection,
        facts: Arc<RunFacts>,
        lease_rules: LeaseRules,
        now_ms: u64,
    ) -> Result<State, OwnerError> {
        let progress = progress::load(connection)?;
        let gate = gates::open(connection)?;
        let restored = gate.as_ref().map(|row| restored(connection, row)).transpose()?;
        let steering = steering::load(connection)?;
        let (gates, gates_decided) = gates::counts(connection)?;
        let waiting = models::waiting(connection)?;
        let champion = models::champion(connection)?.ok_or_else(|| StoreError::corrupt("champion", "there is none"))?;
        let mut players = PlayerBook::default();
        let snapshot = Snapshot {
            iteration: progress.iteration,
            iteration_games: progress.iteration_games,
            positions: progress.positions,
            due: progress
                .due
                .map(|(iteration, positions)| CandidateDue { iteration, positions }),
            published_iteration: progress.published_iteration,
            champion: control_model(progress.champion),
            generation: progress.generation,
            newest_generation: models::newest_generation(connection)?,
            gates,
            gate: restored,
            streak: gates::streak(connection, progress.champion)?,
            waiting: waiting
                .iter()
                .map(|model| Candidate {
                    model: control_model(model.id),
                    iteration: model.iteration,
                })
                .collect(),
            ratings: ratings::load(connection, &mut players)?,
            leases: leases::active(connection)?
                .iter()
                .map(|row| control_lease(row, &mut players))
                .collect(),
            steering: steering.steering,
        };
        let (control, pending) = Control::restore(facts.control_rules(lease_rules)?, snapshot, now_ms)?;
        let rows = actors::all(connection)?.into_iter().map(|row| (row.actor.clone(), row));
        Ok(State {
            facts,
            lease_rules,
            control,
            pending,
            saved: progress.clone(),
            progress,
            gate_opened_ms: gate.as_ref().map_or(0, |gate| gate.opened_ms),
            openings: gate.map(|gate| gate.openings).unwrap_or_default(),
            gates_decided,
            rejected: games::rejections(connection)?,
            opening_paths: games::opening_paths(connection)?,
            actors: rows.collect(),
            audits: audits::counts(connection)?,
            withheld: String::new(),
            champion,
            players,
            rating_games: rated_games(connection)?,
            live_actors: BTreeMap::new(),
            live_learner: None,
            rate: Rate::default(),
            match_rate: Rate::default(),
            window_age: WindowAge::default(),
            usage: Arc::new(UsageMeter::start()),
            draining: false,
            steering_ended_ms: steering.ended_ms,
        })
    }

    /// Takes over a state read again from the database; what is only in memory stays.
    pub(super) fn replace_by(&mut self, fresh: State) {
        let old = std::mem::replace(self, fresh);
        self.withheld = old.withheld;
        self.live_actors = old.live_actors;
        self.live_learner = old.live_learner;
        self.rate = old.rate;
        self.match_rate = old.match_rate;
        self.usage = old.usage;
        self.draining = old.draining;
    }

    pub(super) fn progress(&self) -> &Progress {
        &self.progress
    }

    pub(super) fn progress_mut(&mut self) -> &mut Progress {
        &mut self.progress
    }

    /// Begins a batch: what taking up the run left to do, and what time has done.
    pub(super) fn begin(&mut self, connection: &Connection, now: Now, out: &mut Outbox) -> Result<(), StoreError> {
        let pending = std::mem::take(&mut self.pending);
        self.carry_out(connection, pending, now, out)?;
        self.step(connection, Event::Tick, now, out)
    }

    /// Carries out one request.
    pub(super) fn handle(
        &mut self,
        connection: &Connection,
        request: Request,
        now: Now,
        out: &mut Outbox,
    ) -> Result<(), StoreError> {
        match request {
            Request::Store { game, reply } => {
                let answer = self.store(connection, *game, now, out)?;
                out.reply(reply, answer);
            }
            Request::Refuse {
                actor,
                rejection,
                record,
                strikes_max,
                reply,
            } => {
                let answer = self.refuse(connection, &actor, &rejection, &record, strikes_max, now)?;
                out.reply(reply, answer);
            }
            Request::RegisterActor { actor, reply } => {
                let answer = self.register_actor(connection, actor, now)?;
                out.reply(reply, answer);
            }
            Request::Work { ask, reply } => {
                let answer = self.work(connection, &ask, now, out)?;
                out.reply(reply, answer);
            }
            Request::Report { report, reply } => {
                let answer = self.report(connection, *report, now, out)?;
                out.reply(reply, answer);
            }
            Request::RegisterLearner { status, reply } => {
                let answer = self.register_learner(*status, now);
                out.reply(reply, answer);
            }
            Request::ReportLearner { fence, status, reply } => {
                let answer = self.report_learner(fence, status, now);
                out.reply(reply, answer);
            }
            Request::Publish {
                fence,
                model,
                variants,
                reply,
            } => {
                let answer = self.publish(connection, fence, *model, &variants, now, out)?;
                out.reply(reply, answer);
            }
            Request::Admin(request) => self.administer(connection, *request, now, out)?,
            Request::NewWindowEpoch { above, reply } => {
                self.progress.window_epoch = self.progress.window_epoch.max(above) + 1;
                out.reply(reply, self.progress.window_epoch);
            }
            Request::Audited {
                report,
                missed,
                withheld,
                reply,
            } => {
                self.withheld = withheld;
                self.audited(connection, report.as_deref(), missed, now)?;
                out.reply(reply, ());
            }
            Request::Tick | Request::Stop => {}
            Request::Drain => self.draining = true,
        }
        Ok(())
    }

    /// Looks up how old the window is, now and then.
    pub(super) fn look_at_window(
        &mut self,
        connection: &Connection,
        window: &WindowStanding,
        now: Now,
    ) -> Result<(), StoreError> {
        if self.window_age.is_stale(now.ms) {
            let oldest = games::window_oldest_ms(connection, window.fill.games as u64)?;
            self.window_age = WindowAge::found(now.ms, oldest.unwrap_or(0));
        }
        Ok(())
    }

    /// Writes where the run stands, when it moved.
    pub(super) fn save(&mut self, connection: &Connection) -> Result<(), StoreError> {
        let control = &self.control;
        self.progress.iteration = control.iteration();
        self.progress.iteration_games = control.iteration_games();
        self.progress.positions = control.positions();
        self.progress.due = control.newest_due().map(|due| (due.iteration, due.positions));
        self.progress.published_iteration = control.published_iteration();
        self.progress.champion = ModelId(control.champion().0);
        self.progress.generation = control.generation();
        if self.progress != self.saved {
            progress::save(connection, &self.progress)?;
            self.saved.clone_from(&self.progress);
        }
        Ok(())
    }

    /// Takes an event and carries out everything that follows from it.
    pub(super) fn step(
        &mut self,
        connection: &Connection,
        event: Event,
        now: Now,
        out: &mut Outbox,
    ) -> Result<(), StoreError> {
        let effects = self.control.step(event, now.ms);
        self.carry_out(connection, effects, now, out)
    }

    /// Carries out effects in order; opening a gate brings more of them.
    pub(super) fn carry_out(
        &mut self,
        connection: &Connection,
        effects: Vec<Effect>,
        now: Now,
        out: &mut Outbox,
    ) -> Result<(), StoreError> {
        let mut waiting: VecDeque<Effect> = effects.into();
        while let Some(effect) = waiting.pop_front() {
            match effect {
                Effect::IterationEnded {
                    iteration,
                    games,
                    positions,
                    candidate_due,
                } => {
                    progress::end_iteration(connection, iteration, games, positions, candidate_due, now.unix_ms)?;
                    tracing::info!(iteration, games, positions, candidate_due, "iteration ended");
                }
                Effect::GateWanted {
                    gate,
                    candidate,
                    champion,
                    play,
                } => {
                    let wanted = Wanted {
                        gate,
                        candidate,
                        champion,
                        play,
                    };
                    let more = self.open_gate(connection, wanted, now)?;
                    waiting.extend(more);
                }
                Effect::GateOpened { gate, pairs } => tracing::info!(gate = gate.0, pairs, "gate opened"),
                Effect::GateDecided {
                    gate,
                    candidate,
                    outcome,
                    evidence,
                    reason,
                } => {
                    self.end_gate(connection, gate, candidate, outcome, &evidence, &reason, now)?;
                }
                Effect::Promoted {
                    model,
                    generation,
                    previous,
                    reason,
                } => {
                    self.promote(connection, model, generation, previous, &reason, now, out)?;
                }
                Effect::Superseded(model) => {
                    models::set_state(connection, ModelId(model.0), ModelState::Superseded)?;
                }
                Effect::Waits(model) => models::set_state(connection, ModelId(model.0), ModelState::Candidate)?,
                Effect::Held { model, reason } => self.settle_model(connection, model, ModelState::Held, &reason)?,
                Effect::Rejected { model, reason } => {
                    self.settle_model(connection, model, ModelState::Rejected, &reason)?;
                }
                Effect::GateVoid { gate, evidence, reason } => {
                    self.void_gate(connection, gate, &evidence, &reason, now)?;
                }
                Effect::RolledBack {
                    model,
                    previous,
                    reason,
                } => self.roll_back(connection, model, previous, &reason, out)?,
                Effect::LeaseClosed { lease, end } => close_lease(connection, record_lease(lease), end, now)?,
                // These answer one event and are taken by whoever gave it.
                Effect::MatchLogged(_) | Effect::LeaseIssued(_) | Effect::NoWork { .. } => {}
            }
        }
        Ok(())
    }
}

fn close_lease(connection: &Connection, lease: LeaseId, end: LeaseEnd, now: Now) -> Result<(), StoreError> {
    leases::close(connection, lease, lease_state(end), now.unix_ms)?;
    if end == LeaseEnd::Lapsed {
        tracing::info!(%lease, "lease lapsed");
    }
    Ok(())
}

/// The gate in progress with its log, and who plays its leases.
fn restored(connection: &Connection, row: &GateRow) -> Result<Gate, StoreError> {
    let mut gate = row.restore(&gates::log(connection, row.id)?);
    for (lease, actor) in gates::players(connection, row.id)? {
        gate.played_by(lease, actor_key(&actor));
    }
    Ok(gate)
}

/// A model's id as the state machine has it.
pub(super) fn control_model(id: ModelId) -> tengen_control::ModelId {
    tengen_control::ModelId(id.0)
}

/// A lease's id as the state machine has it.
pub(super) fn control_id(id: LeaseId) -> tengen_control::LeaseId {
    tengen_control::LeaseId(id.to_bytes())
}

/// A lease's id as records have it.
pub(super) fn record_lease(id: tengen_control::LeaseId) -> LeaseId {
    LeaseId(u128::from_be_bytes(id.0))
}

/// An actor's id as the state machine has it.
pub(super) fn actor_key(actor: &str) -> ActorId {
    let mut key = [0; 8];
    blake3::Hasher::new()
        .update(actor.as_bytes())
        .finalize_xof()
        .fill(&mut key);
    ActorId(u64::from_be_bytes(key))
}

fn lease_state(end: LeaseEnd) -> LeaseState {
    match end {
        LeaseEnd::Finished => LeaseState::Finished,
        LeaseEnd::Returned => LeaseState::Returned,
        LeaseEnd::Lapsed => LeaseState::Lapsed,
        LeaseEnd::Cancelled => LeaseState::Cancelled,
    }
}

/// A stored lease as the state machine has it.
fn control_lease(row: &LeaseRow, players: &mut PlayerBook) -> Lease {
    let model = |n: usize| {
        row.order
            .models
            .get(n)
            .copied()
            .map_or(tengen_control::ModelId([0; 32]), control_model)
    };
    let work = match (&row.order.plan, row.gate) {
        (Plan::Match { games }, Some(gate)) => Work::Match {
            gate: tengen_control::GateId(gate),
            candidate: model(0),
            opponent: model(1),
            pairs: games.iter().step_by(2).map(|game| game.pair).collect(),
        },
        (plan, _) => ratings::work_of(players, plan).unwrap_or(Work::SelfPlay {
            model: model(0),
            simulations: row.order.settings.simulations,
        }),
    };
    Lease {
        id: control_id(row.order.lease),
        actor: actor_key(&row.actor),
        work,
        games: row.games,
        stored: row.stored,
        progress_ms: 0,
    }
}
