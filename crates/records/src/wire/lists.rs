//! The lists of a search block from the wire: columns, or in records of schema version 1 a message an entry.
//!
//! A list of the other version's form, columns of unequal length and numbers that are no action of any game are refused.
//! Whether a list is in order and what it says is true is [`crate::check`]'s business.

use tengen_games::Action;
use tengen_proto::v1;

use super::from_wire::{Parsed, action, parsed};
use super::{SCHEMA_VERSION, SCHEMA_VERSION_MIN};
use crate::rejection::{ReasonCode, Rejection};

/// How the lists of a record are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A message an entry.
    Messages,
    /// Two columns a list.
    Columns,
}

impl Form {
    /// The form that lists have in records of this schema version.
    pub(super) fn of_version(version: u32) -> Parsed<Form> {
        match version {
            SCHEMA_VERSION_MIN => Ok(Form::Messages),
            SCHEMA_VERSION => Ok(Form::Columns),
            _ => Err(Rejection::new(
                ReasonCode::SchemaVersion,
                format!("schema version {version}, this build reads {SCHEMA_VERSION_MIN} to {SCHEMA_VERSION}"),
            )),
        }
    }

    /// Refuses a block of ply `n` that fills fields of the other form.
    fn refuse_other(self, n: usize, wire: &v1::SearchBlock) -> Parsed<()> {
        let messages = [
            ("policy_target", wire.policy_target.len()),
            ("visits", wire.visits.len()),
            ("net_policy_top", wire.net_policy_top.len()),
        ];
        let columns = [
            ("policy_target_actions", wire.policy_target_actions.len()),
            ("policy_target_probabilities", wire.policy_target_probabilities.len()),
            ("visit_actions", wire.visit_actions.len()),
            ("visit_counts", wire.visit_counts.len()),
            ("net_policy_top_actions", wire.net_policy_top_actions.len()),
            ("net_policy_top_probabilities", wire.net_policy_top_probabilities.len()),
        ];
        let other = match self {
            Form::Messages => &columns[..],
            Form::Columns => &messages[..],
        };
        match other.iter().find(|(_, len)| *len > 0) {
            None => Ok(()),
            Some((field, len)) => Err(Rejection::new(
                ReasonCode::Decode,
                format!("ply {n}: {field} has {len} entries, and is of another schema version than the record"),
            )),
        }
    }
}

/// The lists of a search block.
#[derive(Debug)]
pub(super) struct Lists {
    pub(super) policy_target: Vec<(Action, f32)>,
    pub(super) visits: Vec<(Action, u32)>,
    pub(super) net_policy_top: Vec<(Action, f32)>,
}

impl Lists {
    /// Those of ply `n`.
    pub(super) fn read(n: usize, form: Form, wire: &v1::SearchBlock) -> Parsed<Lists> {
        form.refuse_other(n, wire)?;
        let place = |name, code| Place { n, name, code };
        let policy_target = place("policy_target", ReasonCode::PolicyIllegal);
        let visits = place("visits", ReasonCode::Visits);
        let net_policy_top = place("net_policy_top", ReasonCode::NetPolicy);
        match form {
            Form::Messages => {
                let probability = |entry: &v1::ActionProbability| (entry.action, entry.probability);
                let count = |entry: &v1::ActionVisits| (entry.action, entry.visits);
                Ok(Lists {
                    policy_target: policy_target.entries(wire.policy_target.iter().map(probability))?,
                    visits: visits.entries(wire.visits.iter().map(count))?,
                    net_policy_top: net_policy_top.entries(wire.net_policy_top.iter().map(probability))?,
                })
            }
            Form::Columns => Ok(Lists {
                policy_target: policy_target.columns(&wire.policy_target_actions, &wire.policy_target_probabilities)?,
                visits: visits.columns(&wire.visit_actions, &wire.visit_counts)?,
                net_policy_top: net_policy_top
                    .columns(&wire.net_policy_top_actions, &wire.net_policy_top_probabilities)?,
            }),
        }
    }
}

/// Where a list stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Number of its ply.
    n: usize,
    name: &'static str,
    /// What an entry that names no action is refused with.
    code: ReasonCode,
}

impl Place {
    fn columns<T: Copy>(self, actions: &[u32], values: &[T]) -> Parsed<Vec<(Action, T)>> {
        if actions.len() != values.len() {
            let Place { n, name, .. } = self;
            let detail = format!(
                "ply {n}: {name} has {} actions and {} values",
                actions.len(),
                values.len()
            );
            return Err(Rejection::new(ReasonCode::Decode, detail));
        }
        self.entries(actions.iter().copied().zip(values.iter().copied()))
    }

    fn entries<T>(self, entries: impl ExactSizeIterator<Item = (u32, T)>) -> Parsed<Vec<(Action, T)>> {
        let name = || format!("ply {}: {}", self.n, self.name);
        parsed(entries, |(number, value)| Ok((action(number, self.code, name)?, value)))
    }
}
