//! Handing out work: what an actor that asks is given, self-play or pairs of the match that is on.
//!
//! Which games are wanted is decided elsewhere; this divides them.

use super::{Control, GateState};
use crate::event::Effect;
use crate::gate::Gate;
use crate::ids::{ActorId, LeaseId, ModelId};
use crate::lease::{Lease, Work};
use crate::rating::{PlayerId, RatingMatch};
use crate::rules::ACTORS_WITH_SHARES;
use crate::steering::Activity;

/// How long an actor waits that holds too many leases, milliseconds.
const FULL_RETRY_MS: u32 = 1_000;
/// When an actor asks again that found the learner too far behind, milliseconds.
const BEHIND_RETRY_MS: u32 = 500;
/// When an actor asks again that found self-play paused: whoever resumes it looks at a screen, milliseconds.
const PAUSED_RETRY_MS: u32 = 1_000;
/// When an actor asks again that found the run at its end, milliseconds.
const ENDED_RETRY_MS: u32 = 10_000;

/// An actor's question for work.
pub(super) struct Ask {
    pub(super) actor: ActorId,
    pub(super) lease: LeaseId,
    pub(super) games_per_minute: f32,
    pub(super) self_play_max: u32,
    pub(super) rating_players: Vec<PlayerId>,
}

impl Control {
    pub(super) fn hand_out(&mut self, ask: Ask, now_ms: u64) -> Effect {
        let Ask { actor, lease: id, .. } = ask;
        if self.steering.ended {
            return no_work("the run has ended", ENDED_RETRY_MS);
        }
        if self.leases.held_by(actor) >= self.rules.leases.per_actor_max {
            return no_work("the actor holds as many leases as it may", FULL_RETRY_MS);
        }
        let games = self.rules.leases.games(ask.games_per_minute);
        let self_play_goes_on = self.goes_on(Activity::SelfPlay);
        let self_play = if self_play_goes_on {
            games.min(ask.self_play_max.saturating_sub(self.leases.self_play_games_out()))
        } else {
            0
        };
        let pairs = self.pairs_for_lease(actor, games, self_play);
        if pairs.is_none()
            && self.goes_on(Activity::Gating)
            && let Some(rating) = self
                .ratings
                .hand_out(&self.rules.ratings, &ask.rating_players, games, &self.leases)
        {
            let RatingMatch { pair, openings } = rating;
            let games = openings.len() as u32 * 2;
            return self.issue(actor, id, Work::Rating { pair, openings }, games, now_ms);
        }
        let work = match (&mut self.gate, pairs) {
            (GateState::Open { gate, match_games, .. }, Some((opponent, pairs))) => {
                gate.assign(&pairs, id, actor);
                *match_games += pairs.len() as u64 * 2;
                Work::Match {
                    gate: gate.id(),
                    candidate: gate.candidate().model,
                    opponent,
                    pairs,
                }
            }
            _ if !self_play_goes_on => return no_work("self-play is paused", PAUSED_RETRY_MS),
            _ if self_play == 0 => return no_work("self-play waits for the learner", BEHIND_RETRY_MS),
            (gate, _) => {
                if let GateState::Open { self_play_games, .. } = gate {
                    *self_play_games += u64::from(self_play);
                }
                let simulations = self.rules.schedule.row(self.iteration).simulations;
                Work::SelfPlay {
                    model: self.champion,
                    simulations,
                }
            }
        };
        let games = match &work {
            Work::SelfPlay { .. } => self_play,
            Work::Match { pairs, .. } => pairs.len() as u32 * 2,
            Work::Rating { openings, .. } => openings.len() as u32 * 2,
        };
        self.ratings.note_other(games);
        self.issue(actor, id, work, games, now_ms)
    }

    fn issue(&mut self, actor: ActorId, id: LeaseId, work: Work, games: u32, now_ms: u64) -> Effect {
        let lease = Lease {
            id,
            actor,
            work,
            games,
            stored: 0,
            progress_ms: now_ms,
        };
        self.leases.insert(lease.clone());
        Effect::LeaseIssued(lease)
    }

    /// The pairs that a lease of about `games` games would take now, and against whom; none when the match has had its
    /// share and `self_play` games are wanted, or when the actor has had its own.
    fn pairs_for_lease(&self, actor: ActorId, games: u32, self_play: u32) -> Option<(ModelId, Vec<u32>)> {
        let GateState::Open {
            gate,
            match_games,
            self_play_games,
            ..
        } = &self.gate
        else {
            return None;
        };
        if !self.goes_on(Activity::Gating) {
            return None;
        }
        let share = self.rules.gate_share;
        if self_play > 0 && *match_games as f64 * (1.0 - share) > *self_play_games as f64 * share {
            return None;
        }
        let (opponent, mut pairs) = gate.free()?;
        let actors = self.leases.actors();
        // Spread over the actors at hand, so that the match does not wait for one of them.
        let fair = gate.unassigned().count().div_ceil(actors as usize);
        let room = self.room(gate, actor) as usize;
        pairs.truncate(fair.min((games as usize / 2).max(1)).min(room));
        (!pairs.is_empty()).then_some((opponent, pairs))
    }

    /// Most further pairs of the gate that the actor may take.
    pub(super) fn room(&self, gate: &Gate, actor: ActorId) -> u32 {
        if self.leases.actors() >= ACTORS_WITH_SHARES {
            gate.room(actor, self.rules.actor_share)
        } else {
            u32::MAX
        }
    }
}

fn no_work(reason: &'static str, retry_after_ms: u32) -> Effect {
    Effect::NoWork { reason, retry_after_ms }
}
