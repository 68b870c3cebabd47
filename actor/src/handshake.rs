//! Saying hello: what the coordinator says it runs, and whether this build agrees with it about the game.

use std::fmt;
use std::time::Duration;

use tengen_games::{AnyGame, Fingerprint, ParseGameError};
use tengen_proto::PROTOCOL;
use tengen_proto::v1::actor_service_client::ActorServiceClient;
use tengen_proto::v1::{RegisterActorRequest, RegisterActorResponse, ReportActorRequest};
use tengen_records::{ParseIdError, RunId};
use tengen_service::channel::Channel;
use tengen_service::reports::{FINGERPRINT, GAME_RENAMED, GAME_UNKNOWN};
use tonic::{Code, Status};

/// Bounds of the interval between reports that we believe.
const REPORT_INTERVAL_MS: std::ops::RangeInclusive<u32> = 100..=60_000;
/// How long the coordinator may take to answer a call.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Who this actor is.
#[derive(Clone, Debug)]
pub(crate) struct Me {
    /// The persistent identity.
    pub(crate) id: String,
    /// The machine, for people.
    pub(crate) host: String,
}

/// Which run it is: a run that was begun again under its old name is another one, whose leases nobody knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunKey {
    pub(crate) id: RunId,
    pub(crate) created_ms: i64,
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (created {} ms after 1970)", self.id, self.created_ms)
    }
}

/// The run, as the coordinator told and as this build has verified.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) id: RunId,
    pub(crate) created_ms: i64,
    pub(crate) game: AnyGame,
    pub(crate) rules: Fingerprint,
    pub(crate) features: Fingerprint,
    pub(crate) report_interval: Duration,
}

/// The coordinator and this actor do not get together.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    /// A call failed.
    #[error("{}", .0.message())]
    Call(Box<Status>),
    /// This build does not know the game.
    #[error("the run's game {GAME_UNKNOWN}: {0}")]
    Game(#[from] ParseGameError),
    /// An id that is none.
    #[error("the coordinator's answer makes no sense: {0}")]
    Id(#[from] ParseIdError),
    /// The coordinator answers with a protocol that we did not offer.
    #[error(
        "the coordinator (build {build}) speaks protocol {theirs}, this actor (build {}) needs {PROTOCOL}: bring the \
         coordinator up to date",
        tengen_service::BUILD
    )]
    Protocol { theirs: u32, build: String },
    /// A fingerprint of the wrong length.
    #[error("the coordinator's {which} {FINGERPRINT} has {len} bytes, not 32")]
    FingerprintLength { which: &'static str, len: usize },
    /// The coordinator names the game by another name than this build.
    #[error("the run's game is {theirs:?}, {GAME_RENAMED} {ours:?}: use the coordinator's build of the actor")]
    GameId { theirs: String, ours: String },
    /// Other rules or planes under the same name.
    #[error(transparent)]
    Fingerprint(Box<OtherFingerprint>),
    /// Another run answers where ours did.
    #[error(transparent)]
    OtherRun(Box<OtherRun>),
}

/// Two builds mean different things by one game's name.
#[derive(Debug, thiserror::Error)]
#[error(
    "the {which} {FINGERPRINT} of {game} is {ours} in this build ({}) and {theirs} in the run: games of the two must not be \
     mixed; use the actor of the coordinator's build ({build})",
    tengen_service::BUILD
)]
pub(crate) struct OtherFingerprint {
    pub(crate) which: &'static str,
    pub(crate) game: String,
    /// The coordinator's.
    pub(crate) build: String,
    pub(crate) ours: Fingerprint,
    pub(crate) theirs: Fingerprint,
}

/// The coordinator's address serves another run than before.
#[derive(Debug, thiserror::Error)]
#[error(
    "the coordinator now serves run {new} with rules {new_rules}; this actor plays for run {old} with rules {old_rules}"
)]
pub(crate) struct OtherRun {
    pub(crate) old: RunKey,
    pub(crate) old_rules: Fingerprint,
    pub(crate) new: RunKey,
    pub(crate) new_rules: Fingerprint,
}

impl Run {
    /// Which run it is.
    pub(crate) fn key(&self) -> RunKey {
        RunKey {
            id: self.id.clone(),
            created_ms: self.created_ms,
        }
    }
}

