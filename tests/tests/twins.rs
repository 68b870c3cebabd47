//! Two of what there may be one of: the second coordinator of a folder is refused, the second learner of a run takes the
//! place of the first, and the run's history stays one line.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Output, Stdio};

use tengen_proto::v1::model_service_client::ModelServiceClient;
use tengen_proto::v1::{ListModelsRequest, Model};
use tengen_records::encode;
use tengen_service::files::write_atomic;
use tengen_system_tests::cluster::program;
use tengen_system_tests::coordinator::Coordinator;
use tengen_system_tests::faults::{self, Proof, scaled};
use tengen_system_tests::ledger::Ledger;
use tokio::process::{Child, Command};

/// Coordinators that come to a folder that is taken.
const LATECOMERS: usize = 4;
/// Games of an iteration, small enough that a learner is soon through with it.
const ITERATION: u32 = 30;

async fn deliver(ledger: &mut Ledger, games: usize) {
    let mut delivered = 0;
    while delivered < games {
        let records: Vec<Vec<u8>> = ledger.play_lease().await.iter().map(encode).collect();
        assert_eq!(ledger.submit(&records).await.len(), records.len());
        delivered += records.len();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn coordinators_that_come_to_a_folder_that_is_taken_are_refused_and_change_nothing() {
    let proof = Proof::begin("two-coordinators");
    let folder = tempfile::tempdir().unwrap();
    let (run, data) = (faults::write_run(folder.path()), folder.path().join("data"));
    let coordinator = Coordinator::start(&run, &data, &[]).await;
    let mut ledger = Ledger::register(coordinator.channel(), 7).await;
    deliver(&mut ledger, 10).await;
    let holder = format!("is in use by process {}", coordinator.id());
    // All at once, and games come in meanwhile.
    let late = || {
        Command::new(program("tengen-coordinator"))
            .arg("--run")
            .arg(&run)
            .arg("--data")
            .arg(&data)
            .args(["--listen", "127.0.0.1:0"])
            .env("TENGEN_COORDINATOR__AUDIT__SHARE", "0")
            .kill_on_drop(true)
            .output()
    };
    let latecomers: Vec<_> = (0..LATECOMERS).map(|_| tokio::spawn(late())).collect();
    deliver(&mut ledger, 50).await;
    for latecomer in latecomers {
        let Output { status, stderr, .. } = latecomer.await.unwrap().unwrap();
        let said = String::from_utf8_lossy(&stderr);
        assert!(!status.success() && said.contains(&holder), "{status}: {said}");
    }
    deliver(&mut ledger, 10).await;
    coordinator.drain().await;
    ledger.assert_kept(&data);
    // The place is free again.
    Coordinator::start(&run, &data, &[]).await.drain().await;
    let proof = proof.count("refused", LATECOMERS);
    proof.count("acknowledged_games", ledger.acknowledged.len()).proved();
}

/// A run whose learner publishes after few games, and no gate holds it up.
fn write_run(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("twins.toml");
    let run = format!(
        r#"
[run]
name = "twins"
game = "tic-tac-toe"
[network]
blocks = 1
channels = 8
value_hidden = 8
[[schedule]]
from_iteration = 0
games = {ITERATION}
simulations = 8
[selfplay]
random_plies_max = 4
[gate]
kind = "none"
[learner]
batch = 16
window_min_positions = 50
steps_behind_max = 50
checkpoint_every_steps = 5
"#
    );
    write_atomic(&path, run.as_bytes()).unwrap();
    path
}

fn start_learner(coordinator: &Coordinator, data: &Path) -> Child {
    Command::new(program("tengen-learner"))
        .args(["--coordinator", &format!("http://{}", coordinator.addr())])
        .args([
            "--device",
            "cpu",
            "--threads",
            "1",
            "--log",
            "warn",
            "--exit-with-parent",
        ])
        .arg("--data")
        .arg(data)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// Plays on until the champion is of a later generation than this one.
async fn until_promoted(coordinator: &Coordinator, ledger: &mut Ledger, generation: u32) -> u32 {
    loop {
        let status = coordinator.status().await;
        if status.generation > generation {
            return status.generation;
        }
        if status.iteration_games < status.iteration_games_target {
            deliver(ledger, 1).await;
        }
    }
}

async fn models(coordinator: &Coordinator) -> Vec<Model> {
    let request = ListModelsRequest {
        page_size: 1_000,
        ..ListModelsRequest::default()
    };
    let mut client = ModelServiceClient::new(coordinator.channel());
    client.list_models(request).await.unwrap().into_inner().models
}

#[tokio::test(flavor = "multi_thread")]
async fn learners_that_take_each_others_place_leave_one_line_of_models() {
    let proof = Proof::begin("two-learners");
    let takeovers = scaled(2, 10);
    let folder = tempfile::tempdir().unwrap();
    let (run, data) = (write_run(folder.path()), folder.path().join("data"));
    let coordinator = Coordinator::start(&run, &data, &[]).await;
    let mut ledger = Ledger::register(coordinator.channel(), 7).await;
    let mut generation = coordinator.status().await.generation;
    let mut present = start_learner(&coordinator, &folder.path().join("learner-0"));
    generation = until_promoted(&coordinator, &mut ledger, generation).await;
    for takeover in 1..=takeovers {
        // Each comes to a folder of its own, which it may have left with an older state.
        let next = start_learner(&coordinator, &folder.path().join(format!("learner-{}", takeover % 2)));
        let earlier = std::mem::replace(&mut present, next);
        // The standard input is held, so that only its place being taken can end it.
        let Output { status, stderr, .. } = ended(earlier).await;
        let said = String::from_utf8_lossy(&stderr);
        assert!(
            !status.success() && said.contains("another learner took this one's place"),
            "{said}"
        );
        generation = until_promoted(&coordinator, &mut ledger, generation).await;
    }
    drop(present.stdin.take());
    assert!(present.wait().await.unwrap().success());
    let line = assert_one_line(models(&coordinator).await);
    coordinator.drain().await;
    ledger.assert_kept(&data);
    proof
        .count("takeovers", takeovers)
        .count("models_in_line", line)
        .proved();
}

/// Waits for its end with its standard input open.
async fn ended(mut learner: Child) -> Output {
    let lifeline = learner.stdin.take();
    let output = learner.wait_with_output().await.unwrap();
    drop(lifeline);
    output
}

/// Each model is the child of the one before, of the next generation, and was trained for longer.
fn assert_one_line(mut models: Vec<Model>) -> usize {
    models.sort_by_key(|model| model.iteration);
    for pair in models.windows(2) {
        let [parent, child] = pair else {
            unreachable!("windows of two")
        };
        assert_eq!(child.parent_id, parent.model_id, "{child:?}");
        assert!(child.iteration > parent.iteration, "{child:?} after {parent:?}");
        assert_eq!(child.generation, parent.generation.map(|generation| generation + 1));
        assert!(child.step > parent.step, "step {} after {}", child.step, parent.step);
    }
    models.len()
}
