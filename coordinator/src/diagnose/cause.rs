//! The causes, in words.

use std::time::{Duration, UNIX_EPOCH};

use indicatif::HumanBytes;
use tengen_proto::v1;

use crate::cores::Crowd;

/// Why nothing moves, or what slows the run down.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cause {
    /// The run is only read.
    AtRest,
    /// Somebody ended the run for good.
    Ended { ended_ms: i64 },
    /// Somebody holds a part of it.
    Paused { activity: &'static str },
    /// Somebody keeps the champion.
    Pinned { champion: String },
    /// New games and networks are refused for want of room.
    DiskFull { why: String },
    /// The room ends soon.
    DiskLow {
        hours_left: f64,
        bytes_per_hour: f64,
        free_bytes: u64,
    },
    /// Processes wait for a core of their machine.
    TooFewCores { crowd: Crowd },
    /// The window in Redis does not follow.
    WindowBehind { games: u64, trouble: String },
    /// Stored games are damaged.
    DamagedGames { games: u64 },
    /// The gate waits for games.
    GateWaits {
        gate: u32,
        pairs: u32,
        target: u32,
        actors: usize,
    },
    /// The game has fewer openings than the gate wants.
    FewOpenings { gate: u32, drawn: u32, wanted: u32 },
    /// Nobody plays.
    NoActor { ever: usize },
    /// An actor is not heard any more.
    ActorSilent {
        actor: String,
        host: String,
        silent_ms: u64,
    },
    /// An actor is not served.
    ActorSuspended { actor: String, strikes: u32 },
    /// An actor has other rules or planes under the game's name, or does not know it.
    OtherRules { actor: String, host: String, why: String },
    /// An actor gave up for another reason.
    ActorGaveUp { actor: String, host: String, why: String },
    /// An actor cannot use its network.
    ActorWithoutModel { actor: String, why: String },
    /// No actor plays with the champion.
    NoActorHasChampion { champion: String, actors: usize },
    /// An actor's spool is full.
    SpoolFull { actor: String, bytes: u64 },
    /// Builds that do not speak with this one.
    OtherProtocol { count: u64, message: String },
    /// Builds that do.
    OtherBuild { who: String, build: String, ours: String },
    /// Callers without a good token.
    TokenRefused {
        reason: String,
        count: u64,
        message: String,
    },
    /// A token in use ends soon.
    TokenEnds { token: String, role: String, hours: f64 },
    /// A device that was to be found was not.
    DeviceFellBack { who: String, wanted: String, used: String },
    /// An actor plays in fp32 although a reduced precision was there or asked for.
    PrecisionFellBack { who: String, why: String },
    /// A machine's clock is off.
    ClockOff { who: String, offset_ms: i64 },
    /// An actor's records are refused.
    RecordsRejected {
        actor: String,
        strikes: u32,
        reasons: String,
    },
    /// Audits find other networks than the ones that games name.
    AuditsFailed { failed: u64, audited: u64 },
    /// Nobody trains.
    NoLearner,
    /// The learner is not heard any more.
    LearnerSilent { host: String, silent_ms: u64 },
    /// The window is too small to train on.
    WindowBelowMinimum { positions: u64, minimum: u64 },
    /// The learner waits for games.
    LearnerWaits {
        activity: String,
        positions_per_minute: f32,
    },
    /// Self-play waits for the learner.
    LearnerSlower {
        behind: u64,
        limit: u64,
        steps_per_second: f32,
    },
    /// A candidate's file computes something else than the learner.
    CandidateGivenUp { count: u32, parity: f32 },
}

