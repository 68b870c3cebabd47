//! Networks: fetched, checked, proven.

use tengen_proto::v1::Probe;
use tengen_records::LeaseId;

use crate::peer::{DownloadFault, Peer};
use crate::{ANY_PORT, Running, options, self_play};

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_fails_its_probes_is_not_played_with() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    let spec = peer.game.spec();
    let mut policy = vec![0.0; spec.actions.len()];
    policy[4] = 1.0;
    let certain = Probe {
        planes: vec![0; spec.planes_len()],
        policy,
        wdl: vec![1.0, 0.0, 0.0],
    };
    peer.state().probes = vec![certain];
    let bad = peer.order(1, self_play(4), 4);
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(options(&server, data.path()));
    peer.until("the lease to come back", |state| state.returned.contains(&bad))
        .await;
    peer.state().probes.clear();
    peer.order(2, self_play(4), 4);
    peer.until("a lease whose network is proven", |state| state.stored.len() == 4)
        .await;
    actor.drain().await.unwrap();
    assert!(peer.state().stored.keys().all(|id| id.lease == LeaseId(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_download_goes_on_and_a_restart_finds_the_network_on_disk() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    peer.state().download_faults.push_back(DownloadFault::Break(2_500));
    peer.order(1, self_play(2), 4);
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(options(&server, data.path()));
    peer.until("two games", |state| state.stored.len() == 2).await;
    actor.drain().await.unwrap();
    assert_eq!(
        peer.state().downloads,
        2,
        "the second stream goes on where the first broke"
    );

    peer.order(2, self_play(2), 4);
    let actor = Running::start(options(&server, data.path()));
    peer.until("two more", |state| state.stored.len() == 4).await;
    actor.drain().await.unwrap();
    assert_eq!(peer.state().downloads, 2, "nothing is fetched twice");

    // A damaged file is noticed and replaced.
    let cached = std::fs::read_dir(data.path().join("models"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    tengen_service::files::write_atomic(&cached, b"damaged").unwrap();
    peer.order(3, self_play(2), 4);
    let actor = Running::start(options(&server, data.path()));
    peer.until("two more again", |state| state.stored.len() == 6).await;
    actor.drain().await.unwrap();
    assert_eq!(peer.state().downloads, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_goes_on_where_its_stream_broke_or_ended_early() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    peer.state().download_faults = [
        DownloadFault::Break(2_500),
        DownloadFault::End(5_000),
        // A stream that gives nothing at all.
        DownloadFault::Break(0),
    ]
    .into();
    peer.order(1, self_play(2), 4);
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(options(&server, data.path()));
    peer.until("two games", |state| state.stored.len() == 2).await;
    actor.drain().await.unwrap();
    assert_eq!(peer.state().download_offsets, [0, 3_000, 5_000, 5_000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_download_is_never_played_with_and_fetched_again_whole() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    peer.state().download_faults = [DownloadFault::Flip(4_321), DownloadFault::Flip(17)].into();
    peer.order(1, self_play(2), 4);
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(options(&server, data.path()));
    peer.until("two games", |state| state.stored.len() == 2).await;
    actor.drain().await.unwrap();
    assert_eq!(peer.state().download_offsets, [0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn three_mismatches_of_one_network_stop_the_actor_with_the_reason() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    peer.state().download_faults = [DownloadFault::Flip(0); 3].into();
    let lease = peer.order(1, self_play(2), 4);
    let server = peer.serve(ANY_PORT).await;
    let error = Running::start(options(&server, data.path()))
        .task
        .await
        .unwrap()
        .unwrap_err();
    let text = format!("{error:#}");
    let id = peer.state().models[0].id().to_string();
    assert!(text.contains(&id) && text.contains("3 times"), "{text}");
    assert_eq!(peer.state().downloads, 3);
    assert_eq!(peer.state().returned, [lease], "somebody else may have more luck");
    assert!(!data.path().join("models").exists(), "nothing damaged is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_with_a_hole_hands_the_lease_back() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    peer.state().download_faults.push_back(DownloadFault::Skip(2_000));
    let lease = peer.order(1, self_play(2), 4);
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(options(&server, data.path()));
    peer.until("the lease to come back", |state| state.returned.contains(&lease))
        .await;
    peer.order(2, self_play(2), 4);
    peer.until("the next lease", |state| state.stored.len() == 2).await;
    actor.drain().await.unwrap();
    assert!(peer.state().stored.keys().all(|id| id.lease == LeaseId(2)));
}
