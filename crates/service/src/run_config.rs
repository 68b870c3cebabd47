//! A run's configuration: the file in `runs/`, checked and typed.
//!
//! `[run]` and `[network]` are fixed once a run exists; every other section may change between starts. The file is read
//! through the `config` crate, so `TENGEN_LEARNER__BATCH=128` in the environment overrides `[learner] batch`.

mod actor;
mod export;
mod gate;
mod ratings;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::process_config::run_variables;

pub use actor::{ActorSection, THREADS_PER_DEVICE, WantedPrecision};
pub use export::{ExportSection, ReducedPrecision};
pub use gate::{ExhaustedOpenings, GateKind, GateSection, PoolSection, QueuePolicy, SprtSection, SprtUnit};
pub use ratings::RatingsSection;

/// The configuration cannot be used. Lists every fault found, not only the first.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read or does not have the right keys.
    #[error("failed to read the configuration {origin}: {reason}")]
    Read {
        /// File or other origin.
        origin: String,
        /// What is wrong.
        reason: String,
    },
    /// Values make no sense.
    #[error("the configuration {origin} has faults:\n  {}", faults.join("\n  "))]
    Faults {
        /// File or other origin.
        origin: String,
        /// One sentence each, with key and value.
        faults: Vec<String>,
    },
}

/// Everything a run is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// What the run is; fixed once it exists.
    pub run: RunSection,
    /// Shape of the network; fixed once the run exists.
    pub network: tengen_network::Config,
    /// Constants of the search. `simulations` comes from the schedule and from `[gate]`.
    #[serde(default)]
    pub search: tengen_search::Settings,
    /// The schedule, ascending by `from_iteration`, beginning at 0.
    pub schedule: Vec<ScheduleRow>,
    /// How self-play games begin.
    #[serde(default)]
    pub selfplay: SelfPlaySection,
    /// What a candidate must pass.
    #[serde(default)]
    pub gate: GateSection,
    /// Matches that tell how strong the run's players are.
    #[serde(default)]
    pub ratings: RatingsSection,
    /// The window.
    #[serde(default)]
    pub replay: ReplaySection,
    /// How the network is trained.
    #[serde(default)]
    pub learner: LearnerSection,
    /// The precisions that networks are published in.
    #[serde(default)]
    pub export: ExportSection,
    /// How an actor plays.
    #[serde(default)]
    pub actor: ActorSection,
    /// How `tengen up` divides this machine.
    #[serde(default)]
    pub cpu: CpuSection,
}

/// `[run]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSection {
    /// Name of the run: letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// The game with its parameters, for example `caro5?size=9`.
    pub game: String,
    /// Seed from which every other seed of the run derives.
    #[serde(default = "one")]
    pub seed: u64,
}

fn one() -> u64 {
    1
}

/// `[[schedule]]`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleRow {
    /// First iteration the row is for.
    pub from_iteration: u32,
    /// New self-play games that end an iteration.
    pub games: u32,
    /// Root visits of each search in self-play.
    pub simulations: u32,
}

/// `[selfplay]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SelfPlaySection {
    /// Each game begins with 0 to this many uniformly random plies (`randmoves`); they are not trained on.
    pub random_plies_max: u32,
}

/// `[replay]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReplaySection {
    /// The window holds the newest so many positions.
    pub capacity_positions: u64,
}

impl Default for ReplaySection {
    fn default() -> Self {
        ReplaySection {
            capacity_positions: 500_000,
        }
    }
}

/// `[learner]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LearnerSection {
    /// Positions in one step.
    pub batch: u32,
    /// Learning rate of SGD.
    pub learning_rate: f64,
    /// Momentum of SGD.
    pub momentum: f64,
    /// L2 penalty on the weights of convolutions and linear layers. 1e-4 is AlphaZero's.
    pub weight_decay: f64,
    /// Weight of the value loss beside the policy loss.
    pub value_loss_weight: f64,
    /// Share of an average of the weights that a step leaves; the average is published then. 0 publishes the weights as they
    /// are.
    pub ema_decay: f64,
    /// How often each position may be trained on, on average.
    pub samples_per_position: f64,
    /// Self-play waits while the learner is this many steps behind what `samples_per_position` allows, so that a slow
    /// learner is not outrun; 0 never waits.
    pub steps_behind_max: u64,
    /// No step before the window holds this many positions.
    pub window_min_positions: u64,
    /// Steps between checkpoints.
    pub checkpoint_every_steps: u64,
    /// Share of the games kept out of training.
    pub validation_share: f64,
    /// `auto`, `cpu` or `cuda:N`.
    pub device: String,
}

impl Default for LearnerSection {
    fn default() -> Self {
        LearnerSection {
            batch: 256,
            learning_rate: 0.02,
            momentum: 0.9,
            weight_decay: 1e-4,
            value_loss_weight: 1.0,
            // None suits every run: it depends on the steps of an iteration (docs/networks.md).
            ema_decay: 0.0,
            samples_per_position: 4.0,
            steps_behind_max: 2_000,
            window_min_positions: 2_000,
            checkpoint_every_steps: 500,
            validation_share: 0.0,
            device: "auto".to_owned(),
        }
    }
}

