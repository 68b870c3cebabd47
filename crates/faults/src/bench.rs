//! The rows of `make bench`: one file a bench in `target/bench`, so that a run can be compared with another one.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// Every row that a bench writes, in the order of `docs/benchmarks.md`, which tells what they are.
pub const ROWS: &[&str] = &[
    "selfplay_caro5_4x64_fp32",
    "selfplay_caro5_4x64_int8",
    "selfplay_caro5_10x128_fp32",
    "selfplay_caro5_10x128_int8",
    "selfplay_connect_four_4x32_fp32",
    "selfplay_cache_and_tree_reuse",
    "selfplay_two_processes",
    "search_caro5_15x15",
    "search_connect_four",
    "learner_caro5_4x64",
    "learner_caro5_4x64_samples",
    "window_mirror",
    "window_sampling",
    "coordinator_store",
    "coordinator_store_p99",
    "coordinator_check",
    "swarm_10",
    "swarm_10_p99",
    "swarm_100",
    "swarm_100_p99",
    "swarm_1000",
    "swarm_1000_p99",
    "swarm_growth",
    "fan_out_memory",
];

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchRow {
    /// What is measured, one of [`ROWS`]; stays the same from run to run.
    pub name: String,
    /// The figure.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// How good it is: larger is better. Where there is a ceiling, the share of it that is reached; for a time, what it may
    /// take divided by what it took.
    pub ratio: f64,
    /// The ratio that is to be reached.
    pub target: f64,
}

/// The rows of one bench.
#[derive(Debug, Default)]
pub struct BenchRows(Vec<BenchRow>);

impl BenchRows {
    /// Prints a row and keeps it.
    ///
    /// # Panics
    /// When `name` is none of [`ROWS`]: nobody would find out what it means.
    pub fn add(&mut self, name: &str, value: f64, unit: &str, ratio: f64, target: f64) {
        assert!(ROWS.contains(&name), "{name} is not in the list of rows");
        let verdict = if ratio >= target { "reached" } else { "MISSED" };
        println!("{name}: {value:.2} {unit}, ratio {ratio:.3}, target {target} {verdict}");
        self.0.push(BenchRow {
            name: name.to_owned(),
            value,
            unit: unit.to_owned(),
            ratio,
            target,
        });
    }

    /// A row for a time that may be `limit` at most, both in `unit`; see [`BenchRows::add`].
    pub fn add_time(&mut self, name: &str, value: f64, unit: &str, limit: f64) {
        self.add(name, value, unit, limit / value, 1.0);
    }

    /// Writes them to `target/bench/BENCH.json` and says where that is.
    #[allow(
        clippy::disallowed_methods,
        reason = "what a crash leaves of a measurement is measured again"
    )]
    pub fn write(&self, bench: &str) -> std::io::Result<PathBuf> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"),
            PathBuf::from,
        );
        let folder = target.join("bench");
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{bench}.json"));
        fs::write(&path, serde_json::to_string_pretty(&self.0)? + "\n")?;
        Ok(path)
    }
}
