//! Redis dies, stands still, forgets and runs out of memory, again and again and at any moment; and two coordinators
//! write to one.

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_faults::{Proof, scaled};
use tengen_replay::testing::RedisServer;

use crate::database::assert_sound;
use crate::redis::{CAPACITY, follows, mirror, redis, try_start, until, whole};
use crate::rig::{Actor, Rig};

/// How soon after Redis is back the window must be whole.
const RECOVERED_MAX: Duration = Duration::from_secs(5);
/// Positions of the window: all games of the test, so that no loss could hide behind its end.
const EVERYTHING: u64 = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Killed,
    Frozen,
    Wiped,
    OutOfMemory,
}

/// What was seen.
#[derive(Default)]
struct Seen {
    games: Vec<Vec<u8>>,
    recovered_after: Vec<Duration>,
    /// What ended a server that ran out of memory.
    ended_by: String,
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_redis_suffers_no_game_is_lost_and_the_window_is_whole_soon_after() {
    let proof = Proof::begin("redis-faults");
    let (each, out_of_memory) = (scaled(2, 20), scaled(1, 5));
    let mut faults = [Fault::Killed, Fault::Frozen, Fault::Wiped].repeat(each);
    faults.extend([Fault::OutOfMemory].repeat(out_of_memory));
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(17);
    faults.shuffle(&mut rng);
    let (mut server, _folder) = redis(&[]);
    let rig = try_start(tempfile::tempdir().expect("a folder"), &server, EVERYTHING).await;
    let rig = rig.expect("it starts");
    let mut seen = Seen::default();
    for (round, fault) in faults.iter().enumerate() {
        let moment = Duration::from_micros(rng.random_range(0..15_000));
        suffer(*fault, round, &rig, &mut server, moment, &mut seen).await;
    }
    // Every game that was acknowledged, in the order of the verdicts, and nothing else.
    let stored = stored(&rig);
    assert!(
        stored == seen.games,
        "{} stored, {} acknowledged",
        stored.len(),
        seen.games.len()
    );
    assert_sound(rig.stop().await.path()).await;
    let slowest = seen.recovered_after.iter().max().expect("there were faults");
    let proof = proof.count("kills", each).count("freezes", each).count("wipes", each);
    let proof = proof
        .count("out_of_memory", out_of_memory)
        .note("out_of_memory_by", &seen.ended_by);
    let proof = proof.count("acknowledged_games", seen.games.len());
    proof
        .measure("whole_again_within_seconds", slowest.as_secs_f64())
        .proved();
}

/// Every stored record in the order of its commit.
fn stored(rig: &Rig) -> Vec<Vec<u8>> {
    let database = rusqlite::Connection::open(rig.path("tengen.db")).expect("a database");
    let mut statement = database
        .prepare("SELECT record FROM games ORDER BY sequence")
        .expect("games");
    let rows = statement.query_map([], |row| row.get(0)).expect("rows");
    rows.collect::<Result<_, _>>().expect("records")
}

/// One fault at `moment` while games come in, more games meanwhile, and the way back.
async fn suffer(fault: Fault, round: usize, rig: &Rig, server: &mut RedisServer, moment: Duration, seen: &mut Seen) {
    let mut actor = Actor::new(rig, &format!("actor-{round}")).await;
    seen.games.extend(actor.deliver(2).await);
    let before = whole(rig, server, EVERYTHING).await;
    let hit = async {
        tokio::time::sleep(moment).await;
        match fault {
            Fault::Killed => server.kill(),
            Fault::Frozen => server.freeze(),
            Fault::Wiped => drop(server.command(&["FLUSHALL"])),
            Fault::OutOfMemory => seen.ended_by = run_out_of_memory(server),
        }
    };
    let (delivered, ()) = tokio::join!(actor.deliver(4), hit);
    seen.games.extend(delivered);
    // Nothing waits for Redis.
    seen.games.extend(actor.deliver(3).await);
    let back = Instant::now();
    match fault {
        Fault::Killed | Fault::OutOfMemory => server.restart(),
        Fault::Frozen => server.thaw(),
        Fault::Wiped => {}
    }
    // A wipe that came between two looks is noticed at the next one: until then the window only seems to follow.
    let epoch = match fault {
        Fault::Frozen => whole(rig, server, EVERYTHING).await,
        _ => rebuilt(rig, server, before).await,
    };
    assert_eq!(epoch > before, fault != Fault::Frozen, "{fault:?}");
    let after = back.elapsed();
    assert!(after < RECOVERED_MAX, "{fault:?}: whole again after {after:?}");
    seen.recovered_after.push(after);
}

/// Waits for a window of a later epoch that is whole.
async fn rebuilt(rig: &Rig, server: &RedisServer, before: u64) -> u64 {
    loop {
        until(rig, "whole", follows).await;
        if server.command(&["EXISTS", "{test}:window"]) == ":1" && mirror(server).await.0 > before {
            return whole(rig, server, EVERYTHING).await;
        }
    }
}

/// Has it die for want of memory; what ended it, in words.
fn run_out_of_memory(server: &mut RedisServer) -> String {
    let (ended, cage) = server.run_out_of_memory();
    assert!(!ended.success(), "{ended}");
    if let Some(kills) = cage.kernel_kills() {
        assert_eq!((kills, ended.signal()), (1, Some(9)), "{ended}");
    }
    cage.to_string()
}

#[tokio::test]
async fn of_two_runs_of_one_name_on_one_redis_the_later_has_the_window_and_both_take_games() {
    let (server, _folder) = redis(&[]);
    let start = || async {
        let folder = tempfile::tempdir().expect("a folder");
        try_start(folder, &server, CAPACITY).await.expect("it starts")
    };
    let earlier = start().await;
    let mut to_earlier = Actor::new(&earlier, "actor-1").await;
    to_earlier.deliver(4).await;
    whole(&earlier, &server, CAPACITY).await;
    let later = start().await;
    let mut to_later = Actor::new(&later, "actor-22").await;
    to_later.deliver(3).await;
    let epoch = whole(&later, &server, CAPACITY).await;
    let fenced = |status: &tengen_proto::v1::RunStatus| status.waiting.contains("fence");
    // While it runs, and after it was started again.
    to_earlier.deliver(4).await;
    until(&earlier, "fenced", fenced).await;
    let earlier = try_start(earlier.stop().await, &server, CAPACITY)
        .await
        .expect("it starts");
    Actor::new(&earlier, "actor-1").await.deliver(4).await;
    until(&earlier, "fenced", fenced).await;
    assert_eq!(earlier.status().await.games, 12);
    to_later.deliver(4).await;
    assert_eq!(whole(&later, &server, CAPACITY).await, epoch);
    for rig in [earlier, later] {
        assert_sound(rig.stop().await.path()).await;
    }
}

#[tokio::test]
async fn two_runs_of_different_names_share_a_redis_and_nothing_else() {
    let (server, _folder) = redis(&[]);
    let one = try_start(tempfile::tempdir().expect("a folder"), &server, CAPACITY).await;
    let one = one.expect("it starts");
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = crate::rig::options(
        folder.path(),
        &format!("{}{}", crate::rig::TIC_TAC_TOE, crate::rig::NONE).replace("name = \"test\"", "name = \"other\""),
    );
    options.config.replay = server.url().into();
    let other = Rig::start_with(folder, options).await.expect("it starts");
    Actor::new(&one, "actor-1").await.deliver(4).await;
    Actor::new(&other, "actor-1").await.deliver(3).await;
    until(&other, "whole", follows).await;
    whole(&one, &server, CAPACITY).await;
    // A pointer and a stream each.
    assert_eq!(server.command(&["DBSIZE"]), ":4");
    for rig in [one, other] {
        rig.stop().await;
    }
}
