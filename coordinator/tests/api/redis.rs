//! The window in Redis, behind a real server: games are acknowledged whatever becomes of it, and it is whole again soon
//! after it is back.

use tempfile::TempDir;
use tengen_coordinator::CoordinatorError;
use tengen_proto::v1;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_replay::testing::RedisServer;
use tengen_replay::{Cursor, RedisOptions, RedisReader, WindowSource};
use tonic::Code;

use crate::rig::{Actor, Learner, NONE, Rig, TIC_TAC_TOE, options};

/// Positions of the tests' windows: a few games.
pub(crate) const CAPACITY: u64 = 25;
/// Status messages, ten a second, within which the window is whole again: five seconds.
const STATUSES_MAX: usize = 50;

fn toml(capacity: u64) -> String {
    format!("{TIC_TAC_TOE}{NONE}[replay]\ncapacity_positions = {capacity}\n")
}

pub(crate) fn redis(arguments: &[&str]) -> (RedisServer, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    (RedisServer::start(folder.path(), arguments), folder)
}

pub(crate) async fn try_start(folder: TempDir, server: &RedisServer, capacity: u64) -> Result<Rig, CoordinatorError> {
    let mut options = options(folder.path(), &toml(capacity));
    options.config.replay = server.url().into();
    Rig::start_with(folder, options).await
}

async fn start(server: &RedisServer) -> Rig {
    let folder = tempfile::tempdir().expect("a folder");
    try_start(folder, server, CAPACITY).await.expect("it starts")
}

/// Waits until the status is as it should be, and returns it.
pub(crate) async fn until(rig: &Rig, what: &str, holds: impl Fn(&v1::RunStatus) -> bool) -> v1::RunStatus {
    let mut client = RunServiceClient::new(rig.channel().await);
    let request = v1::WatchStatusRequest {
        interval_ms: 100,
        ..Default::default()
    };
    let mut statuses = client.watch_status(request).await.expect("a stream").into_inner();
    let mut last = None;
    for _ in 0..STATUSES_MAX {
        let status = statuses.message().await.expect("a status").expect("a status");
        if holds(&status) {
            return status;
        }
        last = Some(status);
    }
    panic!("not {what} within {STATUSES_MAX} statuses: {last:?}");
}

pub(crate) fn follows(status: &v1::RunStatus) -> bool {
    status.window_lag_games == 0 && !status.waiting.contains("window")
}

/// Everything a mirror reads now: the epoch and the games' sequences and records.
pub(crate) async fn mirror(server: &RedisServer) -> (u64, Vec<(u64, Vec<u8>)>) {
    let options = RedisOptions::load(&server.url(), None, None).expect("a good URL");
    let mut reader = RedisReader::open(&options, "test", 1 << 20).await.expect("it is fit");
    let (mut cursor, mut games) = (Cursor::default(), Vec::new());
    loop {
        let chunk = reader.next(cursor).await.expect("a window");
        cursor.epoch = chunk.epoch;
        for game in &chunk.games {
            cursor.after_sequence = game.sequence;
            games.push((game.sequence, game.record.to_vec()));
        }
        if chunk.caught_up {
            return (cursor.epoch, games);
        }
    }
}

/// What the window should hold by the database: the newest games that together have `capacity` positions.
fn newest(rig: &Rig, capacity: u64) -> Vec<(u64, Vec<u8>)> {
    let database = rusqlite::Connection::open(rig.path("tengen.db")).expect("a database");
    let sql = "SELECT sequence, record, positions FROM games WHERE kind = 'self-play' AND positions > 0 \
               ORDER BY sequence DESC";
    let mut statement = database.prepare(sql).expect("a query");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, u64>(2)?)));
    let (mut games, mut held) = (Vec::new(), 0);
    for row in rows.expect("rows") {
        let (sequence, record, positions) = row.expect("a row");
        if held >= capacity {
            break;
        }
        held += positions;
        games.push((sequence, record));
    }
    games.reverse();
    games
}

