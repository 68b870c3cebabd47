//! Retention: old games and networks go, and nothing that anybody needs.

use tempfile::TempDir;
use tengen_coordinator::RetentionConfig;
use tengen_proto::v1;
use tengen_proto::v1::Verdict;
use tengen_records::encode;
use tonic::Code;

use crate::database::assert_sound;
use crate::gates::play_gate;
use crate::rig::{Actor, FIXED, Learner, NONE, Rig, TIC_TAC_TOE, options};
use crate::window::{catch_up, mirror, records};

/// Starts on a folder with a rule, and returns when its first sweep is over.
async fn start(folder: TempDir, toml: &str, retention: RetentionConfig) -> (Rig, Actor) {
    let mut options = options(folder.path(), toml);
    options.config.retention = retention;
    let rig = Rig::start_with(folder, options).await.expect("it starts");
    let mut actor = Actor::new(&rig, "sweeper").await;
    // Every batch of the owner carries a step of the sweep, and what it answers it answers after a batch.
    for _ in 0..8 {
        actor.report(vec![], vec![]).await;
    }
    (rig, actor)
}

#[tokio::test]
async fn ids_outlive_their_games_and_the_window_keeps_what_it_needs() {
    let toml = format!("{TIC_TAC_TOE}{NONE}[replay]\ncapacity_positions = 40\n");
    let rig = Rig::start(&toml).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let work = actor.work(0.0).await;
    let first = actor.play(&work, 0);
    assert_eq!(actor.submit(&first).await, Verdict::Stored);
    let other = (0..)
        .map(|_| actor.play(&work, 0))
        .find(|other| encode(other) != encode(&first))
        .expect("another");
    actor.report(vec![], vec![work.order.lease.to_bytes().to_vec()]).await;
    for _ in 0..24 {
        actor.deliver(4).await;
    }
    let before = rig.status().await;
    let (_, window) = catch_up(&mut mirror(&rig, 0, 0).await).await;
    assert!((5..40).contains(&window.len()), "{} games in the window", window.len());

    let rule = RetentionConfig {
        keep_games: 3,
        ..RetentionConfig::default()
    };
    let (rig, mut actor) = start(rig.stop().await, &toml, rule).await;
    // Three would do, but the window needs more.
    assert_eq!(rig.count("SELECT count(*) FROM games"), window.len() as u64);
    assert_eq!(rig.count("SELECT count(*) FROM game_ids"), 97);
    assert_eq!(rig.count("SELECT count(*) FROM audit WHERE action = 'retention'"), 1);
    let (_, kept) = catch_up(&mut mirror(&rig, 0, 0).await).await;
    assert_eq!(records(&kept), records(&window));
    // The first game is long gone, and still nobody can take its place.
    assert_eq!(actor.submit(&first).await, Verdict::Duplicate);
    assert_eq!(actor.submit(&other).await, Verdict::Conflict);
    let after = rig.status().await;
    assert_eq!((after.games, after.positions), (before.games, before.positions));

    // With the games gone, a restart still finds the same window and the same numbers.
    let rig = rig.restart(&toml).await;
    let (_, again) = catch_up(&mut mirror(&rig, 0, 0).await).await;
    assert_eq!(records(&again), records(&window));
    assert_eq!(rig.status().await.positions, before.positions);
    let folder = rig.stop().await;
    assert_sound(folder.path()).await;
}

#[tokio::test]
async fn more_games_are_kept_when_the_rule_says_so_and_all_by_default() {
    let toml = format!("{TIC_TAC_TOE}{NONE}[replay]\ncapacity_positions = 1\n");
    let rig = Rig::start(&toml).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    for _ in 0..50 {
        actor.deliver(4).await;
    }
    let (rig, _actor) = start(rig.stop().await, &toml, RetentionConfig::default()).await;
    assert_eq!(rig.count("SELECT count(*) FROM games"), 200);
    let rule = RetentionConfig {
        keep_games: 17,
        ..RetentionConfig::default()
    };
    let (rig, _actor) = start(rig.stop().await, &toml, rule).await;
    assert_eq!(rig.count("SELECT count(*) FROM games"), 17);
    assert_eq!(rig.count("SELECT min(sequence) FROM games"), 184);
    let folder = rig.stop().await;
    assert_sound(folder.path()).await;
}

