//! A run steered over real processes by the user's command alone: paused, changed, resumed, its champion chosen by hand,
//! rolled back, ended.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test's run file need not survive a crash")]

use std::path::Path;

use rusqlite::Connection;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_proto::v1::{RunStatus, WatchStatusRequest};
use tengen_service::run_config::RunConfig;
use tengen_system_tests::cluster::{Up, tengen, tengen_ok};

/// Tic-tac-toe without a gate: every candidate is promoted, so generations come quickly.
const RUN: &str = r#"
[run]
name = "steered"
game = "tic-tac-toe"
[network]
blocks = 1
channels = 8
value_channels = 4
value_hidden = 8
[[schedule]]
from_iteration = 0
games = 60
simulations = 8
[selfplay]
random_plies_max = 4
[gate]
kind = "none"
[replay]
capacity_positions = 2000
[learner]
batch = 32
window_min_positions = 200
checkpoint_every_steps = 50
[actor]
games = 16
batch_max = 16
[cpu]
learner_threads = 1
actor_threads = 1
"#;

/// Status messages within which something asked for shows: minutes, where it takes a second or two.
const LOOKS_MAX: usize = 3_000;

/// Watches the run until `holds`.
async fn until(up: &Up, what: &str, holds: impl Fn(&RunStatus) -> bool) -> RunStatus {
    let mut client = RunServiceClient::new(up.channel());
    let request = WatchStatusRequest {
        interval_ms: 100,
        ..WatchStatusRequest::default()
    };
    let mut updates = client.watch_status(request).await.unwrap().into_inner();
    for _ in 0..LOOKS_MAX {
        let status = updates.message().await.unwrap().expect("the status stream goes on");
        if holds(&status) {
            return status;
        }
    }
    panic!("{what} does not come");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_paused_changed_resumed_promoted_by_hand_rolled_back_and_ended() {
    let folder = tempfile::tempdir().unwrap();
    let (run, data) = (folder.path().join("steered.toml"), folder.path().join("data/steered"));
    std::fs::write(&run, RUN).unwrap();
    let up = Up::start(&run, &data, &[]);
    until(&up, "a second generation", |status| status.generation >= 2).await;
    let rest = pause(&up, &data).await;
    change(&up, &rest).await;
    resume(&up, &rest).await;
    choose_by_hand(&up, &data).await;
    roll_back(&up).await;
    make_another(folder.path(), &run);
    check_what_is_told(&up, folder.path());
    end(up);
    check_after_the_end(&run, &data, folder.path());
}

/// Runs a command on the run.
fn steer(up: &Up, words: &[&str]) -> String {
    tengen_ok(words.iter().copied().chain(["--coordinator", up.url()]))
}

/// Whether the learner holds.
fn holds(status: &RunStatus) -> bool {
    let learner = status.learner.as_ref();
    learner.is_some_and(|learner| learner.activity == "waiting: training is paused")
}

/// Paused, everything comes to rest: games under way are stored, the learner holds.
async fn pause(up: &Up, data: &Path) -> RunStatus {
    steer(up, &["pause", "self-play", "--reason", "a look at it"]);
    let said = steer(up, &["pause", "training"]);
    assert_eq!(said.trim(), "paused: self-play, training");
    until(up, "the learner's pause", holds).await;
    let rest = at_rest(up, data).await;
    assert!(rest.waiting.contains("self-play is paused"), "{}", rest.waiting);
    rest
}

/// Changed meanwhile, with a diff, and refused by name where a key is fixed.
async fn change(up: &Up, rest: &RunStatus) {
    let keys = [
        "learner.learning_rate=0.005",
        "schedule.0.simulations=12",
        "replay.capacity_positions=4000",
    ];
    let diff = "- learner.learning_rate = 0.02\n+ learner.learning_rate = 0.005";
    let said = steer(up, &[&["settings", "set", "--dry-run"], &keys[..]].concat());
    assert!(said.contains(diff), "{said}");
    assert!(
        said.ends_with("nothing was changed: revision 1 stays (--dry-run)\n"),
        "{said}"
    );
    let unchanged = up.status().await;
    assert_eq!(
        (
            unchanged.settings_revision,
            unchanged.simulations,
            unchanged.window_capacity
        ),
        (1, 8, 2_000)
    );
    let said = steer(up, &[&["settings", "set"], &keys[..]].concat());
    assert!(said.contains(diff) && said.ends_with("revision 2\n"), "{said}");
    let fixed = tengen(["settings", "set", "network.channels=16", "--coordinator", up.url()]);
    let words = String::from_utf8_lossy(&fixed.stderr).into_owned();
    assert!(
        !fixed.status.success() && words.contains("network.channels is fixed"),
        "{words}"
    );
    let changed = until(up, "the larger window", |status| status.window_capacity == 4_000).await;
    assert_eq!(
        (changed.games, changed.simulations, changed.settings_revision),
        (rest.games, 12, 2)
    );
}

/// Resumed: games of the new revision come, and the learner trains at the new rate without a restart.
async fn resume(up: &Up, rest: &RunStatus) {
    steer(up, &["resume", "self-play"]);
    until(up, "new games", |status| status.games > rest.games + 20).await;
    assert!(holds(&up.status().await), "training is paused still");
    steer(up, &["resume", "training"]);
    let slower = |status: &RunStatus| {
        let learner = status.learner.as_ref();
        learner.is_some_and(|learner| learner.learning_rate == 0.005)
    };
    until(up, "the new learning rate", slower).await;
    let generation = up.status().await.generation;
    until(up, "one more generation", |status| status.generation > generation).await;
}

/// A candidate waits, and nothing is under way that could bring another one.
async fn candidate_waits(up: &Up, data: &Path) -> RunStatus {
    steer(up, &["resume", "self-play"]);
    until(up, "a candidate", |status| status.candidates_waiting > 0).await;
    steer(up, &["pause", "self-play"]);
    at_rest(up, data).await;
    until(up, "the last candidate", |status| status.candidate_due_iteration == 0).await
}

/// With gating paused people choose: one candidate becomes champion, the next one is given up. What names a champion of
/// before is refused.
async fn choose_by_hand(up: &Up, data: &Path) {
    steer(up, &["pause", "gating"]);
    let before = candidate_waits(up, data).await;
    let said = steer(up, &["promote", "latest", "--reason", "it looks good"]);
    let generation = before.generation + 1;
    let verdict = format!("is champion, generation {generation}: promoted by hand (local): it looks good");
    assert!(said.contains(&verdict), "{said}");
    let status = up.status().await;
    assert_eq!((status.generation, status.candidates_waiting), (generation, 0));

    let (old, new) = (format!("gen:{}", before.generation), format!("gen:{generation}"));
    let refused = |words: &[&str]| {
        let words = words.iter().copied().chain(["--coordinator", up.url()]);
        let output = tengen(words);
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let stale = refused(&["pin", "--expect-champion", &old]);
    assert!(stale.contains("the order is stale"), "{stale}");
    let said = steer(up, &["pin", "--expect-champion", &new]);
    assert_eq!(said.trim(), "paused: self-play, gating; the champion is pinned");
    let stale = refused(&["unpin", "--expect-champion", &old]);
    assert!(stale.contains("the order is stale"), "{stale}");
    assert_eq!(steer(up, &["unpin"]).trim(), "paused: self-play, gating");

    candidate_waits(up, data).await;
    let said = steer(up, &["reject", "latest", "--reason", "not this one"]);
    assert!(
        said.contains("is rejected: rejected by hand (local): not this one"),
        "{said}"
    );
    let status = up.status().await;
    assert_eq!((status.generation, status.candidates_waiting), (generation, 0));
    steer(up, &["resume", "gating"]);
    steer(up, &["resume", "self-play"]);
}

/// Another run of this machine, made beside this one and never started.
fn make_another(folder: &Path, run: &Path) {
    let (run, dir) = (run.to_str().unwrap(), folder.join("data"));
    let words = [
        "runs",
        "new",
        "another",
        "--from",
        run,
        "--set",
        "learner.batch=16",
        "--dir",
    ];
    let said = tengen_ok(words.iter().copied().chain([dir.to_str().unwrap()]));
    let file = dir.join("another/run.toml");
    let start = format!(
        "tengen up --run {} --data {}",
        file.display(),
        dir.join("another").display()
    );
    assert!(said.contains(&start), "{said}");
    let config = RunConfig::load(&file).unwrap();
    assert_eq!((config.run.name.as_str(), config.learner.batch), ("another", 16));
    let list = runs(folder);
    assert!(list.contains("another") && list.contains("not started yet"), "{list}");
}

/// Rolled back and pinned: self-play goes on with generation 1, and candidates are held.
async fn roll_back(up: &Up) {
    let said = steer(up, &["rollback", "gen:1", "--pin", "--reason", "it played better"]);
    let verdict = "is champion, generation 1: taken back by hand (local): it played better";
    assert!(said.contains(verdict), "{said}");
    let back = up.status().await;
    let champion = back.champion.unwrap().model_id;
    until(up, "games after the roll-back", |status| status.games > back.games + 60).await;
    let status = up.status().await;
    assert_eq!((status.generation, status.champion.unwrap().model_id), (1, champion));
    assert!(status.rejected.is_empty(), "{:?}", status.rejected);
}

fn check_what_is_told(up: &Up, folder: &Path) {
    let audit = steer(up, &["audit"]);
    for part in [
        "pause             self-play: a look at it  (local)",
        "change-settings   revision 2  (local)",
        "promote",
        "reject",
        "roll-back",
    ] {
        assert!(audit.contains(part), "{part:?} in\n{audit}");
    }
    let history = steer(up, &["settings", "history"]);
    let schedule = "+ schedule = [{ from_iteration = 0, games = 60, simulations = 12 }]";
    assert!(history.contains(schedule), "{history}");
    let list = runs(folder);
    assert!(
        list.contains("steered") && list.contains("served at 127.0.0.1:"),
        "{list}"
    );
}

fn runs(folder: &Path) -> String {
    tengen_ok(["runs", "list", "--dir", folder.join("data").to_str().unwrap()])
}

/// Ended by the name of the run: everything drains by itself.
fn end(up: Up) {
    let refused = tengen(["end", "other", "--coordinator", up.url()]);
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("\"steered\""),
        "{refused:?}"
    );
    steer(&up, &["end", "steered"]);
    let (status, lines) = up.finish();
    assert!(status.success(), "an ended run is no failure");
    assert!(lines.iter().any(|line| line.contains("the run has ended")), "{lines:?}");
}

/// The run is read as ever, and a start of it says so and ends.
fn check_after_the_end(run: &Path, data: &Path, folder: &Path) {
    let (status, _) = Up::start(run, data, &[]).finish();
    assert!(status.success());
    let list = runs(folder);
    assert!(list.trim_end().ends_with("ended"), "{list}");
    let data = data.to_str().unwrap();
    let at_rest = tengen_ok(["status", "--data", data]);
    assert!(
        at_rest.contains("generation  1 (") && at_rest.contains("ended 20"),
        "{at_rest}"
    );
    let settings = tengen_ok(["settings", "show", "--data", data]);
    assert!(settings.contains("learning_rate = 0.005"), "{settings}");
}

/// The run once every game that was under way is stored: no lease is out any more.
async fn at_rest(up: &Up, data: &Path) -> RunStatus {
    let database = Connection::open(data.join("tengen.db")).unwrap();
    let leases_out = || -> i64 {
        let sql = "SELECT count(*) FROM leases WHERE state = 'active'";
        database.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    until(up, "the end of what is under way", |_| leases_out() == 0).await;
    up.status().await
}
