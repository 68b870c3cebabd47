//! Actors: who they are, what they get to do, what they tell.

use rand::TryRng;
use rand::rngs::SysRng;
use rusqlite::Connection;
use tengen_control::{Effect, Event, GateId, Lease, Leg, Work};
use tengen_games::Action;
use tengen_records::{Kind, LeaseId, ModelId};
use tengen_selfplay::{MatchGame, Order, Plan};

use super::owner::{Now, Outbox};
use super::request::{ActorRefused, ActorReport, Handout, LeaseWishes, WorkAsk};
use super::state::{State, actor_key, control_id, record_lease};
use super::status::ActorLive;
use crate::store::actors::ActorRow;
use crate::store::leases::LeaseState;
use crate::store::{StoreError, actors, leases};

/// Actors that a run remembers.
const ACTORS_MAX: usize = 10_000;

impl State {
    /// Takes in an actor, or greets it again.
    pub(super) fn register_actor(
        &mut self,
        connection: &Connection,
        actor: ActorRow,
        now: Now,
    ) -> Result<Result<(), ActorRefused>, StoreError> {
        match self.serves(&actor.actor) {
            Err(ActorRefused::Unknown(actor)) if self.actors.len() >= ACTORS_MAX => {
                return Ok(Err(ActorRefused::TooMany {
                    actor,
                    actors: self.actors.len(),
                }));
            }
            Ok(()) | Err(ActorRefused::Unknown(_)) => {}
            Err(refused) => return Ok(Err(refused)),
        }
        actors::register(connection, &actor, now.unix_ms)?;
        let strikes = self.actors.get(&actor.actor).map_or(0, |row| row.strikes);
        let live = ActorLive {
            heard_ms: now.ms,
            provider: actor.provider.clone(),
            ..ActorLive::default()
        };
        self.live_actors.insert(actor.actor.clone(), live);
        tracing::info!(actor = %actor.actor, host = %actor.host, provider = %actor.provider, "actor registered");
        let registered = ActorRow {
            strikes,
            registered_ms: now.unix_ms,
            ..actor
        };
        self.actors.insert(registered.actor.clone(), registered);
        Ok(Ok(()))
    }

    /// Hands out one lease, durable before it is told.
    pub(super) fn work(
        &mut self,
        connection: &Connection,
        ask: &WorkAsk,
        now: Now,
        out: &mut Outbox,
    ) -> Result<Result<Handout, ActorRefused>, StoreError> {
        let actor = ask.actor.as_str();
        if let Err(refused) = self.serves(actor) {
            return Ok(Err(refused));
        }
        let provider = self
            .actors
            .get(actor)
            .map(|row| row.provider.clone())
            .unwrap_or_default();
        let unheard = || ActorLive {
            provider,
            ..ActorLive::default()
        };
        self.live_actors
            .entry(actor.to_owned())
            .or_insert_with(unheard)
            .heard_ms = now.ms;
        let wait = |reason: &str, retry_after_ms| Handout::Wait {
            reason: reason.to_owned(),
            retry_after_ms,
        };
        if self.draining {
            return Ok(Ok(wait("the coordinator is shutting down", 1_000)));
        }
        let Some(id) = random_lease() else {
            return Ok(Ok(wait("the system gives no random bits", 5_000)));
        };
        let event = Event::WorkAsked {
            actor: actor_key(actor),
            lease: control_id(id),
            games_per_minute: ask.games_per_minute,
            self_play_max: self.self_play_max(),
            rating_players: self.rating_players(connection, ask)?,
        };
        let mut handout = wait("there is nothing to do", 1_000);
        let effects = self.control.step(event, now.ms);
        for effect in &effects {
            match effect {
                Effect::LeaseIssued(lease) => {
                    let (order, gate) = self.order(connection, lease)?;
                    leases::insert(connection, actor, gate.map(|gate| gate.0), &order, now.unix_ms)?;
                    tracing::debug!(%actor, lease = %id, games = lease.games, gate = gate.map(|gate| gate.0), "lease issued");
                    handout = Handout::Order(Box::new(order));
                }
                Effect::NoWork { reason, retry_after_ms } => handout = wait(reason, *retry_after_ms),
                _ => {}
            }
        }
        self.carry_out(connection, effects, now, out)?;
        Ok(Ok(handout))
    }

    /// Most self-play games that may be under way: what keeps the learner within the steps it may be behind. While the
    /// learner is not known or cannot train yet, there is no limit.
    fn self_play_max(&self) -> u32 {
        let learner = &self.facts.config.learner;
        let Some(behind) = self.steps_behind() else {
            return u32::MAX;
        };
        if learner.steps_behind_max == 0 || self.control.positions() < learner.window_min_positions {
            return u32::MAX;
        }
        let steps = learner.steps_behind_max.saturating_sub(behind) as f64;
        if steps <= 0.0 {
            return 0;
        }
        let positions = steps * f64::from(learner.batch) / learner.samples_per_position;
        let games = self.progress().self_play_games.max(1) as f64;
        let positions_per_game = (self.control.positions() as f64 / games).max(1.0);
        // At least one: where a single game holds more than the room left, the learner would otherwise wait for games
        // that wait for it. The conversion saturates.
        ((positions / positions_per_game) as u32).max(1)
    }

