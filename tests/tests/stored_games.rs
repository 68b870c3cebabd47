//! The games of a real run through `tengen games`, while its coordinator serves and at rest: listed, shown, checked,
//! searched again, and in every format.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test's run file need not survive a crash")]

use std::path::Path;

use serde_json::Value;
use tengen_system_tests::cluster::{Up, tengen, tengen_ok};

const RUN: &str = r#"
[run]
name = "stored"
game = "caro5?size=5"
[network]
blocks = 1
channels = 8
value_hidden = 8
[search]
random_symmetry = true
[[schedule]]
from_iteration = 0
games = 30
simulations = 8
[gate]
kind = "none"
[learner]
batch = 32
window_min_positions = 100
[actor]
games = 16
batch_max = 16
[cpu]
learner_threads = 1
actor_threads = 1
"#;

/// Every game that `tengen games list` prints as JSON.
fn listed(more: &[&str]) -> Vec<Value> {
    let text = tengen_ok([&["games", "list", "--json", "--limit", "0"], more].concat());
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// How many games a command found good.
fn verified(more: &[&str]) -> u64 {
    let text = tengen_ok([&["games", "verify", "--json"], more].concat());
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["faults"], Value::Array(Vec::new()), "{text}");
    report["games"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_games_of_a_run_are_listed_checked_exported_and_searched_again() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run.toml");
    std::fs::write(&run, RUN).unwrap();
    let data = folder.path().join("data");
    let (ended, _) = Up::start(&run, &data, &["--until-games", "40"]).finish();
    assert!(ended.success());
    let at = data.to_str().unwrap();

    let games = listed(&["--data", at]);
    assert!(games.len() >= 40);
    assert_eq!(verified(&["--data", at]), games.len() as u64);
    // The newest game was searched by a network that is still there.
    replays(&games[0], at);
    exports(&games, at, folder.path());
    debug_data(at, &folder.path().join("why"));

    // The same answers come from the coordinator that plays on, for the games that were there.
    let up = Up::start(&run, &data, &[]);
    let id = games[0]["game"].as_str().unwrap();
    let shown = tengen_ok(["games", "show", id, "--coordinator", up.url()]);
    assert_eq!(shown, tengen_ok(["games", "show", id, "--data", at]));
    assert!(shown.contains("self-play of iteration"), "{shown}");
    let limited = tengen_ok([
        "games",
        "list",
        "--limit",
        "3",
        "--kind",
        "self-play",
        "--coordinator",
        up.url(),
    ]);
    assert_eq!(limited.lines().count(), 4, "a head and three games");
    assert!(up.interrupt().0.success());
}

/// A duel whose first player's searches are kept.
fn debug_data(at: &str, why: &Path) {
    let duel = |first: &str| {
        let fixed = [
            "duel",
            first,
            "random",
            "--games",
            "2",
            "--simulations",
            "8",
            "--game",
            "caro5?size=5",
        ];
        tengen([&fixed[..], &["--data", at, "--debug-data", why.to_str().unwrap()]].concat())
    };
    assert!(!duel("random").status.success(), "it has no searches to keep");
    assert!(duel("latest").status.success());
    for (index, seat) in [(0, 0), (1, 1)] {
        let text = std::fs::read(why.join(format!("game-0000{index}.json"))).unwrap();
        let game: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(
            (&game["player"], &game["seat"]),
            (&Value::from("latest"), &Value::from(seat))
        );
        let searches = game["searches"].as_array().unwrap();
        assert!(!searches.is_empty());
        for search in searches {
            assert_eq!(
                search["chosen"],
                game["actions"][search["ply"].as_u64().unwrap() as usize]
            );
            assert_eq!(search["nodes"][0]["n"], search["visits"]);
            let sum = |key: &str| {
                search["candidates"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|c| c[key].as_f64().unwrap())
                    .sum::<f64>()
            };
            assert!((sum("p") - 1.0).abs() < 1e-4 && sum("n") > 0.0, "{search}");
            assert!(search["milliseconds"].as_f64().unwrap() > 0.0);
        }
    }
}

fn replays(game: &Value, at: &str) {
    let id = game["game"].as_str().unwrap();
    let text = tengen_ok(["games", "replay", id, "--data", at, "--json"]);
    let replayed: Value = serde_json::from_str(&text).unwrap();
    let agreement = replayed["agreement"].as_str().unwrap();
    assert!(
        ["identical", "within-tolerance", "other-visits"].contains(&agreement),
        "{text}"
    );
    assert_eq!(
        replayed["plies"].as_array().unwrap().len() as u64 + opening(id, at),
        game["plies"].as_u64().unwrap()
    );
    let words = tengen_ok(["games", "replay", id, "--data", at]);
    assert!(words.contains("chosen now"), "{words}");
}

fn opening(id: &str, at: &str) -> u64 {
    let shown: Value = serde_json::from_str(&tengen_ok(["games", "show", id, "--data", at, "--json"])).unwrap();
    shown["record"]["opening"].as_array().unwrap().len() as u64
}

fn exports(games: &[Value], at: &str, folder: &Path) {
    let path = |name: &str| folder.join(name).display().to_string();
    let export = |format: &str, out: &str| {
        let output = tengen(["games", "export", "--format", format, "--out", out, "--data", at]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    for (format, name) in [("protobuf", "all.binpb"), ("json", "all.jsonl"), ("sgf", "all.sgf")] {
        export(format, &path(name));
        assert_eq!(verified(&[&path(name)]), games.len() as u64, "{format}");
    }
    export("psq", &path("psq"));
    assert_eq!(std::fs::read_dir(folder.join("psq")).unwrap().count(), games.len());
    export("datapoints", &path("all.datapoints"));
    assert!(
        std::fs::read_to_string(folder.join("all.datapoints"))
            .unwrap()
            .lines()
            .count()
            > games.len()
    );
    export("npz", &path("all.npz"));
    let positions: u64 = games.iter().map(|game| game["positions"].as_u64().unwrap()).sum();
    // Nothing is compressed: planes, policy, value and weight of every position, and little else.
    let bytes = 13 * 25 + 4 * 28 + 4 + 4;
    let len = std::fs::metadata(folder.join("all.npz")).unwrap().len();
    assert!(
        (positions * bytes..positions * bytes + 4_096).contains(&len),
        "{len} bytes for {positions} positions"
    );
    // JSON and protobuf hold the same records.
    let again = path("again.binpb");
    let json = tengen([
        "games",
        "export",
        "--format",
        "protobuf",
        "--out",
        &again,
        "--from",
        &path("all.jsonl"),
    ]);
    assert!(json.status.success());
    assert!(std::fs::read(&again).unwrap() == std::fs::read(folder.join("all.binpb")).unwrap());
}
