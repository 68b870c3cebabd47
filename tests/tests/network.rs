//! A network that is cut, silent, one-way or slow between an actor and its coordinator, or delivers twice, and a coordinator
//! that comes back to many actors at once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use prost::Message;
use tengen_proto::v1::actor_service_client::ActorServiceClient;
use tengen_proto::v1::{RunStatus, SubmitGameResponse, Verdict};
use tengen_records::encode;
use tengen_service::backoff::Backoff;
use tengen_service::channel;
use tengen_service::credentials::Credentials;
use tengen_system_tests::cluster::program;
use tengen_system_tests::coordinator::Coordinator;
use tengen_system_tests::faults::{self, Proof};
use tengen_system_tests::http2::{self, DATA, END_STREAM, HEADERS, PREFACE, RST_STREAM};
use tengen_system_tests::ledger::{Ledger, hello};
use tengen_system_tests::proxy::{Proxy, Weather};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

/// Within this time after the network is fair again, what waited must be stored.
const DRAINED_MAX: Duration = Duration::from_secs(30);
/// Within this time after the coordinator is back, everybody must be registered.
const REGISTERED_MAX: Duration = Duration::from_secs(10);
/// Actors that come at once.
const ACTORS: usize = 200;
/// How bad the network is, one after the other.
const WEATHERS: [(&str, Weather); 4] = [
    ("cut", Weather::Cut),
    ("silence", Weather::Silent),
    ("one_way", Weather::OneWay),
    ("slowness", Weather::Slow(Duration::from_millis(200))),
];

fn start_actor(url: &str, data: &Path) -> Child {
    Command::new(program("tengen-actor"))
        .args(["--join", url, "--games", "16", "--batch-max", "16", "--threads", "1"])
        .args(["--log", "error", "--exit-with-parent", "--data"])
        .arg(data)
        .stdin(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// Has it stop as it should, and waits for its end.
async fn drain(mut actor: Child) {
    drop(actor.stdin.take());
    assert!(actor.wait().await.unwrap().success());
}

/// Files of an actor's spool; there are none when every game has its verdict.
fn segments(data: &Path) -> usize {
    let segments = std::fs::read_dir(data.join("spool")).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().ends_with(".segment")
    });
    segments.count()
}

/// Asks for the status until it holds.
async fn until(coordinator: &Coordinator, holds: impl Fn(&RunStatus) -> bool) -> RunStatus {
    let mut looks = tokio::time::interval(Duration::from_millis(50));
    loop {
        looks.tick().await;
        let status = coordinator.status().await;
        if holds(&status) {
            return status;
        }
    }
}

