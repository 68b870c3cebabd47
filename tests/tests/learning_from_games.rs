//! A network learns from positions that somebody else solved, and a run begins from it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test's files need not survive a crash")]

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;
use tengen_system_tests::cluster::{Up, tengen, tengen_ok};
use tengen_system_tests::coordinator::Coordinator;

const GAME: &str = "gomoku-freestyle?size=7";
const RUN: &str = r#"
[run]
name = "taught"
game = "gomoku-freestyle?size=7"
[network]
blocks = 1
channels = 16
value_hidden = 16
[[schedule]]
from_iteration = 0
games = 20
simulations = 4
[gate]
kind = "none"
[learner]
batch = 32
learning_rate = 0.05
window_min_positions = 50
[actor]
games = 16
batch_max = 16
[cpu]
learner_threads = 1
actor_threads = 1
"#;

/// Black has four in a row of which one end is free, white stones lie somewhere else: the best move is the fifth.
fn lessons() -> String {
    let mut lines = String::new();
    let cell = |column: usize, row: usize| 7 * column + row;
    for line in 0..7 {
        for start in 0..3 {
            for upright in [false, true] {
                let place = |step: usize| match upright {
                    true => cell(line, start + step),
                    false => cell(start + step, line),
                };
                for away in 1..7 {
                    let other = (line + away) % 7;
                    let mut moves = Vec::new();
                    for step in 0..4 {
                        // White's stones keep a gap, so that they threaten nothing.
                        let column = [0, 2, 4, 6][step];
                        let white = match upright {
                            true => cell(other, column),
                            false => cell(column, other),
                        };
                        moves.extend([place(step), white]);
                    }
                    let moves: Vec<String> = moves.iter().map(usize::to_string).collect();
                    writeln!(lines, "{};{};0", moves.join(","), place(4)).unwrap();
                }
            }
        }
    }
    lines
}

/// Imports the lessons; the folder of the set.
fn prepare(folder: &Path) -> String {
    let file = folder.join("lessons.datapoints");
    std::fs::write(&file, lessons()).unwrap();
    let sets = folder.join("sets");
    let out = tengen_ok([
        "games",
        "import",
        file.to_str().unwrap(),
        "--game",
        GAME,
        "--out",
        sets.to_str().unwrap(),
        "--train-split",
        "0.8",
        "--json",
    ]);
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told["refused"], Value::Array(Vec::new()), "{out}");
    assert_eq!(told["sets"][0]["games"], 7 * 3 * 2 * 6);
    told["sets"][0]["folder"].as_str().unwrap().to_owned()
}

fn report(out: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(out.join("report.json")).unwrap()).unwrap()
}

fn shown(name: &str, data: &Path) -> Value {
    serde_json::from_str(&tengen_ok(["models", "show", name, "--data", data.to_str().unwrap()])).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_begins_from_a_network_that_learned_from_games_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let set = prepare(folder.path());
    let path = |name: &str| folder.path().join(name);
    let (run, out, data) = (path("run.toml"), path("out"), path("data"));
    std::fs::write(&run, RUN).unwrap();
    let learn = |epochs: &str, more: &[&str]| {
        let fixed = ["learn", "--from", &set, "--run", run.to_str().unwrap()];
        let out = ["--out", out.to_str().unwrap(), "--epochs", epochs];
        tengen([&fixed[..], &out, more].concat())
    };

    let first = learn("2", &[]);
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    let early = report(&out);
    // Goes on with what is there, and offers what comes of it.
    let coordinator = Coordinator::start(&run, &data, &[]).await;
    let url = format!("http://{}", coordinator.addr());
    let offered = learn("40", &["--coordinator", &url]);
    assert!(offered.status.success(), "{}", String::from_utf8_lossy(&offered.stderr));
    let late = report(&out);
    assert_eq!(
        early["epochs"].as_array().unwrap()[..],
        late["epochs"].as_array().unwrap()[..2]
    );
    assert_eq!(late["epochs"].as_array().unwrap().len(), 40);
    // One in 49 without knowing anything; white's stones say nothing, so the fifth can be known for sure.
    let predicted = |epoch: &Value| epoch["validation"]["predicted"].as_f64().unwrap();
    let best = late["best_epoch"].as_u64().unwrap() as usize;
    assert!(predicted(&late["epochs"][best - 1]) > 0.5, "{late}");
    coordinator.drain().await;

    let taught = shown("gen:1", &data);
    assert_eq!(
        (&taught["iteration"], &taught["parent_id"]),
        (&Value::from(0), &Value::from(""))
    );
    assert_eq!(taught["metadata"]["train_epochs"], best.to_string());
    // The run's learner goes on from it.
    let (ended, _) = Up::start(&run, &data, &["--until-generation", "2"]).finish();
    assert!(ended.success());
    let next = shown("gen:2", &data);
    assert_eq!(next["parent_id"], taught["model_id"]);
    assert!(next["step"].as_u64() > taught["step"].as_u64(), "{next}");

    // Now the run has networks of its own.
    let coordinator = Coordinator::start(&run, &data, &[]).await;
    let url = format!("http://{}", coordinator.addr());
    let refused = learn("40", &["--coordinator", &url]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && text.contains("candidate of its own"),
        "{text}"
    );
    coordinator.drain().await;
    refuses_what_does_not_fit(folder.path(), &set, &out);
}

/// Other games, another network, no set: nothing is written over what is there.
fn refuses_what_does_not_fit(folder: &Path, set: &str, out: &Path) {
    let before = report(out);
    let refused = |set: &str, run_text: &str, said: &str| {
        let run = folder.join("other.toml");
        std::fs::write(&run, run_text).unwrap();
        let (run, out) = (run.to_str().unwrap(), out.to_str().unwrap());
        let output = tengen(["learn", "--from", set, "--run", run, "--out", out]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(said), "{text}");
    };
    refused(set, &RUN.replace("channels = 16", "channels = 8"), "another network");
    refused(set, &RUN.replace(GAME, "renju?size=7"), "the run plays renju?size=7");
    refused(folder.to_str().unwrap(), RUN, "is no prepared set");
    assert_eq!(report(out), before);
    let file = Path::new(set).join("train.binpb");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[40] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    refused(set, RUN, "train.binpb is not the file");
}
