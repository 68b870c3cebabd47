//! The whole learner against a coordinator on a real port: what it publishes, what it keeps, and when it gives way.

#![allow(clippy::unwrap_used, reason = "a test file: a failed unwrap is a failed test")]

mod disk;
mod fake_coordinator;
mod kills;
mod power_cut;
mod window;

use std::path::Path;

use clap::Parser;
use fake_coordinator::{Coordinator, Publishing, State};
use tengen_learner::Options;
use tengen_learner::checkpoint::CheckpointFolder;
use tengen_network::{model_id, read_metadata};
use tengen_proto::v1::{ModelVariant, Precision};
use tengen_replay::testing::RedisServer;
use tengen_replay::{LoggedGame, RedisOptions, RedisWriter, Standing};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::Status;

struct Learner {
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Learner {
    fn start(url: &str, data: &Path) -> Learner {
        Learner::start_with(url, data, &[])
    }

    fn start_with(url: &str, data: &Path, more: &[&str]) -> Learner {
        let data = data.to_str().unwrap();
        let words = [
            "tengen-learner",
            "--coordinator",
            url,
            "--data",
            data,
            "--device",
            "cpu",
        ];
        let options = Options::parse_from(words.iter().chain(more));
        let stop = CancellationToken::new();
        let task = tokio::spawn(tengen_learner::run(options, stop.clone()));
        Learner { stop, task }
    }

    /// Waits until `holds`; a learner that ends before that fails the test.
    async fn until(&mut self, coordinator: &Coordinator, holds: impl Fn(&State) -> bool) {
        tokio::select! {
            () = coordinator.until(holds) => {}
            ended = &mut self.task => panic!("the learner ended: {ended:?}"),
        }
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

fn published(count: usize) -> impl Fn(&State) -> bool {
    move |state| state.published.len() >= count
}

#[tokio::test(flavor = "multi_thread")]
async fn candidates_follow_each_other_and_a_restart_goes_on_where_it_was() {
    let coordinator = Coordinator::new(60);
    let positions = coordinator.state().positions();
    let half = positions / 2;
    coordinator.state().due = (1, half);
    let serving = coordinator.serve().await;
    let data = tempfile::tempdir().unwrap();

    let mut learner = Learner::start(&serving.url(), data.path());
    learner.until(&coordinator, published(1)).await;
    coordinator.state().due = (2, positions);
    learner.until(&coordinator, published(2)).await;
    learner
        .until(&coordinator, |state| {
            state.status.activity.starts_with("waiting for games")
        })
        .await;
    learner.stop().await;

    {
        let state = coordinator.state();
        let [first, second] = state.published.as_slice() else {
            panic!("{} published", state.published.len())
        };
        let parent = Coordinator::generation_zero_id();
        for ((header, file), iteration, parent, step) in [
            (first, 1, &parent, half / 32),
            (second, 2, &model_id(&first.1).to_vec(), positions / 32),
        ] {
            let model = header.model.as_ref().unwrap();
            assert_eq!(model.model_id, model_id(file));
            assert_eq!(
                (model.iteration, model.step, &model.parent_id),
                (iteration, step, parent)
            );
            assert_eq!((model.size_bytes, model.probes.len()), (file.len() as u64, 16));
            let metadata = read_metadata(file).unwrap();
            assert_eq!(metadata.to_json(), model.metadata_json);
            assert_eq!((metadata.run.as_str(), metadata.step), ("fake-1", step));
            // The coordinator has held each file against its description.
            let offered: Vec<Precision> = model.variants.iter().map(ModelVariant::precision).collect();
            assert_eq!(offered, [Precision::Int8, Precision::Fp16]);
            for variant in &model.variants {
                let fidelity = variant.fidelity.unwrap();
                assert!(fidelity.positions > 0 && fidelity.policy_kl < 0.01, "{fidelity:?}");
                assert_eq!(variant.answers.len(), model.probes.len());
            }
        }
        assert_eq!(
            (state.status.step, state.status.step_limit),
            (positions / 32, positions / 32)
        );
        assert!(
            state.status.parity > 0.0 && state.status.policy_loss > 0.0,
            "{:?}",
            state.status
        );
    }

    let checkpoint = CheckpointFolder::new(data.path().join("checkpoints"))
        .newest()
        .unwrap()
        .unwrap();
    let newest = checkpoint.state.exported.unwrap_or(checkpoint.state.published);
    assert_eq!((checkpoint.state.step, newest.iteration), (positions / 32, 2));
    let mut learner = Learner::start(&serving.url(), data.path());
    learner
        .until(&coordinator, |state| {
            state.registered.len() == 2 && state.status.step == positions / 32
        })
        .await;
    learner.stop().await;
    let state = coordinator.state();
    assert_eq!(state.registered[1].step, positions / 32);
    assert_eq!((state.published.len(), state.downloads), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_wants_fp32_alone_gets_it_alone() {
    let coordinator = Coordinator::new(60);
    let positions = coordinator.positions();
    coordinator.state().run_toml.push_str("[export]\nprecisions = []\n");
    coordinator.state().due = (1, positions);
    let serving = coordinator.serve().await;
    let data = tempfile::tempdir().unwrap();
    let mut learner = Learner::start(&serving.url(), data.path());
    learner.until(&coordinator, published(1)).await;
    learner.stop().await;
    let state = coordinator.state();
    assert!(state.published[0].0.model.as_ref().unwrap().variants.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_holds_the_next_step_and_changed_settings_hold_from_it_on() {
    let coordinator = Coordinator::new(60);
    coordinator.state().paused = true;
    let serving = coordinator.serve().await;
    let data = tempfile::tempdir().unwrap();
    let mut learner = Learner::start(&serving.url(), data.path());
    let says = |activity: &'static str| move |state: &State| state.status.activity == activity;
    learner.until(&coordinator, says("waiting: training is paused")).await;
    assert_eq!(coordinator.state().status.step, 0);

    {
        let mut state = coordinator.state();
        let changed = state
            .run_toml
            .replace("batch = 32", "batch = 16\nlearning_rate = 0.001\nema_decay = 0.9");
        state.run_toml = changed.replace("samples_per_position = 1.0", "samples_per_position = 2.0");
        (state.settings_revision, state.paused) = (2, false);
    }
    // Four times the steps that the old settings allow.
    let steps = coordinator.positions() * 2 / 16;
    learner.until(&coordinator, |state| state.status.step == steps).await;
    let status = coordinator.state().status.clone();
    assert_eq!((status.learning_rate, status.ema_decay), (0.001, 0.9));
    assert_eq!(coordinator.state().registered.len(), 1, "without a restart");
    learner.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_learner_of_an_ended_run_writes_its_last_checkpoint_and_ends_well() {
    let coordinator = Coordinator::new(60);
    let serving = coordinator.serve().await;
    let data = tempfile::tempdir().unwrap();
    let mut learner = Learner::start(&serving.url(), data.path());
    learner.until(&coordinator, |state| state.status.step > 0).await;
    coordinator.state().ended = true;
    learner.task.await.unwrap().unwrap();
    let checkpoint = CheckpointFolder::new(data.path().join("checkpoints")).newest().unwrap();
    assert!(checkpoint.unwrap().state.step > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_learner_whose_place_was_taken_ends_and_says_so() {
    let coordinator = Coordinator::new(60);
    let serving = coordinator.serve().await;
    let data = tempfile::tempdir().unwrap();
    let mut learner = Learner::start(&serving.url(), data.path());
    learner.until(&coordinator, |state| state.status.step > 0).await;
    coordinator.state().fence += 1;
    let error = learner.task.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("another learner took this one's place"), "{error}");
    // What it had trained is not lost.
    let checkpoint = CheckpointFolder::new(data.path().join("checkpoints")).newest().unwrap();
    assert!(checkpoint.unwrap().state.step > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn training_survives_a_coordinators_restart() {
    let coordinator = Coordinator::new(60);
    let serving = coordinator.serve().await;
    let data = tempfile::tempdir().unwrap();
    let mut learner = Learner::start(&serving.url(), data.path());
    learner.until(&coordinator, |state| state.status.step > 0).await;

    let address = serving.kill().await;
    let positions = coordinator.positions();
    coordinator.state().due = (1, positions);
    let _serving = coordinator.serve_at(address).await;
    learner.until(&coordinator, published(1)).await;
    learner.stop().await;
    let state = coordinator.state();
    assert_eq!((state.registered.len(), state.published[0].0.fence), (1, 1));
}

/// Writes a window of this epoch with the coordinator's first games, as a real one would.
async fn fill(server: &RedisServer, epoch: u64, coordinator: &Coordinator, games: usize) {
    let options = RedisOptions::load(&server.url(), None, None).unwrap();
    let (mut writer, _) = RedisWriter::open(&options, "fake-1", 1).await.unwrap();
    let games: Vec<LoggedGame> = coordinator.state().games[..games]
        .iter()
        .map(|game| LoggedGame {
            sequence: game.sequence,
            positions: game.positions,
            positions_total: game.positions_total,
            record: game.record.clone().into(),
        })
        .collect();
    let total = games.last().unwrap().positions_total;
    writer.begin(epoch).await.unwrap();
    writer.load(epoch, 0, &games).await.unwrap();
    let built = Standing {
        epoch,
        capacity: 10_000,
        last_sequence: games.last().unwrap().sequence,
        held: total,
        games: games.iter().filter(|game| game.positions > 0).count() as u64,
        positions_total: total,
    };
    writer.switch(built).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_feeds_a_learner_that_outlives_the_server_and_takes_up_the_rebuilt_window() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = RedisServer::start(folder.path(), &[]);
    let coordinator = Coordinator::new(60);
    let often = fake_coordinator::RUN_TOML.replace("samples_per_position = 1.0", "samples_per_position = 1000.0");
    coordinator.state().run_toml = often;
    coordinator.state().window_store = server.url();
    fill(&server, 2, &coordinator, 40).await;
    let serving = coordinator.serve().await;
    let data = tempfile::tempdir().unwrap();
    let mut learner = Learner::start_with(&serving.url(), data.path(), &["--replay", &server.url()]);
    let seen = coordinator.state().games[39].positions_total;
    learner
        .until(&coordinator, |state| {
            state.status.step > 0 && state.status.positions_seen == seen
        })
        .await;

    // Nothing is kept, so the server comes back without a window.
    server.kill();
    server.restart();
    let step = coordinator.state().status.step;
    learner.until(&coordinator, |state| state.status.step > step + 50).await;
    fill(&server, 3, &coordinator, 60).await;
    let seen = coordinator.positions();
    learner
        .until(&coordinator, |state| state.status.positions_seen == seen)
        .await;
    let step = coordinator.state().status.step;
    learner.until(&coordinator, |state| state.status.step > step + 50).await;
    learner.stop().await;
    assert_eq!(coordinator.state().streams, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_learner_that_reads_the_wrong_store_ends_with_the_way_out() {
    let coordinator = Coordinator::new(0);
    coordinator.state().window_store = "redis://10.0.0.5:6379/0".to_owned();
    let serving = coordinator.serve().await;
    let data = tempfile::tempdir().unwrap();
    let learner = Learner::start(&serving.url(), data.path());
    let error = learner.task.await.unwrap().unwrap_err().to_string();
    assert!(
        error.contains("redis://10.0.0.5:6379/0") && error.contains("--replay"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_that_forgot_its_learner_is_registered_with_again() {
    let coordinator = Coordinator::new(60);
    let serving = coordinator.serve().await;
    let data = tempfile::tempdir().unwrap();
    let mut learner = Learner::start(&serving.url(), data.path());
    learner.until(&coordinator, |state| state.status.step > 0).await;
    {
        let mut state = coordinator.state();
        state.fence = 100;
        state.refusal = Some(Status::not_found);
        state.due = (1, state.positions());
    }
    learner.until(&coordinator, published(1)).await;
    learner.stop().await;
    let state = coordinator.state();
    assert_eq!((state.registered.len(), state.published[0].0.fence), (2, 101));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_is_refused_is_given_up_and_counted_and_the_next_one_is_another_chance() {
    let coordinator = Coordinator::new(60);
    let positions = coordinator.state().positions();
    coordinator.state().due = (1, positions / 2);
    coordinator.state().publishing = Publishing::Refused;
    let serving = coordinator.serve().await;
    let data = tempfile::tempdir().unwrap();
    let mut learner = Learner::start(&serving.url(), data.path());
    let given_up = |state: &State| state.status.candidates_given_up == 1;
    learner.until(&coordinator, given_up).await;
    {
        let mut state = coordinator.state();
        state.publishing = Publishing::Works;
        state.due = (2, positions);
    }
    learner.until(&coordinator, published(1)).await;
    learner.stop().await;
    let state = coordinator.state();
    assert_eq!(state.published[0].0.model.as_ref().unwrap().iteration, 2);
    assert_eq!(state.status.candidates_given_up, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_that_takes_no_reduced_precision_gets_the_network_in_fp32() {
    let coordinator = Coordinator::new(60);
    let positions = coordinator.state().positions();
    coordinator.state().due = (1, positions);
    coordinator.state().publishing = Publishing::Fp32Alone;
    let serving = coordinator.serve().await;
    let data = tempfile::tempdir().unwrap();
    let mut learner = Learner::start(&serving.url(), data.path());
    learner.until(&coordinator, published(1)).await;
    learner.stop().await;
    let state = coordinator.state();
    let model = state.published[0].0.model.as_ref().unwrap();
    assert_eq!(
        (model.iteration, model.variants.len(), state.publications_tried),
        (1, 0, 2)
    );
    assert_eq!(state.status.candidates_given_up, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_before_the_coordinator_is_there_it_ends_quietly() {
    let coordinator = Coordinator::new(0);
    let address = coordinator.serve().await.kill().await;
    let data = tempfile::tempdir().unwrap();
    let learner = Learner::start(&format!("http://{address}"), data.path());
    learner.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_learners_do_not_share_a_folder() {
    let coordinator = Coordinator::new(60);
    let serving = coordinator.serve().await;
    let data = tempfile::tempdir().unwrap();
    let mut learner = Learner::start(&serving.url(), data.path());
    learner.until(&coordinator, |state| !state.registered.is_empty()).await;
    let second = Learner::start(&serving.url(), data.path());
    let error = second.task.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("in use"), "{error}");
    learner.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_that_did_not_arrive_is_cut_again_after_a_restart() {
    let coordinator = Coordinator::new(60);
    let positions = coordinator.positions();
    coordinator.state().due = (1, positions);
    coordinator.state().publishing = Publishing::Away;
    let serving = coordinator.serve().await;
    let data = tempfile::tempdir().unwrap();
    let mut learner = Learner::start(&serving.url(), data.path());
    learner.until(&coordinator, |state| state.publications_tried > 0).await;
    learner.stop().await;
    let checkpoint = CheckpointFolder::new(data.path().join("checkpoints"))
        .newest()
        .unwrap()
        .unwrap();
    assert_eq!(checkpoint.state.exported.map(|exported| exported.iteration), Some(1));

    coordinator.state().publishing = Publishing::Works;
    let mut learner = Learner::start(&serving.url(), data.path());
    learner.until(&coordinator, published(1)).await;
    learner.stop().await;
    let state = coordinator.state();
    let model = state.published[0].0.model.clone().unwrap();
    assert_eq!(
        (model.parent_id, model.step),
        (Coordinator::generation_zero_id(), state.positions() / 32)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_whose_answer_was_lost_is_published_once_and_is_the_next_ones_parent() {
    let coordinator = Coordinator::new(60);
    let positions = coordinator.positions();
    coordinator.state().due = (1, positions / 2);
    coordinator.state().publishing = Publishing::AnswerLost;
    let serving = coordinator.serve().await;
    let data = tempfile::tempdir().unwrap();
    let mut learner = Learner::start(&serving.url(), data.path());
    learner.until(&coordinator, published(1)).await;
    learner.stop().await;

    {
        let mut state = coordinator.state();
        state.publishing = Publishing::Works;
        state.due = (2, positions);
    }
    let mut learner = Learner::start(&serving.url(), data.path());
    learner.until(&coordinator, published(2)).await;
    learner.stop().await;
    let state = coordinator.state();
    let [first, second] = [0, 1].map(|index| state.published[index].0.model.clone().unwrap());
    assert_eq!(
        (first.iteration, second.iteration, second.parent_id),
        (1, 2, first.model_id)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ruined_training_ends_with_an_error_and_leaves_no_ruined_checkpoint() {
    let coordinator = Coordinator::new(60);
    // Each step multiplies the weights by about minus nine.
    coordinator.state().run_toml = fake_coordinator::RUN_TOML.replace(
        "samples_per_position = 1.0",
        "samples_per_position = 100.0\nlearning_rate = 10.0\nweight_decay = 0.99",
    );
    let every_step = coordinator
        .state()
        .run_toml
        .replace("checkpoint_every_steps = 5", "checkpoint_every_steps = 1");
    coordinator.state().run_toml = every_step;
    let serving = coordinator.serve().await;
    let data = tempfile::tempdir().unwrap();
    let learner = Learner::start(&serving.url(), data.path());
    let error = learner.task.await.unwrap().unwrap_err().to_string();
    assert!(
        error.contains("not finite") && error.contains("learning_rate"),
        "{error}"
    );
    let checkpoint = CheckpointFolder::new(data.path().join("checkpoints")).newest().unwrap();
    let checkpoint = checkpoint.expect("every step before the ruin left a checkpoint");
    assert!(checkpoint.is_finite(), "step {} is ruined", checkpoint.state.step);
}