    /// The work order of a lease.
    fn order(&self, connection: &Connection, lease: &Lease) -> Result<(Order, Option<GateId>), StoreError> {
        let facts = &self.facts;
        let id = record_lease(lease.id);
        let (models, settings, plan, gate) = match &lease.work {
            Work::SelfPlay { model, simulations } => {
                let random_plies_max = facts.config.selfplay.random_plies_max;
                let plan = Plan::SelfPlay {
                    games: lease.games,
                    random_plies_max,
                };
                (
                    vec![ModelId(model.0)],
                    facts.self_play_settings(*simulations),
                    plan,
                    None,
                )
            }
            Work::Match {
                gate,
                candidate,
                opponent,
                pairs,
            } => {
                let games = pairs
                    .iter()
                    .flat_map(|&pair| Leg::BOTH.map(|leg| self.match_game(pair, leg)))
                    .collect();
                let settings = facts.match_settings(self.control.row().simulations);
                (
                    vec![ModelId(candidate.0), ModelId(opponent.0)],
                    settings,
                    Plan::Match { games },
                    Some(*gate),
                )
            }
            Work::Rating { pair, openings } => {
                let (models, plan) = self.rating_plan(connection, *pair, openings)?;
                let settings = facts.match_settings(self.control.row().simulations);
                (models, settings, plan, None)
            }
        };
        let settings_revision = facts.settings_revision;
        Ok((
            Order {
                lease: id,
                models,
                settings,
                settings_revision,
                seed: facts.lease_seed(id),
                plan,
            },
            gate,
        ))
    }

    fn match_game(&self, pair: u32, leg: Leg) -> MatchGame {
        let opening = self.openings.get(pair as usize);
        MatchGame {
            pair,
            opening: opening
                .map(|opening| opening.plies.iter().copied().map(Action).collect())
                .unwrap_or_default(),
            sampled_plies: opening.map_or(0, |opening| opening.sampled_plies),
            seat0_model: usize::from(leg == Leg::ChampionFirst),
        }
    }

    /// Takes a report; the answer names the leases that the actor may drop, and those that are wanted back.
    pub(super) fn report(
        &mut self,
        connection: &Connection,
        report: ActorReport,
        now: Now,
        out: &mut Outbox,
    ) -> Result<Result<LeaseWishes, ActorRefused>, StoreError> {
        if let Err(refused) = self.serves(&report.told.actor_id) {
            return Ok(Err(refused));
        }
        let key = actor_key(&report.told.actor_id);
        for &lease in &report.returned {
            if self
                .control
                .lease(control_id(lease))
                .is_some_and(|held| held.actor == key)
            {
                self.step(connection, Event::LeaseReturned(control_id(lease)), now, out)?;
            }
        }
        self.step(connection, Event::ActorHeard(key), now, out)?;
        let last = self.live_actors.get(&report.told.actor_id);
        let advanced = last.is_none_or(|last| last.has_advanced(&report.told));
        let mut cancelled = Vec::new();
        for &lease in &report.mentioned {
            match self.control.lease(control_id(lease)) {
                Some(held) if held.actor == key && !advanced => {}
                Some(held) if held.actor == key => {
                    self.step(connection, Event::LeaseMentioned(control_id(lease)), now, out)?;
                }
                Some(_) => cancelled.push(lease),
                None if is_pointless(connection, lease)? => cancelled.push(lease),
                None => {}
            }
        }
        let actor = report.told.actor_id.clone();
        self.live_actors.insert(actor, ActorLive::of(report, now));
        let wanted_back = self.control.wanted_back(key).map(record_lease).collect();
        Ok(Ok(LeaseWishes { cancelled, wanted_back }))
    }
}

/// Whether games of a lease that is not in progress would serve nobody: those of matches. Late self-play is welcome.
fn is_pointless(connection: &Connection, lease: LeaseId) -> Result<bool, StoreError> {
    Ok(match leases::standing(connection, lease)? {
        Some((Kind::Match, state)) => state != LeaseState::Finished,
        Some((Kind::SelfPlay, _)) => false,
        None => true,
    })
}

/// 128 bits from the operating system.
fn random_lease() -> Option<LeaseId> {
    let mut bytes = [0; 16];
    SysRng.try_fill_bytes(&mut bytes).ok()?;
    Some(LeaseId(u128::from_be_bytes(bytes)))
}
