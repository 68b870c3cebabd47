//! How an actor feeds its devices. There is no GPU here: a CPU stands for one where threads share sessions.

use tengen_actor::Options;
use tengen_games::Action;
use tengen_inference::Devices;
use tengen_selfplay::{MatchGame, Plan};

use crate::peer::Peer;
use crate::{ANY_PORT, Running, options, self_play};

/// Self-play and a match, with all numbers left to the devices.
async fn is_played(change: impl FnOnce(Options) -> Options) {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    peer.order(1, self_play(40), 16);
    let games = [0, 1].map(|seat0_model| MatchGame {
        pair: 0,
        opening: vec![Action(4)],
        sampled_plies: 0,
        seat0_model,
    });
    peer.order(2, Plan::Match { games: games.into() }, 16);
    peer.order(3, self_play(10), 16);
    let server = peer.serve(ANY_PORT).await;
    let options = change(Options {
        games: None,
        batch_max: None,
        ..options(&server, data.path())
    });
    let told = options.device.to_string();
    let actor = Running::start(options);
    peer.until("every game of three leases", |state| state.stored.len() == 52)
        .await;
    peer.until("a report of all of them", |state| {
        state.reports.last().is_some_and(|report| report.games == 52)
    })
    .await;
    actor.drain().await.unwrap();
    let state = peer.state();
    assert_eq!(state.verdicts.len(), 1, "{:?}", state.verdicts);
    let report = state.reports.last().unwrap();
    assert_eq!(report.device, told);
    assert!(report.provider.ends_with("ExecutionProvider"), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn threads_that_share_the_sessions_of_a_device_play_every_game_of_every_lease() {
    is_played(|options| Options {
        share_sessions: true,
        ..options
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_actor_that_is_told_nothing_finds_out_what_it_plays_on() {
    is_played(|options| Options {
        device: Devices::default(),
        ..options
    })
    .await;
}
