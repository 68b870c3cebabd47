//! A run over several starts of the process.

use tengen_coordinator::{Coordinator, CoordinatorError, ReadOnly, ReadOnlyOptions};
use tengen_games::AnyGame;
use tengen_proto::v1;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::rig::{Actor, FIXED, Learner, NONE, Reached, Rig, TIC_TAC_TOE, options};

/// A status without what depends on the moment or on who is connected.
fn lasting(status: v1::RunStatus) -> v1::RunStatus {
    v1::RunStatus {
        uptime_ms: 0,
        learner: None,
        actors: vec![],
        games_per_minute: 0.0,
        evaluations_per_second: 0.0,
        waiting: String::new(),
        disk: None,
        audit: String::new(),
        window_store: String::new(),
        clock_unix_ms: 0,
        positions_per_minute: 0.0,
        match_games_per_minute: 0.0,
        samples_per_position: 0.0,
        steps_behind: 0,
        window_games: 0,
        window_oldest_unix_ms: 0,
        window_turnover_minutes: None,
        candidate_due_iteration: 0,
        gate_pairs_wanted: 0,
        usage: None,
        gate: status.gate.map(|gate| v1::Gate {
            seconds_left_max: None,
            ..gate
        }),
        ..status
    }
}

#[tokio::test]
async fn a_restart_rebuilds_the_same_status_window_and_gate() {
    let toml = format!("{TIC_TAC_TOE}{FIXED}");
    let rig = Rig::start(&toml).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    actor.deliver(5).await;
    let mut learner = Learner::new(&rig).await;
    learner.publish(1).await.expect("a candidate");
    let work = actor.match_work(1.0).await;
    let half = actor.play_to(&work, 0, Some(0));
    assert_eq!(actor.submit(&half).await, v1::Verdict::Stored);
    let before = lasting(rig.status().await);
    assert_eq!(
        (
            before.iteration,
            before.iteration_games,
            before.games,
            before.match_games
        ),
        (1, 1, 5, 1)
    );
    assert!(before.gate.is_some());

    let rig = rig.restart(&toml).await;
    assert_eq!(lasting(rig.status().await), before);
    // The half pair and its lease survived: the other half completes it.
    let mut actor = Actor::new(&rig, "actor-1").await;
    let other = actor.play_to(&work, 1, Some(0));
    assert_eq!(actor.submit(&other).await, v1::Verdict::Stored);
    let gate = rig.status().await.gate.expect("a gate");
    assert_eq!((gate.pairs, gate.wins), (1, 2));
    rig.stop().await;
}

#[tokio::test]
async fn what_is_fixed_for_a_run_cannot_change_and_the_refusal_names_it() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let folder = rig.stop().await;
    let changed = TIC_TAC_TOE
        .replace("channels = 4", "channels = 8")
        .replace("seed = 7", "seed = 8");
    let stop = CancellationToken::new();
    let refused = Coordinator::start(options(folder.path(), &changed), stop.clone())
        .await
        .expect_err("a refusal");
    let text = refused.to_string();
    assert!(text.contains("network.channels: the run has 4, now it is 8"), "{text}");
    assert!(text.contains("run.seed: the run has 7, now it is 8"), "{text}");
    assert!(text.contains("--data"), "{text}");

    let other_game = TIC_TAC_TOE.replace("tic-tac-toe", "connect-four");
    let refused = Coordinator::start(options(folder.path(), &other_game), stop)
        .await
        .expect_err("a refusal");
    let text = refused.to_string();
    assert!(
        text.contains("rules fingerprint: the run has") && text.contains("run.game"),
        "{text}"
    );

    // The run is untouched.
    Rig::start_in(folder, TIC_TAC_TOE)
        .await
        .expect("it starts")
        .stop()
        .await;
}

#[tokio::test]
async fn changed_planes_alone_are_refused_with_both_fingerprints_and_the_way_out() {
    let folder = Rig::start(TIC_TAC_TOE).await.stop().await;
    // As a build with the same rules and other planes would have left it.
    let foreign = rusqlite::Connection::open(folder.path().join("tengen.db")).expect("a database");
    let change = "UPDATE run SET feature_fingerprint = zeroblob(32)";
    assert_eq!(foreign.execute(change, []).expect("a changed run"), 1);
    drop(foreign);
    let refused = Coordinator::start(options(folder.path(), TIC_TAC_TOE), CancellationToken::new())
        .await
        .expect_err("a refusal")
        .to_string();
    let now = AnyGame::parse("tic-tac-toe").expect("a game").feature_fingerprint();
    let planes = format!(
        "planes (feature fingerprint): the run has {}, now it is {now}",
        "0".repeat(64)
    );
    assert!(refused.contains(&planes), "{refused}");
    for other in ["rules fingerprint", "network shape", "run.", "network."] {
        let changed = format!("\n  {other}");
        assert!(!refused.contains(&changed), "{other} did not change: {refused}");
    }
    for way_out in [
        "the run is untouched",
        "restore the old values",
        "another --data folder",
    ] {
        assert!(refused.contains(way_out), "{way_out:?} in {refused}");
    }
}

