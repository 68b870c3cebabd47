//! The rows of `make bench`: one file a bench in `target/bench`, so that a run can be compared with another one, and one
//! [`table`] of all of them. Small benches measure with [`measure`].

mod attempts;
pub mod measure;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

pub use attempts::Attempts;

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
    "swarm_10_max",
    "swarm_100_max",
    "swarm_1000_max",
    "fan_out_memory",
];

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// When it was measured, seconds since the Unix epoch; 0 in the files of builds that did not note it.
    #[serde(default)]
    pub measured_unix: u64,
}

impl BenchRow {
    fn verdict(&self) -> &'static str {
        if self.ratio >= self.target { "reached" } else { "MISSED" }
    }

    /// By RFC 3339 in UTC.
    fn date(&self) -> String {
        match self.measured_unix {
            0 => "at some time".to_owned(),
            seconds => humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).to_string(),
        }
    }
}

/// The file of one bench, `target/bench/BENCH.json`. A row is in it as soon as it is measured; those of earlier runs stay
/// until they are measured again.
#[derive(Debug)]
pub struct BenchRows(PathBuf);

impl BenchRows {
    /// The file of this bench, made with its first row.
    ///
    /// # Errors
    /// When there is one that cannot be read: better before the measuring than after it.
    pub fn of(bench: &str) -> io::Result<BenchRows> {
        BenchRows::in_folder(&folder(), bench)
    }

    fn in_folder(folder: &Path, bench: &str) -> io::Result<BenchRows> {
        fs::create_dir_all(folder)?;
        let path = folder.join(format!("{bench}.json"));
        read(&path)?;
        Ok(BenchRows(path))
    }

    /// Prints a row and writes it, instead of an earlier one of its name.
    ///
    /// # Errors
    /// When the value or the ratio is no number, or the file cannot be read or written.
    ///
    /// # Panics
    /// When `name` is none of [`ROWS`]: nobody would find out what it means.
    pub fn add(&self, name: &str, value: f64, unit: &str, ratio: f64, target: f64) -> io::Result<()> {
        assert!(ROWS.contains(&name), "{name} is not in the list of rows");
        if !(value.is_finite() && ratio.is_finite()) {
            let message = format!("{name} came to {value} {unit}, ratio {ratio}: nothing was measured");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let row = BenchRow {
            name: name.to_owned(),
            value,
            unit: unit.to_owned(),
            ratio,
            target,
            measured_unix: since.map_or(0, |since| since.as_secs()),
        };
        println!(
            "{name}: {value:.2} {unit}, ratio {ratio:.3}, target {target} {}",
            row.verdict()
        );
        let mut earlier = read(&self.0)?;
        earlier.retain(|earlier| earlier.name != name);
        write(&self.0, &merge(earlier, vec![row]))
    }

    /// A row for a time that may be `limit` at most, both in `unit`; see [`BenchRows::add`].
    ///
    /// # Errors
    /// As [`BenchRows::add`].
    pub fn add_time(&self, name: &str, value: f64, unit: &str, limit: f64) -> io::Result<()> {
        self.add(name, value, unit, limit / value, 1.0)
    }
}

/// Every row that was ever measured in this repository, of each the newest.
///
/// # Errors
/// When a file cannot be read.
pub fn all_rows() -> io::Result<Vec<BenchRow>> {
    rows_in(&folder())
}

fn rows_in(folder: &Path) -> io::Result<Vec<BenchRow>> {
    let mut rows = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(rows),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "json") {
            rows = merge(rows, read(&path)?);
        }
    }
    Ok(rows)
}

/// All of [`ROWS`] with their figures, a line each; of those that are not there it says so.
pub fn table(rows: &[BenchRow]) -> String {
    let line = |cells: [&str; 7]| {
        let [name, value, unit, ratio, target, verdict, date] = cells;
        format!("{name:<32} {value:>10} {unit:<26} {ratio:>7} {target:>6} {verdict:<7}  {date}\n")
    };
    let mut text = line(["row", "value", "unit", "ratio", "target", "", "measured"]);
    for name in ROWS {
        text += &match rows.iter().find(|row| row.name == *name) {
            None => format!("{name:<32} not measured\n"),
            Some(row) => line([
                name,
                &format!("{:.2}", row.value),
                &row.unit,
                &format!("{:.3}", row.ratio),
                &row.target.to_string(),
                row.verdict(),
                &row.date(),
            ]),
        };
    }
    text
}

/// Both lists in the order of [`ROWS`], of each name the newest row; names that are no longer in it are left out, because
/// nothing tells what they were.
fn merge(earlier: Vec<BenchRow>, newer: Vec<BenchRow>) -> Vec<BenchRow> {
    let all: Vec<BenchRow> = earlier.into_iter().chain(newer).collect();
    let newest = |name: &&str| {
        let named = all.iter().filter(|row| row.name == **name);
        // The last of those that are equally new.
        named.max_by_key(|row| row.measured_unix).cloned()
    };
    ROWS.iter().filter_map(newest).collect()
}

