//! Settings by key: how one text differs from another, which keys may change when, and what a start makes of a run file
//! when keys were changed while the run went on.
//!
//! A changed text is checked by [`RunConfig`] itself, so there is one set of rules for files and for changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tengen_service::run_config::{ConfigError, RunConfig};
use toml::{Table, Value};

use crate::run::ratings::parse_baseline;

/// Most assignments of one change.
const ASSIGNMENTS_MAX: usize = 100;
/// Longest key, bytes.
const KEY_LEN_MAX: usize = 100;
/// Longest value, bytes: a long schedule.
const VALUE_LEN_MAX: usize = 10_000;

/// One thing that differs between the run and the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which key or property.
    pub key: String,
    /// What the run has.
    pub old: String,
    /// What the configuration or this build says.
    pub new: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: the run has {}, now it is {}", self.key, self.old, self.new)
    }
}

/// A change of settings that makes no sense, or comes at the wrong time.
#[derive(Debug, thiserror::Error)]
pub enum SettingsFault {
    /// What the run is cannot change.
    #[error("{0} is fixed for a run: start a new run with another data folder (`tengen runs new`)")]
    Fixed(String),
    /// Only a start reads it.
    #[error("{0} is read when processes start: change it in the run file, and start them again")]
    AtStart(String),
    /// There is no such key.
    #[error("there is no key {0}: `tengen settings show` lists those there are")]
    Unknown(String),
    /// Too much at once.
    #[error("{0}")]
    TooLarge(String),
    /// The configuration with the change is none.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The run file cannot be read.
    #[error("the run file is no TOML: {0}")]
    NoToml(String),
    /// A player of rating matches is none.
    #[error("ratings.baselines: {0}")]
    Baseline(String),
    /// Nothing to change.
    #[error("no key is named: give KEY=VALUE")]
    Nothing,
}

/// When a key may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Never,
    AtStart,
    Live,
}

/// `key` is a dotted name or the beginning of one.
fn when(key: &str) -> When {
    let section = key.split('.').next().unwrap_or_default();
    match (section, key) {
        ("run" | "network", _) => When::Never,
        ("actor" | "cpu", _) | (_, "learner.device" | "learner.validation_share") => When::AtStart,
        _ => When::Live,
    }
}

fn may_change(key: &str) -> Result<(), SettingsFault> {
    match when(key) {
        When::Never => Err(SettingsFault::Fixed(key.to_owned())),
        When::AtStart => Err(SettingsFault::AtStart(key.to_owned())),
        When::Live => Ok(()),
    }
}

/// A key and the value it is to have, as people write them.
pub(crate) type Assignment = (String, String);

/// The configuration with these keys changed while the run goes on.
pub(crate) fn assign(config: &RunConfig, assignments: &[Assignment]) -> Result<RunConfig, SettingsFault> {
    if assignments.is_empty() {
        return Err(SettingsFault::Nothing);
    }
    if assignments.len() > ASSIGNMENTS_MAX {
        let text = format!(
            "{} keys at once, at most {ASSIGNMENTS_MAX} are taken",
            assignments.len()
        );
        return Err(SettingsFault::TooLarge(text));
    }
    let before = config.to_toml();
    let mut table = table(&before);
    for (key, value) in assignments {
        if key.len() > KEY_LEN_MAX || value.len() > VALUE_LEN_MAX {
            let text = format!("keys have at most {KEY_LEN_MAX} bytes and values {VALUE_LEN_MAX}");
            return Err(SettingsFault::TooLarge(text));
        }
        may_change(key)?;
        put(&mut table, key, parse(value))?;
    }
    let changed = RunConfig::from_toml(&table.to_string())?;
    for text in &changed.ratings.baselines {
        parse_baseline(text).map_err(SettingsFault::Baseline)?;
    }
    // Also what a whole section brings along.
    for change in changes(&before, &changed.to_toml()) {
        may_change(&change.key)?;
    }
    Ok(changed)
}

/// A value as TOML; what is no TOML is text.
fn parse(value: &str) -> Value {
    let parsed: Option<Table> = toml::from_str(&format!("value = {value}")).ok();
    let single = parsed.filter(|table| table.len() == 1);
    single
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(value.to_owned()))
}

/// Sets a dotted key. Rows of an array are named by their number; the number after the last adds a row.
fn put(table: &mut Table, key: &str, value: Value) -> Result<(), SettingsFault> {
    let unknown = || SettingsFault::Unknown(key.to_owned());
    let (path, last) = key
        .rsplit_once('.')
        .map_or((None, key), |(path, last)| (Some(path), last));
    let Some(path) = path else {
        *table.get_mut(last).ok_or_else(unknown)? = value;
        return Ok(());
    };
    let mut segments = path.split('.');
    let first = segments.next().unwrap_or_default();
    let mut place = table.get_mut(first).ok_or_else(unknown)?;
    for segment in segments {
        place = match place {
            Value::Table(table) => table.get_mut(segment),
            Value::Array(rows) => segment.parse::<usize>().ok().and_then(|row| rows.get_mut(row)),
            _ => None,
        }
        .ok_or_else(unknown)?;
    }
    match place {
        // A key that no section has is refused by name when the text is read again.
        Value::Table(table) => _ = table.insert(last.to_owned(), value),
        Value::Array(rows) => {
            let row: usize = last.parse().map_err(|_| unknown())?;
            let count = rows.len();
            match rows.get_mut(row) {
                Some(old) => *old = value,
                None if row == count => rows.push(value),
                None => return Err(unknown()),
            }
        }
        _ => return Err(unknown()),
    }
    Ok(())
}