/// `[cpu]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CpuSection {
    /// Threads of the learner's tensor library; 0 means a quarter of the cores, at least one.
    pub learner_threads: u32,
    /// Threads of self-play over all local actors; 0 means the cores that the learner leaves, at least one.
    pub actor_threads: u32,
}

impl CpuSection {
    /// Threads for the learner and for all actors together on a machine of `cores`.
    pub fn divide(&self, cores: u32) -> (u32, u32) {
        let learner = if self.learner_threads == 0 {
            (cores / 4).max(1)
        } else {
            self.learner_threads
        };
        let actors = if self.actor_threads == 0 {
            cores.saturating_sub(learner).max(1)
        } else {
            self.actor_threads
        };
        (learner, actors)
    }
}

impl RunConfig {
    /// Reads and checks a run file, with overrides from the environment.
    pub fn load(path: &Path) -> Result<RunConfig, ConfigError> {
        let origin = path.display().to_string();
        let source = config::File::from(path).format(config::FileFormat::Toml).required(true);
        let environment = config::Environment::with_prefix("TENGEN")
            .prefix_separator("_")
            .separator("__")
            .try_parsing(true)
            .source(Some(run_variables()));
        RunConfig::read(
            &origin,
            config::Config::builder().add_source(source).add_source(environment),
        )
    }

    /// Reads and checks a configuration from TOML text.
    pub fn from_toml(text: &str) -> Result<RunConfig, ConfigError> {
        let source = config::File::from_str(text, config::FileFormat::Toml);
        RunConfig::read("text", config::Config::builder().add_source(source))
    }

    fn read(
        origin: &str,
        builder: config::ConfigBuilder<config::builder::DefaultState>,
    ) -> Result<RunConfig, ConfigError> {
        let unreadable = |error: config::ConfigError| ConfigError::Read {
            origin: origin.to_owned(),
            reason: error.to_string(),
        };
        let values = builder.build().map_err(unreadable)?;
        let has_simulations = values.get::<config::Value>("search.simulations").is_ok();
        let config: RunConfig = values.try_deserialize().map_err(unreadable)?;
        let mut faults = config.faults();
        if has_simulations {
            faults.push("search.simulations: set it in [[schedule]] and [gate]".to_owned());
        }
        if faults.is_empty() {
            Ok(config)
        } else {
            Err(ConfigError::Faults {
                origin: origin.to_owned(),
                faults,
            })
        }
    }

    /// The whole configuration as TOML that [`RunConfig::from_toml`] reads back.
    pub fn to_toml(&self) -> String {
        let mut table = toml::Table::try_from(self).expect("a run configuration is tables of plain values");
        if let Some(toml::Value::Table(search)) = table.get_mut("search") {
            search.remove("simulations");
        }
        table.to_string()
    }

    /// The schedule's row for `iteration`.
    pub fn row(&self, iteration: u32) -> ScheduleRow {
        let row = self.schedule.iter().rev().find(|row| row.from_iteration <= iteration);
        *row.expect("a checked schedule begins at iteration 0")
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut need = |holds: bool, fault: String| {
            if !holds {
                faults.push(fault);
            }
        };
        let name = &self.run.name;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        need(
            !name.is_empty() && name.len() <= 64 && name.chars().all(plain) && !name.starts_with('.'),
            format!("run.name = {name:?}: must be 1 to 64 letters, digits, `-`, `_` or `.`"),
        );
        need(
            self.schedule.first().is_some_and(|row| row.from_iteration == 0),
            match self.schedule.first() {
                None => "schedule: there is no row; the first must have from_iteration = 0".to_owned(),
                Some(row) => format!(
                    "schedule.from_iteration = {}: the first row must have 0",
                    row.from_iteration
                ),
            },
        );
        need(
            self.schedule
                .windows(2)
                .all(|rows| rows[0].from_iteration < rows[1].from_iteration),
            "schedule: from_iteration must ascend".to_owned(),
        );
        for row in &self.schedule {
            need(
                row.games >= 1,
                format!(
                    "schedule.games = {} from iteration {}: must be at least 1",
                    row.games, row.from_iteration
                ),
            );
            need(
                (2..=100_000).contains(&row.simulations),
                format!(
                    "schedule.simulations = {} from iteration {}: must be 2 to 100000",
                    row.simulations, row.from_iteration
                ),
            );
        }
        need(
            self.replay.capacity_positions >= 1,
            format!(
                "replay.capacity_positions = {}: must be at least 1",
                self.replay.capacity_positions
            ),
        );
        faults.extend(self.actor.faults());
        faults.extend(self.gate.faults());
        faults.extend(self.ratings.faults());
        faults.extend(self.learner.faults());
        faults.extend(self.export.faults());
        if let Err(error) = self.search.validate() {
            faults.extend(error.faults.into_iter().map(|fault| format!("search.{fault}")));
        }
        faults
    }
}

/// One check of a key: whether its value will do, the key, the value as text, and what is allowed.
type Check = (bool, &'static str, String, &'static str);

