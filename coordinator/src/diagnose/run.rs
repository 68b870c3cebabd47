//! What is wrong with the run itself: what people hold, its disk, its machines, its window, its gate, and whom it lets in.

use tengen_proto::v1::Activity;

use super::{Cause, Snapshot};
use crate::cores::crowds;

/// Below so many hours of room the disk is said to be low.
const DISK_LOW_HOURS: f64 = 24.0;
/// Refusals older than this are past, milliseconds.
const REFUSED_LATELY_MS: i64 = 600_000;
/// A token that ends within so many hours ends soon.
const TOKEN_ENDS_HOURS: f64 = 72.0;
/// A gate that was opened so long ago and gets no games waits, milliseconds.
const GATE_PATIENCE_MS: i64 = 60_000;

pub(super) fn find(snapshot: &Snapshot, causes: &mut Vec<Cause>) {
    held(snapshot, causes);
    disk(snapshot, causes);
    machines(snapshot, causes);
    window(snapshot, causes);
    gate(snapshot, causes);
    refused(snapshot, causes);
    tokens(snapshot, causes);
}

/// What people hold.
fn held(snapshot: &Snapshot, causes: &mut Vec<Cause>) {
    let Some(steering) = &snapshot.status.steering else {
        return;
    };
    let paused = steering.paused();
    causes.extend(paused.map(|activity| Cause::Paused {
        activity: activity.name(),
    }));
    if steering.pinned {
        let champion = snapshot
            .status
            .champion
            .as_ref()
            .map_or(&[][..], |model| &model.model_id);
        causes.push(Cause::Pinned {
            champion: hex::encode(champion.get(..8).unwrap_or_default()),
        });
    }
}

fn disk(snapshot: &Snapshot, causes: &mut Vec<Cause>) {
    let Some(disk) = &snapshot.status.disk else { return };
    if !disk.refusing.is_empty() {
        causes.push(Cause::DiskFull {
            why: disk.refusing.clone(),
        });
    } else if let (Some(hours_left), Some(bytes_per_hour)) = (disk.hours_left, disk.bytes_per_hour)
        && hours_left < DISK_LOW_HOURS
    {
        causes.push(Cause::DiskLow {
            hours_left,
            bytes_per_hour,
            free_bytes: disk.free_bytes,
        });
    }
}

/// Machines whose cores are too few for those who compute there.
fn machines(snapshot: &Snapshot, causes: &mut Vec<Cause>) {
    let crowds = crowds(&snapshot.status.actors, snapshot.status.learner.as_ref());
    causes.extend(crowds.into_iter().map(|crowd| Cause::TooFewCores { crowd }));
}

fn window(snapshot: &Snapshot, causes: &mut Vec<Cause>) {
    let status = &snapshot.status;
    if status.window_lag_games > 0 && !status.window_trouble.is_empty() {
        causes.push(Cause::WindowBehind {
            games: status.window_lag_games,
            trouble: status.window_trouble.clone(),
        });
    }
    if status.damaged_games > 0 {
        causes.push(Cause::DamagedGames {
            games: status.damaged_games,
        });
    }
    if status.audit_failed > 0 {
        causes.push(Cause::AuditsFailed {
            failed: status.audit_failed,
            audited: status.audited,
        });
    }
}

fn gate(snapshot: &Snapshot, causes: &mut Vec<Cause>) {
    let status = &snapshot.status;
    let Some(gate) = &status.gate else { return };
    if gate.pairs_target < status.gate_pairs_wanted {
        causes.push(Cause::FewOpenings {
            gate: gate.gate_id,
            drawn: gate.pairs_target,
            wanted: status.gate_pairs_wanted,
        });
    }
    let old = snapshot.now_ms - gate.opened_unix_ms > GATE_PATIENCE_MS;
    if status.match_games_per_minute == 0.0 && old && !snapshot.is_paused(Activity::Gating) {
        causes.push(Cause::GateWaits {
            gate: gate.gate_id,
            pairs: gate.pairs,
            target: gate.pairs_target,
            actors: status.actors.iter().filter(|actor| actor.alive).count(),
        });
    }
}

fn refused(snapshot: &Snapshot, causes: &mut Vec<Cause>) {
    for (reason, calls) in &snapshot.refused {
        if snapshot.now_ms - calls.last_unix_ms > REFUSED_LATELY_MS {
            continue;
        }
        let (count, message) = (calls.count, calls.message.clone());
        match reason.as_str() {
            "PROTOCOL" => causes.push(Cause::OtherProtocol { count, message }),
            "OTHER_TOKEN" | "ROLE" => causes.push(Cause::TokenRefused {
                reason: reason.clone(),
                count,
                message,
            }),
            token if token.starts_with("TOKEN_") => causes.push(Cause::TokenRefused {
                reason: reason.clone(),
                count,
                message,
            }),
            _ => {}
        }
    }
}

/// Tokens that end soon and that an actor comes with.
fn tokens(snapshot: &Snapshot, causes: &mut Vec<Cause>) {
    for token in &snapshot.tokens {
        let (Some(expires_ms), None) = (token.expires_ms, token.revoked_ms) else {
            continue;
        };
        let hours = (expires_ms - snapshot.now_ms) as f64 / 3_600_000.0;
        let in_use = snapshot
            .actors
            .iter()
            .any(|actor| actor.token.as_deref() == Some(token.id.as_str()));
        if in_use && (0.0..TOKEN_ENDS_HOURS).contains(&hours) {
            causes.push(Cause::TokenEnds {
                token: token.id.to_string(),
                role: token.role.to_string(),
                hours,
            });
        }
    }
}
