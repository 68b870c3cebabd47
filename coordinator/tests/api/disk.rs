//! A disk that fills up: refusal before damage, and resumption without anybody's help. The disk is a real one of a few
//! megabytes, in memory.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tengen_coordinator::{Coordinator, CoordinatorError, DiskConfig};
use tengen_faults::Proof;
use tengen_proto::v1;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_proto::v1::{Verdict, WatchStatusRequest};
use tengen_records::encode;
use tengen_service::testing::small_disk::{self, fill};
use tonic::{Code, Streaming};
use tonic_types::StatusExt;

use crate::database::assert_sound;
use crate::rig::{Actor, Learner, NONE, Rig, TIC_TAC_TOE, options};

/// A disk of 12 MiB for the test of this name.
fn small_disk(name: &str) -> Option<PathBuf> {
    small_disk::small_disk(12, &format!("disk::{name}"))
}

async fn watch(rig: &Rig) -> Streaming<v1::RunStatus> {
    let request = WatchStatusRequest {
        interval_ms: 100,
        ..Default::default()
    };
    let mut client = RunServiceClient::new(rig.channel().await);
    client.watch_status(request).await.expect("a stream").into_inner()
}

/// The first status that says so.
async fn until_refusing(statuses: &mut Streaming<v1::RunStatus>, refusing: bool) -> v1::RunStatus {
    loop {
        let status = statuses.message().await.expect("a status").expect("a status");
        let disk = status.disk.as_ref().expect("the disk");
        if disk.refusing.is_empty() != refusing {
            return status;
        }
    }
}

async fn start(disk: &Path, free_bytes_min: u64) -> (Rig, PathBuf) {
    start_in(tempfile::tempdir_in(disk).expect("a folder"), free_bytes_min).await
}

async fn start_in(folder: TempDir, free_bytes_min: u64) -> (Rig, PathBuf) {
    let data = folder.path().to_path_buf();
    let mut options = options(&data, &format!("{TIC_TAC_TOE}{NONE}"));
    options.config.disk = DiskConfig {
        free_bytes_min,
        ..DiskConfig::default()
    };
    (Rig::start_with(folder, options).await.expect("it starts"), data)
}

#[tokio::test]
async fn a_nearly_full_disk_refuses_what_is_new_serves_reads_and_resumes_by_itself() {
    let name = "a_nearly_full_disk_refuses_what_is_new_serves_reads_and_resumes_by_itself";
    let Some(disk) = small_disk(name) else { return };
    let (rig, data) = start(&disk, 4 << 20).await;
    let mut statuses = watch(&rig).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let mut learner = Learner::new(&rig).await;
    actor.deliver(4).await;
    let work = actor.work(0.0).await;
    let record = actor.play(&work, 0);

    let ballast = fill(&disk, 2 << 20);
    let status = until_refusing(&mut statuses, true).await;
    assert!(status.waiting.contains("nearly full"), "{}", status.waiting);
    let answer = actor.submit_bytes(encode(&record)).await;
    assert_eq!(answer.verdict(), Verdict::Retry);
    assert!(answer.detail.contains("disk.free_bytes_min"), "{}", answer.detail);
    let refused = learner.publish(1).await.expect_err("a refusal");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let details = refused.get_error_details();
    assert!(
        details.retry_info().is_some_and(|retry| retry.retry_delay.is_some()),
        "{details:?}"
    );
    let request = v1::GetWorkRequest {
        actor_id: actor.id.clone(),
        ..v1::GetWorkRequest::default()
    };
    let offer = actor.client.get_work(request).await.expect("an answer").into_inner();
    assert!(matches!(offer.work, Some(v1::get_work_response::Work::Wait(wait)) if wait.reason.contains("nearly full")));
    // Reads go on.
    assert_eq!(rig.model("champion").await.generation, Some(0));
    let (_, games) = crate::window::catch_up(&mut crate::window::mirror(&rig, 0, 0).await).await;
    assert_eq!(games.len(), 4);

    std::fs::remove_file(ballast).expect("room");
    until_refusing(&mut statuses, false).await;
    assert_eq!(actor.submit(&record).await, Verdict::Stored);
    learner.publish(1).await.expect("a candidate");
    let folder = rig.stop().await;
    assert_sound(&data).await;
    drop(folder);
}

#[tokio::test]
async fn a_disk_that_is_full_to_the_last_byte_loses_nothing_that_was_acknowledged() {
    let name = "a_disk_that_is_full_to_the_last_byte_loses_nothing_that_was_acknowledged";
    let Some(disk) = small_disk(name) else { return };
    let proof = Proof::begin("coordinator-disk-full");
    // No low-water mark: the commit itself meets the end of the disk.
    let (rig, data) = start(&disk, 0).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let mut acknowledged = actor.deliver(4).await;
    let work = actor.work(100.0).await;
    let games = work.order.plan.games();
    let mut learner = Learner::new(&rig).await;
    let ballast = fill(&disk, 0);
    let mut index = 0;
    let refused = loop {
        assert!(index < games, "{games} games were stored on a full disk");
        let record = encode(&actor.play(&work, index));
        let answer = actor.submit_bytes(record.clone()).await;
        match answer.verdict() {
            Verdict::Stored => acknowledged.push(record),
            Verdict::Retry => break record,
            other => panic!("{other:?}: {}", answer.detail),
        }
        index += 1;
    };
    let refused_network = learner.publish(1).await.expect_err("a refusal");
    assert_eq!(refused_network.code(), Code::ResourceExhausted, "{refused_network}");
    // It is alive, and knows exactly what it stored.
    assert_eq!(rig.status().await.games, acknowledged.len() as u64);

    std::fs::remove_file(ballast).expect("room");
    while actor.submit_bytes(refused.clone()).await.verdict() == Verdict::Retry {}
    acknowledged.push(refused);
    let (_, window) = crate::window::catch_up(&mut crate::window::mirror(&rig, 0, 0).await).await;
    assert_eq!(crate::window::records(&window), acknowledged);
    let folder = rig.stop().await;
    assert_sound(&data).await;
    let rig = Rig::start_in(folder, &format!("{TIC_TAC_TOE}{NONE}"))
        .await
        .expect("it starts");
    let (_, window) = crate::window::catch_up(&mut crate::window::mirror(&rig, 0, 0).await).await;
    assert_eq!(crate::window::records(&window), acknowledged);
    rig.stop().await;
    proof.count("acknowledged_games", acknowledged.len()).proved();
}

#[tokio::test]
async fn a_start_on_a_full_disk_fails_and_changes_nothing() {
    let name = "a_start_on_a_full_disk_fails_and_changes_nothing";
    let Some(disk) = small_disk(name) else { return };
    let folder = tempfile::tempdir_in(&disk).expect("a folder");
    let ballast = fill(&disk, 0);
    let toml = format!("{TIC_TAC_TOE}{NONE}");
    let stop = tokio_util::sync::CancellationToken::new();
    let failed = Coordinator::start(options(folder.path(), &toml), stop).await;
    assert!(
        !matches!(failed, Ok(_) | Err(CoordinatorError::Panicked(_))),
        "{failed:?}"
    );
    std::fs::remove_file(ballast).expect("room");
    let (rig, data) = start_in(folder, 0).await;
    Actor::new(&rig, "actor-1").await.deliver(4).await;
    let folder = rig.stop().await;
    assert_sound(&data).await;
    drop(folder);
}
