//! A disk that fills up under the learner: training waits with what it has, publishes nothing that has no checkpoint, and
//! goes on by itself when there is room.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tengen_faults::Proof;
use tengen_service::testing::small_disk::{self, fill};

use crate::Learner;
use crate::fake_coordinator::{Coordinator, State};
use tengen_learner::checkpoint::CheckpointFolder;

/// A disk of 4 MiB for the test of this name.
fn small_disk(name: &str) -> Option<PathBuf> {
    small_disk::small_disk(4, &format!("disk::{name}"))
}

fn says_full(state: &State) -> bool {
    state.status.activity.contains("waiting for room on the disk")
}

/// The checkpoints in the folder; one that is being written is none yet.
fn checkpoints(data: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = std::fs::read_dir(data.join("checkpoints"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "safetensors"))
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect()
}

fn files(data: &Path) -> usize {
    std::fs::read_dir(data.join("checkpoints")).unwrap().count()
}

fn newest_step(data: &Path) -> u64 {
    let newest = CheckpointFolder::new(data.join("checkpoints")).newest().unwrap();
    newest.map_or(0, |newest| newest.state.step)
}

/// A coordinator whose window allows so many samples of each position, about a dozen steps for each; a checkpoint every
/// fifth step.
fn coordinator(samples: u32) -> Coordinator {
    let coordinator = Coordinator::new(60);
    let more = format!("samples_per_position = {samples}.0");
    let longer = crate::fake_coordinator::RUN_TOML.replace("samples_per_position = 1.0", &more);
    coordinator.state().run_toml = longer;
    coordinator
}

/// A learner that has filled the disk's last room and waits; also the ballast that has taken the room.
async fn waiting(coordinator: &Coordinator, url: &str, disk: &Path) -> (Learner, PathBuf) {
    let mut learner = Learner::start(url, &disk.join("data"));
    learner
        .until(coordinator, |_| newest_step(&disk.join("data")) >= 10)
        .await;
    let ballast = fill(disk, 0);
    learner.until(coordinator, says_full).await;
    (learner, ballast)
}

#[tokio::test(flavor = "multi_thread")]
async fn training_waits_for_room_and_no_candidate_leaves_before_its_checkpoint() {
    let name = "training_waits_for_room_and_no_candidate_leaves_before_its_checkpoint";
    let Some(disk) = small_disk(name) else { return };
    let proof = Proof::begin("learner-disk-full");
    let data = disk.join("data");
    let coordinator = coordinator(40);
    let serving = coordinator.serve().await;
    // Before there is any checkpoint: the very first one finds no room.
    let ballast = fill(&disk, 8 << 10);
    // The candidate is due at once, so it is the one that waits.
    let positions = coordinator.positions();
    coordinator.state().due = (1, 1);
    let mut learner = Learner::start(&serving.url(), &data);
    learner.until(&coordinator, says_full).await;
    let (step, activity) = {
        let state = coordinator.state();
        (state.status.step, state.status.activity.clone())
    };
    assert!(
        activity.contains("bytes") && activity.contains(data.to_str().unwrap()),
        "{activity}"
    );
    // Several tries later nothing has moved.
    let reports = coordinator.state().reported_at.len();
    learner
        .until(&coordinator, |state| state.reported_at.len() > reports + 2)
        .await;
    {
        let state = coordinator.state();
        assert_eq!((state.status.step, state.publications_tried), (step, 0));
        assert!(says_full(&state), "{}", state.status.activity);
    }
    assert!(checkpoints(&data).is_empty());

    std::fs::remove_file(ballast).unwrap();
    learner.until(&coordinator, |state| state.published.len() == 1).await;
    assert_eq!(coordinator.state().published_at[0].1, step);
    assert!(newest_step(&data) >= step);
    coordinator.state().due = (2, positions);
    learner.until(&coordinator, |state| state.published.len() == 2).await;
    learner.stop().await;
    let state = coordinator.state();
    assert!(newest_step(&data) >= state.published_at[1].1);
    proof.count("candidates", state.published.len()).proved();
}

#[tokio::test(flavor = "multi_thread")]
async fn old_checkpoints_outlive_a_full_disk_and_a_learner_that_is_stopped_on_it_says_what_it_needs() {
    let name = "old_checkpoints_outlive_a_full_disk_and_a_learner_that_is_stopped_on_it_says_what_it_needs";
    let Some(disk) = small_disk(name) else { return };
    let data = disk.join("data");
    // More than it can train on before the disk is full, however fast it is.
    let coordinator = coordinator(1_000);
    let serving = coordinator.serve().await;
    let (learner, ballast) = waiting(&coordinator, &serving.url(), &disk).await;
    let kept = checkpoints(&data);
    assert!(!kept.is_empty());
    let step = newest_step(&data);
    learner.stop.cancel();
    let error = learner.task.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("no room") && error.contains("bytes"), "{error}");
    assert!(error.contains(data.to_str().unwrap()), "{error}");
    assert_eq!(checkpoints(&data), kept);
    assert_eq!(files(&data), kept.len(), "nothing half written stays");

    // Started again on the full disk it goes on from there, and waits; with room it trains on.
    let mut learner = Learner::start(&serving.url(), &data);
    learner
        .until(&coordinator, |state| state.registered.len() == 2 && says_full(state))
        .await;
    assert_eq!(coordinator.state().registered[1].step, step);
    std::fs::remove_file(ballast).unwrap();
    learner.until(&coordinator, |_| newest_step(&data) > step + 10).await;
    learner.stop().await;
}
