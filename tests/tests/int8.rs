//! Self-play in int8, from the learner's export to the records: published beside the network, taken by the actor, stated in
//! its games, audited, searched again, pulled, and played with.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test's run file need not survive a crash")]

use std::path::Path;

use rusqlite::Connection;
use serde_json::Value;
use tengen_records::{Kind, Precision, Record, decode};
use tengen_system_tests::cluster::{Up, tengen_ok};

/// Connect Four with a tiny network. The actor takes int8 whether or not it is faster for so small a network.
const RUN: &str = r#"
[run]
name = "rounded"
game = "connect-four"
[network]
blocks = 2
channels = 16
value_hidden = 16
[[schedule]]
from_iteration = 0
games = 60
simulations = 16
[selfplay]
random_plies_max = 2
[gate]
games = 20
threshold = 0.01
simulations = 8
[learner]
batch = 64
window_min_positions = 300
checkpoint_every_steps = 50
[actor]
games = 16
batch_max = 16
precision = "int8"
[cpu]
learner_threads = 1
actor_threads = 1
"#;

/// The newest games, the newest first.
fn games(data: &Path) -> Vec<Record> {
    let database = Connection::open(data.join("tengen.db")).unwrap();
    let mut statement = database
        .prepare("SELECT record FROM games ORDER BY sequence DESC")
        .unwrap();
    let records = statement.query_map([], |row| row.get::<_, Vec<u8>>(0)).unwrap();
    records.map(|record| decode(&record.unwrap()).unwrap()).collect()
}

/// The one precision that a game's searches state.
fn precision(record: &Record) -> Precision {
    let mut stated = record
        .plies
        .iter()
        .filter_map(|ply| Some(ply.search.as_ref()?.precision));
    let first = stated.next().expect("every ply is searched");
    assert!(
        stated.all(|other| other == first),
        "game {} is played in two",
        record.id
    );
    first
}

#[test]
fn a_run_plays_in_int8_from_its_first_trained_champion_on() {
    let folder = tempfile::tempdir().unwrap();
    let (run, data) = (folder.path().join("rounded.toml"), folder.path().join("data"));
    std::fs::write(&run, RUN).unwrap();
    let audited = [("AUDIT__SHARE", "0.2")];
    let up = Up::start_with(
        &run,
        &data,
        &["--until-generation", "3", "--until-games", "4000"],
        &audited,
    );
    let (status, lines) = up.finish();
    assert!(status.success(), "{}", lines.join("\n"));

    let folder_name = data.to_str().unwrap();
    let shown = |name: &str| -> Value {
        serde_json::from_str(&tengen_ok(["models", "show", name, "--data", folder_name])).unwrap()
    };
    let champion = shown("champion");
    assert!(champion["generation"].as_u64() >= Some(3), "{champion:#}");
    let variants = champion["variants"].as_array().unwrap();
    let variant = variants.iter().find(|variant| variant["precision"] == "int8").unwrap();
    assert!(variant["fidelity"]["positions"].as_u64() > Some(0), "{variant:#}");
    assert_eq!(
        shown("gen:0")["variants"],
        Value::Array(Vec::new()),
        "nothing is made of the random network"
    );
    assert!(tengen_ok(["models", "list", "--data", folder_name]).contains("also in int8"));

    assert_games(&data, &shown);
    assert_pulled_and_played(folder.path(), folder_name);
    tengen_ok(["db", "check", "--data", folder_name]);
}

/// Games of the random network are in fp32, those of a later champion in int8, and a match has one for both.
fn assert_games(data: &Path, shown: &dyn Fn(&str) -> Value) {
    let random = shown("gen:0")["model_id"].as_str().unwrap().to_owned();
    let records = games(data);
    let mut in_int8 = 0;
    for record in &records {
        let is_random = record.models.iter().any(|model| model.to_string() == random);
        let expected = if is_random { Precision::Fp32 } else { Precision::Int8 };
        assert_eq!(precision(record), expected, "game {}", record.id);
        in_int8 += u32::from(!is_random);
    }
    assert!(in_int8 > 20, "{in_int8} of {} games", records.len());
    let of_match = |record: &Record| record.kind == Kind::Match && precision(record) == Precision::Int8;
    assert!(records.iter().any(of_match), "a gate between two champions");

    let database = Connection::open(data.join("tengen.db")).unwrap();
    let count = |sql: &str| -> u64 { database.query_row(sql, [], |row| row.get(0)).unwrap() };
    assert!(count("SELECT sum(audited) FROM audits") > 0);
    assert_eq!(count("SELECT sum(failed) FROM audits"), 0);
    // Each file came with what it answered, and is played: so it answers the same here.
    assert!(count("SELECT count(*) FROM model_variants") > 0);
    assert_eq!(
        count("SELECT count(*) FROM model_variants WHERE length(answers) = 0"),
        0
    );

    let game = records
        .iter()
        .find(|record| precision(record) == Precision::Int8)
        .unwrap();
    let replayed = tengen_ok([
        "games",
        "replay",
        &game.id.to_string(),
        "--json",
        "--data",
        data.to_str().unwrap(),
    ]);
    let replayed: Value = serde_json::from_str(&replayed).unwrap();
    assert_ne!(replayed["agreement"], "other-network", "{replayed:#}");
}

fn assert_pulled_and_played(folder: &Path, data: &str) {
    let pulled = folder.join("pulled");
    let name = pulled.to_str().unwrap();
    tengen_ok(["models", "pull", "champion", "--data", data, "--out", name]);
    let card = std::fs::read_to_string(pulled.join("README.md")).unwrap();
    assert!(card.contains("model.int8.onnx"), "{card}");
    let duel = |first: &str, second: &str| -> Value {
        let words = [
            "duel",
            first,
            second,
            "--games",
            "20",
            "--simulations",
            "8",
            "--json",
            "--data",
            data,
        ];
        serde_json::from_str(&tengen_ok(words)).unwrap()
    };
    for (first, second) in [
        (&format!("{name}/model.int8.onnx")[..], "champion"),
        (&format!("{name}:int8")[..], name),
        ("champion:int8", "random"),
    ] {
        assert_eq!(duel(first, second)["games"], 20, "{first} against {second}");
    }
}
