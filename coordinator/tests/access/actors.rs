//! Actors: whose they are, who is served, and whose games count.

use tengen_coordinator::Limits;
use tengen_proto::v1;
use tengen_proto::v1::actor_service_client::ActorServiceClient;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_records::encode;
use tonic::{Code, Streaming};

use crate::door::{Guarded, assert_refused};
use crate::rig::{Actor, Rig, hello};

async fn window(rig: &Rig) -> Streaming<v1::WindowChunk> {
    let request = v1::StreamWindowRequest {
        epoch: 0,
        after_sequence: 0,
    };
    let stream = rig.window().await.stream_window(request).await;
    stream.expect("a stream").into_inner()
}

/// Reads until the mirror has caught up.
async fn catch_up(stream: &mut Streaming<v1::WindowChunk>) -> (u64, Vec<v1::WindowGame>) {
    let mut games = Vec::new();
    loop {
        let chunk = stream.message().await.expect("a chunk").expect("a chunk");
        games.extend(chunk.games);
        if chunk.caught_up {
            return (chunk.epoch, games);
        }
    }
}

fn records(games: &[v1::WindowGame]) -> Vec<Vec<u8>> {
    games.iter().map(|game| game.record.clone()).collect()
}

async fn list(rig: &Rig) -> Vec<v1::Actor> {
    let mut client = RunServiceClient::new(rig.channel().await);
    let mut actors = Vec::new();
    let mut request = v1::ListActorsRequest {
        page_size: 1,
        page_token: String::new(),
    };
    loop {
        let page = client.list_actors(request.clone()).await.expect("actors").into_inner();
        assert!(page.actors.len() <= 1);
        actors.extend(page.actors);
        if page.next_page_token.is_empty() {
            return actors;
        }
        request.page_token = page.next_page_token;
    }
}

#[tokio::test]
async fn an_actor_belongs_to_its_token_until_that_ends() {
    let guarded = Guarded::start().await;
    let (token, owner) = guarded.make("actor", 0).await;
    let (_, other) = guarded.make("actor", 0).await;
    let mut actor = Actor::with(guarded.channel(&owner), "actor-1").await;
    actor.deliver(1).await;

    let mut stranger = ActorServiceClient::new(guarded.channel(&other));
    let refused = stranger.register(hello("actor-1")).await.expect_err("a refusal");
    assert_refused(&refused, Code::PermissionDenied, "OTHER_TOKEN", &token.token_id);
    let request = v1::GetWorkRequest {
        actor_id: "actor-1".to_owned(),
        ..v1::GetWorkRequest::default()
    };
    let refused = stranger.get_work(request).await.expect_err("a refusal");
    assert_refused(&refused, Code::PermissionDenied, "OTHER_TOKEN", "belongs to token");
    let report = v1::ReportActorRequest {
        actor_id: "actor-1".to_owned(),
        ..v1::ReportActorRequest::default()
    };
    let refused = stranger.report(report).await.expect_err("a refusal");
    assert_refused(&refused, Code::PermissionDenied, "OTHER_TOKEN", "belongs to token");
    let mut forger = Actor::with(guarded.channel(&other), "actor-2").await;
    forger.id = "actor-1".to_owned();
    forger.send(b"anything".to_vec()).await;
    let refused = forger.stream_error().await;
    assert_refused(&refused, Code::PermissionDenied, "OTHER_TOKEN", "belongs to token");

    // The bond outlives a restart, and ends with the token.
    let guarded = guarded.restart().await;
    let mut stranger = ActorServiceClient::new(guarded.channel(&other));
    let refused = stranger.register(hello("actor-1")).await.expect_err("a refusal");
    assert_refused(&refused, Code::PermissionDenied, "OTHER_TOKEN", &token.token_id);
    guarded.revoke(&token.token_id).await.expect("an answer");
    Actor::with(guarded.channel(&other), "actor-1").await.deliver(1).await;
    let actors = list(&guarded.rig).await;
    assert_eq!(actors.len(), 2);
    assert!(
        actors
            .iter()
            .all(|actor| !actor.token_id.is_empty() && actor.token_id != token.token_id),
        "{actors:?}"
    );
    guarded.rig.stop().await;
}

