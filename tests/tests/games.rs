//! Every family of games through the whole system: self-play with a random network, records checked, positions trained
//! on, candidates published, and the next iteration played with them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test's run file need not survive a crash")]

use tengen_proto::v1::GetModelRequest;
use tengen_proto::v1::model_service_client::ModelServiceClient;
use tengen_system_tests::cluster::Up;

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
const GAMES_MAX: &str = "30000";

async fn train(name: &str, game: &str) {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run.toml");
    std::fs::write(&run, run_file(name, game)).unwrap();
    let data = folder.path().join("data");
    // Generation 2 is a candidate of an iteration that was played with generation 1.
    let up = Up::start(&run, &data, &["--until-generation", "2", "--until-games", GAMES_MAX]);
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
    report_illegal_mass(game, &up).await;
    assert!(up.interrupt().0.success());
}

/// Prints what the champion's policy puts on illegal actions before they are masked, as its learner measured it.
async fn report_illegal_mass(game: &str, up: &Up) {
    let request = GetModelRequest {
        name: "champion".to_owned(),
    };
    let answer = ModelServiceClient::new(up.channel()).get_model(request).await;
    let champion = answer.unwrap().into_inner();
    let metadata: serde_json::Value = serde_json::from_str(&champion.metadata_json).unwrap();
    let mass: f64 = metadata["train_illegal_mass"].as_str().unwrap().parse().unwrap();
    println!(
        "{game}: after {} steps {:.2} % of the policy lies on illegal actions",
        champion.step,
        100.0 * mass
    );
    assert!((0.0..1.0).contains(&mass), "{game}: {mass}");
}

/// Each line is a test `name` that trains `game`.
macro_rules! games {
    ($($name:ident: $game:literal,)*) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            train(stringify!($name), $game).await;
        })*
    };
}

games! {
    mnk: "mnk?m=5&n=4&k=4&opening=swap2",
    gomoku_freestyle: "gomoku-freestyle?size=6&history=4&threat_planes=false",
    gomoku_standard: "gomoku-standard?size=6&opening=swap2",
    caro: "caro?size=6",
    caro5_gomocup: "caro5-gomocup?size=6",
    renju: "renju?size=7",
    black_hole: "black-hole?rows=5&history=2",
    hex: "hex?size=5",
    go: "go?size=5",
    amazons: "amazons?size=4",
    ataxx: "ataxx?walls=diamond",
    xiangqi: "xiangqi",
}
