//! Two of what there may be one of: coordinators that come to a folder that is taken are refused.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Output;

use tengen_records::encode;
use tengen_system_tests::cluster::program;
use tengen_system_tests::coordinator::Coordinator;
use tengen_system_tests::faults::{self, Proof};
use tengen_system_tests::ledger::Ledger;
use tokio::process::Command;

/// Coordinators that come to a folder that is taken.
const LATECOMERS: usize = 4;

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
