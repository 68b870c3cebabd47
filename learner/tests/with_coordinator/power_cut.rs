//! A power cut at any moment leaves the learner a whole checkpoint, never an older one than at the moment before, and
//! never one older than a network that was on its way to the coordinator.

use std::path::Path;

use tengen_faults::{Proof, scaled};
use tengen_learner::checkpoint::{Checkpoint, CheckpointFolder, TrainingState};
use tengen_service::testing::power_cut::{Names, Trace, recorder};

use crate::fake_coordinator::{Coordinator, RUN_TOML, State};
use crate::kills::{start, start_under};

/// Steps between checkpoints.
const EVERY: u64 = 2;
/// Candidates that are published while the recorder runs.
const CANDIDATES: u64 = 4;

/// Records a learner that trains through the window, publishes candidates on the way, and is asked to end.
async fn record(coordinator: &Coordinator, url: &str, data: &Path, trace: &Path) {
    let positions = coordinator.positions();
    let mut learner = start_under(&recorder(trace), url, data);
    let lifeline = learner.stdin.take();
    for candidate in 1..=CANDIDATES {
        coordinator.state().due = (candidate as u32, positions * candidate / CANDIDATES);
        coordinator
            .until(|state| state.published.len() as u64 == candidate)
            .await;
    }
    drop(lifeline);
    assert!(learner.wait().await.unwrap().success());
}

/// What is found after a cut before this time; everything that was promised by then must be among it.
fn check(state: &State, data: &Path, before: u64) -> Option<TrainingState> {
    let folder = data.join("checkpoints");
    if let Ok(entries) = std::fs::read_dir(&folder) {
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.extension().is_some_and(|extension| extension == "safetensors") {
                Checkpoint::read(&path).expect("a cut never leaves a torn checkpoint");
            }
        }
    }
    let newest = CheckpointFolder::new(folder).newest().unwrap();
    let step = newest.as_ref().map_or(0, |newest| newest.state.step);
    for (_, published) in state.published_at.iter().filter(|(at, _)| *at < before) {
        assert!(
            step >= *published,
            "step {published} was published, {step} is on the disk"
        );
    }
    // The step is told before its checkpoint is written: that one, and the one before it, may be under way.
    for (_, reported) in state.reported_at.iter().filter(|(at, _)| *at < before) {
        assert!(
            step + EVERY >= *reported,
            "step {reported} was reported, {step} is on the disk"
        );
    }
    newest.map(|newest| newest.state)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_power_cut_leaves_the_newest_durable_checkpoint_whole() {
    let proof = Proof::begin("learner-power-cut");
    let folder = tempfile::tempdir().unwrap();
    let (root, trace) = (folder.path().join("root"), folder.path().join("trace"));
    std::fs::create_dir(&root).unwrap();
    // The learner makes its own data folder, which must be there after the cut as well.
    let data = root.join("data");
    let coordinator = Coordinator::new(80);
    let samples = scaled(10, 40);
    coordinator.state().run_toml = RUN_TOML
        .replace(
            "samples_per_position = 1.0",
            &format!("samples_per_position = {samples}.0"),
        )
        .replace(
            "checkpoint_every_steps = 5",
            &format!("checkpoint_every_steps = {EVERY}"),
        );
    let serving = coordinator.serve().await;
    record(&coordinator, &serving.url(), &data, &trace).await;

    let trace = Trace::read(&trace, &root);
    let cuts = scaled(150, 2_000).min(trace.len());
    let restarts = scaled(2, 10);
    let (mut resumed, mut whole, mut left) = ([0, 0], 0, Vec::new());
    trace.cuts((0..=cuts).map(|cut| cut * trace.len() / cuts), |disk, before| {
        let state = coordinator.state();
        for (names, last) in [Names::Synced, Names::Seen].into_iter().zip(&mut resumed) {
            let into = tempfile::tempdir().unwrap();
            disk.lay_out(&root, into.path(), names);
            let found = check(&state, &into.path().join("data"), before);
            let step = found.as_ref().map_or(0, |found| found.step);
            assert!(step >= *last, "the cut before left step {last}, this one {step}");
            *last = step;
            if let Some(found) = found {
                whole += 1;
                left.push((into, found));
            }
        }
        // A few for the learner itself are enough; all of them would fill the disk.
        if left.len() > 64 {
            let mut nth = 0;
            left.retain(|_| {
                nth += 1;
                nth % 2 == 0
            });
        }
    });
    assert!(whole > cuts, "the cuts came too early to say anything");

    // And the learner itself goes on from there.
    for restart in 1..=restarts {
        let (into, found) = &left[restart * (left.len() - 1) / restarts];
        let registered = coordinator.state().registered.len();
        let mut learner = start(&serving.url(), &into.path().join("data"));
        let lifeline = learner.stdin.take();
        coordinator.until(|state| state.registered.len() > registered).await;
        assert_eq!(coordinator.state().registered[registered].step, found.step);
        coordinator.until(|state| state.status.step >= found.step).await;
        drop(lifeline);
        assert!(learner.wait().await.unwrap().success());
    }
    let proof = proof.count("cuts", cuts).count("calls", trace.len());
    let proof = proof.count("fsyncs", trace.syncs()).count("restarts", restarts);
    proof.count("checkpoints_whole", whole).proved();
}