impl Cause {
    /// How bad it is.
    pub(crate) fn severity(&self) -> v1::Severity {
        match self {
            Cause::AtRest
            | Cause::Ended { .. }
            | Cause::Paused { .. }
            | Cause::DiskFull { .. }
            | Cause::NoActor { .. }
            | Cause::NoActorHasChampion { .. }
            | Cause::NoLearner
            | Cause::LearnerSilent { .. }
            | Cause::OtherRules { .. }
            | Cause::ActorGaveUp { .. }
            | Cause::ActorSuspended { .. }
            | Cause::ActorWithoutModel { .. }
            | Cause::OtherProtocol { .. }
            | Cause::TokenRefused { .. } => v1::Severity::Stops,
            Cause::DiskLow { .. }
            | Cause::TooFewCores { .. }
            | Cause::WindowBehind { .. }
            | Cause::DamagedGames { .. }
            | Cause::GateWaits { .. }
            | Cause::ActorSilent { .. }
            | Cause::SpoolFull { .. }
            | Cause::TokenEnds { .. }
            | Cause::ClockOff { .. }
            | Cause::RecordsRejected { .. }
            | Cause::AuditsFailed { .. }
            | Cause::LearnerSlower { .. }
            | Cause::CandidateGivenUp { .. } => v1::Severity::Slows,
            Cause::Pinned { .. }
            | Cause::FewOpenings { .. }
            | Cause::OtherBuild { .. }
            | Cause::DeviceFellBack { .. }
            | Cause::PrecisionFellBack { .. }
            | Cause::WindowBelowMinimum { .. }
            | Cause::LearnerWaits { .. } => v1::Severity::Note,
        }
    }