/// Waits until the window follows, and compares it with the database. Returns its epoch.
pub(crate) async fn whole(rig: &Rig, server: &RedisServer, capacity: u64) -> u64 {
    until(rig, "whole", follows).await;
    let (epoch, games) = mirror(server).await;
    assert_eq!(games, newest(rig, capacity));
    epoch
}

#[tokio::test]
async fn committed_games_reach_redis_and_the_coordinator_streams_none() {
    let (server, _folder) = redis(&[]);
    let rig = start(&server).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    for _ in 0..4 {
        actor.deliver(3).await;
    }
    whole(&rig, &server, CAPACITY).await;
    let status = rig.status().await;
    assert_eq!((status.window_store.as_str(), status.games), ("redis", 12));
    assert_eq!(status.window_positions, CAPACITY);

    let welcome = Learner::new(&rig).await.welcome;
    assert!(welcome.window_store.starts_with("redis://127.0.0.1:"), "{welcome:?}");
    let refused = rig
        .window()
        .await
        .stream_window(v1::StreamWindowRequest::default())
        .await;
    let refused = refused.expect_err("there is nothing to stream");
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("--replay"), "{refused}");
    rig.stop().await;
}

#[tokio::test]
async fn a_killed_server_holds_up_no_game_and_is_filled_again() {
    let (mut server, _folder) = redis(&[]);
    let rig = start(&server).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    actor.deliver(3).await;
    let before = whole(&rig, &server, CAPACITY).await;
    server.kill();
    actor.deliver(3).await;
    let status = until(&rig, "behind", |status| !follows(status) && status.window_lag_games > 0).await;
    assert!(status.waiting.contains("does not answer"), "{}", status.waiting);
    actor.deliver(3).await;
    server.restart();
    assert!(whole(&rig, &server, CAPACITY).await > before);
    actor.deliver(3).await;
    whole(&rig, &server, CAPACITY).await;
    rig.stop().await;
}

#[tokio::test]
async fn a_frozen_server_holds_up_no_game_and_goes_on_where_it_was() {
    let (server, _folder) = redis(&[]);
    let rig = start(&server).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    actor.deliver(3).await;
    let before = whole(&rig, &server, CAPACITY).await;
    server.freeze();
    for _ in 0..3 {
        actor.deliver(3).await;
    }
    until(&rig, "behind", |status| {
        status.window_lag_games == 9 && status.waiting.contains("9 games behind")
    })
    .await;
    server.thaw();
    assert_eq!(whole(&rig, &server, CAPACITY).await, before);
    rig.stop().await;
}

#[tokio::test]
async fn a_wiped_window_is_rebuilt_under_a_new_epoch() {
    let (server, _folder) = redis(&[]);
    let rig = start(&server).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    actor.deliver(4).await;
    actor.deliver(4).await;
    let before = whole(&rig, &server, CAPACITY).await;
    // Once with games on their way, once with none.
    server.command(&["FLUSHALL"]);
    actor.deliver(4).await;
    let between = whole(&rig, &server, CAPACITY).await;
    assert!(between > before);
    server.command(&["FLUSHALL"]);
    until(&rig, "rebuilt", |status| {
        follows(status) && server.command(&["DBSIZE"]) == ":2"
    })
    .await;
    assert!(whole(&rig, &server, CAPACITY).await > between);
    rig.stop().await;
}

#[tokio::test]
async fn a_full_server_is_a_lag_that_says_how_to_end_it() {
    let (server, _folder) = redis(&[]);
    let rig = start(&server).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    actor.deliver(3).await;
    let before = whole(&rig, &server, CAPACITY).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    actor.deliver(3).await;
    let status = until(&rig, "behind", |status| status.waiting.contains("maxmemory")).await;
    assert_eq!(status.window_lag_games, 3);
    let behind = crate::diagnose::found(&rig, "window-behind").await;
    assert!(behind.evidence[0].contains("maxmemory"), "{behind:?}");
    assert!(
        status.waiting.contains("redis-cli CONFIG SET maxmemory"),
        "{}",
        status.waiting
    );
    actor.deliver(3).await;
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(whole(&rig, &server, CAPACITY).await, before);
    rig.stop().await;
}

