//! What only a window in Redis can suffer: other writers, a server that forgets, is full, slow, unfit or gone.

use tengen_replay::testing::RedisServer;
use tengen_replay::{Cursor, RedisFault, RedisOptions, RedisReader, RedisWriter, Standing, WindowSource};

use crate::stores::{CHUNK_BYTES, Redis, Store, after, built, games, options, rebuild, server};

const START: Cursor = Cursor {
    epoch: 0,
    after_sequence: 0,
};

async fn open(server: &RedisServer, fence: u64) -> Result<(RedisWriter, Option<Standing>), RedisFault> {
    RedisWriter::open(&options(server), "run", fence).await
}

/// What a new reader reads.
async fn read(server: &RedisServer) -> Vec<u64> {
    let mut reader = RedisReader::open(&options(server), "run", CHUNK_BYTES)
        .await
        .expect("a fit server");
    let (mut cursor, mut read) = (START, Vec::new());
    loop {
        let chunk = reader.next(cursor).await.expect("a window");
        cursor = after(&cursor, &chunk);
        read.extend(chunk.games.iter().map(|game| game.sequence));
        if chunk.caught_up {
            return read;
        }
    }
}

#[tokio::test]
async fn a_later_coordinator_takes_the_window_and_an_earlier_one_is_refused() {
    let (server, _folder) = server(&[]);
    let all = games(&[2, 2, 2, 2]);
    let (mut old, _) = open(&server, 7).await.expect("the first");
    rebuild(&mut old, 2, 100, &all[..1]).await.expect("built");
    let standing = old.append(2, 3, &all[1..2]).await.expect("appended");

    let (mut new, found) = open(&server, 8).await.expect("the second");
    assert_eq!(found, Some(standing));
    for refused in [
        old.append(2, 6, &all[2..]).await.map(drop),
        old.append(2, 6, &[]).await.map(drop),
        old.begin(3).await,
        old.load(3, 0, &all).await,
        old.switch(built(3, 100, &all)).await.map(drop),
        open(&server, 7).await.map(drop),
    ] {
        let Err(RedisFault::Fenced { ours: 7, newest: 8, .. }) = refused else {
            panic!("{refused:?}");
        };
    }
    assert_eq!(read(&server).await, [3, 6]);
    new.append(2, 6, &all[2..]).await.expect("appended");
    assert_eq!(read(&server).await, [3, 6, 9, 12]);
}

#[tokio::test]
async fn a_wiped_window_is_told_from_one_that_only_forgot_its_newest_games() {
    let (mut server, _folder) = server(&["--dbfilename", "kept.rdb"]);
    let all = games(&[2, 2, 2, 2]);
    let (mut writer, _) = open(&server, 1).await.expect("a fit server");
    rebuild(&mut writer, 2, 100, &all[..1]).await.expect("built");
    server.command(&["SAVE"]);
    writer.append(2, 3, &all[1..3]).await.expect("appended");
    server.kill();
    let gone = writer.append(2, 9, &all[3..]).await.expect_err("nobody answers");
    assert!(matches!(gone, RedisFault::Unreachable { .. }), "{gone}");
    server.restart();

    let (mut writer, found) = open(&server, 1).await.expect("it is back");
    assert_eq!(found.map(|standing| standing.last_sequence), Some(3));
    let gap = writer.append(2, 9, &all[3..]).await.expect_err("games are missing");
    assert!(matches!(gap, RedisFault::Gap { last: 3, after: 9, .. }), "{gap}");
    writer.append(2, 3, &all[1..]).await.expect("sent again");
    assert_eq!(read(&server).await, [3, 6, 9, 12]);

    server.command(&["FLUSHALL"]);
    let lost = writer.append(2, 12, &[]).await.expect_err("it is wiped");
    assert!(matches!(lost, RedisFault::Lost { .. }), "{lost}");
    // Somebody removed only the games.
    let (mut writer, found) = open(&server, 1).await.expect("a fit server");
    assert_eq!(found, None);
    rebuild(&mut writer, 3, 100, &all).await.expect("built");
    server.command(&["DEL", "{run}:window:3"]);
    let lost = writer.append(3, 12, &[]).await.expect_err("the games are gone");
    assert!(matches!(lost, RedisFault::Lost { .. }), "{lost}");
}

#[tokio::test]
async fn a_rebuilt_window_leaves_nothing_of_the_old_one() {
    let (server, _folder) = server(&[]);
    let all = games(&[2; 30]);
    let (mut writer, _) = open(&server, 1).await.expect("a fit server");
    rebuild(&mut writer, 2, 100, &all).await.expect("built");
    let standing = rebuild(&mut writer, 3, 20, &all).await.expect("built");
    assert_eq!((standing.epoch, standing.held, standing.games), (3, 20, 10));
    assert_eq!(server.command(&["DBSIZE"]), ":2");

    // One that was begun and never switched to is not read, and goes when the window is opened next.
    writer.begin(4).await.expect("begun");
    writer.load(4, 0, &all).await.expect("loaded");
    assert_eq!(server.command(&["DBSIZE"]), ":3");
    assert_eq!(read(&server).await.len(), 10);
    let (_writer, found) = open(&server, 2).await.expect("a fit server");
    assert_eq!(found, Some(standing));
    assert_eq!(server.command(&["DBSIZE"]), ":2");
}

