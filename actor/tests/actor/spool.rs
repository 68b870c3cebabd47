//! The spool while the actor lives: full, with a reserve for matches, and drained.

use std::collections::BTreeMap;
use std::path::Path;

use tengen_actor::Options;
use tengen_actor::spool::recover;
use tengen_games::Action;
use tengen_proto::v1::ReportActorRequest;
use tengen_records::{LeaseId, RecordId, peek_id};
use tengen_selfplay::{MatchGame, Plan};
use tengen_service::reports::SPOOL_FULL;

use crate::peer::{Mood, Peer, Server};
use crate::{ANY_PORT, Running, options, self_play};

/// A spool that a test fills in a moment. Its reserve still holds what is in flight when self-play pauses.
const SMALL: u64 = 2 << 20;
/// Where self-play pauses in it.
const PAUSE_AT: u64 = SMALL / 8 * 7;

/// Bytes of each segment in a data folder, oldest first.
pub(crate) fn segments(data: &Path) -> Vec<Vec<u8>> {
    let Ok(entries) = std::fs::read_dir(data.join("spool")) else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "segment"));
    paths.sort();
    // A segment may be removed between the look and the read: then it holds nothing that is needed.
    paths.iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

/// Whole games in a data folder's spool.
pub(crate) fn spooled(data: &Path) -> BTreeMap<RecordId, Vec<u8>> {
    let games_of = |bytes: Vec<u8>| {
        let games = recover(&bytes).games.into_iter();
        games.map(move |game| bytes[game].to_vec()).collect::<Vec<_>>()
    };
    let games = segments(data).into_iter().flat_map(games_of);
    games.map(|game| (peek_id(&game).unwrap(), game)).collect()
}

fn bytes_on_disk(data: &Path) -> u64 {
    segments(data).iter().map(|segment| segment.len() as u64).sum()
}

fn small(server: &Server, data: &Path) -> Options {
    Options {
        spool_bytes_max: SMALL,
        ..options(server, data)
    }
}

/// Waits until self-play has paused; returns the games that were finished by then.
async fn paused(peer: &Peer, data: &Path) -> u64 {
    peer.until("two reports without a game between them and a full spool", |state| {
        let [.., earlier, later] = state.reports.as_slice() else {
            return false;
        };
        earlier.games == later.games && bytes_on_disk(data) >= PAUSE_AT
    })
    .await;
    peer.state().reports.last().unwrap().games
}

#[tokio::test(flavor = "multi_thread")]
async fn self_play_pauses_while_the_spool_is_full_and_goes_on_when_it_drains() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    peer.state().mood = Mood::Silence;
    peer.order(1, self_play(1_000_000), 2);
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(small(&server, data.path()));
    let played = paused(&peer, data.path()).await;
    assert!(bytes_on_disk(data.path()) <= SMALL);
    let waiting = u64::from(peer.state().reports.last().unwrap().queue);
    assert_eq!(waiting, played, "every game played is in the spool");
    // By these words the coordinator's people are told of it.
    let says_full = |report: &ReportActorRequest| report.waiting.starts_with(SPOOL_FULL);
    peer.until("a report that says so", |state| {
        state.reports.last().is_some_and(says_full)
    })
    .await;

    peer.state().mood = Mood::Store;
    // What the peer kept silent about is sent again over the next link.
    let address = server.address;
    server.kill().await;
    let _server = peer.serve(address).await;
    peer.until("play to go on", |state| {
        state.reports.last().is_some_and(|report| report.games > played)
    })
    .await;
    actor.drain().await.unwrap();
    assert!(
        segments(data.path()).is_empty(),
        "a drained spool leaves nothing to send again"
    );
    assert!(!peer.state().verdicts.contains_key("VERDICT_CONFLICT"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_actor_without_its_coordinator_plays_until_the_spool_is_full() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    peer.order(1, self_play(8), 2);
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(small(&server, data.path()));
    peer.until("the games of the lease", |state| state.stored.len() == 8)
        .await;
    let address = server.address;
    server.kill().await;
    // Nothing speaks to us meanwhile: the files themselves are the event.
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(20));
    while bytes_on_disk(data.path()) < PAUSE_AT {
        looks.tick().await;
    }
    let kept = spooled(data.path());
    let _server = peer.serve(address).await;
    peer.until("everything that was kept", |state| {
        kept.keys().all(|id| state.stored.contains_key(id))
    })
    .await;
    actor.drain().await.unwrap();
    let state = peer.state();
    for (id, game) in &kept {
        assert_eq!(state.stored.get(id), Some(game));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn matches_are_played_into_the_reserve_while_self_play_pauses() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    peer.state().mood = Mood::Silence;
    let self_play_lease = peer.order(1, self_play(1_000_000), 2);
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(small(&server, data.path()));
    paused(&peer, data.path()).await;

    let games = |pair| {
        [0, 1].map(|seat0_model| MatchGame {
            pair,
            opening: vec![Action(pair as u16)],
            sampled_plies: 0,
            seat0_model,
        })
    };
    let games = (0..3).flat_map(games).collect();
    let match_lease = peer.order(2, Plan::Match { games }, 2);
    // Match work waits: the actor gives up what it has not started, and asks.
    peer.state().wanted_back.push(self_play_lease);
    let of_match = || spooled(data.path()).keys().filter(|id| id.lease == match_lease).count();
    peer.until("six match games on disk", |_| of_match() == 6).await;
    assert!(bytes_on_disk(data.path()) >= PAUSE_AT, "the spool is as full as it was");
    assert!(peer.state().verdicts.is_empty());

    peer.state().mood = Mood::Store;
    let address = server.address;
    server.kill().await;
    let _server = peer.serve(address).await;
    peer.until("the match", |state| {
        state.stored.keys().filter(|id| id.lease == match_lease).count() == 6
    })
    .await;
    actor.drain().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn far_more_games_than_the_send_window_holds_all_arrive() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    peer.state().mood = Mood::Silence;
    peer.order(1, self_play(3_000), 2);
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(options(&server, data.path()));
    peer.until("three thousand games in the spool", |state| {
        state.reports.last().is_some_and(|report| report.queue == 3_000)
    })
    .await;
    assert!(
        peer.state().seen.len() < 1_000,
        "the window bounds what is sent unasked"
    );
    peer.state().mood = Mood::Store;
    let address = server.address;
    server.kill().await;
    let _server = peer.serve(address).await;
    // And perhaps a few beyond the lease, played while the peer was away.
    peer.until("all of them", |state| {
        let of_lease = |index| RecordId {
            lease: LeaseId(1),
            index,
        };
        (0..3_000).all(|index| state.stored.contains_key(&of_lease(index)))
    })
    .await;
    actor.drain().await.unwrap();
}
