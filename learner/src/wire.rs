//! How the learner reads the coordinator's refusals.

use tonic::{Code, Status};

/// What a failed call means for the next try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The coordinator is away, busy or restarting: the same call may pass later.
    Transient,
    /// The coordinator understood and said no: the same call will not pass later.
    Final,
}

/// Tells a coordinator that is away from one that says no.
pub(crate) fn refusal(status: &Status) -> Refusal {
    match status.code() {
        Code::Unavailable
        | Code::DeadlineExceeded
        | Code::Cancelled
        | Code::Unknown
        | Code::Internal
        | Code::ResourceExhausted
        | Code::DataLoss => Refusal::Transient,
        _ => Refusal::Final,
    }
}

/// The status in a sentence: its message, or its code's description where it has none.
pub(crate) fn reason(status: &Status) -> String {
    if status.message().is_empty() {
        status.code().to_string()
    } else {
        status.message().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coordinator_that_is_away_is_told_from_one_that_says_no() {
        assert_eq!(refusal(&Status::unavailable("connection refused")), Refusal::Transient);
        assert_eq!(refusal(&Status::unknown("transport error")), Refusal::Transient);
        assert_eq!(refusal(&Status::aborted("another learner")), Refusal::Final);
        assert_eq!(refusal(&Status::invalid_argument("no such game")), Refusal::Final);
        assert_eq!(reason(&Status::new(Code::NotFound, "")), Code::NotFound.to_string());
    }
}
