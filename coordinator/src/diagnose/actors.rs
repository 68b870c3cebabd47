//! What is wrong with the actors.

use tengen_proto::v1::{Activity, ActorStatus};
use tengen_service::reports::{LEASE_UNPLAYABLE, SPOOL_FULL, is_other_rules};

use super::{Cause, Snapshot};

/// A clock that is off by more than this is wrong, milliseconds: times of records and tokens are compared with it.
pub(super) const CLOCK_OFF_MS: i64 = 10_000;
/// A champion this old is no news to any actor: a lease with the one before lasts a minute or two, milliseconds.
const CHAMPION_PATIENCE_MS: i64 = 600_000;

pub(super) fn find(snapshot: &Snapshot, causes: &mut Vec<Cause>) {
    let actors = &snapshot.status.actors;
    let alive = actors.iter().filter(|actor| actor.alive).count();
    if alive == 0 {
        causes.push(Cause::NoActor {
            ever: snapshot.actors.len(),
        });
    }
    for row in snapshot.actors.iter().filter(|row| row.suspended_ms.is_some()) {
        causes.push(Cause::ActorSuspended {
            actor: row.actor.clone(),
            strikes: row.strikes,
        });
    }
    champion(snapshot, causes);
    for actor in actors {
        one(snapshot, actor, causes);
    }
}

fn one(snapshot: &Snapshot, actor: &ActorStatus, causes: &mut Vec<Cause>) {
    let (id, host, why) = (actor.actor_id.clone(), actor.host.clone(), actor.waiting.clone());
    if actor.gave_up {
        causes.push(match is_other_rules(&why) {
            true => Cause::OtherRules { actor: id, host, why },
            false => Cause::ActorGaveUp { actor: id, host, why },
        });
        return;
    }
    let suspended = snapshot
        .actors
        .iter()
        .any(|row| row.actor == id && row.suspended_ms.is_some());
    if !actor.alive {
        if !suspended {
            causes.push(Cause::ActorSilent {
                actor: id,
                host,
                silent_ms: actor.silent_ms,
            });
        }
        return;
    }
    if why.starts_with(LEASE_UNPLAYABLE) {
        causes.push(Cause::ActorWithoutModel { actor: id.clone(), why });
    } else if why.starts_with(SPOOL_FULL) {
        causes.push(Cause::SpoolFull {
            actor: id.clone(),
            bytes: actor.spool_bytes,
        });
    }
    if actor.strikes > 0 && !suspended {
        causes.push(Cause::RecordsRejected {
            actor: id.clone(),
            strikes: actor.strikes,
            reasons: reasons(snapshot),
        });
    }
    let who = format!("actor {id} on {host}");
    if fell_back(&actor.device, &actor.provider) {
        causes.push(Cause::DeviceFellBack {
            who: who.clone(),
            wanted: actor.device.clone(),
            used: actor.provider.clone(),
        });
    }
    if !actor.precision_fell_back.is_empty() {
        causes.push(Cause::PrecisionFellBack {
            who: who.clone(),
            why: actor.precision_fell_back.clone(),
        });
    }
    if actor.clock_offset_ms.abs() > CLOCK_OFF_MS {
        causes.push(Cause::ClockOff {
            who: who.clone(),
            offset_ms: actor.clock_offset_ms,
        });
    }
    if !actor.build.is_empty() && actor.build != snapshot.status.build {
        causes.push(Cause::OtherBuild {
            who,
            build: actor.build.clone(),
            ours: snapshot.status.build.clone(),
        });
    }
}

/// Whether somebody who was to find the best device found no GPU.
pub(super) fn fell_back(wanted: &str, used: &str) -> bool {
    wanted != "cpu" && !wanted.is_empty() && used.to_ascii_lowercase().contains("cpu")
}

/// Whether nobody plays with the champion although somebody plays.
fn champion(snapshot: &Snapshot, causes: &mut Vec<Cause>) {
    let Some(champion) = &snapshot.status.champion else {
        return;
    };
    let alive = snapshot.status.actors.iter().filter(|actor| actor.alive);
    let models: Vec<&[u8]> = alive.map(|actor| &actor.model_id[..]).collect();
    let some_failed = snapshot
        .status
        .actors
        .iter()
        .any(|actor| actor.waiting.starts_with(LEASE_UNPLAYABLE));
    let age_ms = snapshot.now_ms - champion.created_unix_ms;
    let some_play = models.iter().any(|model| !model.is_empty());
    let is_due = age_ms > CHAMPION_PATIENCE_MS && !snapshot.is_paused(Activity::SelfPlay);
    if (some_failed || some_play && is_due) && models.iter().all(|model| *model != champion.model_id) {
        causes.push(Cause::NoActorHasChampion {
            champion: hex::encode(champion.model_id.get(..8).unwrap_or_default()),
            actors: models.len(),
        });
    }
}

fn reasons(snapshot: &Snapshot) -> String {
    let mut reasons: Vec<_> = snapshot.status.rejected.iter().collect();
    reasons.sort();
    let each = reasons.iter().map(|(reason, count)| format!("{reason} {count}"));
    each.collect::<Vec<_>>().join(", ")
}
