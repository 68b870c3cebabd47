//! Leases: their sizes, who holds them, and when they lapse.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::ids::{ActorId, GateId, LeaseId, ModelId};
use crate::rating::Pair;

/// Sizes and time limits of leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseRules {
    /// Work a lease should hold at the actor's own rate, milliseconds.
    pub target_ms: u64,
    /// Games of a lease for an actor whose rate is not known yet.
    pub first_games: u32,
    /// Most games of any lease.
    pub games_max: u32,
    /// A lease without progress for this long lapses, milliseconds.
    pub lapse_ms: u64,
    /// Most leases one actor holds.
    pub per_actor_max: u32,
}

impl Default for LeaseRules {
    /// A minute and a half of work; half a minute of silence is some ten missed reports.
    fn default() -> LeaseRules {
        LeaseRules {
            target_ms: 90_000,
            first_games: 8,
            games_max: 2_000,
            lapse_ms: 30_000,
            per_actor_max: 256,
        }
    }
}

impl LeaseRules {
    /// Games for an actor that finishes `games_per_minute` (0 or not finite: unknown).
    pub fn games(&self, games_per_minute: f32) -> u32 {
        let games = f64::from(games_per_minute) * self.target_ms as f64 / 60_000.0;
        if !games.is_finite() || games <= 0.0 {
            return self.first_games.clamp(1, self.games_max.max(1));
        }
        (games.round() as u32).clamp(1, self.games_max.max(1))
    }
}

/// What a lease asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Games for the window.
    SelfPlay {
        /// The network to play with.
        model: ModelId,
        /// Root visits of a search.
        simulations: u32,
    },
    /// Games of a gate: for every pair both legs, in the order of [`crate::Leg::BOTH`].
    Match {
        /// The gate.
        gate: GateId,
        /// Its candidate.
        candidate: ModelId,
        /// Whom the candidate meets: the champion, or an earlier one.
        opponent: ModelId,
        /// The pairs to play.
        pairs: Vec<u32>,
    },
    /// Games that tell how strong two players are: from each opening two, in the order of [`crate::Leg::BOTH`], where the
    /// low player of the pairing stands for the candidate.
    Rating {
        /// Who plays.
        pair: Pair,
        /// Which of the pairing's openings.
        openings: Range<u32>,
    },
}

/// A work order that an actor holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Its identity.
    pub id: LeaseId,
    /// Who holds it.
    pub actor: ActorId,
    /// What it asks for.
    pub work: Work,
    /// Games it asks for.
    pub games: u32,
    /// Games of it that are stored.
    pub stored: u32,
    /// When it last showed progress, milliseconds.
    pub progress_ms: u64,
}

impl Lease {
    /// Whether it asks for self-play.
    pub fn is_self_play(&self) -> bool {
        matches!(self.work, Work::SelfPlay { .. })
    }
}

/// How a lease ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseEnd {
    /// Every game is stored.
    Finished,
    /// The actor handed it back.
    Returned,
    /// It showed no progress for too long.
    Lapsed,
    /// Its gate was decided.
    Cancelled,
}

/// The leases in progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leases {
    active: BTreeMap<LeaseId, Lease>,
    /// When each actor was last heard, milliseconds: who shares a match.
    heard_ms: BTreeMap<ActorId, u64>,
    /// No lease showed progress and no actor was heard last before this, milliseconds. Time is asked about with every event,
    /// and nearly always nothing can have lapsed: then nobody is looked at.
    oldest_ms: u64,
}

impl Leases {
    pub(crate) fn insert(&mut self, lease: Lease) {
        self.oldest_ms = self.oldest_ms.min(lease.progress_ms);
        self.active.insert(lease.id, lease);
    }

    pub(crate) fn get(&self, id: LeaseId) -> Option<&Lease> {
        self.active.get(&id)
    }

