//! Leases, games and verdicts while nothing is wrong with the disk.

use std::path::Path;

use tengen_actor::Options;
use tengen_games::{Action, AnyGame};
use tengen_records::{Kind, LeaseId, RecordId};
use tengen_selfplay::{MatchGame, Plan};

use crate::peer::{Mood, Peer, State};
use crate::{ANY_PORT, Running, options, options_at, self_play};

#[tokio::test(flavor = "multi_thread")]
async fn leases_are_played_and_every_game_gets_its_verdict() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    for lease in 1..=5 {
        peer.order(lease, self_play(6), 8);
    }
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(options(&server, data.path()));
    peer.until("every game of five leases", |state| state.stored.len() == 30)
        .await;
    peer.until("a report that nothing is open", |state| {
        state.reports.last().is_some_and(|report| {
            report.lease_ids.is_empty() && report.queue == 0 && report.games == 30 && report.evaluations > 0
        })
    })
    .await;
    actor.drain().await.unwrap();
    let state = peer.state();
    assert_eq!(state.verdicts.len(), 1, "{:?}", state.verdicts);
    assert_eq!(state.downloads, 1, "one network serves five leases");
    let report = state.reports.last().unwrap();
    assert_eq!(report.provider, "CPUExecutionProvider");
    let usage = report.usage.as_ref().unwrap();
    assert_eq!((usage.gpu_busy, usage.gpu_memory_bytes), (None, None));
    assert!(state.returned.is_empty(), "{:?}", state.returned);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_lease_is_here_before_the_present_one_runs_dry() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("connect-four");
    // Verdicts are withheld: whatever is asked for is not asked because games were settled.
    peer.state().mood = Mood::Silence;
    peer.order(1, self_play(8), 2_000);
    peer.order(2, self_play(8), 2_000);
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(Options {
        drain_seconds: 0,
        ..options(&server, data.path())
    });
    peer.until("a second lease while eight games are in flight", |state| {
        state.issued.len() == 2 && state.arrivals.is_empty()
    })
    .await;
    actor.drain().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_match_is_played_with_two_networks() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    let pair = |pair| {
        let game = move |seat0_model| MatchGame {
            pair,
            opening: vec![Action(pair as u16)],
            sampled_plies: 0,
            seat0_model,
        };
        [game(0), game(1)]
    };
    peer.order(
        1,
        Plan::Match {
            games: (0..3).flat_map(pair).collect(),
        },
        8,
    );
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(options(&server, data.path()));
    peer.until("six match games", |state| state.stored.len() == 6).await;
    actor.drain().await.unwrap();
    let state = peer.state();
    assert_eq!(state.downloads, 2);
    for bytes in state.stored.values() {
        assert_eq!(tengen_records::decode(bytes).unwrap().kind, Kind::Match);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_coordinator_loses_and_doubles_nothing() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    peer.order(1, self_play(450), 16);
    let mut server = peer.serve(ANY_PORT).await;
    let actor = Running::start(options(&server, data.path()));
    for stored in [20, 150, 300] {
        peer.until("some games before the kill", |state| state.stored.len() >= stored)
            .await;
        let address = server.address;
        server.kill().await;
        // It registers again, or, where it had no call under way, goes on with its next game.
        let heard = |state: &State| state.registered + state.arrivals.values().sum::<u32>();
        let before = heard(&peer.state());
        server = peer.serve(address).await;
        peer.until("the actor at the next coordinator", |state| heard(state) > before)
            .await;
    }
    peer.until("every game of the lease", |state| {
        (0..450).all(|index| {
            state.stored.contains_key(&RecordId {
                lease: LeaseId(1),
                index,
            })
        })
    })
    .await;
    actor.drain().await.unwrap();
    let state = peer.state();
    assert!(!state.verdicts.contains_key("VERDICT_CONFLICT"), "{:?}", state.verdicts);
    assert_eq!(state.verdicts["VERDICT_STORED"] as usize, state.stored.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_self_play_lease_is_overrun_while_the_coordinator_is_away() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    peer.order(1, self_play(8), 4);
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(options(&server, data.path()));
    peer.until("the games of the lease", |state| state.stored.len() == 8)
        .await;
    let address = server.address;
    server.kill().await;
    let _server = peer.serve(address).await;
    peer.until("further games of it", |state| {
        state.stored.keys().any(|id| id.index >= 8)
    })
    .await;
    actor.drain().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_game_is_dropped_and_an_undecided_one_is_sent_again() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    peer.state().mood = Mood::Reject(3);
    peer.order(1, self_play(6), 4);
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(options(&server, data.path()));
    peer.until("five stored and one rejected", |state| {
        state.stored.len() == 5 && state.verdicts.contains_key("VERDICT_REJECTED")
    })
    .await;
    peer.state().mood = Mood::RetryFirst;
    peer.order(2, self_play(4), 4);
    peer.until("four more", |state| state.stored.len() == 9).await;
    actor.drain().await.unwrap();
    let state = peer.state();
    let arrivals = |lease, index| {
        state.arrivals[&RecordId {
            lease: LeaseId(lease),
            index,
        }]
    };
    assert_eq!(arrivals(1, 3), 1, "a rejected game is not sent again");
    assert_eq!([0, 1, 2, 3].map(|index| arrivals(2, index)), [2; 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_without_time_hands_unplayed_leases_back() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("connect-four");
    peer.order(1, self_play(1), 4);
    let long = peer.order(2, self_play(1_000), 20_000);
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(Options {
        drain_seconds: 0,
        ..options(&server, data.path())
    });
    peer.until("the short lease", |state| {
        state.stored.len() == 1 && state.issued.contains_key(&long)
    })
    .await;
    actor.drain().await.unwrap();
    assert_eq!(peer.state().returned, [long]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_with_time_finishes_the_games_in_flight() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    let lease = peer.order(1, self_play(100_000), 64);
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(options(&server, data.path()));
    peer.until("a few games", |state| state.stored.len() >= 10).await;
    actor.drain().await.unwrap();
    let state = peer.state();
    assert_eq!(state.returned, [lease]);
    let indexes: Vec<u32> = state.stored.keys().map(|id| id.index).collect();
    let started: Vec<u32> = (0..indexes.len() as u32).collect();
    assert_eq!(indexes, started, "every game that was started has its verdict");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_lease_is_dropped_for_the_next_one() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("connect-four");
    let endless = peer.order(1, self_play(1_000_000), 1_000_000);
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(options(&server, data.path()));
    let mentioned = endless.to_bytes().to_vec();
    peer.until("the endless lease at work", |state| {
        state
            .reports
            .last()
            .is_some_and(|report| report.lease_ids.contains(&mentioned))
    })
    .await;
    peer.order(2, self_play(5), 4);
    peer.state().cancel.push(endless);
    peer.until("the next lease", |state| state.stored.len() == 5).await;
    actor.drain().await.unwrap();
    assert!(peer.state().returned.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn other_rules_are_refused_with_both_fingerprints() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    let ours = AnyGame::parse("tic-tac-toe").unwrap().rules_fingerprint().to_string();
    peer.state().answer.rules_fingerprint = vec![7; 32];
    let server = peer.serve(ANY_PORT).await;
    let error = Running::start(options(&server, data.path()))
        .task
        .await
        .unwrap()
        .unwrap_err();
    let text = format!("{error:#}");
    assert!(text.contains(&ours) && text.contains(&"07".repeat(32)), "{text}");
    // The coordinator's people need not look for this actor's log.
    let leave = peer.state().reports.last().cloned().expect("it takes leave");
    assert!(leave.gives_up && leave.waiting.contains(&ours), "{leave:?}");
    assert!(tengen_service::reports::is_other_rules(&leave.waiting), "{leave:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_actor_may_start_before_its_coordinator_and_stop_without_one() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    let dead = peer.serve(ANY_PORT).await;
    let address = dead.address;
    dead.kill().await;
    let join = format!("http://{address}");
    let options = |data: &Path| Options {
        games: Some(4),
        batch_max: Some(4),
        threads: Some(1),
        ..options_at(join.clone(), data)
    };
    Running::start(options(data.path())).drain().await.unwrap();

    peer.order(1, self_play(2), 4);
    let actor = Running::start(options(data.path()));
    let _server = peer.serve(address).await;
    peer.until("two games", |state| state.stored.len() == 2).await;
    actor.drain().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn match_work_does_not_wait_for_the_end_of_self_play_leases() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("connect-four");
    let endless = peer.order(1, self_play(1_000_000), 32);
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(options(&server, data.path()));
    let mentioned = endless.to_bytes().to_vec();
    peer.until("the lease at work", |state| {
        let named = |report: &tengen_proto::v1::ReportActorRequest| report.lease_ids.contains(&mentioned);
        state.reports.last().is_some_and(named) && state.stored.len() > 8
    })
    .await;
    let games = [0, 1].map(|seat0_model| MatchGame {
        pair: 0,
        opening: vec![Action(3)],
        sampled_plies: 0,
        seat0_model,
    });
    let of_match = peer.order(2, Plan::Match { games: games.into() }, 32);
    // A gate has opened.
    let (opened, started) = {
        let mut state = peer.state();
        state.wanted_back.push(endless);
        (
            state.reports.len(),
            state.stored.keys().map(|id| id.index).max().unwrap(),
        )
    };
    peer.until("the match", |state| {
        state.stored.keys().filter(|id| id.lease == of_match).count() == 2 && state.returned == [endless]
    })
    .await;
    // The next report is answered with the wish, and the one that hands the lease back may come before the question.
    let waited = peer.state().issued_after[&of_match] - opened;
    assert!(waited <= 2, "{waited} reports went by");
    actor.drain().await.unwrap();
    let state = peer.state();
    let late = state
        .stored
        .keys()
        .filter(|id| id.lease == endless && id.index > started);
    assert!(late.count() >= 1, "games in flight go on");
    assert!(state.verdicts.keys().all(|&verdict| verdict == "VERDICT_STORED"));
    assert_eq!(state.returned, [endless], "the match was finished");
}