/// Games that the actor told it had finished.
fn finished_games(status: &RunStatus) -> u64 {
    status.actors.iter().map(|actor| actor.games).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_network_loses_nothing_and_what_waited_is_stored_soon_after() {
    let mut proof = Proof::begin("network-bad");
    let seconds = faults::scaled(2, 60);
    let bad = Duration::from_secs(seconds as u64);
    let folder = tempfile::tempdir().unwrap();
    let (run, data) = (faults::write_run(folder.path()), folder.path().join("data"));
    let coordinator = Coordinator::start(&run, &data, &[]).await;
    let proxy = Proxy::start(coordinator.addr()).await;
    let kept = folder.path().join("actor");
    let actor = start_actor(&proxy.url(), &kept);
    until(&coordinator, |status| status.games >= 50).await;
    for (name, weather) in WEATHERS {
        proxy.set(weather);
        tokio::time::sleep(bad).await;
        let told = finished_games(&coordinator.status().await);
        proxy.set(Weather::Fair);
        let fair = Instant::now();
        // What the actor had finished when it was first heard again.
        let finished = finished_games(&until(&coordinator, |status| finished_games(status) > told).await);
        until(&coordinator, |status| status.games >= finished).await;
        assert!(fair.elapsed() < DRAINED_MAX, "{weather:?}: {:?}", fair.elapsed());
        proof = proof.measure(&format!("drained_after_{name}_seconds"), fair.elapsed().as_secs_f64());
    }
    drain(actor).await;
    // Everything finished was in the spool, and it is empty: all of it has its verdict.
    assert_eq!(segments(&kept), 0, "the spool still holds games");
    let status = coordinator.status().await;
    assert!(status.rejected.is_empty(), "{:?}", status.rejected);
    coordinator.drain().await;
    let proof = proof.count("kinds", WEATHERS.len()).count("seconds_each", seconds);
    proof.count("stored_games", status.games as usize).proved();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_actor_killed_between_its_games_and_their_verdicts_has_each_game_stored_once() {
    let proof = Proof::begin("actor-killed-before-verdict");
    let kills = faults::scaled(2, 20);
    let folder = tempfile::tempdir().unwrap();
    let (run, data) = (faults::write_run(folder.path()), folder.path().join("data"));
    let coordinator = Coordinator::start(&run, &data, &[]).await;
    let proxy = Proxy::start(coordinator.addr()).await;
    let kept = folder.path().join("actor");
    // It plays nothing; it looks at what is stored.
    let ledger = Ledger::register(coordinator.channel(), 7).await;
    for _ in 0..kills {
        let before = coordinator.status().await.games;
        let mut actor = start_actor(&proxy.url(), &kept);
        until(&coordinator, |status| status.games > before + 20).await;
        proxy.set(Weather::OneWay);
        // What is stored from here on was sent, and its verdict comes nowhere.
        let told = coordinator.status().await.games;
        until(&coordinator, |status| status.games > told).await;
        actor.kill().await.unwrap();
        assert!(segments(&kept) > 0, "games without a verdict were forgotten");
        proxy.set(Weather::Fair);
    }
    // What the killed one had sent may still be stored; the next one has come once other numbers are told than its.
    let told = |status: &RunStatus| status.actors.iter().map(|actor| actor.evaluations).sum::<u64>();
    let before = told(&coordinator.status().await);
    let actor = start_actor(&proxy.url(), &kept);
    until(&coordinator, |status| told(status) != before).await;
    drain(actor).await;
    assert_eq!(segments(&kept), 0, "the spool still holds games");
    let status = coordinator.status().await;
    assert!(status.rejected.is_empty(), "{:?}", status.rejected);
    coordinator.drain().await;
    ledger.assert_kept(&data);
    let proof = proof.count("kills", kills);
    proof.count("stored_games", status.games as usize).proved();
}

/// Games of one connection that is delivered twice; they fit what a server takes before it has answered anything.
const GAMES_TWICE: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn what_the_network_delivers_twice_is_stored_once() {
    let proof = Proof::begin("network-delivers-twice");
    let deliveries = faults::scaled(3, 30);
    let folder = tempfile::tempdir().unwrap();
    let (run, data) = (faults::write_run(folder.path()), folder.path().join("data"));
    let coordinator = Coordinator::start(&run, &data, &[]).await;
    let proxy = Proxy::start(coordinator.addr()).await;
    proxy.set(Weather::Recorded);
    let connect = || channel::connect(&proxy.url(), &Credentials::default()).unwrap();
    let mut ledger = Ledger::register(connect(), 7).await;
    for delivery in 1..=deliveries {
        let mut records: Vec<Vec<u8>> = ledger.play_lease().await.iter().map(encode).collect();
        records.truncate(GAMES_TWICE);
        let verdicts = ledger.submit(&records).await;
        assert_eq!(verdicts.len(), records.len());
        assert_eq!(ledger.acknowledged.len(), delivery * GAMES_TWICE);
        assert_eq!(duplicates_of_what_comes_again(&proxy).await, records.len());
        let stored = coordinator.status().await.games;
        assert_eq!(stored, ledger.acknowledged.len() as u64);
        ledger.reconnect(connect()).await;
    }
    coordinator.drain().await;
    ledger.assert_kept(&data);
    let proof = proof.count("deliveries", deliveries);
    proof.count("acknowledged_games", ledger.acknowledged.len()).proved();
}

/// Has the newest connection's bytes come again and waits for the answer to each call in them: how many games were
/// duplicates.
async fn duplicates_of_what_comes_again(proxy: &Proxy) -> usize {
    let (sent, mut server) = proxy.deliver_again().await;
    let calls: BTreeSet<u32> = http2::frames(&sent[PREFACE.len()..])
        .iter()
        .filter(|frame| frame.kind == HEADERS)
        .map(|frame| frame.stream)
        .collect();
    let (mut heard, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        let len = server.read(&mut piece).await.unwrap();
        assert!(len > 0, "the coordinator hung up");
        heard.extend_from_slice(&piece[..len]);
        let ended: BTreeSet<u32> = http2::frames(&heard)
            .iter()
            .filter(|frame| match frame.kind {
                DATA | HEADERS => frame.flags & END_STREAM != 0,
                kind => kind == RST_STREAM,
            })
            .map(|frame| frame.stream)
            .collect();
        if calls.is_subset(&ended) {
            break;
        }
    }
    let mut answers: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for frame in http2::frames(&heard).iter().filter(|frame| frame.kind == DATA) {
        answers.entry(frame.stream).or_default().extend_from_slice(frame.body);
    }
    let is_duplicate = |message: &&[u8]| {
        SubmitGameResponse::decode(*message).is_ok_and(|answer| answer.verdict() == Verdict::Duplicate)
    };
    answers
        .values()
        .flat_map(|answer| messages(answer))
        .filter(is_duplicate)
        .count()
}

/// The gRPC messages of a call, each behind its length.
fn messages(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while let Some(([_, len @ ..], rest)) = bytes.split_first_chunk::<5>() {
        let (message, rest) = rest.split_at(u32::from_be_bytes(*len) as usize);
        found.push(message);
        bytes = rest;
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_actors_are_registered_soon_after_the_coordinator_is_back() {
    let proof = Proof::begin("actors-return-at-once");
    let folder = tempfile::tempdir().unwrap();
    let (run, data) = (faults::write_run(folder.path()), folder.path().join("data"));
    let mut coordinator = Coordinator::start(&run, &data, &[]).await;
    let proxy = Proxy::start(coordinator.addr()).await;
    let channels: Vec<channel::Channel> = (0..ACTORS)
        .map(|_| channel::connect(&proxy.url(), &Credentials::default()).unwrap())
        .collect();
    register_all(&channels).await;
    coordinator.kill();
    coordinator.ended().await;
    // They begin to try again while nobody is there.
    let registering = tokio::spawn(async move { register_all(&channels).await });
    let coordinator = Coordinator::start(&run, &data, &[]).await;
    let back = Instant::now();
    proxy.lead_to(coordinator.addr());
    registering.await.unwrap();
    let after = back.elapsed();
    assert!(after < REGISTERED_MAX, "{after:?}");
    coordinator.drain().await;
    let proof = proof.count("actors", ACTORS);
    proof.measure("registered_after_seconds", after.as_secs_f64()).proved();
}

/// Registers an actor over each channel, all at once, trying again as actors do.
async fn register_all(channels: &[channel::Channel]) {
    let mut actors = JoinSet::new();
    for (number, channel) in channels.iter().cloned().enumerate() {
        actors.spawn(async move {
            let mut client = ActorServiceClient::new(channel);
            let mut backoff = Backoff::default();
            while client.register(hello(&format!("actor-{number}"))).await.is_err() {
                tokio::time::sleep(backoff.next_delay()).await;
            }
        });
    }
    actors.join_all().await;
}