#[tokio::test]
async fn a_suspended_actor_is_not_served_until_it_is_resumed() {
    let guarded = Guarded::start().await;
    let mut admin = guarded.admin();
    let request = |actor: &str| v1::SuspendActorRequest {
        actor_id: actor.to_owned(),
        reason: "it looks odd".to_owned(),
    };
    let unknown = admin.suspend_actor(request("nobody")).await.expect_err("a refusal");
    assert_refused(&unknown, Code::NotFound, "NO_SUCH_ACTOR", "tengen actors list");

    let mut actor = Actor::new(&guarded.rig, "actor-1").await;
    let work = actor.work(0.0).await;
    let suspended = admin
        .suspend_actor(request("actor-1"))
        .await
        .expect("an answer")
        .into_inner();
    assert!(suspended.suspended_unix_ms > 0);
    let game = encode(&actor.play(&work, 0));
    actor.send(game.clone()).await;
    let refused = actor.stream_error().await;
    assert_refused(
        &refused,
        Code::PermissionDenied,
        "SUSPENDED",
        "tengen actors resume actor-1",
    );

    // It stays suspended over a restart.
    let guarded = guarded.restart().await;
    let mut client = ActorServiceClient::new(guarded.rig.channel().await);
    let refused = client.register(hello("actor-1")).await.expect_err("a refusal");
    assert_refused(&refused, Code::PermissionDenied, "SUSPENDED", "actor-1");
    let request = v1::ResumeActorRequest {
        actor_id: "actor-1".to_owned(),
    };
    let resumed = guarded
        .admin()
        .resume_actor(request)
        .await
        .expect("an answer")
        .into_inner();
    assert_eq!(resumed.suspended_unix_ms, 0);
    let mut actor = Actor::new(&guarded.rig, "actor-1").await;
    assert_eq!(actor.submit_bytes(game).await.verdict(), v1::Verdict::Stored);
    let rows = "SELECT count(*) FROM audit WHERE action IN ('suspend-actor', 'resume-actor') AND who LIKE 'token %(init, admin)'";
    assert_eq!(guarded.rig.count(rows), 2);
    guarded.rig.stop().await;
}

#[tokio::test]
async fn strikes_suspend_at_the_configured_count_and_a_resumed_actor_begins_without() {
    let limits = Limits {
        strikes_max: 3,
        ..Limits::default()
    };
    let guarded = Guarded::start_with(limits).await;
    let mut actor = Actor::new(&guarded.rig, "actor-1").await;
    for _ in 0..3 {
        let verdict = actor.submit_bytes(b"rubbish".to_vec()).await.verdict();
        assert_eq!(verdict, v1::Verdict::Rejected);
    }
    actor.send(b"rubbish".to_vec()).await;
    assert_refused(
        &actor.stream_error().await,
        Code::PermissionDenied,
        "SUSPENDED",
        "3 of its records",
    );
    let request = v1::ResumeActorRequest {
        actor_id: "actor-1".to_owned(),
    };
    let resumed = guarded
        .admin()
        .resume_actor(request)
        .await
        .expect("an answer")
        .into_inner();
    assert_eq!((resumed.strikes, resumed.suspended_unix_ms), (0, 0));
    let mut actor = Actor::new(&guarded.rig, "actor-1").await;
    let verdict = actor.submit_bytes(b"rubbish".to_vec()).await.verdict();
    assert_eq!(verdict, v1::Verdict::Rejected);
    actor.deliver(1).await;
    guarded.rig.stop().await;
}

