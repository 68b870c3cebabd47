//! Handing out work: what an actor that asks is given, self-play or pairs of the match that is on.
//!
//! Which games are wanted is decided elsewhere; this divides them.

use super::{Control, GateState};
use crate::event::Effect;
use crate::ids::{ActorId, LeaseId};
use crate::lease::{Lease, Work};

/// How long an actor waits that holds too many leases, milliseconds.
const FULL_RETRY_MS: u32 = 1_000;
/// When an actor asks again that found the learner too far behind, milliseconds.
const BEHIND_RETRY_MS: u32 = 500;

/// An actor's question for work.
pub(super) struct Ask {
    pub(super) actor: ActorId,
    pub(super) lease: LeaseId,
    pub(super) games_per_minute: f32,
    pub(super) self_play_max: u32,
}

impl Control {
    pub(super) fn hand_out(&mut self, ask: Ask, now_ms: u64) -> Effect {
        let Ask { actor, lease: id, .. } = ask;
        if self.leases.held_by(actor) >= self.rules.leases.per_actor_max {
            return Effect::NoWork {
                reason: "the actor holds as many leases as it may",
                retry_after_ms: FULL_RETRY_MS,
            };
        }
        let games = self.rules.leases.games(ask.games_per_minute);
        let self_play = games.min(ask.self_play_max.saturating_sub(self.leases.self_play_games_out()));
        let pairs = self.pairs_for_lease(games, self_play);
        let work = match &mut self.gate {
            GateState::Open { gate, match_games, .. } if !pairs.is_empty() => {
                gate.assign(&pairs, id);
                *match_games += pairs.len() as u64 * 2;
                Work::Match {
                    gate: gate.id(),
                    candidate: gate.candidate().model,
                    champion: gate.champion(),
                    pairs,
                }
            }
            _ if self_play == 0 => {
                return Effect::NoWork {
                    reason: "self-play waits for the learner",
                    retry_after_ms: BEHIND_RETRY_MS,
                };
            }
            other => {
                if let GateState::Open { self_play_games, .. } = other {
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
        };
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

    /// The pairs a lease of about `games` games would take now; none when the match has had its share and `self_play`
    /// games are wanted.
    fn pairs_for_lease(&self, games: u32, self_play: u32) -> Vec<u32> {
        let GateState::Open {
            gate,
            match_games,
            self_play_games,
            ..
        } = &self.gate
        else {
            return Vec::new();
        };
        let share = self.rules.gate_share;
        if self_play > 0 && *match_games as f64 * (1.0 - share) > *self_play_games as f64 * share {
            return Vec::new();
        }
        // Spread over the actors at hand, so that the match does not wait for one of them.
        let free = gate.unassigned().count();
        let fair = free.div_ceil(self.leases.actors() as usize);
        gate.unassigned().take(fair.min((games as usize / 2).max(1))).collect()
    }
}
