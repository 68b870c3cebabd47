//! Every game of the registry through the whole system: self-play with a random network, records checked, positions trained
//! on, candidates promoted without a match, and games played with a network that was trained. Gates are in other tests.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test's run file need not survive a crash")]

use tengen_games::registry;
use tengen_proto::v1::model_service_client::ModelServiceClient;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_proto::v1::{GetModelRequest, WatchStatusRequest};
use tengen_system_tests::cluster::{Up, tengen_ok};

/// A tiny network and few simulations; every candidate is promoted. Self-play waits for the learner
/// once that has come.
fn run_file(name: &str, game: &str) -> String {
    format!(
        r#"
[run]
name = "{name}"
game = "{game}"
[network]
blocks = 1
channels = 8
value_hidden = 8
[[schedule]]
from_iteration = 0
games = {ITERATION_GAMES}
simulations = 6
[gate]
kind = "none"
[learner]
batch = 32
window_min_positions = 200
samples_per_position = 1.0
steps_behind_max = 50
[actor]
games = 32
batch_max = 32
[cpu]
learner_threads = 1
actor_threads = 1
"#
    )
}

/// Games of an iteration: all of the first one's are played by the random network.
const ITERATION_GAMES: u64 = 100;
/// The second promotion comes after two iterations; before a slow learner has come, the fastest games come by the
/// thousand.
const GAMES_MAX: u64 = 100_000;

async fn train(name: &str, game: &str) {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run.toml");
    std::fs::write(&run, run_file(name, game)).unwrap();
    let data = folder.path().join("data");
    let games_max = GAMES_MAX.to_string();
    let up = Up::start(&run, &data, &["--until-generation", "2", "--until-games", &games_max]);
    assert!(up.finish().0.success());

    let up = Up::start(&run, &data, &[]);
    let status = up.status().await;
    assert!(status.generation >= 2, "{game}: generation {}", status.generation);
    assert!(status.games >= 2 * ITERATION_GAMES, "{game}: {} games", status.games);
    assert!(
        status.rejected.is_empty(),
        "{game}: honest games were rejected: {:?}",
        status.rejected
    );
    assert_eq!(status.window_positions, status.positions, "{game}");
    until_played_by_a_trained_network(game, &up, status.games + GAMES_MAX).await;
    check_illegal_mass(game, &up).await;
    assert!(up.interrupt().0.success());
}

/// Waits until a game is stored that a trained network played. Most often one of generation 1 is there already; a learner
/// that is quicker than the games may have promoted the next one first.
async fn until_played_by_a_trained_network(game: &str, up: &Up, games_max: u64) {
    let mut client = RunServiceClient::new(up.channel());
    let request = WatchStatusRequest {
        interval_ms: 200,
        ..WatchStatusRequest::default()
    };
    let mut updates = client.watch_status(request).await.unwrap().into_inner();
    loop {
        let status = updates.message().await.unwrap().expect("the status stream goes on");
        if (1..=status.generation).any(|generation| has_played(generation, up)) {
            return;
        }
        assert!(
            status.games < games_max,
            "{game}: generation {} and no game of a trained network",
            status.generation
        );
    }
}

/// Whether a self-play game with the network of this generation is stored.
fn has_played(generation: u32, up: &Up) -> bool {
    let model = format!("gen:{generation}");
    let listed = tengen_ok([
        "games",
        "list",
        "--json",
        "--limit",
        "1",
        "--kind",
        "self-play",
        "--model",
        model.as_str(),
        "--coordinator",
        up.url(),
    ]);
    !listed.trim().is_empty()
}

/// The champion says what its policy puts on illegal actions before they are masked, as its learner measured it: a share,
/// which is printed too (`--no-capture`).
async fn check_illegal_mass(game: &str, up: &Up) {
    let request = GetModelRequest {
        name: "champion".to_owned(),
    };
    let answer = ModelServiceClient::new(up.channel()).get_model(request).await;
    let champion = answer.unwrap().into_inner();
    let metadata: serde_json::Value = serde_json::from_str(&champion.metadata_json).unwrap();
    let mass = metadata["train_illegal_mass"].as_str();
    let mass = mass.unwrap_or_else(|| panic!("{game}: the network does not say what it puts on illegal actions"));
    let mass: f64 = mass.parse().unwrap();
    println!(
        "{game}: after {} steps {:.2} % of the policy lies on illegal actions",
        champion.step,
        100.0 * mass
    );
    assert!((0.0..=1.0).contains(&mass), "{game}: {mass}");
}

/// Each line is a test `name` that trains `game`.
macro_rules! games {
    ($($name:ident: $game:literal,)*) => {
        /// The games that are trained here.
        const TRAINED: &[&str] = &[$($game,)*];

        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            train(stringify!($name), $game).await;
        })*
    };
}

games! {
    tic_tac_toe: "tic-tac-toe",
    connect_four: "connect-four",
    mnk: "mnk?m=5&n=4&k=4&opening=swap2",
    gomoku_freestyle: "gomoku-freestyle?size=6&history=4&threat_planes=false",
    gomoku_standard: "gomoku-standard?size=6&opening=swap2",
    caro: "caro?size=6",
    caro5: "caro5?size=6",
    caro5_gomocup: "caro5-gomocup?size=6",
    renju: "renju?size=7",
    black_hole: "black-hole?rows=5&history=2",
    hex: "hex?size=5",
    go: "go?size=5",
    amazons: "amazons?size=4",
    ataxx: "ataxx?walls=diamond",
    xiangqi: "xiangqi",
}

#[test]
fn every_game_of_the_registry_is_trained() {
    let trained: Vec<&str> = TRAINED.iter().map(|id| id.split('?').next().unwrap()).collect();
    assert_eq!(trained, registry::names());
}

#[test]
fn the_checklist_of_a_game_measures_training_too() {
    let text = tengen_ok([
        "rules",
        "check",
        "tic-tac-toe",
        "--games",
        "4",
        "--simulations",
        "2",
        "--json",
    ]);
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let measured = |item: &str| {
        let lines = report["lines"].as_array().unwrap();
        let line = lines.iter().find(|line| line["item"] == item);
        let line = line.unwrap_or_else(|| panic!("no line {item:?}: {text}"));
        line["measured"].as_str().unwrap()
    };
    let generations = measured("training reads the data and the next generation loads it");
    for part in [
        ", 0 rejected by the coordinator",
        "exported generation ",
        "games are stored that networks it trained have played",
    ] {
        assert!(generations.contains(part), "{part}: {generations}");
    }
    let mass = measured("the policy has no weight on what is always illegal");
    assert!(mass.contains("which is masked before the search sees it"), "{mass}");
    let saved = measured("training parameters are saved with the network");
    assert!(
        saved.contains("train_batch 32") && saved.contains("train_learning_rate "),
        "{saved}"
    );
    assert!(!text.contains("not measured"), "{text}");
}