#[tokio::test]
async fn a_purge_takes_an_actors_games_out_of_the_window_and_keeps_them_and_the_counts() {
    let guarded = Guarded::start().await;
    let mut good = Actor::new(&guarded.rig, "good").await;
    let mut bad = Actor::new(&guarded.rig, "bad").await;
    let mut kept = good.deliver(2).await;
    bad.deliver(3).await;
    kept.extend(good.deliver(1).await);
    bad.deliver(1).await;
    let before = guarded.rig.status().await;
    let mut following = window(&guarded.rig).await;
    let (old_epoch, all) = catch_up(&mut following).await;
    assert_eq!(all.len(), 7);

    let request = v1::PurgeActorRequest {
        actor_id: "bad".to_owned(),
        since_unix_ms: 0,
    };
    let purged = guarded
        .admin()
        .purge_actor(request.clone())
        .await
        .expect("an answer")
        .into_inner();
    assert_eq!(
        (purged.games, purged.match_games, purged.window_epoch),
        (4, 0, old_epoch + 1)
    );
    // A mirror that follows hears of the new epoch and gets what is left, with totals that end where they did.
    let (epoch, left) = catch_up(&mut following).await;
    assert_eq!((epoch, records(&left)), (purged.window_epoch, kept.clone()));
    let after = guarded.rig.status().await;
    assert_eq!((after.positions, after.games), (before.positions, before.games));
    assert_eq!(after.window_positions, before.positions - purged.positions);
    assert_eq!(left.last().map(|game| game.positions_total), Some(before.positions));
    // What comes later goes on from there.
    let more = good.deliver(1).await;
    let chunk = following.message().await.expect("a chunk").expect("a chunk");
    assert_eq!((chunk.epoch, records(&chunk.games)), (epoch, more.clone()));
    assert_eq!(chunk.games[0].positions_total, guarded.rig.status().await.positions);

    // A second purge finds nothing and changes nothing.
    let again = guarded
        .admin()
        .purge_actor(request)
        .await
        .expect("an answer")
        .into_inner();
    assert_eq!((again.games, again.window_epoch), (0, epoch));
    assert_eq!(
        guarded
            .rig
            .count("SELECT count(*) FROM games WHERE purged_ms IS NOT NULL"),
        4
    );
    let rows = "SELECT count(*) FROM audit WHERE action = 'purge-actor' AND detail LIKE 'bad: 4 self-play games%'";
    assert_eq!(guarded.rig.count(rows), 1);

    // The window that a restart rebuilds is the same one.
    let status = guarded.rig.status().await;
    let guarded = guarded.restart().await;
    let (restarted, games) = catch_up(&mut window(&guarded.rig).await).await;
    kept.extend(more);
    assert_eq!((restarted, records(&games)), (epoch, kept));
    assert_eq!(games.last().map(|game| game.positions_total), Some(status.positions));
    assert_eq!(guarded.rig.status().await.window_positions, status.window_positions);
    guarded.rig.stop().await;
}

#[tokio::test]
async fn a_purge_leaves_games_from_before_its_time() {
    let guarded = Guarded::start().await;
    let mut actor = Actor::new(&guarded.rig, "actor-1").await;
    let early = actor.deliver(2).await;
    let newest = guarded.rig.count("SELECT max(stored_ms) FROM games") as i64;
    let later = loop {
        let later = actor.deliver(1).await;
        if guarded.rig.count("SELECT max(stored_ms) FROM games") as i64 > newest {
            break later;
        }
        // Stored within the same millisecond as the early ones: it belongs to them.
        drop(later);
    };
    let early_count = guarded
        .rig
        .count(&format!("SELECT count(*) FROM games WHERE stored_ms <= {newest}"));
    let request = v1::PurgeActorRequest {
        actor_id: "actor-1".to_owned(),
        since_unix_ms: newest + 1,
    };
    let purged = guarded
        .admin()
        .purge_actor(request)
        .await
        .expect("an answer")
        .into_inner();
    assert_eq!(purged.games, 1);
    let (_, left) = catch_up(&mut window(&guarded.rig).await).await;
    assert_eq!(left.len() as u64, early_count);
    let left = records(&left);
    assert!(early.iter().all(|record| left.contains(record)) && !left.contains(&later[0]));
    guarded.rig.stop().await;
}