#[tokio::test]
async fn a_run_of_rules_that_this_build_has_not_is_refused_and_stays_readable() {
    let rig = Rig::start(&format!("{TIC_TAC_TOE}{NONE}")).await;
    Actor::new(&rig, "actor-1").await.deliver(5).await;
    Learner::new(&rig).await.publish(1).await.expect("a candidate");
    let before = (lasting(rig.status().await), rig.listed_models().await);
    assert_eq!((before.0.generation, before.1.len()), (1, 2));
    let folder = rig.stop().await;
    // As a build with other rules of the game, under a name that this one does not know, would have left it.
    let foreign = rusqlite::Connection::open(folder.path().join("tengen.db")).expect("a database");
    let change = "UPDATE run SET game = 'no-such-game', rules_fingerprint = zeroblob(32)";
    assert_eq!(foreign.execute(change, []).expect("a changed run"), 1);
    drop(foreign);
    let refused = Coordinator::start(options(folder.path(), TIC_TAC_TOE), CancellationToken::new())
        .await
        .expect_err("a refusal")
        .to_string();
    let zeros = "0".repeat(64);
    assert!(
        refused.contains(&format!("rules fingerprint: the run has {zeros}")) && refused.contains("tengen models"),
        "{refused}"
    );

    let stop = CancellationToken::new();
    let reading = ReadOnlyOptions {
        data: folder.path().to_path_buf(),
        listen: "127.0.0.1:0".parse().expect("an address"),
        addr_file: None,
    };
    let reader = ReadOnly::start(reading, stop.clone()).await.expect("it serves");
    let reached = Reached::new(reader.addr());
    let status = v1::RunStatus {
        game: before.0.game.clone(),
        ..lasting(reached.status().await)
    };
    assert_eq!((status, reached.listed_models().await), before);
    let champion = reached.model("champion").await;
    assert_eq!(
        blake3::hash(&reached.download(&champion, 0).await).as_bytes()[..],
        champion.model_id
    );
    let parts = tokio_stream::iter([v1::PublishModelRequest::default()]);
    let refused = reached
        .models()
        .await
        .publish_model(parts)
        .await
        .expect_err("a refusal");
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    stop.cancel();
    reader.join().await.expect("it drains");
}

#[tokio::test]
async fn other_settings_are_applied_as_a_new_revision_with_an_audit_row() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let rig = rig
        .restart(&format!("{TIC_TAC_TOE}[replay]\ncapacity_positions = 10\n"))
        .await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    assert_eq!(actor.work(0.0).await.order.settings_revision, 2);
    assert_eq!(rig.status().await.window_capacity, 10);
    let named = "SELECT count(*) FROM audit WHERE action = 'apply-settings' AND detail LIKE '%capacity_positions%'";
    assert_eq!(rig.count(named), 1);
    rig.stop().await;
}

#[tokio::test]
async fn a_shorter_schedule_ends_the_iteration_at_the_next_start() {
    let rig = Rig::start(&format!("{TIC_TAC_TOE}{NONE}")).await;
    Actor::new(&rig, "actor-1").await.deliver(3).await;
    let shorter = TIC_TAC_TOE.replace("games = 4", "games = 2");
    let rig = rig.restart(&format!("{shorter}{NONE}")).await;
    let mut learner = Learner::new(&rig).await;
    assert_eq!(learner.report().await.expect("a task").candidate_iteration, 1);
    let status = rig.status().await;
    assert_eq!((status.iteration, status.iteration_games), (1, 1));
    rig.stop().await;
}

