//! Actors, where their simulations end, and what a process takes of its machine, in words.

use std::fmt::Write;

use indicatif::HumanBytes;
use tengen_proto::v1::{ActorStatus, RunStatus, Usage};
use tengen_service::usage::wait_share;

use super::page::duration;

/// Who waits for a core for less of the time than this has cores enough.
const WAIT_SHARE_MIN: f32 = 0.05;

/// A way that a simulation ends, and how many of an actor's did so.
type End = (&'static str, fn(&ActorStatus) -> u64);

/// Every way that a simulation ends.
const ENDS: [End; 4] = [
    ("evaluated", |actor| actor.evaluations),
    ("from the cache", |actor| actor.cache_hits),
    ("in finished games", |actor| actor.terminal_visits),
    ("from the ply before", |actor| actor.reused_visits),
];

/// How the simulations of all actors ended, each way's share of them; `None` before the first simulation.
pub(crate) fn simulations(status: &RunStatus) -> Option<String> {
    let all: f64 = status.actors.iter().map(searched).sum();
    let shares = ENDS.iter().filter_map(|(end, count)| {
        let ended: f64 = status.actors.iter().map(|actor| count(actor) as f64).sum();
        (ended > 0.0).then(|| format!("{} {end}", percent(ended / all)))
    });
    let shares: Vec<String> = shares.collect();
    (!shares.is_empty()).then(|| shares.join(", "))
}

/// Simulations of an actor, however they ended.
fn searched(actor: &ActorStatus) -> f64 {
    ENDS.iter().map(|(_, count)| count(actor) as f64).sum()
}

/// An actor with all that it told last.
pub(super) fn actor(actor: &ActorStatus) -> String {
    let mut text = format!(
        "{} on {}: {}{}, {:.0} evaluations/s",
        actor.actor_id,
        actor.host,
        provider(actor),
        build(&actor.build),
        actor.evaluations_per_second
    );
    if actor.evaluations > 0 {
        let share = percent(actor.evaluations as f64 / searched(actor));
        let _ = write!(text, " ({share} of its simulations)");
    }
    let _ = write!(
        text,
        ", {:.0} games/min, {} games, {} strikes",
        actor.games_per_minute, actor.games, actor.strikes
    );
    if let Some(usage) = &actor.usage {
        let _ = write!(text, ", {}", self::usage(usage));
    }
    if actor.queue > 0 {
        let _ = write!(
            text,
            ", {} games unsent ({})",
            actor.queue,
            HumanBytes(actor.spool_bytes)
        );
    }
    if !actor.precision_fell_back.is_empty() {
        let _ = write!(text, ", in fp32 because {}", actor.precision_fell_back);
    }
    if !actor.waiting.is_empty() {
        let _ = write!(text, ", waiting: {}", actor.waiting);
    }
    let heard = if actor.alive { "heard" } else { "SILENT, last heard" };
    let _ = write!(text, ", {heard} {} ago", duration(actor.silent_ms));
    text
}

/// Where an actor really computes, and in which precision.
pub(super) fn provider(actor: &ActorStatus) -> String {
    match actor.precision.as_str() {
        "" => actor.provider.clone(),
        precision => format!("{} {precision}", actor.provider),
    }
}

/// The build of a process, where it is not this one's.
fn build(build: &str) -> String {
    if build.is_empty() || build == tengen_service::BUILD {
        String::new()
    } else {
        format!(" (build {build})")
    }
}

/// What a process takes of its machine.
pub(super) fn usage(usage: &Usage) -> String {
    let mut text = format!("{:.1} of {} cores", usage.cpu_cores, usage.cpu_cores_available);
    if let Some(share) = core_wait(usage) {
        let _ = write!(text, " (waits for one {share} of the time)");
    }
    let _ = write!(text, ", {}", HumanBytes(usage.resident_bytes));
    if let Some(busy) = usage.gpu_busy {
        let _ = write!(text, ", GPU {} busy", percent(busy));
    }
    if let Some(bytes) = usage.gpu_memory_bytes {
        let _ = write!(text, ", GPU memory {}", HumanBytes(bytes));
    }
    text
}

/// For how much of the time a process waits for a core; `None` where it hardly does, or does not tell.
pub(super) fn core_wait(usage: &Usage) -> Option<String> {
    wait_share(usage).filter(|share| *share >= WAIT_SHARE_MIN).map(percent)
}

fn percent(share: impl Into<f64>) -> String {
    format!("{:.0} %", 100.0 * share.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn searching(ends: [u64; 4]) -> ActorStatus {
        let [evaluations, cache_hits, terminal_visits, reused_visits] = ends;
        ActorStatus {
            evaluations,
            cache_hits,
            terminal_visits,
            reused_visits,
            ..ActorStatus::default()
        }
    }

    #[test]
    fn simulations_are_told_of_by_where_they_ended_over_all_actors() {
        let check = |actors: &[[u64; 4]], expected: Option<&str>| {
            let status = RunStatus {
                actors: actors.iter().copied().map(searching).collect(),
                ..RunStatus::default()
            };
            assert_eq!(simulations(&status).as_deref(), expected);
        };
        let all = "62 % evaluated, 20 % from the cache, 3 % in finished games, 15 % from the ply before";
        check(&[[62, 20, 3, 15]], Some(all));
        check(&[[60, 0, 3, 5], [2, 20, 0, 10]], Some(all));
        // Ways that are not taken are left out.
        check(&[[3, 0, 0, 1]], Some("75 % evaluated, 25 % from the ply before"));
        // What an actor says may be any number.
        check(
            &[[u64::MAX, u64::MAX, 0, 0]; 2],
            Some("50 % evaluated, 50 % from the cache"),
        );
        check(&[[0; 4]], None);
        check(&[], None);
    }

    #[test]
    fn an_actor_says_how_many_of_its_simulations_it_evaluates() {
        let text = actor(&searching([62, 20, 3, 15]));
        assert!(
            text.contains("evaluations/s (62 % of its simulations), 0 games/min"),
            "{text}"
        );
        let text = actor(&searching([0; 4]));
        assert!(text.contains("0 evaluations/s, 0 games/min"), "{text}");
    }

    #[test]
    fn who_waits_for_a_core_says_so() {
        let of = |cpu_cores_lacking| Usage {
            cpu_cores: 1.24,
            cpu_cores_available: 2,
            cpu_cores_lacking,
            ..Usage::default()
        };
        let check = |lacking: Option<f32>, expected: &str| {
            assert!(usage(&of(lacking)).starts_with(expected), "{}", usage(&of(lacking)))
        };
        check(Some(0.76), "1.2 of 2 cores (waits for one 38 % of the time), 0 B");
        check(Some(0.05), "1.2 of 2 cores, 0 B");
        check(None, "1.2 of 2 cores, 0 B");
    }
}