impl From<Status> for HandshakeError {
    fn from(status: Status) -> HandshakeError {
        HandshakeError::Call(Box::new(status))
    }
}

impl HandshakeError {
    /// Whether trying again can help.
    pub(crate) fn is_transient(&self) -> bool {
        let HandshakeError::Call(status) = self else {
            return false;
        };
        !matches!(
            status.code(),
            Code::FailedPrecondition
                | Code::InvalidArgument
                | Code::Unauthenticated
                | Code::PermissionDenied
                | Code::Unimplemented
        )
    }
}

/// Registers; with `known` given, only the same run is accepted.
pub(crate) async fn register(
    client: &mut ActorServiceClient<Channel>,
    me: &Me,
    provider: &str,
    known: Option<&Run>,
) -> Result<Run, HandshakeError> {
    let mut request = tonic::Request::new(RegisterActorRequest {
        actor_id: me.id.clone(),
        host: me.host.clone(),
        build: tengen_service::BUILD.to_owned(),
        protocol_min: PROTOCOL,
        protocol_max: PROTOCOL,
        provider: provider.to_owned(),
    });
    request.set_timeout(CALL_TIMEOUT);
    let answer = client.register(request).await?.into_inner();
    if answer.protocol != PROTOCOL {
        return Err(HandshakeError::Protocol {
            theirs: answer.protocol,
            build: answer.build,
        });
    }
    let verified = match known {
        Some(run) => same_run(run, &answer),
        None => tokio::task::spawn_blocking(move || verify(&answer))
            .await
            .map_err(|error| Status::internal(error.to_string()))?,
    };
    if let Err(error) = &verified {
        take_leave(client, me, error).await;
    }
    verified
}

/// Tells the coordinator why this actor will not play for it, so that its people need not look for our log.
async fn take_leave(client: &mut ActorServiceClient<Channel>, me: &Me, why: &HandshakeError) {
    let mut request = tonic::Request::new(ReportActorRequest {
        actor_id: me.id.clone(),
        waiting: why.to_string(),
        gives_up: true,
        ..ReportActorRequest::default()
    });
    request.set_timeout(CALL_TIMEOUT);
    // The reason stands in our own log and exit; this is a courtesy.
    let _ = client.report(request).await;
}

/// The run that the answer names, after computing both fingerprints here.
fn verify(answer: &RegisterActorResponse) -> Result<Run, HandshakeError> {
    let game = AnyGame::parse(&answer.game)?;
    let ours = &game.spec().id;
    if *ours != answer.game {
        return Err(HandshakeError::GameId {
            theirs: answer.game.clone(),
            ours: ours.clone(),
        });
    }
    let (rules, features) = (game.rules_fingerprint(), game.feature_fingerprint());
    let stated = stated_fingerprints(answer)?;
    for (which, ours, theirs) in [("rules", rules, stated[0]), ("feature", features, stated[1])] {
        if ours != theirs {
            return Err(HandshakeError::Fingerprint(Box::new(OtherFingerprint {
                which,
                game: answer.game.clone(),
                build: answer.build.clone(),
                ours,
                theirs,
            })));
        }
    }
    let RunKey { id, created_ms } = stated_run(answer)?;
    Ok(Run {
        id,
        created_ms,
        game,
        rules,
        features,
        report_interval: report_interval(answer),
    })
}

fn same_run(run: &Run, answer: &RegisterActorResponse) -> Result<Run, HandshakeError> {
    let new = stated_run(answer)?;
    let [rules, features] = stated_fingerprints(answer)?;
    if new != run.key() || rules != run.rules || features != run.features {
        return Err(HandshakeError::OtherRun(Box::new(OtherRun {
            old: run.key(),
            old_rules: run.rules,
            new,
            new_rules: rules,
        })));
    }
    Ok(Run {
        report_interval: report_interval(answer),
        ..run.clone()
    })
}

fn stated_run(answer: &RegisterActorResponse) -> Result<RunKey, HandshakeError> {
    Ok(RunKey {
        id: RunId::new(answer.run_id.clone())?,
        created_ms: answer.run_created_unix_ms,
    })
}