#[tokio::test]
async fn one_process_a_folder_and_loopback_only() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let stop = CancellationToken::new();
    let second = Coordinator::start(options(rig.folder.path(), TIC_TAC_TOE), stop.clone()).await;
    assert!(matches!(second, Err(CoordinatorError::Lock(_))), "{second:?}");

    let mut open = options(rig.folder.path(), TIC_TAC_TOE);
    open.config.listen = "0.0.0.0:0".parse().expect("an address");
    let refused = Coordinator::start(open, stop).await.expect_err("a refusal").to_string();
    assert!(refused.contains("loopback"), "{refused}");
    rig.stop().await;
}

#[tokio::test]
async fn the_address_file_holds_the_bound_address() {
    let folder = tempfile::tempdir().expect("a folder");
    let stop = CancellationToken::new();
    let mut options = options(folder.path(), TIC_TAC_TOE);
    options.addr_file = Some(folder.path().join("addr"));
    let coordinator = Coordinator::start(options, stop.clone()).await.expect("it starts");
    let text = std::fs::read_to_string(folder.path().join("addr")).expect("a file");
    assert_eq!(text.trim(), coordinator.addr().to_string());
    stop.cancel();
    coordinator.join().await.expect("it drains");
}

#[tokio::test]
async fn health_and_both_reflections_answer() {
    use tonic_reflection::pb::{v1 as new, v1alpha as old};
    let rig = Rig::start(TIC_TAC_TOE).await;
    let mut health = HealthClient::new(rig.channel().await);
    for service in ["", "tengen.v1.RunService"] {
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        let answer = health.check(request).await.expect("an answer").into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving);
    }

    let list = new::server_reflection_request::MessageRequest::ListServices(String::new());
    let ask = new::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(list),
    };
    let mut client = new::server_reflection_client::ServerReflectionClient::new(rig.channel().await);
    let mut answers = client
        .server_reflection_info(tokio_stream::iter([ask]))
        .await
        .expect("an answer")
        .into_inner();
    let text = format!("{:?}", answers.message().await.expect("a message"));
    assert!(
        text.contains("tengen.v1.ActorService") && text.contains("grpc.health.v1.Health"),
        "{text}"
    );

    let list = old::server_reflection_request::MessageRequest::ListServices(String::new());
    let ask = old::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(list),
    };
    let mut client = old::server_reflection_client::ServerReflectionClient::new(rig.channel().await);
    let mut answers = client
        .server_reflection_info(tokio_stream::iter([ask]))
        .await
        .expect("an answer")
        .into_inner();
    let text = format!("{:?}", answers.message().await.expect("a message"));
    assert!(text.contains("tengen.v1.RunService"), "{text}");
    rig.stop().await;
}

#[tokio::test]
async fn where_reflection_is_off_neither_version_answers_and_health_does() {
    use tonic_reflection::pb::{v1 as new, v1alpha as old};
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = options(folder.path(), TIC_TAC_TOE);
    options.config.reflection = false;
    let rig = Rig::start_with(folder, options).await.expect("it starts");
    let mut client = new::server_reflection_client::ServerReflectionClient::new(rig.channel().await);
    let refused = client.server_reflection_info(tokio_stream::empty()).await;
    let refused = refused.map(drop).expect_err("nobody tells");
    assert_eq!(refused.code(), Code::Unimplemented, "{refused}");
    let mut client = old::server_reflection_client::ServerReflectionClient::new(rig.channel().await);
    let refused = client.server_reflection_info(tokio_stream::empty()).await;
    let refused = refused.map(drop).expect_err("nobody tells");
    assert_eq!(refused.code(), Code::Unimplemented, "{refused}");
    let mut health = HealthClient::new(rig.channel().await);
    let request = HealthCheckRequest::default();
    let answer = health.check(request).await.expect("an answer").into_inner();
    assert_eq!(answer.status(), ServingStatus::Serving);
    rig.stop().await;
}

#[tokio::test]
async fn a_drain_ends_the_streams_and_leaves_one_whole_file() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    actor.deliver(2).await;
    let mut watcher = RunServiceClient::new(rig.channel().await);
    let request = v1::WatchStatusRequest {
        interval_ms: 100,
        ..Default::default()
    };
    let mut statuses = watcher.watch_status(request).await.expect("a stream").into_inner();
    assert_eq!(statuses.message().await.expect("a status").expect("a status").games, 2);
    let folder = rig.stop().await;
    assert_eq!(actor.stream_error().await.code(), Code::Unavailable);
    while let Ok(Some(_)) = statuses.message().await {}
    // The write-ahead log is folded in: the database file alone has everything.
    let wal = std::fs::metadata(folder.path().join("tengen.db-wal")).map_or(0, |file| file.len());
    assert_eq!(wal, 0);
}
