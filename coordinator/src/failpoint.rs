//! Where the process can be made to die, for tests of crashes: at each step of a game's way from the wire into the
//! window. Nothing is armed unless the configuration says so.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// A step of a game's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failpoint {
    /// Its bytes have arrived.
    Received,
    /// It has passed every check.
    Checked,
    /// It is committed, and nobody knows.
    Committed,
    /// It is in the window.
    Windowed,
    /// Its verdict is on the wire.
    Acknowledged,
}

impl Failpoint {
    const ALL: [Failpoint; 5] = [
        Failpoint::Received,
        Failpoint::Checked,
        Failpoint::Committed,
        Failpoint::Windowed,
        Failpoint::Acknowledged,
    ];

    const fn name(self) -> &'static str {
        match self {
            Failpoint::Received => "received",
            Failpoint::Checked => "checked",
            Failpoint::Committed => "committed",
            Failpoint::Windowed => "windowed",
            Failpoint::Acknowledged => "acknowledged",
        }
    }
}

/// Die at the `passing`-th passing of a step, as `committed:3` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DieAt {
    point: Failpoint,
    passing: u64,
}

impl FromStr for DieAt {
    type Err = String;

    fn from_str(text: &str) -> Result<DieAt, String> {
        let parsed = text.split_once(':').and_then(|(name, passing)| {
            let point = Failpoint::ALL.into_iter().find(|point| point.name() == name)?;
            let passing = passing.parse().ok().filter(|&passing| passing >= 1)?;
            Some(DieAt { point, passing })
        });
        parsed.ok_or_else(|| {
            let names = Failpoint::ALL.map(Failpoint::name).join(", ");
            format!("{text:?} is not STEP:N with N at least 1 and one of the steps {names}")
        })
    }
}

impl TryFrom<String> for DieAt {
    type Error = String;

    fn try_from(text: String) -> Result<DieAt, String> {
        text.parse()
    }
}

impl From<DieAt> for String {
    fn from(die_at: DieAt) -> String {
        format!("{}:{}", die_at.point.name(), die_at.passing)
    }
}

/// Counts passings; clones share the count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failpoints(Option<(DieAt, Arc<AtomicU64>)>);

impl Failpoints {
    pub(crate) fn new(die_at: Option<DieAt>) -> Failpoints {
        if let Some(die_at) = die_at {
            tracing::warn!(
                at = String::from(die_at),
                "this process is going to die, as it was told"
            );
        }
        Failpoints(die_at.map(|die_at| (die_at, Arc::default())))
    }

    /// Dies here if that was asked for: at once, without a destructor, as kill -9 would.
    pub(crate) fn pass(&self, point: Failpoint) {
        if let Some((die_at, passed)) = &self.0
            && die_at.point == point
            && passed.fetch_add(1, Ordering::Relaxed) + 1 == die_at.passing
        {
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_read_and_written_alike_and_nonsense_is_refused_with_the_steps() {
        for point in Failpoint::ALL {
            let text = format!("{}:17", point.name());
            assert_eq!(String::from(text.parse::<DieAt>().unwrap()), text);
        }
        for nonsense in ["committed", "committed:0", "commited:1", ""] {
            assert!(nonsense.parse::<DieAt>().unwrap_err().contains("windowed"));
        }
    }
}