    pub(crate) fn remove(&mut self, id: LeaseId) -> Option<Lease> {
        self.active.remove(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Lease> {
        self.active.values()
    }

    pub(crate) fn held_by(&self, actor: ActorId) -> u32 {
        self.active.values().filter(|lease| lease.actor == actor).count() as u32
    }

    /// Self-play games that are leased and not stored yet.
    pub(crate) fn self_play_games_out(&self) -> u32 {
        let self_play = self.active.values().filter(|lease| lease.is_self_play());
        self_play.map(|lease| lease.games.saturating_sub(lease.stored)).sum()
    }

    /// Notes that the holder of `id` is at work on it.
    pub(crate) fn progress(&mut self, id: LeaseId, now_ms: u64) {
        if let Some(lease) = self.active.get_mut(&id) {
            lease.progress_ms = lease.progress_ms.max(now_ms);
            let actor = lease.actor;
            self.heard(actor, now_ms);
        }
    }

    pub(crate) fn heard(&mut self, actor: ActorId, now_ms: u64) {
        self.oldest_ms = self.oldest_ms.min(now_ms);
        self.heard_ms.insert(actor, now_ms);
    }

    /// Notes a stored game; true when it was the last one the lease asked for.
    pub(crate) fn stored(&mut self, id: LeaseId, now_ms: u64) -> bool {
        self.progress(id, now_ms);
        self.active.get_mut(&id).is_some_and(|lease| {
            lease.stored += 1;
            lease.stored >= lease.games
        })
    }

    /// Leases whose last progress is `lapse_ms` or more ago; forgets actors that are silent as long.
    pub(crate) fn lapsed(&mut self, lapse_ms: u64, now_ms: u64) -> Vec<LeaseId> {
        let is_recent = |then_ms: u64| now_ms.saturating_sub(then_ms) < lapse_ms;
        if is_recent(self.oldest_ms) {
            return Vec::new();
        }
        self.heard_ms.retain(|_, heard_ms| is_recent(*heard_ms));
        let progress = self.active.values().map(|lease| lease.progress_ms);
        let times = self.heard_ms.values().copied().chain(progress);
        self.oldest_ms = times.min().unwrap_or(now_ms);
        let late = self.active.values().filter(|lease| !is_recent(lease.progress_ms));
        late.map(|lease| lease.id).collect()
    }

    /// Actors heard lately; at least 1.
    pub(crate) fn actors(&self) -> u32 {
        (self.heard_ms.len() as u32).max(1)
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    #[test]
    fn a_lease_holds_a_minute_and_a_half_of_work() {
        let rules = LeaseRules::default();
        assert_eq!(rules.games(0.0), 8);
        assert_eq!(rules.games(f32::NAN), 8);
        assert_eq!(rules.games(100.0), 150);
        assert_eq!(rules.games(0.1), 1);
        assert_eq!(rules.games(1e9), 2_000);
    }

    #[test]
    fn a_lease_lapses_by_lack_of_progress() {
        let mut leases = Leases::default();
        let ids = [LeaseId([1; 16]), LeaseId([2; 16])];
        for id in ids {
            leases.insert(Lease {
                id,
                actor: ActorId(7),
                work: Work::SelfPlay {
                    model: ModelId([0; 32]),
                    simulations: 16,
                },
                games: 4,
                stored: 0,
                progress_ms: 0,
            });
        }
        leases.progress(ids[0], 20_000);
        assert_eq!(leases.lapsed(30_000, 29_999), []);
        assert_eq!(leases.lapsed(30_000, 30_000), [ids[1]]);
        assert!(!leases.stored(ids[1], 30_001), "a game is progress, too");
        assert_eq!(leases.lapsed(30_000, 50_000), [ids[0]]);
    }

    /// Beside them goes the plain way: a list of times that is looked through at every step.
    #[test]
    fn whoever_is_not_looked_at_cannot_have_lapsed() {
        const LAPSE_MS: u64 = 300;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let (mut leases, mut plain) = (Leases::default(), BTreeMap::new());
        let (mut heard, mut now_ms, mut lapsed) = (BTreeMap::new(), 0u64, 0);
        for number in 0..20_000u64 {
            now_ms += rng.random_range(0..20u64);
            let id = LeaseId(u128::from(rng.random_range(0..40u64)).to_be_bytes());
            let actor = ActorId(u64::from(id.0[15] % 8));
            match rng.random_range(0..4) {
                0 => {
                    leases.insert(Lease {
                        id,
                        actor,
                        work: Work::SelfPlay {
                            model: ModelId([0; 32]),
                            simulations: 16,
                        },
                        games: u32::MAX,
                        stored: 0,
                        progress_ms: now_ms,
                    });
                    plain.insert(id, now_ms);
                }
                1 => {
                    leases.progress(id, now_ms);
                    if let Some(progress_ms) = plain.get_mut(&id) {
                        *progress_ms = now_ms;
                        heard.insert(actor, now_ms);
                    }
                }
                2 => {
                    leases.heard(actor, now_ms);
                    heard.insert(actor, now_ms);
                }
                _ => {}
            }
            let is_late = |then_ms: u64| now_ms - then_ms >= LAPSE_MS;
            let late = plain.iter().filter(|(_, then_ms)| is_late(**then_ms));
            let late: Vec<LeaseId> = late.map(|(id, _)| *id).collect();
            heard.retain(|_, then_ms| !is_late(*then_ms));
            assert_eq!(leases.lapsed(LAPSE_MS, now_ms), late, "step {number}");
            assert_eq!(leases.actors() as usize, heard.len().max(1), "step {number}");
            for id in late {
                leases.remove(id);
                plain.remove(&id);
                lapsed += 1;
            }
        }
        assert!(lapsed > 100, "{lapsed} lapsed");
    }
}
