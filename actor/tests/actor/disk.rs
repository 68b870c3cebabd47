//! A disk that fills up under the actor: it keeps what it has, sends it, and plays again when there is room, by itself.

use std::path::PathBuf;

use tengen_faults::Proof;
use tengen_games::Action;
use tengen_records::{LeaseId, RecordId};
use tengen_selfplay::{MatchGame, Plan};
use tengen_service::testing::small_disk::{self, fill, give_room};

use crate::peer::{Mood, Peer, State};
use crate::process::Process;
use crate::spool::{segments, spooled};
use crate::{ANY_PORT, Running, options, self_play};

/// A disk of 4 MiB for the test of this name.
fn small_disk(name: &str) -> Option<PathBuf> {
    small_disk::small_disk(4, &format!("disk::{name}"))
}

fn says_full(state: &State) -> bool {
    let last = state.reports.last();
    last.is_some_and(|report| report.waiting.contains("disk") && report.waiting.contains("full"))
}

/// Waits until the actor says that its disk is full and has stopped playing; returns how many games it had finished.
async fn paused(peer: &Peer) -> u64 {
    peer.until("two reports of a full disk without a game between them", |state| {
        let [.., earlier, later] = state.reports.as_slice() else {
            return false;
        };
        earlier.games == later.games && !earlier.waiting.is_empty() && says_full(state)
    })
    .await;
    peer.state().reports.last().unwrap().games
}

fn match_plan() -> Plan {
    let game = |seat0_model| MatchGame {
        pair: 0,
        opening: vec![Action(0)],
        sampled_plies: 0,
        seat0_model,
    };
    Plan::Match {
        games: [0, 1].map(game).into(),
    }
}

