//! A run plays rating matches beside its games, and everybody who took part stands where they should.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test's run file need not survive a crash")]

use serde_json::Value;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_proto::v1::{ListRatingsRequest, RunStatus, WatchStatusRequest};
use tengen_service::channel::Channel;
use tengen_system_tests::cluster::{Up, tengen_ok};

/// Tic-tac-toe with a tiny network; four in ten games are for ratings.
const RUN: &str = r#"
[run]
name = "rated"
game = "tic-tac-toe"
[network]
blocks = 1
channels = 16
value_hidden = 16
[search]
temperature_turns = 4
[[schedule]]
from_iteration = 0
games = 150
simulations = 16
[selfplay]
random_plies_max = 4
[gate]
kind = "none"
simulations = 16
[ratings]
share = 0.4
pairs = 4
baselines = ["random", "one-ply", "rollout:50", "champion:policy"]
champions = 2
[learner]
batch = 64
window_min_positions = 400
steps_behind_max = 100
checkpoint_every_steps = 100
[actor]
games = 16
batch_max = 16
[cpu]
learner_threads = 1
actor_threads = 1
"#;

/// Rating games until the table is looked at.
const RATING_GAMES: u64 = 500;
/// Self-play games within which they must have been played. At a share of 0.4 they come with some 750; a learner that is
/// slow to start lets self-play run ahead.
const GAMES_MAX: u64 = 100_000;

#[tokio::test(flavor = "multi_thread")]
async fn champions_and_baselines_are_rated_and_random_stands_far_below_the_champion() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("rated.toml");
    std::fs::write(&run, RUN).unwrap();
    let data = folder.path().join("data");
    let up = Up::start_with(&run, &data, &[], &[("AUDIT__SHARE", "1")]);
    let status = until_rated(&up).await;
    assert!(status.rejected.is_empty(), "honest games were rejected: {status:?}");
    assert_eq!(status.audit_failed, 0);
    assert_eq!(status.match_games, status.rating_games, "there is no gate");
    let share = status.rating_games as f64 / (status.rating_games + status.games) as f64;
    assert!(share < 0.5, "{share} of the games are for ratings");
    let live = tengen_ok(["ratings", "--coordinator", up.url()]);
    assert!(live.contains("gen:0") && live.contains("rollout:50"), "{live}");
    assert!(up.interrupt().0.success());

    // Nothing runs: the ratings are read from the folder.
    let data = data.to_str().unwrap();
    println!("{}", tengen_ok(["ratings", "--data", data]));
    let matrix = tengen_ok(["ratings", "--matrix", "--data", data]);
    println!("{matrix}");
    assert!(matrix.contains("random") && matrix.contains("gen:0"), "{matrix}");
    let table: Value = serde_json::from_str(&tengen_ok(["ratings", "--json", "--data", data])).unwrap();
    check(&table);
    assert!(tengen_ok(["db", "check", "--data", data]).contains("is sound"));
}

/// Waits until enough rating games are stored, and the first candidate that became champion has played some.
async fn until_rated(up: &Up) -> RunStatus {
    let mut client = RunServiceClient::new(up.channel());
    let request = WatchStatusRequest {
        interval_ms: 200,
        ..WatchStatusRequest::default()
    };
    let mut updates = client.watch_status(request).await.unwrap().into_inner();
    loop {
        let status = updates.message().await.unwrap().expect("the status stream goes on");
        if status.rating_games >= RATING_GAMES && status.generation >= 1 && is_rated(&mut client, 1).await {
            return status;
        }
        assert!(status.games <= GAMES_MAX, "the budget is spent: {status:?}");
    }
}

async fn is_rated(client: &mut RunServiceClient<Channel>, generation: u32) -> bool {
    let answer = client.list_ratings(ListRatingsRequest::default()).await.unwrap();
    let ratings = answer.into_inner().ratings;
    ratings.iter().any(|rating| rating.generation == Some(generation))
}

fn check(table: &Value) {
    let ratings = table["ratings"].as_array().unwrap();
    let of = |player: &str| {
        let found = ratings.iter().find(|rating| rating["player"] == player);
        found.unwrap_or_else(|| panic!("{player} is not in {table:#}"))
    };
    for player in ["random", "one-ply", "rollout:50", "gen:0", "gen:1"] {
        let rating = of(player);
        assert!(
            rating["elo"].is_f64() && rating["games"].as_u64().unwrap() > 0,
            "{rating}"
        );
    }
    assert!(
        ratings
            .iter()
            .any(|rating| rating["player"].as_str().unwrap().ends_with(":policy"))
    );
    assert_eq!(
        (of("gen:0")["elo"].as_f64(), of("gen:0")["elo_error"].as_f64()),
        (Some(0.0), Some(0.0))
    );
    let newest = ratings
        .iter()
        .filter(|rating| !rating["player"].as_str().unwrap().contains(":policy"))
        .max_by_key(|rating| rating["generation"].as_u64())
        .unwrap();
    let ends = |rating: &Value| {
        let (elo, error) = (rating["elo"].as_f64().unwrap(), rating["elo_error"].as_f64().unwrap());
        (elo - error, elo + error)
    };
    assert!(
        ends(of("random")).1 < ends(newest).0,
        "random {:?} is not clearly below {newest}",
        of("random")
    );
    // Every game was played by two.
    let total = |list: &Value, keys: [&str; 3]| -> u64 {
        let games = |entry: &Value| keys.iter().map(|key| entry[*key].as_u64().unwrap()).sum::<u64>();
        list.as_array().unwrap().iter().map(games).sum()
    };
    let keys = ["wins", "draws", "losses"];
    assert_eq!(total(&table["ratings"], keys), 2 * total(&table["pairings"], keys));
}

#[test]
fn a_duel_takes_every_kind_of_player() {
    let duel = |first: &str, second: &str| -> Value {
        let players = [
            "duel",
            first,
            second,
            "--game",
            "connect-four",
            "--games",
            "40",
            "--json",
        ];
        serde_json::from_str(&tengen_ok(players)).unwrap()
    };
    assert!(duel("one-ply", "random")["score"].as_f64().unwrap() > 0.6);
    assert!(duel("rollout:60", "one-ply")["score"].as_f64().unwrap() > 0.5);
    for (player, says) in [("rollout:0", "from 1 to 100000"), ("human:anna", "is a person")] {
        let refused = tengen_system_tests::cluster::tengen(["duel", player, "random", "--game", "connect-four"]);
        let words = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && words.contains(says), "{words}");
    }
}
