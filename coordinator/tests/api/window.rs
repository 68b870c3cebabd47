//! The window: mirrors catch up from a cursor, then follow.

use tengen_proto::v1;
use tonic::Streaming;

use crate::rig::{Actor, Learner, NONE, Rig, TIC_TAC_TOE};

pub(crate) async fn mirror(rig: &Rig, epoch: u64, after_sequence: u64) -> Streaming<v1::WindowChunk> {
    let request = v1::StreamWindowRequest { epoch, after_sequence };
    rig.window()
        .await
        .stream_window(request)
        .await
        .expect("a stream")
        .into_inner()
}

/// Reads until the mirror has caught up.
pub(crate) async fn catch_up(stream: &mut Streaming<v1::WindowChunk>) -> (u64, Vec<v1::WindowGame>) {
    let mut games = Vec::new();
    loop {
        let chunk = stream.message().await.expect("a chunk").expect("a chunk");
        games.extend(chunk.games);
        if chunk.caught_up {
            return (chunk.epoch, games);
        }
    }
}

pub(crate) fn records(games: &[v1::WindowGame]) -> Vec<Vec<u8>> {
    games.iter().map(|game| game.record.clone()).collect()
}

#[tokio::test]
async fn a_mirror_catches_up_then_follows_and_resumes_from_its_cursor() {
    let toml = format!("{TIC_TAC_TOE}{NONE}");
    let rig = Rig::start(&toml).await;
    let mut empty = mirror(&rig, 0, 0).await;
    let (epoch, games) = catch_up(&mut empty).await;
    assert!(games.is_empty());

    let mut actor = Actor::new(&rig, "actor-1").await;
    let delivered = actor.deliver(3).await;
    let mut stream = mirror(&rig, 0, 0).await;
    let (_, games) = catch_up(&mut stream).await;
    assert_eq!(records(&games), delivered);
    assert_eq!(games[2].positions_total, rig.status().await.positions);

    let more = actor.deliver(2).await;
    let mut followed = Vec::new();
    while followed.len() < 2 {
        let chunk = stream.message().await.expect("a chunk").expect("a chunk");
        assert!(!chunk.caught_up);
        followed.extend(chunk.games);
    }
    assert_eq!(records(&followed), more);

    // After a restart the cursor is still good, and a cursor of another epoch begins anew.
    let cursor = followed[0].sequence;
    let rig = rig.restart(&toml).await;
    let (_, resumed) = catch_up(&mut mirror(&rig, epoch, cursor).await).await;
    assert_eq!(records(&resumed), more[1..]);
    let (_, anew) = catch_up(&mut mirror(&rig, epoch + 1, cursor).await).await;
    assert_eq!(anew.len(), 5);
    rig.stop().await;
}

#[tokio::test]
async fn a_larger_capacity_is_a_new_epoch_that_holds_older_games_again() {
    let small = format!("{TIC_TAC_TOE}{NONE}[replay]\ncapacity_positions = 1\n");
    let rig = Rig::start(&small).await;
    let delivered = Actor::new(&rig, "actor-1").await.deliver(3).await;
    let (epoch, games) = catch_up(&mut mirror(&rig, 0, 0).await).await;
    assert!(games.len() <= 1, "{} games hold the newest position", games.len());
    let large = small.replace("capacity_positions = 1", "capacity_positions = 1000");
    let rig = rig.restart(&large).await;
    let (new_epoch, games) = catch_up(&mut mirror(&rig, epoch, 0).await).await;
    assert!(new_epoch > epoch);
    assert!(records(&games).iter().all(|record| delivered.contains(record)));
    assert_eq!(
        games.last().map(|game| game.positions_total),
        Some(rig.status().await.window_positions)
    );
    rig.stop().await;
}

#[tokio::test]
async fn match_games_never_reach_the_window() {
    let rig = Rig::start(&format!("{TIC_TAC_TOE}{}", crate::rig::FIXED)).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    actor.deliver(4).await;
    Learner::new(&rig).await.publish(1).await.expect("a candidate");
    let before = rig.status().await;
    let work = actor.match_work(100.0).await;
    let record = actor.play(&work, 0);
    assert_eq!(actor.submit(&record).await, v1::Verdict::Stored);
    let after = rig.status().await;
    assert_eq!(
        (after.positions, after.window_positions),
        (before.positions, before.window_positions)
    );
    assert_eq!((after.games, after.match_games), (before.games, before.match_games + 1));
    let (_, games) = catch_up(&mut mirror(&rig, 0, 0).await).await;
    assert!(games.len() <= 4);
    rig.stop().await;
}
