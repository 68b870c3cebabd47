//! Audits: games of real networks over the real wire, with every stored game drawn.

use std::path::Path;
use std::sync::Arc;

use tengen_coordinator::{AuditConfig, Options};
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_network::{Metadata, Shape, random_weights, read_metadata, write_onnx};
use tengen_proto::v1;
use tengen_proto::v1::Verdict;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_records::{Record, RunId};
use tengen_selfplay::audit::{evaluator, load_runtime};
use tengen_selfplay::{Driver, DriverOptions, Lease, ModelBytes, Order};
use tengen_service::run_config::RunConfig;
use tonic::Code;

use crate::rig::{Actor, Assignment, Rig, TIC_TAC_TOE, hello, options};

/// Every game is drawn.
fn audited(data: &Path) -> Options {
    let mut options = options(data, TIC_TAC_TOE);
    options.config.audit = Some(AuditConfig {
        share: 1.0,
        ..AuditConfig::default()
    });
    options
}

async fn start(folder: tempfile::TempDir) -> Rig {
    let options = audited(folder.path());
    Rig::start_with(folder, options).await.expect("it starts")
}

/// The run's only network.
pub(crate) fn champion(rig: &Rig) -> Arc<ModelBytes> {
    let mut files = std::fs::read_dir(rig.path("models")).expect("a folder");
    let file = files.next().expect("a network").expect("an entry");
    ModelBytes::new(std::fs::read(file.path()).expect("a file"))
}

/// A network of the same shape with other weights.
fn stranger(champion: &ModelBytes) -> Arc<ModelBytes> {
    let config = RunConfig::from_toml(TIC_TAC_TOE).expect("a good configuration");
    let game = AnyGame::parse(&config.run.game).expect("a game");
    let shape = Shape::new(game.spec(), &config.network).expect("a shape");
    let metadata: Metadata = read_metadata(champion.bytes()).expect("metadata");
    ModelBytes::new(write_onnx(&shape, &random_weights(&shape, 123), &metadata).expect("a network"))
}

/// Plays a lease with `model`, and says that it was the lease's.
pub(crate) fn play(work: &Assignment, model: Arc<ModelBytes>) -> Vec<Record> {
    struct Play(Arc<Lease>);
    impl GameVisitor for Play {
        type Output = Vec<Record>;
        fn visit<G: Game>(self, game: G) -> Vec<Record> {
            let mut records = Vec::new();
            Driver::new(game, evaluator(), DriverOptions::default())
                .play(&self.0, |record| records.push(record))
                .expect("it plays");
            records
        }
    }
    load_runtime(None).expect("ONNX Runtime is laid out");
    let order = Order {
        models: vec![model.id()],
        ..work.order.clone()
    };
    let run = RunId::new(work.expected.run_id.as_str()).expect("a run");
    let lease = Lease::new(run, order, vec![model]).expect("a lease");
    let game = AnyGame::parse(&work.expected.game_id).expect("a game");
    let mut records = game.visit(Play(lease));
    for record in &mut records {
        record.models.clone_from(&work.order.models);
    }
    records.sort_by_key(|record| record.id.index);
    records
}

/// Watches the status until this many games were drawn and dealt with.
pub(crate) async fn dealt_with(rig: &Rig, games: u64) -> v1::RunStatus {
    let request = v1::WatchStatusRequest {
        interval_ms: 100,
        ..Default::default()
    };
    let mut client = RunServiceClient::new(rig.channel().await);
    let mut statuses = client.watch_status(request).await.expect("a stream").into_inner();
    loop {
        let status = statuses.message().await.expect("a status").expect("an open stream");
        if status.audited + status.audit_missed == games {
            return status;
        }
    }
}

#[tokio::test]
async fn an_actor_whose_network_is_another_is_counted_and_suspended_and_an_honest_one_is_not() {
    let rig = start(tempfile::tempdir().expect("a folder")).await;
    let network = champion(&rig);
    let mut honest = Actor::new(&rig, "honest").await;
    let work = honest.work(0.0).await;
    let records = play(&work, Arc::clone(&network));
    for record in &records {
        assert_eq!(honest.submit(record).await, Verdict::Stored);
    }
    let games = records.len() as u64;
    let status = dealt_with(&rig, games).await;
    assert_eq!((status.audited, status.audit_failed), (games, 0));
    assert!(
        status.audit.starts_with("100 % of the games, 4 positions"),
        "{}",
        status.audit
    );

    let mut liar = Actor::new(&rig, "liar").await;
    let work = liar.work(0.0).await;
    let mut records = play(&work, stranger(&network));
    // One of them hides what the network saw instead.
    records[1] = play(&work, network).swap_remove(1);
    records[1].plies.iter_mut().for_each(|ply| ply.search = None);
    for record in &records[..3] {
        assert_eq!(liar.submit(record).await, Verdict::Stored);
    }
    let status = dealt_with(&rig, games + 3).await;
    assert_eq!((status.audit_failed, status.audit_missed), (3, 0));
    assert_eq!(status.games, games + 3, "failed games stay stored");
    assert_eq!(rig.count("SELECT count(*) FROM audit_failures WHERE actor = 'liar'"), 3);
    assert_eq!(
        rig.count("SELECT count(*) FROM audit_failures WHERE difference < 2e-5"),
        0
    );
    assert_eq!(
        rig.count("SELECT count(*) FROM audit WHERE action = 'suspend-actor'"),
        1
    );
    let failed = crate::diagnose::found(&rig, "audits-failed").await;
    assert!(failed.evidence[0].starts_with("3 of "), "{failed:?}");
    liar.send(tengen_records::encode(&records[3])).await;
    assert_eq!(liar.stream_error().await.code(), Code::PermissionDenied);

    // Counts and suspension outlive the process; the honest actor goes on.
    let folder = rig.stop().await;
    let rig = start(folder).await;
    let status = rig.status().await;
    assert_eq!((status.audited, status.audit_failed), (games + 3, 3));
    let mut honest = Actor::new(&rig, "honest").await;
    let refused = honest.client.register(hello("liar")).await.expect_err("a refusal");
    assert!(refused.message().contains("failed their audit"), "{refused}");
    honest.work(0.0).await;
    rig.stop().await;
}

#[tokio::test]
async fn a_game_that_cannot_be_audited_is_missed_and_held_against_nobody() {
    let rig = start(tempfile::tempdir().expect("a folder")).await;
    let network = champion(&rig);
    let mut actor = Actor::new(&rig, "actor-1").await;
    let work = actor.work(0.0).await;
    let records = play(&work, Arc::clone(&network));
    let file = rig.path("models").join(format!("{}.onnx", network.id()));
    std::fs::remove_file(&file).expect("the network's file");
    assert_eq!(actor.submit(&records[0]).await, Verdict::Stored);
    let status = dealt_with(&rig, 1).await;
    assert_eq!((status.audited, status.audit_missed), (0, 1));
    assert_eq!(status.actors[0].strikes, 0);
    rig.stop().await;
}

#[tokio::test]
async fn audits_that_were_asked_for_and_cannot_be_done_are_no_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = audited(folder.path());
    options.config.onnxruntime = Some(folder.path().join("nothing"));
    let refused = Rig::start_with(folder, options)
        .await
        .err()
        .expect("a refusal")
        .to_string();
    assert!(refused.contains("audits are configured"), "{refused}");
    assert!(refused.contains("nothing"), "{refused}");
}
