//! Refusals as rich errors: a stable reason for machines, a sentence for people, and when to try again.

use std::collections::HashMap;
use std::fmt::Display;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::access::OtherToken;
use crate::disk::NoRoom;
use crate::run::{ActorRefused, Fenced, PublishRefused, Unavailable};

/// Whose reasons these are.
const DOMAIN: &str = "tengen";
/// When a refusal that passes is worth another try.
const RETRY: Duration = Duration::from_secs(1);
/// When it is worth another try once the disk had no room.
const RETRY_ROOM: Duration = Duration::from_secs(10);

/// A refusal with a stable reason.
pub(crate) fn refusal(code: Code, reason: &str, message: impl Display) -> Status {
    let details = ErrorDetails::with_error_info(reason, DOMAIN, HashMap::new());
    Status::with_error_details(code, message.to_string(), details)
}

/// A caller without a good token.
pub(crate) fn unauthenticated(reason: &str, message: impl Display) -> Status {
    refusal(Code::Unauthenticated, reason, message)
}

/// A caller that takes more than it may; the same call passes after `wait`.
pub(crate) fn exhausted(reason: &str, message: impl Display, wait: Duration) -> Status {
    let mut details = ErrorDetails::with_retry_info(Some(wait));
    details.set_error_info(reason, DOMAIN, HashMap::new());
    Status::with_error_details(Code::ResourceExhausted, message.to_string(), details)
}

/// A request field that makes no sense.
pub(crate) fn bad_field(field: &str, fault: impl Display) -> Status {
    let mut details = ErrorDetails::with_bad_request_violation(field, fault.to_string());
    details.set_error_info("BAD_FIELD", DOMAIN, HashMap::new());
    Status::with_error_details(Code::InvalidArgument, format!("{field}: {fault}"), details)
}

/// A state the request needs and does not find.
pub(crate) fn precondition(reason: &str, subject: &str, message: impl Display) -> Status {
    let message = message.to_string();
    let mut details = ErrorDetails::with_precondition_failure_violation(reason, subject, message.clone());
    details.set_error_info(reason, DOMAIN, HashMap::new());
    Status::with_error_details(Code::FailedPrecondition, message, details)
}

/// The stable reason of a refusal; for one that has none, such as the transport's own, the name of its code.
pub(crate) fn reason(status: &Status) -> String {
    let info = status.get_details_error_info();
    info.map_or_else(|| format!("{:?}", status.code()), |info| info.reason)
}

/// Our own fault; the log has the whole story.
pub(crate) fn internal(error: &dyn Display) -> Status {
    tracing::error!(%error, "a request failed");
    refusal(Code::Internal, "INTERNAL", error)
}

/// The process is draining.
pub(crate) fn draining() -> Status {
    retry_later("DRAINING", "the coordinator is shutting down")
}

fn retry_later(reason: &str, message: impl Display) -> Status {
    retry_after(Code::Unavailable, reason, message, RETRY)
}

fn retry_after(code: Code, reason: &str, message: impl Display, after: Duration) -> Status {
    let mut details = ErrorDetails::with_retry_info(Some(after));
    details.set_error_info(reason, DOMAIN, HashMap::new());
    Status::with_error_details(code, message.to_string(), details)
}

impl From<NoRoom> for Status {
    fn from(error: NoRoom) -> Status {
        retry_after(Code::ResourceExhausted, "NO_ROOM", error, RETRY_ROOM)
    }
}

impl From<Unavailable> for Status {
    fn from(error: Unavailable) -> Status {
        retry_later("NOT_STORED", error)
    }
}

impl From<ActorRefused> for Status {
    fn from(error: ActorRefused) -> Status {
        match &error {
            ActorRefused::Unknown(actor) => precondition("NOT_REGISTERED", actor, &error),
            ActorRefused::Suspended { .. } => refusal(Code::PermissionDenied, "SUSPENDED", &error),
            ActorRefused::TooMany { .. } => refusal(Code::ResourceExhausted, "TOO_MANY_ACTORS", &error),
        }
    }
}

impl From<OtherToken> for Status {
    fn from(error: OtherToken) -> Status {
        refusal(Code::PermissionDenied, "OTHER_TOKEN", error)
    }
}

impl From<Fenced> for Status {
    fn from(error: Fenced) -> Status {
        precondition("FENCED", "learner", error)
    }
}

impl From<PublishRefused> for Status {
    fn from(error: PublishRefused) -> Status {
        match error {
            PublishRefused::Fenced(fenced) => fenced.into(),
            PublishRefused::Ended => precondition("RUN_ENDED", "run", error),
            PublishRefused::Iteration {
                iteration, published, ..
            } if iteration <= published => refusal(Code::AlreadyExists, "ITERATION_PUBLISHED", error),
            PublishRefused::Iteration { .. } => precondition("ITERATION_NOT_WANTED", "model.iteration", error),
            PublishRefused::Parent(_) => bad_field("model.parent_id", error),
        }
    }
}
