//! What `tengen doctor` says of faults of actors and learners, each brought about where it comes from: a build, a clock, a
//! device, a machine that computes wrongly, a setting, a process that hangs, a damaged file, a disk. No report is written here.
//!
//! Other causes are brought about before a coordinator alone: `coordinator/tests/api/diagnose.rs` and its neighbours.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tengen_proto::v1::RunStatus;
use tengen_records::ModelId;
use tengen_service::BUILD;
use tengen_service::files::write_atomic;
use tengen_system_tests::cluster::{program, tengen_ok};
use tengen_system_tests::coordinator::Coordinator;
use tengen_system_tests::faults;
use tengen_system_tests::part::{Part, actor, actor_id, learner};
use tengen_system_tests::unwell::{Fault, on_machine_with, other_build, without_gpus};

/// Tic-tac-toe whose every candidate is promoted; the rest of its last section is each test's own.
const RUN: &str = r#"
[run]
name = "unwell"
game = "tic-tac-toe"
[network]
blocks = 1
channels = 8
value_hidden = 8
[[schedule]]
from_iteration = 0
games = 60
simulations = 8
[selfplay]
random_plies_max = 4
[gate]
kind = "none"
[learner]
batch = 32
"#;

/// Looks within which what is waited for comes: minutes, where the slowest takes a quarter of one.
const LOOKS_MAX: usize = 1_200;
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A coordinator in `folder` for the run with these keys of `[learner]`.
async fn start(folder: &Path, learner: &str) -> Coordinator {
    let run = folder.join("unwell.toml");
    write_atomic(&run, format!("{RUN}{learner}").as_bytes()).unwrap();
    Coordinator::start(&run, &folder.join("data"), &[]).await
}

/// An actor with nothing wrong about it.
fn start_actor(coordinator: &Coordinator, data: &Path) -> Part {
    Part::start(&mut actor(&program("tengen-actor"), coordinator.url(), data, "cpu"))
}

/// Looks until `holds`.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    for _ in 0..LOOKS_MAX {
        looks.tick().await;
        if holds().await {
            return;
        }
    }
    panic!("{what} does not come");
}

/// Looks until the status `holds`.
async fn until_status(coordinator: &Coordinator, what: &str, holds: impl Fn(&RunStatus) -> bool) {
    until(what, async || holds(&coordinator.status().await)).await;
}

/// Everything that the doctor finds now.
fn findings(coordinator: &Coordinator) -> Vec<Value> {
    let said = tengen_ok(["doctor", "--json", "--coordinator", coordinator.url()]);
    let diagnosis: Value = serde_json::from_str(&said).unwrap();
    diagnosis["findings"].as_array().unwrap().clone()
}

/// What a finding says, evidence included.
fn words(finding: &Value) -> String {
    let evidence = finding["evidence"].as_array().unwrap();
    assert!(!evidence.is_empty(), "{finding}");
    let lines = [&finding["sentence"]].into_iter().chain(evidence);
    let lines: Vec<&str> = lines.map(|line| line.as_str().unwrap()).collect();
    assert!(lines.iter().all(|line| !line.is_empty()), "{finding}");
    lines.join("\n")
}