/// The games of a lease, from index 0 on, that the peer has stored.
fn stored(state: &State, lease: LeaseId) -> usize {
    (0..)
        .take_while(|&index| state.stored.contains_key(&RecordId { lease, index }))
        .count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_pauses_play_until_there_is_room_and_costs_no_game() {
    let Some(disk) = small_disk("a_full_disk_pauses_play_until_there_is_room_and_costs_no_game") else {
        return;
    };
    let proof = Proof::begin("actor-disk-full");
    let data = disk.join("data");
    let peer = Peer::new("tic-tac-toe");
    peer.state().mood = Mood::Silence;
    let endless = peer.order(1, self_play(1_000_000), 2);
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(options(&server, &data));
    peer.until("games on the disk", |state| {
        state.reports.last().is_some_and(|report| report.queue > 20)
    })
    .await;
    let ballast = fill(&disk, 0);
    let played = paused(&peer).await;
    let kept = spooled(&data);
    assert!(kept.len() > 20 && kept.len() as u64 <= played);
    let reports = peer.state().reports.len();

    // A match is taken, and waits like everything else: the disk is as full as it was.
    let match_lease = peer.order(2, match_plan(), 2);
    peer.state().wanted_back.push(endless);
    peer.until("more reports, and still no room", |state| {
        state.issued.contains_key(&match_lease) && state.reports.len() > reports + 5 && says_full(state)
    })
    .await;
    let now = spooled(&data);
    assert!(
        kept.iter().all(|(id, game)| now.get(id) == Some(game)),
        "what was kept stays"
    );

    // A little room is enough to go on.
    give_room(&ballast, 1 << 20);
    peer.state().mood = Mood::Store;
    let address = server.address;
    server.kill().await;
    let _server = peer.serve(address).await;
    peer.until("everything that was kept, and the match", |state| {
        kept.keys().all(|id| state.stored.contains_key(id)) && stored(state, match_lease) == 2
    })
    .await;
    std::fs::remove_file(ballast).unwrap();
    let more = peer.order(3, self_play(300), 2);
    peer.until("self-play to go on", |state| {
        stored(state, more) == 300
            && state
                .reports
                .last()
                .is_some_and(|report| !report.waiting.contains("disk"))
    })
    .await;
    actor.drain().await.unwrap();
    assert!(segments(&data).is_empty());
    let state = peer.state();
    assert!(!state.verdicts.contains_key("VERDICT_CONFLICT"), "{:?}", state.verdicts);
    for (id, game) in &state.seen {
        assert_eq!(state.stored.get(id), Some(game), "game {id}");
    }
    let proof = proof.count("kept_games", kept.len());
    proof.count("stored_games", state.stored.len()).proved();
}

#[tokio::test(flavor = "multi_thread")]
async fn verdicts_alone_make_the_room_that_a_full_disk_lacks() {
    let Some(disk) = small_disk("verdicts_alone_make_the_room_that_a_full_disk_lacks") else {
        return;
    };
    let data = disk.join("data");
    let peer = Peer::new("tic-tac-toe");
    peer.state().mood = Mood::Silence;
    peer.order(1, self_play(20_000), 2);
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(options(&server, &data));
    peer.until("games on the disk", |state| {
        state.reports.last().is_some_and(|report| report.queue > 20)
    })
    .await;
    let _ballast = fill(&disk, 0);
    let played = paused(&peer).await as usize;
    peer.state().mood = Mood::Store;
    let address = server.address;
    server.kill().await;
    let _server = peer.serve(address).await;
    peer.until("games beyond those of the full disk", |state| {
        state.seen.len() > played + 200
    })
    .await;
    actor.drain().await.unwrap();
    let state = peer.state();
    for (id, game) in &state.seen {
        assert_eq!(state.stored.get(id), Some(game), "game {id}");
    }
    assert!(segments(&data).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_actor_killed_on_a_full_disk_sends_what_it_has_when_it_is_started_there_again() {
    let name = "an_actor_killed_on_a_full_disk_sends_what_it_has_when_it_is_started_there_again";
    let Some(disk) = small_disk(name) else { return };
    let data = disk.join("data");
    let peer = Peer::new("tic-tac-toe");
    peer.state().mood = Mood::Silence;
    peer.order(1, self_play(1_000_000), 2);
    let server = peer.serve(ANY_PORT).await;
    let process = Process::start(&server.url(), &data);
    peer.until("games on the disk", |state| {
        state.reports.last().is_some_and(|report| report.queue > 20)
    })
    .await;
    let ballast = fill(&disk, 0);
    paused(&peer).await;
    process.kill();
    let kept = spooled(&data);
    assert!(kept.len() > 20);

    peer.state().mood = Mood::Store;
    let process = Process::start(&server.url(), &data);
    peer.until("everything that was kept", |state| {
        kept.keys().all(|id| state.stored.contains_key(id))
    })
    .await;
    assert!(process.terminate().await.success());
    assert!(segments(&data).is_empty());
    std::fs::remove_file(ballast).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_finds_no_room_is_played_with_and_written_later() {
    let Some(disk) = small_disk("a_network_that_finds_no_room_is_played_with_and_written_later") else {
        return;
    };
    let data = disk.join("data");
    let peer = Peer::new("tic-tac-toe");
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(options(&server, &data));
    peer.until("the actor to ask", |state| state.asked > 0).await;
    let ballast = fill(&disk, 0);
    let first = peer.order(1, self_play(30), 4);
    peer.until("the network, and no room for a game", says_full).await;
    let models = || match std::fs::read_dir(data.join("models")) {
        Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
        Err(_) => Vec::new(),
    };
    assert!(models().is_empty(), "{:?}", models());
    assert!(peer.state().returned.is_empty(), "the lease is played");

    std::fs::remove_file(ballast).unwrap();
    peer.until("the games of the lease", |state| stored(state, first) == 30)
        .await;
    let second = peer.order(2, self_play(4), 4);
    peer.until("the next lease", |state| stored(state, second) == 4).await;
    actor.drain().await.unwrap();
    assert_eq!(peer.state().downloads, 1, "the network stayed in memory meanwhile");
    let [path] = <[PathBuf; 1]>::try_from(models()).unwrap();
    assert_eq!(std::fs::read(path).unwrap(), peer.state().models[0].bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_actor_on_a_full_disk_ends_with_the_reason() {
    let Some(disk) = small_disk("a_new_actor_on_a_full_disk_ends_with_the_reason") else {
        return;
    };
    let peer = Peer::new("tic-tac-toe");
    let server = peer.serve(ANY_PORT).await;
    let ballast = fill(&disk, 0);
    let data = disk.join("data");
    let error = Running::start(options(&server, &data)).task.await.unwrap().unwrap_err();
    let text = format!("{error:#}");
    assert!(
        text.contains("No space left") && text.contains(data.to_str().unwrap()),
        "{text}"
    );
    std::fs::remove_file(ballast).unwrap();
    let lease = peer.order(1, self_play(4), 4);
    let actor = Running::start(options(&server, &data));
    peer.until("the lease", |state| stored(state, lease) == 4).await;
    actor.drain().await.unwrap();
}
