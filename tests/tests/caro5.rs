//! Caro5 with its Swap2 opening through the whole system: every path through the opening reaches the window, a network is
//! trained on it, and a gate decides about the network.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test's run file need not survive a crash")]

use tengen_system_tests::cluster::Up;

/// The rules of `runs/caro5-small.toml` with a tiny network and few simulations. The first candidate comes after the games of
/// one iteration, so many that a path which one game in ten takes is missed once in 300,000 runs.
const RUN: &str = r#"
[run]
name = "caro5-tiny"
game = "caro5?size=7"
[network]
blocks = 1
channels = 16
value_hidden = 16
[[schedule]]
from_iteration = 0
games = 120
simulations = 16
[gate]
games = 8
simulations = 8
[learner]
batch = 64
window_min_positions = 500
steps_behind_max = 50
[actor]
games = 32
batch_max = 32
[cpu]
learner_threads = 1
actor_threads = 1
"#;

/// Games within which the first gate must be decided; it is soon after the first iteration.
const GAMES_MAX: &str = "2000";

#[tokio::test(flavor = "multi_thread")]
async fn every_opening_path_reaches_the_window_and_a_gate_is_decided() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("caro5-tiny.toml");
    std::fs::write(&run, RUN).unwrap();
    let data = folder.path().join("data");
    let mut up = Up::start(&run, &data, &["--until-games", GAMES_MAX]);
    let gate = up.wait_for("] gate 1: candidate ");
    assert!(gate.contains(" promoted: ") || gate.contains(" rejected: "), "{gate}");
    let status = up.status().await;
    assert!(status.gates_decided >= 1 && status.match_games > 0, "{status:?}");
    assert!(status.learner.is_some_and(|learner| learner.step > 0));
    assert!(up.interrupt().0.success());

    let up = Up::start(&run, &data, &[]);
    let status = up.status().await;
    assert!(
        status.rejected.is_empty(),
        "honest games were rejected: {:?}",
        status.rejected
    );
    // Every stored position is in the window that was rebuilt from the database.
    assert_eq!(status.window_positions, status.positions);
    assert!(status.positions > 0);
    for path in ["take-black", "take-white", "offer/take-black", "offer/take-white"] {
        let games = status.opening_paths.get(path).copied().unwrap_or_default();
        assert!(games > 0, "no game went {path}: {:?}", status.opening_paths);
    }
    assert!(up.interrupt().0.success());
}
