//! kill -9 of each process in turn, and of the command that started them: the run goes on, and what was acknowledged is
//! there once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test's run file need not survive a crash")]

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use tengen_proto::v1::Verdict;
use tengen_records::encode;
use tengen_system_tests::cluster::{Up, is_alive, signal};
use tengen_system_tests::faults::Proof;
use tengen_system_tests::ledger::Ledger;

const RUN: &str = r#"
[run]
name = "kills"
game = "tic-tac-toe"
[network]
blocks = 1
channels = 16
value_hidden = 16
[[schedule]]
from_iteration = 0
games = 100
simulations = 16
[selfplay]
random_plies_max = 4
[gate]
kind = "fixed"
games = 8
threshold = 0.3
simulations = 8
[learner]
batch = 64
window_min_positions = 200
checkpoint_every_steps = 20
[actor]
games = 16
batch_max = 16
[cpu]
learner_threads = 1
actor_threads = 1
"#;

/// Who is killed, one after the other.
const TURN: [&str; 4] = ["coordinator", "learner", "actor", "coordinator"];

fn write_run(folder: &Path) -> PathBuf {
    let path = folder.join("kills.toml");
    std::fs::write(&path, RUN).unwrap();
    path
}

/// The cluster of these tests. The ledger plays at random and names a network that did not: an audit would find it out.
fn start(run: &Path, data: &Path) -> Up {
    Up::start_with(run, data, &[], &[("AUDIT__SHARE", "0")])
}

/// Sends games that must all be stored.
async fn store(ledger: &mut Ledger, records: &[Vec<u8>]) {
    let verdicts = ledger.submit(records).await;
    assert_eq!(verdicts.len(), records.len());
    assert!(
        verdicts.iter().all(|verdict| verdict.verdict() == Verdict::Stored),
        "{verdicts:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_each_process_in_turn_loses_and_doubles_nothing() {
    let proof = Proof::begin("processes-killed-in-turn");
    let folder = tempfile::tempdir().unwrap();
    let (run, data) = (write_run(folder.path()), folder.path().join("data"));
    let mut up = start(&run, &data);
    let mut ledger = Ledger::register(up.channel(), 7).await;
    let mut sent = Vec::new();
    for part in TURN {
        let records: Vec<Vec<u8>> = ledger.play_lease().await.iter().map(encode).collect();
        let (first, second) = records.split_at(records.len() / 2);
        store(&mut ledger, first).await;

        let before = progress(&up).await;
        let victim = up.children()[part];
        // The second half is on its way while the process dies.
        let (_, _) = tokio::join!(ledger.submit(second), async { signal("KILL", victim) });
        up.wait_for(&format!(
            "{part_name} ended",
            part_name = if part == "actor" { "actor-0" } else { part }
        ));
        sent.extend(records);
        goes_on(&up, part, victim, before).await;
    }

    let promotions = promoted(&up).await;
    let again = ledger.submit_again(&sent).await;
    assert_eq!(again, sent.len());
    let (status, _) = up.interrupt();
    assert!(status.success());
    ledger.assert_kept(&data);
    let proof = proof.count("kills", TURN.len()).count("promotions", promotions);
    proof.count("acknowledged_games", ledger.acknowledged.len()).proved();
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_command_ends_its_children_and_loses_and_doubles_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (run, data) = (write_run(folder.path()), folder.path().join("data"));
    let up = start(&run, &data);
    let mut ledger = Ledger::register(up.channel(), 7).await;
    let records: Vec<Vec<u8>> = ledger.play_lease().await.iter().map(encode).collect();
    let (first, second) = records.split_at(records.len() / 2);
    store(&mut ledger, first).await;

    let before = progress(&up).await;
    let children = up.children();
    assert_eq!(children.len(), 3, "{children:?}");
    // The second half is on its way while the command dies.
    let (_, _) = tokio::join!(ledger.submit(second), async { signal("KILL", up.id()) });
    let (status, _) = up.finish();
    assert_eq!(status.signal(), Some(9), "{status}");
    // Nobody is left to end them: each sees that its standard input is closed, drains and ends.
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(100));
    while children.values().any(|child| is_alive(*child)) {
        looks.tick().await;
    }

    let up = start(&run, &data);
    assert!(progress(&up).await.0 >= before.0, "games were forgotten");
    ledger.reconnect(up.channel()).await;
    assert_eq!(ledger.submit_again(&records).await, records.len());
    assert!(up.interrupt().0.success());
    ledger.assert_kept(&data);
}

/// Waits for the first promotion, unless there was one under the kills; how many there are. The check at the end counts the
/// evidence of every gate again.
async fn promoted(up: &Up) -> usize {
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(100));
    loop {
        looks.tick().await;
        let generation = up.status().await.generation;
        if generation > 0 {
            return generation as usize;
        }
    }
}

/// Games stored and steps done.
async fn progress(up: &Up) -> (u64, u64) {
    let status = up.status().await;
    (status.games, status.learner.map_or(0, |learner| learner.step))
}

/// Waits until the killed part has a successor and both games and steps have moved on.
async fn goes_on(up: &Up, part: &str, victim: u32, before: (u64, u64)) {
    assert!(!is_alive(victim));
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(100));
    loop {
        looks.tick().await;
        let restarted = up.children().get(part).is_some_and(|child| *child != victim);
        let Some((games, step)) = try_progress(up).await else {
            continue;
        };
        if restarted && games > before.0 && step > before.1 {
            return;
        }
    }
}

async fn try_progress(up: &Up) -> Option<(u64, u64)> {
    let mut client = tengen_proto::v1::run_service_client::RunServiceClient::new(up.channel());
    let status = client
        .get_status(tengen_proto::v1::GetStatusRequest {})
        .await
        .ok()?
        .into_inner();
    Some((status.games, status.learner.map_or(0, |learner| learner.step)))
}