/// A run file with these keys instead of its own, whatever they are: for a run that does not exist yet.
pub(crate) fn rewrite(text: &str, assignments: &[Assignment]) -> Result<String, SettingsFault> {
    let mut table: Table = toml::from_str(text).map_err(|error| SettingsFault::NoToml(error.to_string()))?;
    for (key, value) in assignments {
        if let Some((section, _)) = key.split_once('.') {
            // A section that the file leaves out has its defaults; one that nobody knows is refused when it is read.
            let empty = || Value::Table(Table::new());
            table.entry(section).or_insert_with(empty);
        }
        put(&mut table, key, parse(value))?;
    }
    Ok(table.to_string())
}

/// What a start makes of a run file.
#[derive(Debug)]
pub(crate) struct Merged {
    /// The settings in force.
    pub(crate) config: RunConfig,
    /// Where a key that was changed live wins: `old` is the run's, `new` the file's, which is not taken.
    pub(crate) won: Vec<Change>,
    /// Live keys that the file has caught up with.
    pub(crate) settled: Vec<String>,
}

/// The run file with the keys of `live` as the run has them in `stored`.
pub(crate) fn merge(file: &RunConfig, stored: &str, live: &BTreeSet<String>) -> Result<Merged, SettingsFault> {
    let text = file.to_toml();
    let differ = changes(stored, &text);
    let (won, _): (Vec<Change>, Vec<Change>) = differ.into_iter().partition(|change| live.contains(&change.key));
    let settled = live
        .iter()
        .filter(|key| !won.iter().any(|change| change.key == **key))
        .cloned()
        .collect();
    let (mut merged, run) = (table(&text), table(stored));
    for change in &won {
        if let Some(value) = get(&run, &change.key) {
            put(&mut merged, &change.key, value.clone())?;
        }
    }
    let config = RunConfig::from_toml(&merged.to_string())?;
    Ok(Merged { config, won, settled })
}

fn get<'a>(table: &'a Table, key: &str) -> Option<&'a Value> {
    let mut segments = key.split('.');
    let mut place = table.get(segments.next()?)?;
    for segment in segments {
        place = place.get(segment)?;
    }
    Some(place)
}

/// The keys whose values differ between two TOML texts, by dotted name.
pub(crate) fn changes(old: &str, new: &str) -> Vec<Change> {
    let (old, new) = (flatten(old), flatten(new));
    let absent = || "absent".to_owned();
    let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
    keys.sort();
    keys.dedup();
    let differs = |key: &&&String| old.get(**key) != new.get(**key);
    keys.iter()
        .filter(differs)
        .map(|&key| Change {
            key: key.clone(),
            old: old.get(key).cloned().unwrap_or_else(absent),
            new: new.get(key).cloned().unwrap_or_else(absent),
        })
        .collect()
}

fn table(text: &str) -> Table {
    // What the store holds was written by us; a text of another build that is no TOML differs in every key.
    toml::from_str(text).unwrap_or_default()
}

fn flatten(text: &str) -> BTreeMap<String, String> {
    fn walk(prefix: &str, value: &Value, out: &mut BTreeMap<String, String>) {
        match value {
            Value::Table(table) => {
                for (key, value) in table {
                    let name = if prefix.is_empty() {
                        key.clone()
                    } else {
                        format!("{prefix}.{key}")
                    };
                    walk(&name, value, out);
                }
            }
            other => {
                out.insert(prefix.to_owned(), in_words(other));
            }
        }
    }
    let mut out = BTreeMap::new();
    walk("", &Value::Table(table(text)), &mut out);
    out
}

