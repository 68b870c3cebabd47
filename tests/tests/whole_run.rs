//! The loop from an empty board to a promoted network, through the user's command alone; then resuming, refusing and
//! draining.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test's run file need not survive a crash")]

use std::path::{Path, PathBuf};

use serde_json::Value;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_proto::v1::{RunStatus, WatchStatusRequest};
use tengen_system_tests::cluster::{Up, is_alive, tengen, tengen_ok};

/// Connect Four with a tiny network and a short gate.
const RUN: &str = r#"
[run]
name = "small"
game = "connect-four"
[network]
blocks = 1
channels = 16
value_hidden = 16
[search]
temperature_turns = 10
[[schedule]]
from_iteration = 0
games = 120
simulations = 24
[selfplay]
random_plies_max = 2
[gate]
games = 60
threshold = 0.7
simulations = 16
[learner]
batch = 64
window_min_positions = 500
checkpoint_every_steps = 50
[actor]
games = 32
batch_max = 32
[cpu]
learner_threads = 1
actor_threads = 1
"#;

/// Games within which the first promotion must come; it comes within the first thousand. The gate asks for so much that
/// what passes it also passes the duels below.
const GAMES_MAX: &str = "4000";

fn write_run(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("small.toml");
    std::fs::write(&path, text).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_reaches_a_promotion_and_its_champion_is_pulled_played_and_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let run = write_run(folder.path(), RUN);
    let up = Up::start(&run, &data, &["--until-generation", "1", "--until-games", GAMES_MAX]);
    let children: Vec<u32> = up.children().into_values().collect();
    let (status, lines) = up.finish();
    assert!(status.success());
    assert!(
        lines.iter().any(|line| line.contains("promoted: ")),
        "no promotion within {GAMES_MAX} games"
    );
    assert!(
        children.iter().all(|child| !is_alive(*child)),
        "a child outlived `tengen up`"
    );
    assert_progress_lines(&lines);

    let checkpoint = newest_checkpoint(&data);
    let up = Up::start(&run, &data, &[]);
    assert!(
        first_step(&up).await >= checkpoint,
        "the learner did not go on from its checkpoint"
    );
    let before = up.status().await;
    assert!(before.generation >= 1, "the champion was forgotten");
    assert!(
        before.games > 0 && before.positions > 0 && before.window_positions > 0,
        "the games were forgotten"
    );
    assert!(
        before.rejected.is_empty(),
        "honest games were rejected: {:?}",
        before.rejected
    );
    check_pull_and_duel(&up, folder.path());
    let (status, _) = up.interrupt();
    assert!(status.success(), "Ctrl-C does not end in success");

    check_at_rest(&data, folder.path());

    let changed = write_run(folder.path(), &RUN.replace("channels = 16", "channels = 24"));
    let output = tengen([
        "up",
        "--run",
        changed.to_str().unwrap(),
        "--data",
        data.to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
    ]);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    for part in ["16", "24", "--data"] {
        assert!(words.contains(part), "{part:?} is missing in the refusal:\n{words}");
    }

    check_actors_and_time(&write_run(folder.path(), RUN), &data, before.games).await;
}

/// Into a pipe every line begins with the time, and progress is told in lines.
fn assert_progress_lines(lines: &[String]) {
    let stamp = |line: &str| -> Option<String> {
        let (time, _) = line.strip_prefix('[')?.split_once("] ")?;
        let shaped = time.len() == 8
            && time
                .split(':')
                .all(|part| part.len() == 2 && part.parse::<u8>().is_ok());
        shaped.then(|| time.to_owned())
    };
    let stamps: Vec<String> = lines
        .iter()
        .map(|line| stamp(line).unwrap_or_else(|| panic!("no time in {line:?}")))
        .collect();
    assert!(stamps.is_sorted(), "{stamps:?}");
    let parts = [
        "] iteration ",
        " positions, window ",
        " positions/min, ",
        " evaluations/s",
    ];
    assert!(
        lines.iter().any(|line| parts.iter().all(|part| line.contains(part))),
        "no line of progress in\n{}",
        lines.join("\n")
    );
}

/// As many actors play as were asked for, and a run that was given a time ends by itself.
async fn check_actors_and_time(run: &Path, data: &Path, games: u64) {
    let up = Up::start(run, data, &["--actors", "2"]);
    assert!(up.status().await.games >= games, "the refused start changed the run");
    let both = |status: RunStatus| {
        let alive: Vec<_> = status.actors.into_iter().filter(|actor| actor.alive).collect();
        (alive.len() == 2).then_some(alive)
    };
    let actors = first(&up, both).await;
    assert_ne!(actors[0].actor_id, actors[1].actor_id);
    assert!(up.interrupt().0.success());

    let (status, lines) = Up::start(run, data, &["--for", "1s"]).finish();
    assert!(status.success(), "the end of its time is no failure: {status}");
    assert!(
        lines.last().is_some_and(|line| line.ends_with("] stopped")),
        "{lines:?}"
    );
}