    /// The stable name.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Cause::AtRest => "at-rest",
            Cause::Ended { .. } => "ended",
            Cause::Paused { .. } => "paused",
            Cause::Pinned { .. } => "pinned",
            Cause::DiskFull { .. } => "disk-full",
            Cause::DiskLow { .. } => "disk-low",
            Cause::TooFewCores { .. } => "too-few-cores",
            Cause::WindowBehind { .. } => "window-behind",
            Cause::DamagedGames { .. } => "damaged-games",
            Cause::GateWaits { .. } => "gate-waits-for-pairs",
            Cause::FewOpenings { .. } => "too-few-openings",
            Cause::NoActor { .. } => "no-actor",
            Cause::ActorSilent { .. } => "actor-silent",
            Cause::ActorSuspended { .. } => "actor-suspended",
            Cause::OtherRules { .. } => "other-rules",
            Cause::ActorGaveUp { .. } => "actor-gave-up",
            Cause::ActorWithoutModel { .. } => "actor-without-model",
            Cause::NoActorHasChampion { .. } => "no-actor-has-champion",
            Cause::SpoolFull { .. } => "spool-full",
            Cause::OtherProtocol { .. } => "other-protocol",
            Cause::OtherBuild { .. } => "other-build",
            Cause::TokenRefused { .. } => "token-refused",
            Cause::TokenEnds { .. } => "token-ends",
            Cause::DeviceFellBack { .. } => "device-fell-back",
            Cause::PrecisionFellBack { .. } => "precision-fell-back",
            Cause::ClockOff { .. } => "clock-off",
            Cause::RecordsRejected { .. } => "records-rejected",
            Cause::AuditsFailed { .. } => "audits-failed",
            Cause::NoLearner => "no-learner",
            Cause::LearnerSilent { .. } => "learner-silent",
            Cause::WindowBelowMinimum { .. } => "window-below-minimum",
            Cause::LearnerWaits { .. } => "learner-waits-for-games",
            Cause::LearnerSlower { .. } => "learner-slower-than-data",
            Cause::CandidateGivenUp { .. } => "candidate-given-up",
        }
    }

    /// What is wrong, in a plain sentence.
    pub(crate) fn sentence(&self) -> String {
        match self {
            Cause::AtRest => "the run is not running: its data folder is only read".to_owned(),
            Cause::Ended { .. } => "the run was ended for good: it is read, and nothing about it changes".to_owned(),
            Cause::Paused { activity } => format!("{activity} is paused"),
            Cause::Pinned { .. } => "the champion is pinned: gates are played and promote nobody".to_owned(),
            Cause::DiskFull { .. } => "new games and networks are refused: there is no room on the disk".to_owned(),
            Cause::DiskLow { hours_left, .. } => format!("the room on the disk ends in about {hours_left:.0} hours"),
            Cause::TooFewCores { crowd } => crowd.sentence(),
            Cause::WindowBehind { games, .. } => {
                format!("the learner's window is {games} stored games behind: its Redis server does not follow")
            }
            Cause::DamagedGames { games } => format!("{games} stored games are damaged and left out of the window"),
            Cause::GateWaits { gate, .. } => format!("gate {gate} waits for games of its pairs, and none comes"),
            Cause::FewOpenings { gate, drawn, wanted } => format!(
                "gate {gate} plays {drawn} pairs instead of {wanted}: the game has no more openings that differ"
            ),
            Cause::NoActor { ever: 0 } => "no actor has ever joined, so no game is played".to_owned(),
            Cause::NoActor { .. } => "no actor is connected, so no game is played".to_owned(),
            Cause::ActorSilent { actor, host, .. } => format!("actor {actor} on {host} is not heard any more"),
            Cause::ActorSuspended { actor, .. } => format!("actor {actor} is suspended: no game of it is taken"),
            Cause::OtherRules { actor, host, .. } => {
                format!("actor {actor} on {host} has other rules for this game, or does not know it, and ended")
            }
            Cause::ActorGaveUp { actor, host, .. } => format!("actor {actor} on {host} gave up and ended"),
            Cause::ActorWithoutModel { actor, .. } => format!("actor {actor} cannot use the network of its leases"),
            Cause::NoActorHasChampion { champion, .. } => {
                format!("no actor plays with the champion {champion}")
            }
            Cause::SpoolFull { actor, .. } => {
                format!("the spool of actor {actor} is full, and it plays less or not at all")
            }
            Cause::OtherProtocol { .. } => {
                "somebody calls with a build that does not speak this coordinator's protocol".to_owned()
            }
            Cause::OtherBuild { who, build, ours } => format!("{who} is of build {build}, the coordinator of {ours}"),
            Cause::TokenRefused { reason, .. } => format!("somebody calls {}", token_fault(reason)),
            Cause::TokenEnds { token, hours, .. } => {
                format!("the time of token {token}, which is in use, ends in {hours:.0} hours")
            }
            Cause::DeviceFellBack { who, used, .. } => format!("{who} found no GPU and computes on {used}"),
            Cause::PrecisionFellBack { who, .. } => format!("{who} plays in fp32 and not in a reduced precision"),
            Cause::ClockOff { who, offset_ms } => {
                let (seconds, side) = (
                    offset_ms.unsigned_abs() / 1_000,
                    if *offset_ms < 0 { "behind" } else { "ahead of" },
                );
                format!("the clock of {who} is {seconds} seconds {side} the coordinator's")
            }
            Cause::RecordsRejected { actor, .. } => format!("records of actor {actor} are refused"),
            Cause::AuditsFailed { .. } => "stored games state what their network does not compute".to_owned(),
            Cause::NoLearner => "no learner has joined, so nothing is trained".to_owned(),
            Cause::LearnerSilent { host, .. } => format!("the learner on {host} is not heard any more"),
            Cause::WindowBelowMinimum { .. } => {
                "the learner has not begun: the window holds too few positions yet".to_owned()
            }
            Cause::LearnerWaits { .. } => "the learner is faster than self-play and waits for games".to_owned(),
            Cause::LearnerSlower { behind, .. } => {
                format!("self-play waits for the learner, which is {behind} steps behind")
            }
            Cause::CandidateGivenUp { count, .. } => {
                format!("{count} candidates were given up: their file computed something else, or was refused")
            }
        }
    }

    /// What says so.
    pub(crate) fn evidence(&self) -> Vec<String> {
        match self {
            Cause::AtRest => vec!["no coordinator serves the run: this is what its database says".to_owned()],
            Cause::Ended { ended_ms } => vec![format!(
                "it ended at {}; the audit says who ended it (tengen audit)",
                moment(*ended_ms)
            )],
            Cause::Paused { .. } => vec!["the audit says who paused it and why (tengen audit)".to_owned()],
            Cause::Pinned { champion } => vec![format!("{champion} stays champion until it is unpinned")],
            Cause::DiskFull { why } => vec![why.clone()],
            Cause::DiskLow {
                bytes_per_hour,
                free_bytes,
                ..
            } => disk_evidence(*bytes_per_hour, *free_bytes),
            Cause::TooFewCores { crowd } => crowd.evidence(),
            Cause::WindowBehind { trouble, .. } => vec![trouble.clone()],
            Cause::DamagedGames { .. } => vec!["they were found when the window was built".to_owned()],
            Cause::GateWaits {
                pairs, target, actors, ..
            } => gate_evidence(*pairs, *target, *actors),
            Cause::FewOpenings { drawn, wanted, .. } => {
                vec![format!("{drawn} openings were drawn, [gate] games = {}", wanted * 2)]
            }
            Cause::NoActor { ever } => vec![format!("{ever} actors have ever registered")],
            Cause::ActorSilent { silent_ms, .. } => vec![last_heard(*silent_ms)],
            Cause::ActorSuspended { strikes, .. } => vec![format!("{strikes} strikes are counted against it")],
            Cause::OtherRules { why, .. } | Cause::ActorGaveUp { why, .. } | Cause::ActorWithoutModel { why, .. } => {
                vec![format!("it said: {why}")]
            }
            Cause::PrecisionFellBack { why, .. } => vec![format!("it said: {why}")],
            Cause::NoActorHasChampion { actors, .. } => {
                vec![format!(
                    "{actors} actors are connected, and none of them has a lease with it"
                )]
            }
            Cause::SpoolFull { bytes, .. } => vec![format!("{} of games wait for a verdict", HumanBytes(*bytes))],
            Cause::OtherProtocol { count, message } | Cause::TokenRefused { count, message, .. } => {
                vec![format!("{count} calls were refused, the last one with: {message}")]
            }
            Cause::OtherBuild { .. } => vec!["it said so when it registered".to_owned()],
            Cause::TokenEnds { role, .. } => vec![format!("it is for the role {role}")],
            Cause::DeviceFellBack { wanted, used, .. } => vec![format!("it was told {wanted} and reports {used}")],
            Cause::ClockOff { offset_ms, .. } => vec![format!("{offset_ms} ms by its last report")],
            Cause::RecordsRejected { strikes, reasons, .. } => {
                vec![format!("{strikes} strikes"), format!("refused in this run: {reasons}")]
            }
            Cause::AuditsFailed { failed, audited } => vec![format!("{failed} of {audited} audited games failed")],
            Cause::NoLearner => vec!["none has registered since the coordinator began".to_owned()],
            Cause::LearnerSilent { silent_ms, .. } => vec![last_heard(*silent_ms)],
            Cause::WindowBelowMinimum { positions, minimum } => {
                vec![format!(
                    "{positions} of {minimum} positions (learner.window_min_positions)"
                )]
            }
            Cause::LearnerWaits {
                activity,
                positions_per_minute,
            } => vec![
                format!("it is {activity}"),
                format!("{positions_per_minute:.0} positions are stored a minute"),
            ],
            Cause::LearnerSlower {
                behind,
                limit,
                steps_per_second,
            } => slower_evidence(*behind, *limit, *steps_per_second),
            Cause::CandidateGivenUp { parity, .. } => vec![format!("the last export differed by {parity}")],
        }
    }

    /// What helps.
    pub(crate) fn remedy(&self) -> String {
        match self {
            Cause::AtRest => "tengen up --run FILE --data DIR".to_owned(),
            Cause::Ended { .. } => "tengen runs new NAME".to_owned(),
            Cause::Paused { activity } => format!("tengen resume {activity}"),
            Cause::Pinned { .. } => "tengen unpin".to_owned(),
            Cause::DiskFull { .. } | Cause::DiskLow { .. } => {
                "free space on the disk, or keep less: [retention] in the coordinator's configuration (docs/data.md)"
                    .to_owned()
            }
            Cause::TooFewCores { crowd } => crowd.remedy(),
            Cause::WindowBehind { .. } => {
                "bring the Redis server back (docs/redis.md); the window catches up by itself".to_owned()
            }
            Cause::DamagedGames { .. } => "tengen db check --data DIR".to_owned(),
            Cause::GateWaits { .. } => "tengen actors list".to_owned(),
            Cause::FewOpenings { .. } => {
                "lower [gate] games, or leave it: the verdict says how many pairs were played".to_owned()
            }
            Cause::NoActor { .. } => "tengen-actor --join URL --data DIR".to_owned(),
            Cause::ActorSilent { .. } | Cause::ActorGaveUp { .. } => {
                "look at its log and start it again: tengen-actor --join URL --data DIR".to_owned()
            }
            Cause::ActorSuspended { actor, .. } => format!("tengen actors resume {actor}"),
            Cause::OtherRules { .. } => "start that actor from the coordinator's own build (tengen version)".to_owned(),
            Cause::ActorWithoutModel { .. } | Cause::NoActorHasChampion { .. } => {
                "tengen models show champion".to_owned()
            }
            Cause::SpoolFull { .. } => {
                "free space there or raise --spool-bytes-max; it empties once games are taken".to_owned()
            }
            Cause::OtherProtocol { .. } | Cause::OtherBuild { .. } => {
                "bring it up to date, the coordinator before its actors (tengen version)".to_owned()
            }
            Cause::TokenRefused { reason, .. } => match reason.as_str() {
                "TOKEN_MISSING" => "give it --token-file FILE, or TENGEN_TOKEN".to_owned(),
                _ => "tengen token create --role actor --out FILE".to_owned(),
            },
            Cause::TokenEnds { role, .. } => format!("tengen token create --role {role} --out FILE"),
            Cause::DeviceFellBack { .. } => {
                "nothing, if that machine has no GPU; else name it, --device cuda:0, and the log says what is missing"
                    .to_owned()
            }
            Cause::PrecisionFellBack { .. } => {
                "nothing: its games are as good, only slower to make; precision = \"fp32\" in [actor], or tengen-actor \
                 --precision fp32, keeps it from trying"
                    .to_owned()
            }
            Cause::ClockOff { .. } => "set that machine's clock, for example with timedatectl set-ntp true".to_owned(),
            Cause::RecordsRejected { actor, .. } => format!("tengen actors suspend {actor}"),
            Cause::AuditsFailed { .. } => "tengen actors list, and docs/audit.md".to_owned(),
            Cause::NoLearner | Cause::LearnerSilent { .. } => "tengen-learner --coordinator URL --data DIR".to_owned(),
            Cause::WindowBelowMinimum { .. } | Cause::LearnerWaits { .. } => {
                "wait, or add an actor: tengen-actor --join URL --data DIR".to_owned()
            }
            Cause::LearnerSlower { .. } => {
                "give the learner a GPU or more threads, or lower learner.samples_per_position".to_owned()
            }
            Cause::CandidateGivenUp { .. } => {
                "look at the learner's log; training goes on and the next candidate is another chance".to_owned()
            }
        }
    }

    /// The cause as people and machines get it.
    pub(crate) fn finding(&self) -> v1::Finding {
        v1::Finding {
            cause: self.name().to_owned(),
            severity: self.severity().into(),
            sentence: self.sentence(),
            evidence: self.evidence(),
            remedy: self.remedy(),
        }
    }
}

