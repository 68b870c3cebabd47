//! Why nothing moves, or what slows the run down: causes found by pure functions over what is known, each with its
//! evidence and what helps.
//!
//! **Nothing here reads anything**: the snapshot is put together by whoever asks, so every cause can be found in a test and
//! none of them depends on when it is looked for.

mod actors;
mod cause;
mod learner;
mod run;

use tengen_proto::v1;

use crate::access::Refused;
use crate::store::actors::ActorRow;
use crate::store::tokens::TokenRow;

pub(crate) use cause::Cause;

/// What is known when somebody asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// The status.
    pub(crate) status: v1::RunStatus,
    /// Refused calls by reason.
    pub(crate) refused: Vec<(String, Refused)>,
    /// Every actor that ever registered.
    pub(crate) actors: Vec<ActorRow>,
    /// Every token.
    pub(crate) tokens: Vec<TokenRow>,
    /// Whether the run is only read.
    pub(crate) is_at_rest: bool,
    /// The time, milliseconds since the Unix epoch.
    pub(crate) now_ms: i64,
}

impl Snapshot {
    /// Whether people hold this.
    fn is_paused(&self, activity: v1::Activity) -> bool {
        let steering = self.status.steering.as_ref();
        steering.is_some_and(|steering| steering.paused().any(|paused| paused == activity))
    }
}

/// Everything that is wrong, the worst first.
pub(crate) fn diagnose(snapshot: &Snapshot) -> Vec<Cause> {
    let ended_ms = snapshot
        .status
        .steering
        .as_ref()
        .map_or(0, |steering| steering.ended_unix_ms);
    if ended_ms > 0 {
        return vec![Cause::Ended { ended_ms }];
    }
    if snapshot.is_at_rest {
        return vec![Cause::AtRest];
    }
    let mut causes = Vec::new();
    run::find(snapshot, &mut causes);
    actors::find(snapshot, &mut causes);
    learner::find(snapshot, &mut causes);
    causes.sort_by_key(Cause::severity);
    causes
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn names(causes: &[Cause]) -> Vec<&'static str> {
        causes.iter().map(Cause::name).collect()
    }

    #[test]
    fn the_worst_comes_first() {
        let snapshot = Snapshot {
            status: v1::RunStatus {
                window_min_positions: 10,
                damaged_games: 1,
                learner: Some(v1::LearnerStatus {
                    alive: true,
                    ..v1::LearnerStatus::default()
                }),
                ..v1::RunStatus::default()
            },
            ..Snapshot::default()
        };
        assert_eq!(
            names(&diagnose(&snapshot)),
            ["no-actor", "damaged-games", "window-below-minimum"]
        );
        let at_rest = Snapshot {
            is_at_rest: true,
            ..snapshot
        };
        assert_eq!(diagnose(&at_rest), [Cause::AtRest]);
    }

    #[test]
    fn a_disk_that_is_full_within_a_day_is_low() {
        let disk = |hours_left| v1::DiskStatus {
            hours_left: Some(hours_left),
            bytes_per_hour: Some(1e6),
            ..v1::DiskStatus::default()
        };
        let low = |hours_left| {
            let status = v1::RunStatus {
                disk: Some(disk(hours_left)),
                ..v1::RunStatus::default()
            };
            let snapshot = Snapshot {
                status,
                ..Snapshot::default()
            };
            names(&diagnose(&snapshot)).contains(&"disk-low")
        };
        assert!(low(23.0) && !low(25.0));
    }

    #[test]
    fn refusals_of_long_ago_are_past() {
        let refused = |last_unix_ms| {
            let calls = Refused {
                count: 1,
                last_unix_ms,
                message: "no".to_owned(),
            };
            let snapshot = Snapshot {
                refused: vec![("TOKEN_EXPIRED".to_owned(), calls)],
                now_ms: 10_000_000,
                ..Snapshot::default()
            };
            names(&diagnose(&snapshot)).contains(&"token-refused")
        };
        assert!(refused(9_900_000) && !refused(9_000_000));
    }

    #[test]
    fn every_cause_has_a_name_of_its_own_that_the_docs_explain() {
        let source = include_str!("diagnose/cause.rs");
        let arms = source.split("=> \"").skip(1).filter_map(|rest| rest.split_once("\","));
        let is_name = |text: &&str| text.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
        let names: Vec<&str> = arms.map(|(name, _)| name).filter(is_name).collect();
        let different: BTreeSet<&str> = names.iter().copied().collect();
        assert!(names.len() > 20 && different.len() == names.len(), "{names:?}");
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/watching.md");
        let page = std::fs::read_to_string(page).expect("the page is there");
        let missing: Vec<&str> = names
            .into_iter()
            .filter(|name| !page.contains(&format!("`{name}`")))
            .collect();
        assert!(missing.is_empty(), "docs/watching.md does not explain {missing:?}");
    }
}