/// Waits until the doctor names this cause with this part in what it says; all that it says then.
async fn named(coordinator: &Coordinator, cause: &str, part: &str) -> String {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    let mut last = Vec::new();
    for _ in 0..LOOKS_MAX {
        looks.tick().await;
        last = findings(coordinator);
        let of_cause = last.iter().filter(|finding| finding["cause"] == cause);
        if let Some(found) = of_cause.map(words).find(|words| words.contains(part)) {
            return found;
        }
    }
    panic!("no {cause} with {part:?} in {last:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn builds_clocks_devices_and_arithmetic_that_are_off_are_named() {
    // Beside the programs, since programs are started from it, too.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = |name: &str| folder.path().join(name);
    let coordinator = start(folder.path(), "window_min_positions = 200\n").await;
    let url = coordinator.url();
    let mut command = learner(url, &path("learner"));
    on_machine_with(&[Fault::Clock, Fault::Arithmetic], folder.path(), &mut command);
    without_gpus(&mut command);
    let _learner = Part::start(&mut command);
    named(&coordinator, "window-below-minimum", "0 of 200 positions").await;
    let clock = named(&coordinator, "clock-off", "the learner on").await;
    assert!(clock.contains("3600 seconds behind"), "{clock}");
    named(&coordinator, "device-fell-back", "the learner on").await;

    // The tag is hashed with the rules: a build in which it stands for other rules has another one.
    let rules = path("of-other-rules");
    other_build("tengen-actor", "tengen rules 1\n", "tengen rules 2\n", &rules);
    let _stranger = Part::start(&mut actor(&rules, url, &path("stranger"), "cpu"));
    let other = named(&coordinator, "other-rules", "rules fingerprint of tic-tac-toe").await;
    assert!(other.contains(&actor_id(&path("stranger"))), "{other}");

    let version = format!("9{}", &BUILD[1..]);
    let later = path("of-another-version");
    other_build("tengen-actor", BUILD, &version, &later);
    let mut command = actor(&later, url, &path("actor"), "auto");
    on_machine_with(&[Fault::Clock], folder.path(), &mut command);
    without_gpus(&mut command);
    let _actor = Part::start(&mut command);
    let builds = format!("is of build {version}, the coordinator of {BUILD}");
    named(&coordinator, "other-build", &builds).await;
    let who = format!("actor {}", actor_id(&path("actor")));
    for cause in ["clock-off", "device-fell-back"] {
        named(&coordinator, cause, &who).await;
    }

    // Its games are good, and what the learner makes of them is checked on a machine that cannot be relied on.
    let given_up = named(&coordinator, "candidate-given-up", "the last export differed by 0.").await;
    assert!(given_up.contains("computed something else"), "{given_up}");
    let page = tengen_ok(["doctor", "--coordinator", url]);
    assert!(page.contains("(candidate-given-up)\n       the last export"), "{page}");
}

/// Each position is to be trained on a thousand times, which no learner does as fast as games are played.
const GREEDY: &str =
    "samples_per_position = 1000.0\nwindow_min_positions = 500\nsteps_behind_max = 50\ndevice = \"cpu\"\n";

/// Waits, besides all else, as long as it takes to be called silent: fifteen seconds.
#[tokio::test(flavor = "multi_thread")]
async fn a_learner_that_lags_or_waits_parts_that_hang_and_damaged_networks_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let hanging = folder.path().join("hanging");
    let coordinator = start(folder.path(), GREEDY).await;
    let actor = start_actor(&coordinator, &hanging);
    let learner = Part::start(&mut learner(coordinator.url(), &folder.path().join("learner")));
    lags_then_waits(&coordinator).await;
    learner.hang();
    actor.hang();
    let _misled = damaged_networks(&coordinator, folder.path()).await;
    named(&coordinator, "learner-silent", "the learner on").await;
    named(&coordinator, "actor-silent", &actor_id(&hanging)).await;
    // Of those that are heard, none has it.
    named(&coordinator, "no-actor-has-champion", "1 actors are connected").await;
}

/// The learner is behind until less is asked of it, and waits once nobody plays. Returns when nothing is under way.
async fn lags_then_waits(coordinator: &Coordinator) {
    let steer = |words: &[&str]| tengen_ok(words.iter().copied().chain(["--coordinator", coordinator.url()]));
    let slower = named(coordinator, "learner-slower-than-data", "steps behind").await;
    assert!(slower.contains("near 50 (learner.steps_behind_max)"), "{slower}");
    // What the doctor says helps.
    steer(&["settings", "set", "learner.samples_per_position=1.0"]);
    steer(&["pause", "self-play"]);
    let nothing_is_under_way = |status: &RunStatus| {
        let no_lease = status.actors.iter().all(|actor| actor.leases == 0);
        no_lease && status.candidate_due_iteration == 0
    };
    until_status(coordinator, "rest", nothing_is_under_way).await;
    named(coordinator, "learner-waits-for-games", "for the next step").await;
    assert!(
        findings(coordinator)
            .iter()
            .all(|finding| finding["cause"] != "learner-slower-than-data")
    );
    steer(&["resume", "self-play"]);
}

