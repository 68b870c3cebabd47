//! The benches of `tengen bench`, short and small: they measure what they say, and a coordinator of theirs leaves nothing
//! behind.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;
use tengen_system_tests::cluster::tengen_ok;

/// The rows that a bench prints, in a folder that is empty again at its end.
fn rows(words: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let mut all = vec!["bench"];
    all.extend_from_slice(words);
    all.extend(["--json", "--folder", folder.path().to_str().unwrap()]);
    let lines = tengen_ok(all);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("no {name} in {row}"))
}

#[test]
fn a_swarm_sends_no_more_than_it_was_asked_for_and_every_game_is_acknowledged() {
    let words = "swarm --actors 3 --games-per-second 30 --seconds 2 --game tic-tac-toe";
    let words: Vec<&str> = words.split(' ').collect();
    let rows = rows(&words);
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!(number(row, "actors"), 3.0);
    // One more of each actor: the first is due at the very beginning.
    assert!((1.0..=63.0).contains(&number(row, "games")), "{row}");
    assert!(
        number(row, "acknowledged_p50_ms") <= number(row, "acknowledged_p99_ms"),
        "{row}"
    );
    assert!(number(row, "resident_bytes_after") > 0.0, "{row}");
}

#[test]
fn every_actor_of_a_fan_out_gets_the_whole_network() {
    let rows = rows(&["fan-out", "--actors", "1,40", "--model-mb", "2"]);
    assert_eq!(rows.len(), 2);
    for row in &rows {
        let bytes = number(row, "model_bytes");
        assert!((1.8e6..2.2e6).contains(&bytes), "{row}");
        let megabytes = bytes * number(row, "actors") / 1e6;
        let per_second = number(row, "megabytes_per_second");
        assert!(
            (per_second * number(row, "seconds") / megabytes - 1.0).abs() < 1e-6,
            "{row}"
        );
        assert!(number(row, "median_seconds") <= number(row, "seconds"), "{row}");
        assert!(number(row, "resident_bytes_peak") > 0.0, "{row}");
    }
}