/// Rules and feature fingerprint as the coordinator states them.
fn stated_fingerprints(answer: &RegisterActorResponse) -> Result<[Fingerprint; 2], HandshakeError> {
    let read = |which, bytes: &[u8]| {
        let fixed = bytes.try_into().map(Fingerprint);
        fixed.map_err(|_| HandshakeError::FingerprintLength {
            which,
            len: bytes.len(),
        })
    };
    Ok([
        read("rules", &answer.rules_fingerprint)?,
        read("feature", &answer.feature_fingerprint)?,
    ])
}

fn report_interval(answer: &RegisterActorResponse) -> Duration {
    let ms = answer
        .report_interval_ms
        .clamp(*REPORT_INTERVAL_MS.start(), *REPORT_INTERVAL_MS.end());
    Duration::from_millis(u64::from(ms))
}

#[cfg(test)]
mod tests {
    use tengen_service::reports::is_other_rules;

    use super::*;

    fn answer() -> RegisterActorResponse {
        let game = AnyGame::parse("tic-tac-toe").unwrap();
        RegisterActorResponse {
            run_id: "run".to_owned(),
            game: game.spec().id.clone(),
            rules_fingerprint: game.rules_fingerprint().0.to_vec(),
            feature_fingerprint: game.feature_fingerprint().0.to_vec(),
            protocol: PROTOCOL,
            build: "test".to_owned(),
            report_interval_ms: 0,
            run_created_unix_ms: 1,
        }
    }

    #[test]
    fn a_run_with_our_fingerprints_is_accepted() {
        let run = verify(&answer()).unwrap();
        assert_eq!(run.report_interval, Duration::from_millis(100));
        assert!(same_run(&run, &answer()).is_ok());
    }

    #[test]
    fn another_fingerprint_is_refused_with_both() {
        for (which, change) in [
            (
                "rules",
                (|answer| answer.rules_fingerprint[0] ^= 1) as fn(&mut RegisterActorResponse),
            ),
            ("feature", |answer| answer.feature_fingerprint[0] ^= 1),
        ] {
            let mut wrong = answer();
            change(&mut wrong);
            let error = verify(&wrong).unwrap_err();
            let HandshakeError::Fingerprint(mismatch) = &error else {
                panic!("{error}")
            };
            let text = error.to_string();
            for part in [
                which,
                &mismatch.ours.to_string(),
                &mismatch.theirs.to_string(),
                "build (test)",
            ] {
                assert!(text.contains(part), "{text}");
            }
            assert!(!error.is_transient());
            assert!(is_other_rules(&text), "{text}");
        }
    }

    #[test]
    fn a_game_that_is_unknown_here_or_has_another_name_here_is_told_as_other_rules() {
        let unknown = RegisterActorResponse {
            game: "nine-holes".to_owned(),
            ..answer()
        };
        let error = verify(&unknown).unwrap_err();
        assert!(
            matches!(error, HandshakeError::Game(_)) && is_other_rules(&error.to_string()),
            "{error}"
        );
        let renamed = HandshakeError::GameId {
            theirs: "gomoku?size=15".to_owned(),
            ours: "gomoku".to_owned(),
        };
        assert!(is_other_rules(&renamed.to_string()), "{renamed}");
        // What another build of the actor does not help with is told otherwise.
        for other in [
            HandshakeError::from(Status::permission_denied("the token is a learner's")),
            HandshakeError::Protocol {
                theirs: 0,
                build: "old".to_owned(),
            },
        ] {
            assert!(!is_other_rules(&other.to_string()), "{other}");
        }
    }

    #[test]
    fn another_run_at_the_same_address_is_refused() {
        let run = verify(&answer()).unwrap();
        let other = RegisterActorResponse {
            run_id: "other".to_owned(),
            ..answer()
        };
        let begun_again = RegisterActorResponse {
            run_created_unix_ms: 2,
            ..answer()
        };
        for answer in [other, begun_again] {
            assert!(matches!(same_run(&run, &answer), Err(HandshakeError::OtherRun(_))));
        }
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        assert!(HandshakeError::from(Status::unavailable("down")).is_transient());
        assert!(!HandshakeError::from(Status::failed_precondition("protocol 2 is needed")).is_transient());
    }
}