/// Actors that come for a champion whose file is damaged, then gone; they end when what is returned is dropped.
async fn damaged_networks(coordinator: &Coordinator, folder: &Path) -> [Part; 2] {
    let champion = coordinator.status().await.champion.unwrap();
    let id = ModelId::from_bytes(&champion.model_id).unwrap();
    let file = folder.join("data/models").join(format!("{id}.onnx"));
    flip_a_byte(&file);
    let misled = start_actor(coordinator, &folder.join("misled"));
    let gave_up = named(coordinator, "actor-gave-up", "arrived with another hash").await;
    assert!(gave_up.contains(&actor_id(&folder.join("misled"))), "{gave_up}");
    std::fs::remove_file(&file).unwrap();
    let without = start_actor(coordinator, &folder.join("without"));
    let missing = format!("failed to fetch model {id}");
    let cannot = named(coordinator, "actor-without-model", &missing).await;
    assert!(cannot.contains(&actor_id(&folder.join("without"))), "{cannot}");
    [misled, without]
}

/// Damages a file in the middle; its length stays.
fn flip_a_byte(path: &Path) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let middle = file.metadata().unwrap().len() / 2;
    let mut byte = [0];
    file.read_exact_at(&mut byte, middle).unwrap();
    file.write_all_at(&[byte[0] ^ 1], middle).unwrap();
}

/// Smallest spool that an actor may be given, bytes.
const SPOOL_BYTES: u64 = 64 << 20;
/// What is played of it; the rest is more of the same.
const PLAYED_BYTES: u64 = 128 << 10;
/// More free space than any disk has, bytes.
const FREE_BYTES_MIN: u64 = 1 << 62;

#[tokio::test(flavor = "multi_thread")]
async fn a_spool_that_is_full_since_nobody_takes_its_games_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (run, data) = (faults::write_run(folder.path()), folder.path().join("data"));
    let home = folder.path().join("actor");
    let spool = home.join("spool");
    let mut coordinator = Coordinator::start(&run, &data, &[]).await;
    let mut actor = start_actor(&coordinator, &home);
    until_status(&coordinator, "a first game", |status| status.games > 0).await;
    // It plays on while it is alone.
    coordinator.kill();
    coordinator.ended().await;
    until("games in the spool", async || {
        bytes_of(&segments(&spool)) >= PLAYED_BYTES
    })
    .await;
    actor.kill();
    play_on(&spool);

    let bytes = FREE_BYTES_MIN.to_string();
    let coordinator = Coordinator::start(&run, &data, &[("DISK__FREE_BYTES_MIN", &bytes)]).await;
    let mut command = self::actor(&program("tengen-actor"), coordinator.url(), &home, "cpu");
    let _actor = Part::start(command.args(["--spool-bytes-max", &SPOOL_BYTES.to_string()]));
    let full = named(&coordinator, "spool-full", "MiB of games wait for a verdict").await;
    assert!(full.contains(&actor_id(&home)), "{full}");
    // And why nobody takes them.
    named(&coordinator, "disk-full", "disk.free_bytes_min").await;
}

/// The files of a spool, oldest first.
fn segments(spool: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(spool).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "segment"));
    paths.sort();
    paths
}

fn bytes_of(segments: &[PathBuf]) -> u64 {
    segments.iter().map(|path| path.metadata().unwrap().len()).sum()
}

/// Leaves the spool of an actor that has ended as long play would: with segment after segment until it is full.
fn play_on(spool: &Path) {
    let played = segments(spool);
    let times = SPOOL_BYTES.div_ceil(bytes_of(&played)) as usize;
    let last = played.last().unwrap().file_stem().unwrap().to_str().unwrap();
    let numbers = last.parse::<u64>().unwrap() + 1..;
    let more = std::iter::repeat_n(&played, times).flatten();
    for (segment, number) in more.zip(numbers) {
        std::fs::copy(segment, spool.join(format!("{number:016}.segment"))).unwrap();
    }
}
