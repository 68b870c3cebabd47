//! Settings that change while the run goes on: one revision with its row in the audit, and everything that goes by it.

use std::sync::Arc;

use rusqlite::Connection;
use tengen_control::RulesError;

use super::owner::{Now, Outbox};
use super::state::State;
use crate::facts::RunFacts;
use crate::settings::{Assignment, Change, SettingsFault, assign, changes};
use crate::store::settings::SettingsRow;
use crate::store::trail::{self, Entry};
use crate::store::{StoreError, settings};

/// What is to be changed.
#[derive(Clone, Debug)]
pub(crate) struct SettingsWish {
    pub(crate) assignments: Vec<Assignment>,
    /// The revision it is based on; 0 takes any.
    pub(crate) expected_revision: u32,
    pub(crate) mode: Mode,
    pub(crate) reason: String,
}

/// Whether it is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Check and compare only.
    Compare,
    Apply,
}

/// What was changed, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Applied {
    pub(crate) revision: u32,
    pub(crate) changes: Vec<Change>,
}

/// A change that was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsRefused {
    #[error(transparent)]
    Fault(#[from] SettingsFault),
    #[error("the settings with this change cannot be followed: {0}")]
    Rules(#[from] RulesError),
    #[error(
        "the change is stale: it expects revision {expected} of the settings, and now it is {found}; look again \
         (`tengen settings show`) and repeat it"
    )]
    Stale { expected: u32, found: u32 },
    #[error("the run has ended: its settings do not change any more")]
    Ended,
}

impl State {
    /// Changes settings, all of them or none.
    pub(super) fn change_settings(
        &mut self,
        connection: &Connection,
        wish: &SettingsWish,
        by: &str,
        now: Now,
        out: &mut Outbox,
    ) -> Result<Result<Applied, SettingsRefused>, StoreError> {
        let config = match self.checked(wish) {
            Ok(config) => config,
            Err(refused) => return Ok(Err(refused)),
        };
        let facts = RunFacts {
            toml: config.to_toml(),
            config,
            settings_revision: self.facts.settings_revision + 1,
            ..self.facts.as_ref().clone()
        };
        let rules = match facts.control_rules(self.lease_rules) {
            Ok(rules) => rules,
            Err(error) => return Ok(Err(error.into())),
        };
        let changes = changes(&self.facts.toml, &facts.toml);
        if changes.is_empty() || wish.mode == Mode::Compare {
            let revision = self.facts.settings_revision;
            return Ok(Ok(Applied { revision, changes }));
        }
        // What the state machine refuses must not be stored either.
        let effects = match self.control.follow(rules) {
            Ok(effects) => effects,
            Err(error) => return Ok(Err(error.into())),
        };
        let revision = facts.settings_revision;
        store(connection, &facts, &changes, (by, &wish.reason), now)?;
        self.resize_window(facts.config.replay.capacity_positions, out);
        self.facts = Arc::new(facts);
        out.facts = Some(Arc::clone(&self.facts));
        self.carry_out(connection, effects, now, out)?;
        Ok(Ok(Applied { revision, changes }))
    }

    fn checked(&self, wish: &SettingsWish) -> Result<tengen_service::run_config::RunConfig, SettingsRefused> {
        if self.control.steering().ended {
            return Err(SettingsRefused::Ended);
        }
        let found = self.facts.settings_revision;
        if wish.expected_revision != 0 && wish.expected_revision != found {
            return Err(SettingsRefused::Stale {
                expected: wish.expected_revision,
                found,
            });
        }
        Ok(assign(&self.facts.config, &wish.assignments)?)
    }

    /// A window of another size is built anew from the stored games, under the next epoch.
    fn resize_window(&mut self, capacity: u64, out: &mut Outbox) {
        if self.progress().window_capacity != capacity {
            self.progress_mut().window_capacity = capacity;
            self.progress_mut().window_epoch += 1;
            out.window_anew = true;
        }
    }
}

/// The revision, its keys as live ones, and the row in the audit.
fn store(
    connection: &Connection,
    facts: &RunFacts,
    changes: &[Change],
    (by, reason): (&str, &str),
    now: Now,
) -> Result<(), StoreError> {
    let revision = facts.settings_revision;
    let row = SettingsRow {
        revision,
        toml: facts.toml.clone(),
        created_ms: now.unix_ms,
        who: by.to_owned(),
    };
    settings::insert(connection, &row)?;
    for change in changes {
        settings::set_live(connection, &change.key, revision)?;
    }
    let side = |value: fn(&Change) -> &str| {
        let keys = changes
            .iter()
            .map(|change| format!("{} = {}", change.key, value(change)));
        keys.collect::<Vec<_>>().join("; ")
    };
    let detail = if reason.is_empty() {
        format!("revision {revision}")
    } else {
        format!("revision {revision}: {reason}")
    };
    let entry = Entry {
        who: by,
        action: "change-settings",
        detail: &detail,
        old: &side(|change| &change.old),
        new: &side(|change| &change.new),
    };
    trail::append(connection, &entry, now.unix_ms)?;
    tracing::info!(revision, by, changes = entry.new, "settings changed");
    Ok(())
}
