//! The benches of `tengen bench`, short and small: they measure what they say, and a coordinator of theirs leaves nothing
//! behind.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::Value;
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_records::exchange::delimited;
use tengen_records::{Kind, Record, testing};
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

/// Games with random openings, as a run makes them whose file asks for some.
struct Played;

impl GameVisitor for Played {
    type Output = Vec<Record>;
    fn visit<G: Game>(self, game: G) -> Vec<Record> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let expected = testing::expected(&game, Kind::SelfPlay, &mut rng);
        (0..20)
            .map(|index| testing::random_record(&game, &expected, index, &mut rng))
            .collect()
    }
}

#[test]
fn a_swarm_sends_real_records_as_fast_as_verdicts_come_and_a_coordinator_takes_each() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("games.binpb");
    let records = AnyGame::parse("connect-four").unwrap().visit(Played);
    let mut bytes = Vec::new();
    records.iter().for_each(|record| delimited::append(record, &mut bytes));
    tengen_service::files::write_atomic(&path, &bytes).unwrap();
    let words = "swarm --actors 1,3 --games-per-second max --seconds 2 --records";
    let mut words: Vec<&str> = words.split(' ').collect();
    words.push(path.to_str().unwrap());
    let rows = rows(&words);
    assert_eq!(rows.len(), 2);
    let positions: u32 = records.iter().map(Record::positions).sum();
    for row in &rows {
        assert_eq!(row["records"], "replayed", "{row}");
        assert_eq!(number(row, "positions_per_game"), f64::from(positions) / 20.0);
        assert!(number(row, "games") >= 1.0, "{row}");
    }
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
