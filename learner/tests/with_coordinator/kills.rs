//! kill -9 of the learner, most often inside a checkpoint: it always comes back, and what it trains in the end is what an
//! uninterrupted learner trains, bit for bit.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use safetensors::SafeTensors;
use tengen_faults::{Proof, scaled};
use tengen_learner::checkpoint::CheckpointFolder;
use tokio::process::{Child, Command};

use crate::fake_coordinator::{Coordinator, RUN_TOML};

/// The process.
pub(crate) fn start(url: &str, data: &Path) -> Child {
    start_under(&[], url, data)
}

/// The same under another program, for example a recorder.
pub(crate) fn start_under(wrapper: &[OsString], url: &str, data: &Path) -> Child {
    let mut words = wrapper.to_vec();
    words.push(env!("CARGO_BIN_EXE_tengen-learner").into());
    Command::new(&words[0])
        .args(&words[1..])
        .args([
            "--coordinator",
            url,
            "--device",
            "cpu",
            "--threads",
            "1",
            "--log",
            "error",
            "--exit-with-parent",
        ])
        .arg("--data")
        .arg(data)
        .stdin(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// A frozen window, an average of the weights, and a checkpoint after every step.
fn coordinator() -> Coordinator {
    let coordinator = Coordinator::new(80);
    let every_step = RUN_TOML
        .replace("batch = 32", "batch = 32\n    ema_decay = 0.99")
        .replace("samples_per_position = 1.0", "samples_per_position = 40.0")
        .replace("checkpoint_every_steps = 5", "checkpoint_every_steps = 1");
    coordinator.state().run_toml = every_step;
    coordinator
}

/// Steps that the window allows.
fn steps(coordinator: &Coordinator) -> u64 {
    coordinator.positions() * 40 / 32
}

/// Waits until all steps are done, then has the learner drain.
async fn finish(coordinator: &Coordinator, mut learner: Child) {
    let all = steps(coordinator);
    // Held apart: waiting for a process closes a standard input that it still owns.
    let lifeline = learner.stdin.take();
    tokio::select! {
        () = coordinator.until(|state| state.status.step == all) => {}
        ended = learner.wait() => panic!("the learner ended: {ended:?}"),
    }
    drop(lifeline);
    assert!(learner.wait().await.unwrap().success());
}

/// Step and tensors of the newest checkpoint.
fn newest(data: &Path) -> Option<(u64, BTreeMap<String, Vec<u8>>)> {
    let checkpoint = CheckpointFolder::new(data.join("checkpoints")).newest().unwrap()?;
    let bytes = std::fs::read(&checkpoint.path).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let tensors = tensors
        .tensors()
        .into_iter()
        .map(|(name, view)| (name, view.data().to_vec()));
    Some((checkpoint.state.step, tensors.collect()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_learner_killed_again_and_again_trains_what_an_uninterrupted_one_does() {
    let proof = Proof::begin("learner-killed");
    let uninterrupted = tempfile::tempdir().unwrap();
    let peaceful = coordinator();
    let serving = peaceful.serve().await;
    finish(&peaceful, start(&serving.url(), uninterrupted.path())).await;

    let kills = scaled(10, 100);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(31);
    let data = tempfile::tempdir().unwrap();
    let coordinator = coordinator();
    let serving = coordinator.serve().await;
    let mut stopped_at = Vec::new();
    for kill in 0..kills {
        let mut learner = start(&serving.url(), data.path());
        coordinator.until(|state| state.registered.len() > kill).await;
        let resumed = coordinator.state().registered[kill].step;
        assert_eq!(
            resumed,
            stopped_at.last().copied().unwrap_or(0),
            "resume {kill} went back or ahead"
        );
        // Training has hardly begun, or goes on for a while: at a hundred checkpoints a second, most kills hit one.
        tokio::time::sleep(Duration::from_micros(rng.random_range(0..10_000_000 / kills as u64))).await;
        learner.kill().await.unwrap();
        stopped_at.push(newest(data.path()).map_or(0, |(step, _)| step));
    }
    finish(&coordinator, start(&serving.url(), data.path())).await;
    assert!(stopped_at.iter().any(|&step| step > 0), "no kill came late enough");

    let (expected, found) = (newest(uninterrupted.path()).unwrap(), newest(data.path()).unwrap());
    assert_eq!((expected.0, found.0), (steps(&coordinator), steps(&coordinator)));
    assert_eq!(
        expected.1.keys().collect::<Vec<_>>(),
        found.1.keys().collect::<Vec<_>>()
    );
    for (name, bytes) in &expected.1 {
        assert!(found.1[name] == *bytes, "{name} differs");
    }
    let within = stopped_at.iter().filter(|&&step| step > 0).count();
    let proof = proof.count("kills", kills).count("kills_while_training", within);
    proof.count("steps", steps(&coordinator) as usize).proved();
}