#[tokio::test]
async fn games_of_a_promotion_and_of_an_open_gate_stay_and_those_of_a_rejection_go() {
    let toml = format!("{TIC_TAC_TOE}{FIXED}[replay]\ncapacity_positions = 1\n");
    let rig = Rig::start(&toml).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let mut learner = Learner::new(&rig).await;
    // The first candidate wins, the second loses, and the gate of the third stays open.
    for (iteration, winner) in [(1, 0), (2, 1)] {
        actor.deliver(4).await;
        learner.publish(iteration).await.expect("a candidate");
        play_gate(&rig, &mut actor, Some(winner)).await;
    }
    actor.deliver(4).await;
    let self_play = actor.work(0.0).await;
    learner.publish(3).await.expect("a candidate");
    let work = actor.match_work(1.0).await;
    let half = actor.play_to(&work, 0, Some(0));
    assert_eq!(actor.submit(&half).await, Verdict::Stored);
    // Newer games than all of these.
    for index in 0..3 {
        let record = actor.play(&self_play, index);
        assert_eq!(actor.submit(&record).await, Verdict::Stored);
    }
    let of_gate = |rig: &Rig, gate: u32| {
        rig.count(&format!(
            "SELECT count(*) FROM games JOIN gate_log USING (sequence) WHERE gate = {gate}"
        ))
    };
    assert_eq!([1, 2, 3].map(|gate| of_gate(&rig, gate)), [4, 4, 1]);
    let rule = RetentionConfig {
        keep_games: 1,
        ..RetentionConfig::default()
    };
    let (rig, mut actor) = start(rig.stop().await, &toml, rule).await;
    assert_eq!([1, 2, 3].map(|gate| of_gate(&rig, gate)), [4, 0, 1]);
    assert_eq!(rig.count("SELECT count(*) FROM gate_log"), 9);
    // The gate goes on from where it was.
    let other = actor.play_to(&work, 1, Some(0));
    assert_eq!(actor.submit(&other).await, Verdict::Stored);
    assert_eq!(rig.status().await.gate.expect("a gate").pairs, 1);
    let folder = rig.stop().await;
    assert_sound(folder.path()).await;
}

#[tokio::test]
async fn networks_of_old_generations_go_and_their_descriptions_stay() {
    let toml = format!("{TIC_TAC_TOE}{NONE}");
    let rig = Rig::start(&toml).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let mut learner = Learner::new(&rig).await;
    for iteration in 1..=7 {
        actor.deliver(4).await;
        learner.publish(iteration).await.expect("a candidate");
    }
    assert_eq!(rig.status().await.generation, 7);
    // A lease in progress names generation 7 only; one of generation 2 would hold that one.
    let rule = RetentionConfig {
        keep_generations: 2,
        keep_every: 3,
        keep_games: 0,
    };
    let (rig, _actor) = start(rig.stop().await, &toml, rule).await;
    let mut held = Vec::new();
    for generation in 0..=7u32 {
        let model = rig.model(&format!("gen:{generation}")).await;
        let request = v1::DownloadModelRequest {
            model_id: model.model_id,
            offset: 0,
        };
        match rig.models().await.download_model(request).await {
            Ok(_) => held.push(generation),
            Err(status) => {
                assert_eq!(status.code(), Code::NotFound);
                assert!(status.message().contains("retention"), "{}", status.message());
            }
        }
    }
    assert_eq!(held, [0, 3, 6, 7]);
    assert_eq!(std::fs::read_dir(rig.path("models")).expect("a folder").count(), 4);
    let folder = rig.stop().await;
    assert_sound(folder.path()).await;
}