/// Step of the newest checkpoint.
fn newest_checkpoint(data: &Path) -> u64 {
    let files = std::fs::read_dir(data.join("learner/checkpoints")).unwrap().flatten();
    let step = |name: String| {
        name.chars()
            .filter(char::is_ascii_digit)
            .collect::<String>()
            .parse()
            .ok()
    };
    let steps = files.filter_map(|file| step(file.file_name().into_string().unwrap()));
    steps.max().expect("draining writes a checkpoint")
}

/// The first step that the learner reports.
async fn first_step(up: &Up) -> u64 {
    first(up, |status| status.learner.map(|learner| learner.step)).await
}

/// What `look` finds in the first status that shows it.
async fn first<T>(up: &Up, look: impl Fn(RunStatus) -> Option<T>) -> T {
    let mut client = RunServiceClient::new(up.channel());
    let request = WatchStatusRequest {
        interval_ms: 100,
        ..Default::default()
    };
    let mut updates = client.watch_status(request).await.unwrap().into_inner();
    loop {
        let status = updates.message().await.unwrap().expect("the status stream goes on");
        if let Some(found) = look(status) {
            return found;
        }
    }
}

fn assert_checksums(pulled: &Path) {
    let sums = std::process::Command::new("sha256sum")
        .args(["-c", "SHA256SUMS"])
        .current_dir(pulled)
        .output()
        .unwrap();
    assert!(sums.status.success(), "{}", String::from_utf8_lossy(&sums.stdout));
}

/// Nothing runs: the run is read from its folder.
fn check_at_rest(data: &Path, folder: &Path) {
    let data = data.to_str().unwrap();
    assert!(tengen_ok(["status", "--data", data]).contains("at rest"));
    assert!(tengen_ok(["models", "list", "--data", data]).contains("champion"));
    let pulled = folder.join("at-rest");
    tengen_ok([
        "models",
        "pull",
        "champion",
        "--data",
        data,
        "--out",
        pulled.to_str().unwrap(),
    ]);
    assert_checksums(&pulled);
    // Shown is what the pulled folder says about it.
    let shown = tengen_ok(["models", "show", "champion", "--data", data]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let described: Value = serde_json::from_slice(&std::fs::read(pulled.join("model.json")).unwrap()).unwrap();
    assert_eq!(shown, described);
    assert_eq!((&shown["state"], &shown["run"]), (&"champion".into(), &"small".into()));
    let (generation, verdict) = (shown["generation"].as_u64(), shown["verdict"].as_str());
    assert!(
        generation.is_some_and(|generation| generation >= 1)
            && verdict.is_some_and(|said| said.starts_with("promoted: ")),
        "{shown:#}"
    );
    let none = tengen(["status", "--data", folder.join("none").to_str().unwrap()]);
    assert!(
        !none.status.success() && String::from_utf8_lossy(&none.stderr).contains("holds no run"),
        "{none:?}"
    );
}

fn check_pull_and_duel(up: &Up, folder: &Path) {
    let url = up.url();
    assert!(tengen_ok(["health", "--coordinator", url]).contains("serves"));
    assert!(tengen_ok(["status", "--coordinator", url]).contains("connect-four"));
    let list = tengen_ok(["models", "list", "--coordinator", url]);
    assert!(list.contains("champion"), "{list}");
    let shown: Value = serde_json::from_str(&tengen_ok(["models", "show", "--coordinator", url])).unwrap();
    assert_eq!(shown["state"], "champion");

    let pulled = folder.join("pulled");
    tengen_ok([
        "models",
        "pull",
        "champion",
        "--coordinator",
        url,
        "--out",
        pulled.to_str().unwrap(),
    ]);
    let description: Value = serde_json::from_slice(&std::fs::read(pulled.join("model.json")).unwrap()).unwrap();
    assert!(description["generation"].as_u64().unwrap() >= 1);
    assert_eq!(description["configuration"]["run"]["game"], "connect-four");
    assert_eq!(description["metadata"]["game"], "connect-four");
    assert_checksums(&pulled);

    let duel = |second: &str, simulations: &str| -> Value {
        let first = pulled.to_str().unwrap();
        let text = tengen_ok([
            "duel",
            first,
            second,
            "--games",
            "100",
            "--simulations",
            simulations,
            "--json",
            "--coordinator",
            url,
        ]);
        serde_json::from_str(&text).unwrap()
    };
    let without_search = duel("random", "0");
    assert_eq!(without_search["games"], 100);
    assert!(
        without_search["score"].as_f64().unwrap() > 0.6,
        "the policy learned nothing: {without_search}"
    );
    let against_start = duel("gen:0", "16");
    assert!(
        against_start["score"].as_f64().unwrap() > 0.5,
        "the champion is no better: {against_start}"
    );
}
