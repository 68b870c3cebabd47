//! A network that comes while games are played: its sessions are there before its games are.

use std::fs::File;

use tengen_games::Action;
use tengen_selfplay::{MatchGame, Plan};

use crate::peer::Peer;
use crate::process::Process;
use crate::{ANY_PORT, self_play};

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_comes_while_games_are_played_is_loaded_by_no_thread_that_plays() {
    let data = tempfile::tempdir().unwrap();
    let log = data.path().join("log");
    let peer = Peer::new("tic-tac-toe");
    let [first, second] = [0, 1].map(|at| peer.state().models[at].id().to_string());
    peer.order(1, self_play(60), 16);
    let server = peer.serve(ANY_PORT).await;
    let process = Process::start_logged(File::create(&log).unwrap(), &server.url(), data.path());
    peer.until("games of the first network", |state| state.stored.len() >= 20)
        .await;
    let games = (0..16).map(|index| MatchGame {
        pair: index / 2,
        opening: vec![Action(4)],
        sampled_plies: 0,
        seat0_model: (index % 2) as usize,
    });
    peer.order(2, Plan::Match { games: games.collect() }, 16);
    peer.until("the match with the second", |state| state.stored.len() == 76)
        .await;
    assert!(process.terminate().await.success());

    let log = std::fs::read_to_string(&log).unwrap();
    let lines = |what: &str, network: &str| {
        let lines = log.lines().filter(|line| line.contains(what) && line.contains(network));
        lines.count()
    };
    assert_eq!(lines("session loaded", &second), 0, "{log}");
    assert!(lines("a session was ready", &second) >= 1, "{log}");
    // Nobody played when the first one came.
    assert!(lines("session loaded", &first) >= 1, "{log}");
}
