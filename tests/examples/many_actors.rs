//! How a coordinator bears ten, a hundred and a thousand actors: `tengen bench swarm` and `tengen bench fan-out` as rows of
//! `make bench`. A name takes only the one whose name contains it.
//!
//! The swarm's window is in a redis-server of the bench's own, on a free port of loopback, as in a cluster.

use anyhow::Context;
use serde_json::Value;
use tengen_faults::bench::{Attempts, BenchRows};
use tengen_replay::testing::RedisServer;
use tengen_system_tests::cluster::{program, tengen_ok};

/// Numbers of actors.
const ACTORS: &str = "10,100,1000";
/// Games a second that the actors send together, however many they are, and that a coordinator is to take at least.
const GAMES_PER_SECOND: f64 = 500.0;
/// Share of them that must be taken: the last ones may still be on their way when the clock stops.
const TAKEN: f64 = 0.98;
/// How soon 99 of 100 games must be acknowledged, milliseconds.
const P99_MS: f64 = 50.0;
/// How many times as much a position may cost with the number of actors with which it costs most as with the one with which it
/// costs least.
const GROWTH_MAX: f64 = 1.2;
/// How long the greatest rate is measured, seconds: it fills the disk quickly.
const GREATEST_SECONDS: &str = "10";
/// How much more memory a thousand downloads may take than ten do, bytes.
const DOWNLOADS_BYTES_MAX: f64 = 64.0 * (1 << 20) as f64;
/// Below this, memory is as it was; a figure and not a limit.
const SMALL_BYTES: f64 = (1 << 20) as f64;

fn main() -> anyhow::Result<()> {
    let only = std::env::args().nth(1).unwrap_or_default();
    let rows = BenchRows::of("many_actors")?;
    let mut attempts = Attempts::default();
    if "swarm".contains(&only) {
        attempts.make("swarm", || steady(&rows));
        attempts.make("swarm at its greatest rate", || greatest(&rows));
    }
    if "fan-out".contains(&only) {
        attempts.make("fan-out", || fan_out(&rows));
    }
    Ok(attempts.end()?)
}

/// The swarm at a steady rate, and how the cost of a position depends on the number of actors.
fn steady(rows: &BenchRows) -> anyhow::Result<()> {
    let mut costs = Vec::new();
    for row in swarm(&["--games-per-second", &GAMES_PER_SECOND.to_string()])? {
        let (actors, games) = (number(&row, "actors")?, number(&row, "games_per_second")?);
        let ratio = games / GAMES_PER_SECOND;
        rows.add(&format!("swarm_{actors}"), games, "games/s", ratio, TAKEN)?;
        let p99 = number(&row, "acknowledged_p99_ms")?;
        rows.add_time(&format!("swarm_{actors}_p99"), p99, "ms", P99_MS)?;
        costs.push(number(&row, "cpu_seconds_per_1000_positions")?);
    }
    let most = costs.iter().copied().fold(f64::MIN, f64::max);
    let least = costs.iter().copied().fold(f64::MAX, f64::min);
    rows.add_time("swarm_growth", most / least, "times", GROWTH_MAX)?;
    Ok(())
}

/// The swarm as fast as verdicts come.
fn greatest(rows: &BenchRows) -> anyhow::Result<()> {
    for row in swarm(&["--games-per-second", "max", "--seconds", GREATEST_SECONDS])? {
        let (actors, games) = (number(&row, "actors")?, number(&row, "games_per_second")?);
        let ratio = games / GAMES_PER_SECOND;
        rows.add(&format!("swarm_{actors}_max"), games, "games/s", ratio, 1.0)?;
    }
    Ok(())
}

/// What `tengen bench swarm` with these words measures, with the window in Redis.
fn swarm(words: &[&str]) -> anyhow::Result<Vec<Value>> {
    let folder = tempfile::tempdir()?;
    let redis = RedisServer::start(folder.path(), &[]);
    let url = redis.url();
    let mut all = vec!["swarm", "--actors", ACTORS, "--redis", url.as_str()];
    all.extend_from_slice(words);
    bench(&all)
}

/// A thousand downloads of one network beside ten.
fn fan_out(rows: &BenchRows) -> anyhow::Result<()> {
    let measured = bench(&["fan-out", "--actors", "10,1000"])?;
    let held = |at: usize| -> anyhow::Result<f64> {
        let row = &measured[at];
        Ok(number(row, "resident_bytes_peak")? - number(row, "resident_bytes_before")?)
    };
    let growth = (held(1)? - held(0)?).max(SMALL_BYTES);
    let ratio = DOWNLOADS_BYTES_MAX / growth;
    rows.add("fan_out_memory", growth / f64::from(1 << 20), "MiB", ratio, 1.0)?;
    Ok(())
}

/// What `tengen bench` with these words measures, on the disk that the programs lie on: an object for each number of actors.
fn bench(words: &[&str]) -> anyhow::Result<Vec<Value>> {
    let program = program("tengen");
    let folder = program.parent().context("the programs lie in a folder")?;
    let mut all = vec!["bench"];
    all.extend_from_slice(words);
    all.extend([
        "--json",
        "--folder",
        folder.to_str().context("the folder's name is text")?,
    ]);
    let lines = tengen_ok(all);
    print!("{lines}");
    Ok(lines
        .lines()
        .map(serde_json::from_str::<Value>)
        .collect::<Result<_, _>>()?)
}

fn number(row: &Value, name: &str) -> anyhow::Result<f64> {
    row[name].as_f64().with_context(|| format!("no {name} in {row}"))
}