#[tokio::test]
async fn an_evicting_server_is_refused_at_the_start_and_a_lag_later() {
    let (server, _folder) = redis(&["--maxmemory-policy", "allkeys-lru"]);
    let refused = try_start(tempfile::tempdir().expect("a folder"), &server, CAPACITY).await;
    let refused = refused.map(drop).expect_err("it would lose games").to_string();
    assert!(
        refused.contains("redis-cli CONFIG SET maxmemory-policy noeviction"),
        "{refused}"
    );
    server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    let rig = start(&server).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    actor.deliver(3).await;
    whole(&rig, &server, CAPACITY).await;
    server.command(&["CONFIG", "SET", "maxmemory-policy", "volatile-lru"]);
    until(&rig, "refused", |status| status.waiting.contains("volatile-lru")).await;
    actor.deliver(3).await;
    server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    whole(&rig, &server, CAPACITY).await;
    rig.stop().await;
}

#[tokio::test]
async fn a_coordinator_whose_server_stays_away_ends_with_its_address_and_what_to_try() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = options(folder.path(), &toml(CAPACITY));
    // Nobody listens on the first port. The coordinator waits ten seconds for somebody.
    options.config.replay = "redis://me:s3cret@127.0.0.1:1".to_owned().into();
    let refused = Rig::start_with(folder, options).await;
    let refused = refused.map(drop).expect_err("nobody listens").to_string();
    for part in [
        "replay: Redis at redis://me:***@127.0.0.1:1/0",
        "redis-cli -u redis://me:***@127.0.0.1:1/0 ping",
    ] {
        assert!(refused.contains(part) && !refused.contains("s3cret"), "{refused}");
    }
}

#[tokio::test]
async fn a_restarted_coordinator_goes_on_and_another_capacity_is_a_new_epoch() {
    let (server, _folder) = redis(&[]);
    let rig = start(&server).await;
    Actor::new(&rig, "actor-1").await.deliver(4).await;
    let before = whole(&rig, &server, CAPACITY).await;
    let folder = rig.stop().await;
    let mut rig = try_start(folder, &server, CAPACITY).await.expect("it starts again");
    Actor::new(&rig, "actor-1").await.deliver(4).await;
    assert_eq!(whole(&rig, &server, CAPACITY).await, before);
    for capacity in [60, 10] {
        let folder = rig.stop().await;
        rig = try_start(folder, &server, capacity).await.expect("it starts again");
        assert!(whole(&rig, &server, capacity).await > before);
        assert_eq!(rig.status().await.window_capacity, capacity);
    }
    rig.stop().await;
}

#[tokio::test]
async fn a_coordinator_that_was_replaced_says_so_and_still_takes_games() {
    let (server, _folder) = redis(&[]);
    let old = start(&server).await;
    let mut actor = Actor::new(&old, "actor-1").await;
    actor.deliver(3).await;
    whole(&old, &server, CAPACITY).await;
    let new = try_start(old.power_cut(), &server, CAPACITY).await.expect("it starts");
    let epoch = whole(&new, &server, CAPACITY).await;
    actor.deliver(3).await;
    let status = until(&old, "replaced", |status| status.waiting.contains("fence")).await;
    assert_eq!(status.window_lag_games, 3);
    assert_eq!(mirror(&server).await.0, epoch);
    old.stop().await;
    new.stop().await;
}

#[tokio::test]
async fn what_another_run_of_the_same_name_left_is_replaced() {
    let (server, _folder) = redis(&[]);
    let earlier = start(&server).await;
    Actor::new(&earlier, "actor-1").await.deliver(4).await;
    let before = whole(&earlier, &server, CAPACITY).await;
    earlier.stop().await;
    let later = start(&server).await;
    Actor::new(&later, "actor-1").await.deliver(2).await;
    assert_ne!(whole(&later, &server, CAPACITY).await, before);
    assert_eq!(server.command(&["DBSIZE"]), ":2");
    later.stop().await;
}