fn disk_evidence(bytes_per_hour: f64, free_bytes: u64) -> Vec<String> {
    vec![
        format!("the data folder grows by {} an hour", HumanBytes(bytes_per_hour as u64)),
        format!("{} are free on its disk", HumanBytes(free_bytes)),
    ]
}

fn gate_evidence(pairs: u32, target: u32, actors: usize) -> Vec<String> {
    vec![
        format!("{pairs} of {target} pairs are complete"),
        "no match game was stored in the last minute".to_owned(),
        format!("{actors} actors are connected"),
    ]
}

fn slower_evidence(behind: u64, limit: u64, steps_per_second: f32) -> Vec<String> {
    vec![
        format!("{behind} steps behind, self-play waits near {limit} (learner.steps_behind_max)"),
        format!("it makes {steps_per_second:.1} steps a second"),
    ]
}

/// How a call was refused for its token, by the reason of the refusal.
fn token_fault(reason: &str) -> &'static str {
    match reason {
        "TOKEN_EXPIRED" => "with a token whose time is over",
        "TOKEN_REVOKED" => "with a token that was revoked",
        "TOKEN_MISSING" => "without a token, and this run wants one",
        "OTHER_TOKEN" => "for an actor that belongs to another token",
        "ROLE" => "with a token whose role may not do that",
        _ => "with a token that this run does not know",
    }
}

fn last_heard(silent_ms: u64) -> String {
    format!("it was last heard {} seconds ago", silent_ms / 1_000)
}

/// A time since the Unix epoch, for people.
fn moment(unix_ms: i64) -> humantime::Rfc3339Timestamp {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(unix_ms.max(0) as u64))
}
