//! What is wrong with the learner, and who of it and self-play waits for the other.

use tengen_service::reports::WAITING_FOR_GAMES;

use super::actors::{CLOCK_OFF_MS, fell_back};
use super::{Cause, Snapshot};

pub(super) fn find(snapshot: &Snapshot, causes: &mut Vec<Cause>) {
    let status = &snapshot.status;
    let Some(learner) = &status.learner else {
        causes.push(Cause::NoLearner);
        return;
    };
    if !learner.alive {
        causes.push(Cause::LearnerSilent {
            host: learner.host.clone(),
            silent_ms: learner.silent_ms,
        });
        return;
    }
    if status.window_positions < status.window_min_positions && learner.step == 0 {
        causes.push(Cause::WindowBelowMinimum {
            positions: status.window_positions,
            minimum: status.window_min_positions,
        });
    } else if learner.activity.starts_with(WAITING_FOR_GAMES) {
        causes.push(Cause::LearnerWaits {
            activity: learner.activity.clone(),
            positions_per_minute: status.positions_per_minute,
        });
    }
    // Leases keep it just inside its limit, so a little below the limit self-play already waits.
    let limit = status.steps_behind_max;
    if limit > 0 && status.steps_behind * 10 >= limit * 9 {
        causes.push(Cause::LearnerSlower {
            behind: status.steps_behind,
            limit,
            steps_per_second: learner.steps_per_second,
        });
    }
    if learner.candidates_given_up > 0 {
        causes.push(Cause::CandidateGivenUp {
            count: learner.candidates_given_up,
            parity: learner.parity,
        });
    }
    let who = format!("the learner on {}", learner.host);
    if fell_back(&learner.device_wanted, &learner.device) {
        causes.push(Cause::DeviceFellBack {
            who: who.clone(),
            wanted: learner.device_wanted.clone(),
            used: learner.device.clone(),
        });
    }
    if learner.clock_offset_ms.abs() > CLOCK_OFF_MS {
        causes.push(Cause::ClockOff {
            who: who.clone(),
            offset_ms: learner.clock_offset_ms,
        });
    }
    if !learner.build.is_empty() && learner.build != status.build {
        causes.push(Cause::OtherBuild {
            who,
            build: learner.build.clone(),
            ours: status.build.clone(),
        });
    }
}
