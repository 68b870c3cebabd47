//! Networks whose reduced precision could not be had or run, and when that is tried again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tengen_records::ModelId;
use tengen_service::backoff::Backoff;

/// First wait, before jitter.
const WAIT_MIN: Duration = Duration::from_secs(10);
/// Longest wait, before jitter.
const WAIT_MAX: Duration = Duration::from_secs(300);
/// Networks that are remembered. Of more, the one that would be tried first is forgotten.
const NETWORKS_MAX: usize = 32;

/// The networks, each with its last failure.
#[derive(Debug, Default)]
pub(super) struct Setbacks(HashMap<ModelId, Setback>);

#[derive(Debug)]
struct Setback {
    why: String,
    again_at: Instant,
    backoff: Backoff,
}

impl Setbacks {
    /// Notes that it failed now, and why. The next try waits, longer with every failure.
    pub(super) fn note(&mut self, id: ModelId, why: String, now: Instant) {
        let mut backoff = match self.0.remove(&id) {
            Some(setback) => setback.backoff,
            None => Backoff::between(WAIT_MIN, WAIT_MAX),
        };
        if self.0.len() == NETWORKS_MAX {
            let first = self.0.iter().min_by_key(|(_, setback)| setback.again_at);
            if let Some(first) = first.map(|(&id, _)| id) {
                self.0.remove(&first);
            }
        }
        let again_at = now + backoff.next_delay();
        let setback = Setback { why, again_at, backoff };
        self.0.insert(id, setback);
    }

    /// Why it is not tried now; `None` if it may be.
    pub(super) fn why_not(&self, id: ModelId, now: Instant) -> Option<&str> {
        let setback = self.0.get(&id)?;
        (now < setback.again_at).then_some(setback.why.as_str())
    }

    /// Whether it failed and is to be tried again.
    pub(super) fn is_due(&self, id: ModelId, now: Instant) -> bool {
        self.0.get(&id).is_some_and(|setback| now >= setback.again_at)
    }

    /// Notes that it needs no further try.
    pub(super) fn settle(&mut self, id: ModelId) {
        self.0.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> ModelId {
        ModelId([number; 32])
    }

    #[test]
    fn tries_come_seconds_apart_at_first_and_minutes_apart_in_the_end() {
        let mut setbacks = Setbacks::default();
        let mut now = Instant::now();
        assert!(!setbacks.is_due(id(1), now) && setbacks.why_not(id(1), now).is_none());
        for after_s in [10, 20, 40, 80, 160, 300, 300] {
            setbacks.note(id(1), format!("try {after_s}"), now);
            let wait = Duration::from_secs(after_s);
            let just_before = now + wait - Duration::from_millis(1);
            let why = format!("try {after_s}");
            assert_eq!(setbacks.why_not(id(1), just_before), Some(why.as_str()));
            assert!(!setbacks.is_due(id(1), just_before));
            // Jitter makes a wait up to twice as long.
            now += 2 * wait;
            assert!(setbacks.is_due(id(1), now) && setbacks.why_not(id(1), now).is_none());
            assert!(!setbacks.is_due(id(2), now), "it never failed");
        }
        setbacks.settle(id(1));
        assert!(!setbacks.is_due(id(1), now));
        setbacks.note(id(1), "anew".to_owned(), now);
        assert!(
            setbacks.is_due(id(1), now + 2 * WAIT_MIN),
            "it waits as after a first failure"
        );
    }

    #[test]
    fn so_many_are_remembered_and_no_more() {
        let mut setbacks = Setbacks::default();
        let now = Instant::now();
        for number in 0..=NETWORKS_MAX as u8 {
            setbacks.note(id(number), "why".to_owned(), now + 3 * u32::from(number) * WAIT_MIN);
        }
        assert_eq!(setbacks.0.len(), NETWORKS_MAX);
        assert!(!setbacks.0.contains_key(&id(0)));
        // One that fails again takes nobody's place.
        setbacks.note(id(1), "why".to_owned(), now);
        assert_eq!(setbacks.0.len(), NETWORKS_MAX);
    }
}