#[tokio::test]
async fn a_window_that_lost_games_while_it_was_built_is_not_switched_to() {
    let (server, _folder) = server(&[]);
    let all = games(&[2; 4]);
    let (mut writer, _) = open(&server, 1).await.expect("a fit server");
    writer.begin(2).await.expect("begun");
    writer.load(2, 0, &all[..2]).await.expect("loaded");
    server.command(&["FLUSHALL"]);
    let lost = writer.load(2, 6, &all[2..]).await.expect_err("it is wiped");
    assert!(matches!(lost, RedisFault::Lost { .. }), "{lost}");

    let (mut writer, _) = open(&server, 1).await.expect("a fit server");
    writer.begin(2).await.expect("begun");
    writer.load(2, 0, &all[..3]).await.expect("loaded");
    let lost = writer.switch(built(2, 100, &all)).await.expect_err("one is missing");
    assert!(matches!(lost, RedisFault::Lost { .. }), "{lost}");
}

#[tokio::test]
async fn a_full_server_refuses_with_the_command_that_helps_and_changes_nothing() {
    let (server, _folder) = server(&[]);
    let all = games(&[2; 4]);
    let (mut writer, _) = open(&server, 1).await.expect("a fit server");
    let before = rebuild(&mut writer, 2, 100, &all[..1]).await.expect("built");
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let full = writer.append(2, 3, &all[1..]).await.expect_err("no memory");
    assert!(matches!(full, RedisFault::OutOfMemory { .. }), "{full}");
    assert!(full.to_string().contains("redis-cli CONFIG SET maxmemory"), "{full}");
    let full = open(&server, 2).await.map(drop).expect_err("no memory");
    assert!(matches!(full, RedisFault::OutOfMemory { .. }), "{full}");
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(writer.append(2, 3, &[]).await, Ok(before));
    writer.append(2, 3, &all[1..]).await.expect("appended");
}

#[tokio::test]
async fn an_unfit_server_is_refused_before_anything_is_written() {
    let (server, _folder) = server(&["--maxmemory-policy", "allkeys-lru"]);
    let writer = open(&server, 1).await.map(drop).expect_err("it evicts");
    let reader = RedisReader::open(&options(&server), "run", 1).await;
    let reader = reader.map(drop).expect_err("it evicts");
    for refused in [writer, reader] {
        assert!(matches!(refused, RedisFault::Evicts { .. }), "{refused}");
    }
    assert_eq!(server.command(&["DBSIZE"]), ":0");
    server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    open(&server, 1).await.expect("fit now");
}

#[tokio::test]
async fn a_server_that_is_gone_or_frozen_is_an_error_in_time() {
    let (mut server, _folder) = server(&[]);
    let mut store = Redis::new(&server, "run").await;
    store.rebuild(2, 10, &games(&[2])).await;
    store.games(START).await;
    server.freeze();
    let cursor = Cursor {
        epoch: 2,
        after_sequence: 3,
    };
    for fault in [
        store.writer.append(2, 3, &[]).await.map(drop),
        store.reader.next(cursor).await.map(drop),
        open(&server, 1).await.map(drop),
    ] {
        assert!(matches!(fault, Err(RedisFault::Unreachable { .. })), "{fault:?}");
    }
    server.thaw();
    assert_eq!(store.games(START).await.len(), 1);
    server.kill();
    let gone = open(&server, 1).await.map(drop).expect_err("nobody listens");
    assert!(gone.may_pass() && gone.to_string().contains("127.0.0.1"), "{gone}");
}

#[tokio::test]
async fn a_closed_port_is_named_with_the_command_to_try_and_without_the_password() {
    // Nobody listens on the first port.
    let options = RedisOptions::load("redis://me:s3cret@127.0.0.1:1", None, None).expect("a good URL");
    let gone = options.check().await.expect_err("nobody listens");
    let said = gone.to_string();
    assert!(
        said.contains("redis-cli -u redis://me:***@127.0.0.1:1/0 ping") && !said.contains("s3cret"),
        "{said}"
    );
}

