//! How often the status is put together: with every transaction while few actors are known, and now and then once there are
//! many.
//!
//! It names every actor, about a microsecond each. A thousand actors report five hundred times a second; if every report and
//! every game brought a new status, showing the run would cost more than the run.

use crate::run::request::Request;

/// Up to so many known actors the status follows every transaction.
const ACTORS_AT_ONCE_MAX: usize = 100;
/// With more, it is at most so old while requests of actors come, milliseconds. The process lets time pass twice a second, so
/// the last of them is told, too.
const AGE_MAX_MS: u64 = 250;

/// What a transaction holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) enum Batch {
    /// Only what actors send again and again, and time that passes.
    Routine,
    /// Something else, too: whoever asked for it looks at the status next.
    Special,
}

impl Batch {
    /// Of these requests.
    pub(in crate::run) fn of(requests: &[Request]) -> Batch {
        if requests.iter().all(Request::is_routine) {
            Batch::Routine
        } else {
            Batch::Special
        }
    }
}

/// When the status was shown last.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::run) struct Pace {
    shown_ms: u64,
}

impl Pace {
    /// Whether the status is due after this transaction, while so many actors are known; it is taken as shown then.
    pub(in crate::run) fn is_due(&mut self, batch: Batch, actors: usize, now_ms: u64) -> bool {
        let is_due = batch == Batch::Special
            || actors <= ACTORS_AT_ONCE_MAX
            || now_ms.saturating_sub(self.shown_ms) >= AGE_MAX_MS;
        if is_due {
            self.shown_ms = now_ms;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_actors_see_every_transaction() {
        let mut pace = Pace::default();
        assert!((0..10).all(|ms| pace.is_due(Batch::Routine, ACTORS_AT_ONCE_MAX, ms)));
    }

    #[test]
    fn with_many_actors_their_requests_are_told_four_times_a_second_and_all_else_at_once() {
        let mut pace = Pace::default();
        let shown = (0..10_000).filter(|ms| pace.is_due(Batch::Routine, 1_000, *ms)).count();
        assert_eq!(shown, 39);
        assert!(pace.is_due(Batch::Special, 1_000, 10_001));
        assert!(!pace.is_due(Batch::Routine, 1_000, 10_250));
        assert!(pace.is_due(Batch::Routine, 1_000, 10_251));
    }

    #[test]
    fn an_administrators_order_makes_a_transaction_special() {
        assert_eq!(Batch::of(&[Request::Tick, Request::Tick]), Batch::Routine);
        assert_eq!(Batch::of(&[Request::Tick, Request::Drain]), Batch::Special);
    }
}