/// The rows of a file; none when it is not there.
fn read(path: &Path) -> io::Result<Vec<BenchRow>> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    serde_json::from_slice(&text).map_err(|error| {
        let what = format!("{} has no rows of benches, remove it: {error}", path.display());
        io::Error::new(io::ErrorKind::InvalidData, what)
    })
}

#[allow(
    clippy::disallowed_methods,
    reason = "the file takes its name when it is whole, and what a crash leaves of a measurement is measured again"
)]
fn write(path: &Path, rows: &[BenchRow]) -> io::Result<()> {
    let whole = path.with_extension("json.new");
    fs::write(&whole, serde_json::to_string_pretty(rows)? + "\n")?;
    fs::rename(&whole, path)
}

fn folder() -> PathBuf {
    target().join("bench")
}

/// Where cargo builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"),
        PathBuf::from,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, value: f64, measured_unix: u64) -> BenchRow {
        BenchRow {
            name: name.to_owned(),
            value,
            unit: "games/s".to_owned(),
            ratio: value / 100.0,
            target: 1.0,
            measured_unix,
        }
    }

    fn values(rows: &[BenchRow]) -> Vec<(&str, f64)> {
        rows.iter().map(|row| (row.name.as_str(), row.value)).collect()
    }

    #[test]
    fn a_part_of_a_bench_leaves_the_other_rows_in_their_order_and_replaces_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let rows = BenchRows::in_folder(folder.path(), "swarm").unwrap();
        for (name, value) in [("swarm_100", 2.0), ("swarm_10", 1.0), ("swarm_100", 3.0)] {
            rows.add(name, value, "games/s", 0.5, 0.9).unwrap();
        }
        let later = BenchRows::in_folder(folder.path(), "swarm").unwrap();
        later.add_time("swarm_10_p99", 20.0, "ms", 50.0).unwrap();
        let found = read(&folder.path().join("swarm.json")).unwrap();
        assert_eq!(
            values(&found),
            [("swarm_10", 1.0), ("swarm_10_p99", 20.0), ("swarm_100", 3.0)]
        );
        assert_eq!((found[1].ratio, found[1].target), (2.5, 1.0));
        assert!(found.iter().all(|row| row.measured_unix > 1_700_000_000), "{found:?}");
    }

    #[test]
    fn rows_of_earlier_builds_are_read_and_a_file_of_something_else_is_refused_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("window.json");
        let earlier = r#"[{ "name": "window_mirror", "value": 5, "unit": "s", "ratio": 2, "target": 1 }]"#;
        let put = |text: &str| {
            #[allow(clippy::disallowed_methods, reason = "a test's file need not survive a crash")]
            fs::write(&path, text).unwrap();
        };
        put(earlier);
        let rows = read(&path).unwrap();
        assert_eq!(values(&rows), [("window_mirror", 5.0)]);
        assert_eq!(rows[0].date(), "at some time");
        put("[{");
        let refused = BenchRows::in_folder(folder.path(), "window").unwrap_err().to_string();
        assert!(
            refused.contains("window.json") && refused.contains("remove it"),
            "{refused}"
        );
        assert_eq!(fs::read(&path).unwrap(), b"[{");
    }

    #[test]
    fn of_a_name_in_two_files_the_newest_row_counts_and_unknown_names_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let put = |bench: &str, rows: &[BenchRow]| write(&folder.path().join(format!("{bench}.json")), rows).unwrap();
        put("a", &[row("coordinator_check", 2.0, 20), row("long_gone", 9.0, 30)]);
        put("b", &[row("coordinator_check", 1.0, 10), row("swarm_10", 3.0, 10)]);
        let rows = rows_in(folder.path()).unwrap();
        assert_eq!(values(&rows), [("coordinator_check", 2.0), ("swarm_10", 3.0)]);
        assert!(rows_in(&folder.path().join("nowhere")).unwrap().is_empty());
    }

    #[test]
    fn the_table_has_a_line_for_every_row_and_says_what_missed_its_target_and_when() {
        let rows = [row("swarm_10", 120.0, 1_700_000_000), row("swarm_100", 90.0, 0)];
        let table = table(&rows);
        assert_eq!(table.lines().count(), ROWS.len() + 1, "{table}");
        let line = |name: &str| {
            let found = table.lines().find(|line| line.split(' ').next() == Some(name));
            found.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        assert_eq!(
            line("swarm_10").unwrap(),
            "swarm_10 120.00 games/s 1.200 1 reached 2023-11-14T22:13:20Z"
        );
        assert_eq!(
            line("swarm_100").unwrap(),
            "swarm_100 90.00 games/s 0.900 1 MISSED at some time"
        );
        assert_eq!(line("swarm_1000").unwrap(), "swarm_1000 not measured");
    }
}