#[tokio::test]
async fn a_reader_goes_on_after_the_server_came_back_and_waits_for_a_window() {
    let (mut server, _folder) = server(&[]);
    let all = games(&[2; 4]);
    let mut store = Redis::new(&server, "run").await;
    let none = store.reader.next(START).await.expect_err("there is no window");
    assert!(matches!(none, RedisFault::NoWindow { .. }), "{none}");
    store.rebuild(2, 10, &all[..2]).await;
    assert_eq!(store.games(START).await.len(), 2);
    server.kill();
    let cursor = Cursor {
        epoch: 2,
        after_sequence: 6,
    };
    assert!(store.reader.next(cursor).await.is_err());
    server.restart();
    // Nothing was saved.
    let none = store.reader.next(cursor).await.expect_err("there is no window");
    assert!(matches!(none, RedisFault::NoWindow { .. }), "{none}");
    let (mut writer, _) = open(&server, 1).await.expect("it is back");
    rebuild(&mut writer, 3, 10, &all).await.expect("built");
    let chunk = store.reader.next(cursor).await.expect("a new window");
    assert_eq!((chunk.epoch, chunk.games.is_empty()), (3, false));
}

#[tokio::test]
async fn a_waiting_reader_notices_a_new_epoch() {
    let (server, _folder) = server(&[]);
    let all = games(&[2; 4]);
    let Redis {
        mut writer, mut reader, ..
    } = Redis::new(&server, "run").await;
    rebuild(&mut writer, 2, 10, &all).await.expect("built");
    let mut cursor = START;
    loop {
        let chunk = reader.next(cursor).await.expect("a window");
        cursor = after(&cursor, &chunk);
        if chunk.caught_up {
            break;
        }
    }
    let waiting = tokio::spawn(async move { reader.next(cursor).await });
    rebuild(&mut writer, 3, 4, &all).await.expect("built");
    let chunk = waiting.await.expect("no panic").expect("a new window");
    assert_eq!((chunk.epoch, chunk.capacity.get()), (3, 4));
    assert_eq!(chunk.games[0].sequence, 9);
}

#[tokio::test]
async fn a_password_lets_in_and_a_wrong_one_is_refused_without_showing_it() {
    let (server, _folder) = server(&["--requirepass", "s3cret"]);
    let url = |secret: &str| format!("redis://:{secret}@127.0.0.1:{}", server.port());
    let good = RedisOptions::load(&url("s3cret"), None, None).expect("a good URL");
    RedisWriter::open(&good, "run", 1).await.expect("let in");
    let bad = RedisOptions::load(&url("wr0ng"), None, None).expect("a good URL");
    let refused = RedisWriter::open(&bad, "run", 1).await.map(drop).expect_err("refused");
    assert!(matches!(refused, RedisFault::Refused { .. }), "{refused}");
    assert!(
        !refused.to_string().contains("wr0ng") && !refused.may_pass(),
        "{refused}"
    );
    let none = open(&server, 1).await.map(drop).expect_err("refused");
    assert!(matches!(none, RedisFault::Refused { .. }), "{none}");
}

#[tokio::test]
async fn users_with_the_rights_that_the_docs_name_are_enough_and_a_learner_cannot_write() {
    let (server, _folder) = server(&[]);
    let user = |name: &'static str, rights: &str| {
        let words = format!("ACL SETUSER {name} on >s3cret ~{{run}}:window* {rights}");
        server.command(&words.split(' ').collect::<Vec<_>>());
        let url = format!("redis://{name}:s3cret@127.0.0.1:{}", server.port());
        RedisOptions::load(&url, None, None).expect("a good URL")
    };
    let writes = "+hget +hset +xadd +xdel +xlen";
    let coordinator = user(
        "coordinator",
        &format!("+evalsha +script|load +info +unlink +hmget +xrange {writes}"),
    );
    let learner = user("learner", "+info +hmget +xrange +xread +multi +exec");

    let all = games(&[2; 4]);
    let (mut writer, _) = RedisWriter::open(&coordinator, "run", 1).await.expect("let in");
    rebuild(&mut writer, 2, 4, &all[..2]).await.expect("built");
    rebuild(&mut writer, 3, 4, &all[..2]).await.expect("built");
    let mut reader = RedisReader::open(&learner, "run", CHUNK_BYTES).await.expect("let in");
    let chunk = reader.next(START).await.expect("a window");
    assert_eq!(chunk.games.len(), 2);
    writer.append(3, 6, &all[2..]).await.expect("appended");
    let chunk = reader.next(after(&START, &chunk)).await.expect("more");
    assert_eq!(chunk.games.len(), 2);
    let refused = RedisWriter::open(&learner, "run", 9)
        .await
        .map(drop)
        .expect_err("no rights");
    assert!(matches!(refused, RedisFault::Refused { .. }), "{refused}");
}

#[tokio::test]
async fn games_that_do_not_ascend_are_refused_before_they_are_sent() {
    let (server, _folder) = server(&[]);
    let all = games(&[2; 4]);
    let (mut writer, _) = open(&server, 1).await.expect("a fit server");
    rebuild(&mut writer, 2, 10, &all[..2]).await.expect("built");
    for (after, batch) in [(9, &all[2..]), (6, &[all[3].clone(), all[2].clone()])] {
        let refused = writer.append(2, after, batch).await.expect_err("out of order");
        assert!(matches!(refused, RedisFault::Order { sequence: 9, .. }), "{refused}");
    }
}
