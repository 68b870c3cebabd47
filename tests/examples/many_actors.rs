//! How a coordinator bears ten, a hundred and a thousand actors: `tengen bench swarm` and `tengen bench fan-out` as rows of
//! `make bench`. A name takes only the one whose name contains it.

use anyhow::Context;
use serde_json::Value;
use tengen_faults::bench::BenchRows;
use tengen_system_tests::cluster::{program, tengen_ok};

/// Games a second that the actors send together, however many they are.
const GAMES_PER_SECOND: f64 = 500.0;
/// Share of them that must be taken: the last ones may still be on their way when the clock stops.
const TAKEN: f64 = 0.98;
/// How soon 99 of 100 games must be acknowledged, milliseconds.
const P99_MS: f64 = 50.0;
/// How much more a position may cost with a thousand actors than with a hundred.
const GROWTH_MAX: f64 = 1.2;
/// How much more memory a thousand downloads may take than ten do, bytes.
const DOWNLOADS_BYTES_MAX: f64 = 64.0 * (1 << 20) as f64;
/// Below this, memory is as it was; a figure and not a limit.
const SMALL_BYTES: f64 = (1 << 20) as f64;

fn main() -> anyhow::Result<()> {
    let only = std::env::args().nth(1).unwrap_or_default();
    let mut rows = BenchRows::default();
    if "swarm".contains(&only) {
        swarm(&mut rows)?;
    }
    if "fan-out".contains(&only) {
        fan_out(&mut rows)?;
    }
    rows.write("many_actors")?;
    Ok(())
}

/// The swarm at a steady rate, and how the cost of a position grows.
fn swarm(rows: &mut BenchRows) -> anyhow::Result<()> {
    let rate = GAMES_PER_SECOND.to_string();
    let measured = bench(&["swarm", "--actors", "10,100,1000", "--games-per-second", &rate])?;
    for row in &measured {
        let (actors, games) = (number(row, "actors")?, number(row, "games_per_second")?);
        rows.add(
            &format!("swarm_{actors}"),
            games,
            "games/s",
            games / GAMES_PER_SECOND,
            TAKEN,
        );
        let p99 = number(row, "acknowledged_p99_ms")?;
        rows.add_time(&format!("swarm_{actors}_p99"), p99, "ms", P99_MS);
    }
    let cost = |at: usize| number(&measured[at], "cpu_seconds_per_1000_positions");
    rows.add_time("swarm_growth", cost(2)? / cost(1)?, "times", GROWTH_MAX);
    Ok(())
}

/// A thousand downloads of one network beside ten.
fn fan_out(rows: &mut BenchRows) -> anyhow::Result<()> {
    let measured = bench(&["fan-out", "--actors", "10,1000"])?;
    let held = |at: usize| -> anyhow::Result<f64> {
        let row = &measured[at];
        Ok(number(row, "resident_bytes_peak")? - number(row, "resident_bytes_before")?)
    };
    let growth = (held(1)? - held(0)?).max(SMALL_BYTES);
    let ratio = DOWNLOADS_BYTES_MAX / growth;
    rows.add("fan_out_memory", growth / f64::from(1 << 20), "MiB", ratio, 1.0);
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