/// One sentence for each check that does not hold.
fn faults_of(section: &str, checks: impl IntoIterator<Item = Check>) -> Vec<String> {
    let bad = checks.into_iter().filter(|(holds, ..)| !holds);
    bad.map(|(_, key, value, rule)| format!("{section}.{key} = {value}: {rule}"))
        .collect()
}

impl ActorSection {
    fn faults(&self) -> Vec<String> {
        let checks = [
            (
                self.games <= 65_536,
                "games",
                self.games.to_string(),
                "must be at most 65536",
            ),
            (
                self.batch_max <= 4_096,
                "batch_max",
                self.batch_max.to_string(),
                "must be at most 4096",
            ),
            (
                (1..=64).contains(&self.threads_per_device),
                "threads_per_device",
                self.threads_per_device.to_string(),
                "must be 1 to 64",
            ),
            (
                self.cache_mib.is_none_or(|mib| mib <= 1_048_576),
                "cache_mib",
                self.cache_mib.unwrap_or_default().to_string(),
                "must be at most 1048576",
            ),
        ];
        faults_of("actor", checks)
    }
}

impl LearnerSection {
    fn faults(&self) -> Vec<String> {
        let unit = |value: f64| (0.0..1.0).contains(&value);
        let checks = [
            (
                (1..=65_536).contains(&self.batch),
                "batch",
                self.batch.to_string(),
                "must be 1 to 65536",
            ),
            (
                self.learning_rate > 0.0 && self.learning_rate <= 10.0,
                "learning_rate",
                self.learning_rate.to_string(),
                "must be in (0, 10]",
            ),
            (
                unit(self.momentum),
                "momentum",
                self.momentum.to_string(),
                "must be in [0, 1)",
            ),
            (
                unit(self.weight_decay),
                "weight_decay",
                self.weight_decay.to_string(),
                "must be in [0, 1)",
            ),
            (
                (0.0..=100.0).contains(&self.value_loss_weight),
                "value_loss_weight",
                self.value_loss_weight.to_string(),
                "must be in [0, 100]",
            ),
            (
                unit(self.ema_decay),
                "ema_decay",
                self.ema_decay.to_string(),
                "must be in [0, 1)",
            ),
            (
                self.samples_per_position > 0.0 && self.samples_per_position <= 1000.0,
                "samples_per_position",
                self.samples_per_position.to_string(),
                "must be in (0, 1000]",
            ),
            (
                self.checkpoint_every_steps >= 1,
                "checkpoint_every_steps",
                self.checkpoint_every_steps.to_string(),
                "must be at least 1",
            ),
            (
                (0.0..0.9).contains(&self.validation_share),
                "validation_share",
                self.validation_share.to_string(),
                "must be in [0, 0.9)",
            ),
        ];
        faults_of("learner", checks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
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
        [[schedule]]
        from_iteration = 3
        games = 20
        simulations = 32
    "#;

    #[test]
    fn defaults_fill_what_a_file_leaves_out_and_text_round_trips() {
        let config = RunConfig::from_toml(SMALL).unwrap();
        assert_eq!(config.run.seed, 1);
        assert_eq!(config.replay.capacity_positions, 500_000);
        assert_eq!(RunConfig::from_toml(&config.to_toml()).unwrap(), config);
    }

    #[test]
    fn the_schedule_row_is_the_last_that_has_begun() {
        let config = RunConfig::from_toml(SMALL).unwrap();
        assert_eq!(
            [0, 2, 3, 99].map(|iteration| config.row(iteration).games),
            [10, 10, 20, 20]
        );
    }

    #[test]
    fn unknown_keys_are_refused_by_name() {
        let error = RunConfig::from_toml(&format!("{SMALL}\n[gate]\nthreshhold = 0.6")).unwrap_err();
        assert!(error.to_string().contains("threshhold"), "{error}");
    }

    #[test]
    fn every_fault_is_listed() {
        let text = format!(
            "{SMALL}\n[gate]\ngames = 3\nthreshold = 1.5\n[search]\nsimulations = 5\n[actor]\nthreads_per_device = 0\n\
             games = 65537\n[learner]\nema_decay = 1.0"
        );
        let error = RunConfig::from_toml(&text).unwrap_err().to_string();
        for fault in [
            "actor.threads_per_device = 0: must be 1 to 64",
            "actor.games = 65537: must be at most 65536",
            "gate.games = 3: must be even, 2 to 100000",
            "gate.threshold = 1.5: must be in (0, 1]",
            "learner.ema_decay = 1: must be in [0, 1)",
            "search.simulations",
        ] {
            assert!(error.contains(fault), "{fault} in {error}");
        }
    }

    #[test]
    fn cores_are_divided_between_learner_and_actors() {
        let auto = CpuSection::default();
        assert_eq!(
            [1, 2, 8, 16].map(|cores| auto.divide(cores)),
            [(1, 1), (1, 1), (2, 6), (4, 12)]
        );
        assert_eq!(
            CpuSection {
                learner_threads: 1,
                actor_threads: 2
            }
            .divide(2),
            (1, 2)
        );
    }
}
