//! Peers that mean harm: an honest actor is served as before, and the coordinator's memory does not grow.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::time::{Duration, Instant};

use tengen_records::encode;
use tengen_system_tests::attack::{Attack, Attacker, DRIBBLERS, Target};
use tengen_system_tests::coordinator::Coordinator;
use tengen_system_tests::faults::{self, Proof, scaled};
use tengen_system_tests::guarded::Tokens;
use tengen_system_tests::ledger::Ledger;

/// What the honest actor sends: a game every 10 ms, well below what a coordinator on two cores takes, so that what is
/// measured is whether it is served and not how the machine shares its cores between attacker and coordinator.
const EVERY: Duration = Duration::from_millis(10);
/// What an honest actor must keep of its rate.
const KEPT_MIN: f64 = 0.9;
/// Memory that may come on top after the first round of attacks: allocators round up, and caches fill.
const GROWTH_MAX_KIB: u64 = 32 * 1024;

/// What the coordinator may write to its log, however many connections are closed for how they behave.
const LOG_BYTES_MAX: u64 = 16 * 1024;

/// A coordinator with tokens, and what an attacker knows of it. Its log goes to the file `log`.
async fn start(folder: &Path) -> (Coordinator, Tokens, Target) {
    let (run, data) = (faults::write_run(folder), folder.join("data"));
    let tokens = Tokens::make(&data, &folder.join("tokens"));
    // The shell makes way for the program, which keeps its number and its standard input.
    let to_log = format!("exec \"$0\" \"$@\" 2>{}", folder.join("log").display());
    let under_shell = ["sh".into(), "-c".into(), to_log.into()];
    let coordinator = Coordinator::start_under(&under_shell, &run, &data, &[]).await;
    let target = Target {
        addr: coordinator.addr(),
        token: tokens.text("actor"),
        credentials: tokens.shown("actor"),
    };
    (coordinator, tokens, target)
}

/// Records of new games.
async fn played(ledger: &mut Ledger, games: usize) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while records.len() < games {
        records.extend(ledger.play_lease().await.iter().map(encode));
    }
    records.truncate(games);
    records
}

/// Bytes in the coordinator's log, which must be few.
fn assert_log_is_short(folder: &Path) -> usize {
    let bytes = std::fs::metadata(folder.join("log")).unwrap().len();
    assert!(bytes <= LOG_BYTES_MAX, "{bytes} bytes were logged");
    bytes as usize
}

/// Waits until the attacker has done so much more.
async fn until_done(attacker: &Attacker, acts: u64) {
    let enough = attacker.acts() + acts;
    let mut looks = tokio::time::interval(Duration::from_millis(10));
    while attacker.acts() < enough {
        looks.tick().await;
    }
}

/// The middle one.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What the honest actor got: games a second of those it offered at its pace, and of as many as were taken.
struct Service {
    paced: Vec<f64>,
    at_most: Vec<f64>,
}

impl Service {
    fn new() -> Service {
        Service {
            paced: Vec::new(),
            at_most: Vec::new(),
        }
    }

    async fn measure(&mut self, ledger: &mut Ledger, games: usize) {
        let records = played(ledger, games).await;
        self.paced.push(ledger.submit_paced(&records, EVERY).await);
        let records = played(ledger, games).await;
        let begun = Instant::now();
        assert_eq!(ledger.submit(&records).await.len(), games);
        self.at_most.push(games as f64 / begun.elapsed().as_secs_f64());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_honest_actor_keeps_its_rate_under_every_attack() {
    let mut proof = Proof::begin("honest-actor-keeps-its-rate");
    let (rounds, games) = (scaled(5, 11), scaled(60, 300));
    let folder = tempfile::tempdir().unwrap();
    let (coordinator, tokens, target) = start(folder.path()).await;
    let honest = tokens.another(&coordinator, "actor").await;
    let mut ledger = Ledger::register(coordinator.channel_with(&honest), 7).await;
    for attack in Attack::ALL {
        let (mut calm, mut attacked) = (Service::new(), Service::new());
        // In turns, so that whatever else happens on this machine happens to both.
        for _ in 0..rounds {
            calm.measure(&mut ledger, games).await;
            let attacker = Attacker::start(attack, target.clone());
            until_done(&attacker, DRIBBLERS as u64).await;
            let before = attacker.acts();
            attacked.measure(&mut ledger, games).await;
            assert!(attacker.acts() > before, "{attack:?} had stopped");
        }
        let (calm_paced, attacked_paced) = (median(calm.paced), median(attacked.paced));
        let kept = attacked_paced / calm_paced;
        let name = attack.name();
        proof = proof.measure(&format!("kept_under_{name}_parts"), kept);
        let of_most = median(attacked.at_most) / median(calm.at_most);
        proof = proof.measure(&format!("capacity_under_{name}_parts"), of_most);
        assert!(kept >= KEPT_MIN, "{attack:?}: {attacked_paced} of {calm_paced} games/s");
    }
    coordinator.drain().await;
    ledger.assert_kept(&folder.path().join("data"));
    let proof = proof
        .count("attacks", Attack::ALL.len())
        .count("connections", DRIBBLERS);
    let proof = proof.count("turns_each", rounds).count("games_each_turn", games);
    proof.count("acknowledged_games", ledger.acknowledged.len()).proved();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_coordinators_memory_is_flat_however_often_it_is_attacked() {
    let proof = Proof::begin("memory-flat-under-attack");
    let rounds = scaled(3, 20);
    let folder = tempfile::tempdir().unwrap();
    let (coordinator, tokens, target) = start(folder.path()).await;
    let mut after = Vec::new();
    for _ in 0..rounds {
        for (attack, acts) in [
            (Attack::Dribble, 4_000),
            (Attack::Flood, 4_000),
            (Attack::Resets, 20_000),
        ] {
            let attacker = Attacker::start(attack, target.clone());
            until_done(&attacker, acts).await;
        }
        after.push(coordinator.memory_kib("VmRSS"));
    }
    let growth = after[rounds - 1].saturating_sub(after[0]);
    assert!(growth <= GROWTH_MAX_KIB, "KiB after each round: {after:?}");
    let peak = coordinator.memory_kib("VmHWM");
    // It is as well as before.
    let honest = tokens.another(&coordinator, "actor").await;
    let mut ledger = Ledger::register(coordinator.channel_with(&honest), 7).await;
    let records = played(&mut ledger, 20).await;
    assert_eq!(ledger.submit(&records).await.len(), 20);
    coordinator.drain().await;
    ledger.assert_kept(&folder.path().join("data"));
    let logged = assert_log_is_short(folder.path());
    let proof = proof
        .count("log_bytes", logged)
        .count("rounds", rounds)
        .count("connections", DRIBBLERS);
    let proof = proof.measure("after_first_round_mib", after[0] as f64 / 1_024.0);
    let proof = proof.measure("after_last_round_mib", after[rounds - 1] as f64 / 1_024.0);
    proof.measure("peak_mib", peak as f64 / 1_024.0).proved();
}
