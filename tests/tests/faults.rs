//! What a crash may cost: nothing that was acknowledged. `make faults` runs these at full length, `make test` in short.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_records::encode;
use tengen_system_tests::coordinator::Coordinator;
use tengen_system_tests::faults::{self, Proof};
use tengen_system_tests::ledger::Ledger;

/// The steps of a game's way at which a coordinator can be made to die.
const STEPS: [&str; 5] = ["received", "checked", "committed", "windowed", "acknowledged"];
/// New games that are on their way when it dies.
const GAMES: usize = 24;

#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_killed_at_any_step_loses_and_doubles_no_acknowledged_game() {
    let proof = Proof::begin("coordinator-killed");
    let kills = faults::scaled(40, 600);
    let folder = tempfile::tempdir().unwrap();
    let (run, data) = (faults::write_run(folder.path()), folder.path().join("data"));
    std::fs::create_dir(&data).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(20);
    let mut coordinator = Coordinator::start(&run, &data, &[]).await;
    let mut ledger = Ledger::register(coordinator.channel(), 7).await;
    // A few games of the round before go along each time.
    let mut earlier = Vec::new();
    for kill in 0..kills {
        // Every sixth dies by a signal at any moment, the others at a step.
        let step = STEPS
            .get(kill % 6)
            .map(|step| format!("{step}:{}", rng.random_range(1..GAMES as u32)));
        let keys: Vec<(&str, &str)> = step.iter().map(|step| ("DIE_AT", step.as_str())).collect();
        coordinator.drain().await;
        coordinator = Coordinator::start(&run, &data, &keys).await;
        ledger.reconnect(coordinator.channel()).await;
        let mut records = std::mem::take(&mut earlier);
        // Enough of them are new, so that even a step that only new games reach is reached often enough.
        let enough = records.len() + GAMES;
        while records.len() < enough {
            records.extend(ledger.play_lease().await.iter().map(encode));
        }
        if step.is_some() {
            ledger.submit_again(&records).await;
        } else {
            let moment = std::time::Duration::from_micros(rng.random_range(0..20_000));
            let dies = async {
                tokio::time::sleep(moment).await;
                coordinator.kill();
            };
            tokio::join!(ledger.submit_again(&records), dies);
        }
        assert!(
            !coordinator.ended().await.success(),
            "kill {kill} ({step:?}) did not happen"
        );
        ledger.assert_promises(&data);
        // Some of what has its answer is sent again all the same.
        records.retain(|record| !ledger.is_acknowledged(record) || rng.random_range(0..4) == 0);
        coordinator = Coordinator::start(&run, &data, &[]).await;
        ledger.reconnect(coordinator.channel()).await;
        assert_eq!(ledger.submit_again(&records).await, records.len());
        ledger.assert_promises(&data);
        earlier = records.split_off(records.len().saturating_sub(4));
    }
    coordinator.drain().await;
    ledger.assert_kept(&data);
    let proof = proof.count("kills", kills);
    proof.count("acknowledged_games", ledger.acknowledged.len()).proved();
}