/// A value as people write it: a number that was kept in 32 bits has no more digits than that.
fn in_words(value: &Value) -> String {
    match value {
        Value::Float(number) if f64::from(*number as f32) == *number => {
            Value::Float((*number as f32).to_string().parse().unwrap_or(*number)).to_string()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = r#"
        [run]
        name = "small"
        game = "tic-tac-toe"
        [network]
        blocks = 1
        channels = 16
        [[schedule]]
        from_iteration = 0
        games = 10
        simulations = 16
    "#;

    fn config() -> RunConfig {
        RunConfig::from_toml(RUN).unwrap()
    }

    /// What these assignments change, or why they are refused.
    fn assigned(assignments: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let owned: Vec<Assignment> = assignments
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let changed = assign(&config(), &owned).map_err(|error| error.to_string())?;
        let words = |change: Change| format!("{} {} {}", change.key, change.old, change.new);
        let changes = changes(&config().to_toml(), &changed.to_toml());
        Ok(changes.into_iter().map(words).collect())
    }

    #[test]
    fn changed_keys_are_named_with_old_and_new() {
        let old = "[run]\nname = 'a'\n[network]\nchannels = 32\n[[schedule]]\ngames = 5";
        let new = "[run]\nname = 'a'\n[network]\nchannels = 64\nblocks = 2\n[[schedule]]\ngames = 6";
        let text: Vec<String> = changes(old, new).iter().map(Change::to_string).collect();
        assert_eq!(text[0], "network.blocks: the run has absent, now it is 2");
        assert_eq!(text[1], "network.channels: the run has 32, now it is 64");
        assert!(text[2].starts_with("schedule: "), "{text:?}");
    }

    #[test]
    fn keys_are_assigned_by_their_dotted_names() {
        let changed = assigned(&[("learner.learning_rate", "0.005"), ("gate.threshold", "0.6")]);
        assert_eq!(
            changed.unwrap(),
            ["gate.threshold 0.55 0.6", "learner.learning_rate 0.02 0.005"]
        );
        assert_eq!(
            assigned(&[("gate.kind", "none")]).unwrap(),
            [r#"gate.kind "fixed" "none""#]
        );
        assert_eq!(assigned(&[("learner.samples_per_position", "8")]).unwrap().len(), 1);
        let sections = assigned(&[
            ("ratings.share", "0.25"),
            ("ratings.baselines", "[\"random\"]"),
            ("gate.kind", "sprt"),
            ("gate.sprt.upper", "20"),
            ("gate.pool.champions", "2"),
            ("gate.queue", "wait"),
            ("gate.exhausted_openings", "sample"),
        ]);
        let sections = sections.unwrap();
        for key in [
            "gate.kind",
            "gate.pool.champions",
            "gate.queue",
            "gate.sprt.upper",
            "ratings.share",
        ] {
            assert!(
                sections.iter().any(|change| change.starts_with(key)),
                "{key} in {sections:?}"
            );
        }
        let rows = assigned(&[
            ("schedule.0.simulations", "32"),
            ("schedule.1", "{ from_iteration = 4, games = 20, simulations = 64 }"),
        ]);
        let rows = rows.unwrap().remove(0);
        assert!(
            rows.contains("simulations = 32") && rows.contains("from_iteration = 4"),
            "{rows}"
        );
        assert_eq!(assigned(&[("gate.games", "200")]).unwrap(), [] as [&str; 0]);
    }

    #[test]
    fn what_is_fixed_or_read_at_a_start_is_refused_by_name() {
        let check = |key: &str, value: &str, part: &str| {
            let refused = assigned(&[(key, value)]).unwrap_err();
            assert!(refused.contains(part), "{part:?} in {refused}");
        };
        check("network.channels", "32", "network.channels is fixed");
        check("run.game", "go", "run.game is fixed");
        check("run", "{}", "run is fixed");
        check("actor.games", "9", "actor.games is read when processes start");
        check("learner.device", "cpu", "learner.device is read when");
        check("learner", "{ device = \"cpu\" }", "learner.device is read when");
        check("learner.rate", "1", "rate");
        check("nothing.at.all", "1", "no key nothing.at.all");
        check("schedule.3.games", "1", "no key schedule.3.games");
        check("schedule.5", "{}", "no key schedule.5");
        check("gate.threshold", "1.5", "gate.threshold");
        check("gate.threshold", "much", "threshold");
        check("learner.batch", "1\nx = 2", "batch");
        check("ratings.baselines", "[\"nobody\"]", "ratings.baselines");
        check("gate.sprt.alpha", "0.7", "gate.sprt.alpha");
        check("gate.queue", "push", "queue");
        assert!(assigned(&[]).unwrap_err().contains("KEY=VALUE"));
    }

    #[test]
    fn a_live_key_wins_over_the_file_until_the_file_says_the_same() {
        let mut stored = config();
        (stored.learner.learning_rate, stored.learner.batch) = (0.001, 64);
        let live = ["learner.learning_rate", "learner.batch"].map(str::to_owned).into();
        let mut file = config();
        (file.learner.learning_rate, file.learner.batch, file.gate.games) = (0.01, 64, 20);
        let merged = merge(&file, &stored.to_toml(), &live).unwrap();
        assert_eq!(
            (merged.config.learner.learning_rate, merged.config.gate.games),
            (0.001, 20)
        );
        assert_eq!(merged.settled, ["learner.batch"]);
        let won: Vec<String> = merged.won.iter().map(Change::to_string).collect();
        assert_eq!(won, ["learner.learning_rate: the run has 0.001, now it is 0.01"]);
    }
}
