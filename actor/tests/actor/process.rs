//! The process `tengen-actor`: killed, restarted, told to stop.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use tengen_faults::Proof;
use tengen_records::{LeaseId, RecordId, peek_id};

use crate::peer::{Mood, Peer, Server};
use crate::spool::{segments, spooled};
use crate::{ANY_PORT, Running, options, self_play};

/// What most processes are told beside everything else.
const EIGHT_GAMES: [&str; 2] = ["--games", "8"];

/// A running process. Dropping it kills it.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(url: &str, data: &Path) -> Process {
        Process::start_under(&[], &EIGHT_GAMES, url, data)
    }

    /// The same under another program, for example a recorder, with more options.
    pub(crate) fn start_under(wrapper: &[OsString], options: &[&str], url: &str, data: &Path) -> Process {
        Process(command(wrapper, url, data).args(options).spawn().unwrap())
    }

    /// One that writes into `log` what becomes of its sessions.
    pub(crate) fn start_logged(log: File, url: &str, data: &Path) -> Process {
        let mut command = command(&[], url, data);
        command
            .args(EIGHT_GAMES)
            .args(["--log", "info,tengen_selfplay=debug"])
            .stderr(log);
        Process(command.spawn().unwrap())
    }

    /// kill -9.
    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// SIGTERM, and the status it ends with.
    pub(crate) async fn terminate(self) -> ExitStatus {
        signal("TERM", self.0.id());
        self.ended().await
    }

    /// A signal to the process that runs in the recorder's care, and the status that the recorder ends with.
    pub(crate) async fn signal_recorded(self, name: &str) -> ExitStatus {
        let recorder = self.0.id();
        let children = std::fs::read_to_string(format!("/proc/{recorder}/task/{recorder}/children")).unwrap();
        signal(name, children.trim().parse().unwrap());
        self.ended().await
    }

    async fn ended(mut self) -> ExitStatus {
        tokio::task::spawn_blocking(move || self.0.wait().unwrap())
            .await
            .unwrap()
    }
}

fn command(wrapper: &[OsString], url: &str, data: &Path) -> Command {
    let mut words = wrapper.to_vec();
    words.push(env!("CARGO_BIN_EXE_tengen-actor").into());
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .args([
            "--join",
            url,
            "--batch-max",
            "8",
            "--threads",
            "2",
            "--device",
            "cpu",
            "--data",
        ])
        .arg(data)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn signal(name: &str, process: u32) {
    let sent = Command::new("kill")
        .args([format!("-{name}"), process.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

fn game(lease: u128, index: u32) -> RecordId {
    RecordId {
        lease: LeaseId(lease),
        index,
    }
}

/// A process killed while a silent peer has seen at least so many of its games, and has read all that it had sent.
async fn killed_with_games(peer: &Peer, data: &Path, games: usize) -> Server {
    peer.state().mood = Mood::Silence;
    peer.order(1, self_play(10_000), 4);
    let server = peer.serve(ANY_PORT).await;
    let process = Process::start(&server.url(), data);
    peer.until("games on their way", |state| state.seen.len() >= games)
        .await;
    process.kill();
    peer.until("the end of the upload", |state| state.uploads == 0).await;
    server
}

/// How often an actor is killed: in turns before it has heard any verdict, and between verdicts.
const KILLS: u128 = 6;

#[tokio::test(flavor = "multi_thread")]
async fn kill_9_loses_no_game_that_was_finished() {
    let proof = Proof::begin("actor-killed");
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    let server = peer.serve(ANY_PORT).await;
    for round in 1..=KILLS {
        peer.state().mood = if round % 2 == 0 { Mood::Store } else { Mood::Silence };
        peer.order(round, self_play(10_000), 4);
        let decided = peer.state().verdicts.values().sum::<u32>();
        let process = Process::start(&server.url(), data.path());
        peer.until("games of this round", |state| {
            // Behind a silent peer's backlog they are on disk only.
            let mut games = spooled(data.path());
            games.extend(state.seen.iter().map(|(id, game)| (*id, game.clone())));
            let played = games.keys().filter(|id| id.lease == LeaseId(round)).count();
            let heard = state.mood == Mood::Silence || state.verdicts.values().sum::<u32>() > decided;
            played >= 40 && heard
        })
        .await;
        process.kill();
        peer.until("the end of the upload", |state| state.uploads == 0).await;
        // A game is durable before it is sent, and leaves the disk only after its verdict.
        let kept = spooled(data.path());
        let state = peer.state();
        for (id, game) in state.seen.iter().filter(|(id, _)| !state.stored.contains_key(id)) {
            assert_eq!(kept.get(id), Some(game), "game {id} of round {round}");
        }
    }
    peer.state().mood = Mood::Store;
    let kept = spooled(data.path());
    let process = Process::start(&server.url(), data.path());
    // What was stored before is sent again, and leaves the disk after its verdict.
    peer.until("every game, and an empty spool", |state| {
        kept.keys().all(|id| state.stored.contains_key(id)) && segments(data.path()).is_empty()
    })
    .await;
    assert!(process.terminate().await.success());
    let state = peer.state();
    assert!(!state.verdicts.contains_key("VERDICT_CONFLICT"), "{:?}", state.verdicts);
    for (id, game) in &state.seen {
        assert_eq!(state.stored.get(id), Some(game));
    }
    assert!(segments(data.path()).is_empty());
    let proof = proof.count("kills", KILLS as usize);
    proof.count("stored_games", state.stored.len()).proved();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_while_the_coordinator_is_away_sends_what_was_kept() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    let server = killed_with_games(&peer, data.path(), 50).await;
    let (address, url) = (server.address, server.url());
    server.kill().await;
    let kept = spooled(data.path());
    let process = Process::start(&url, data.path());
    peer.state().mood = Mood::Store;
    let _server = peer.serve(address).await;
    peer.until("every game", |state| {
        kept.keys().all(|id| state.stored.contains_key(id))
    })
    .await;
    assert!(process.terminate().await.success());
    assert!(kept.len() >= 50);
    assert_eq!(
        peer.state().stored.len(),
        kept.len(),
        "there was no work, so nothing was played"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_segment_costs_the_damaged_game_and_is_set_aside() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    let server = killed_with_games(&peer, data.path(), 50).await;
    let before = spooled(data.path());
    damage_first_segment(data.path());
    let after = spooled(data.path());
    assert_eq!(after.len(), before.len() - 1);
    peer.state().mood = Mood::Store;
    let process = Process::start(&server.url(), data.path());
    peer.until("every whole game", |state| {
        after.keys().all(|id| state.stored.contains_key(id))
    })
    .await;
    assert!(process.terminate().await.success());
    let damaged = before.keys().find(|id| !after.contains_key(*id)).unwrap();
    assert!(!peer.state().stored.contains_key(damaged));
    let mut names: Vec<String> = std::fs::read_dir(data.path().join("rejected"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let [bytes, reason] = names.as_slice() else {
        panic!("{names:?}")
    };
    assert!(
        bytes.ends_with(".damaged") && *reason == format!("{bytes}.txt"),
        "{names:?}"
    );
}

/// Flips a byte of a game in the middle of the oldest segment.
#[allow(
    clippy::disallowed_methods,
    reason = "the test does the damage that the product must survive"
)]
fn damage_first_segment(data: &Path) {
    let mut paths: Vec<_> = std::fs::read_dir(data.join("spool"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "segment"))
        .collect();
    paths.sort();
    let mut bytes = std::fs::read(&paths[0]).unwrap();
    let games = tengen_actor::spool::recover(&bytes).games;
    bytes[games[games.len() / 2].start + 7] ^= 0x20;
    std::fs::write(&paths[0], bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_game_is_kept_with_its_reason_and_never_sent_again() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    peer.state().mood = Mood::Reject(3);
    // The game after these keeps the segment, so that the next start reads it.
    peer.order(1, self_play(6), 4);
    let server = peer.serve(ANY_PORT).await;
    let process = Process::start(&server.url(), data.path());
    let refused = data.path().join("rejected").join(format!("{}.record", game(1, 3)));
    peer.until("six verdicts, and the next question", |state| {
        state.verdicts.values().sum::<u32>() == 6 && refused.exists()
    })
    .await;
    peer.state().mood = Mood::Silence;
    peer.order(2, self_play(4), 4);
    peer.until("games without a verdict", |state| {
        state.arrivals.contains_key(&game(2, 0))
    })
    .await;
    process.kill();
    assert!(
        spooled(data.path()).contains_key(&game(1, 3)),
        "the segment is still there"
    );
    let record = std::fs::read(&refused).unwrap();
    assert_eq!(peek_id(&record), Some(game(1, 3)));
    let reason = std::fs::read_to_string(format!("{}.txt", refused.display())).unwrap();
    assert!(
        reason.contains("VERDICT_REJECTED") && reason.contains("illegal-action"),
        "{reason}"
    );

    peer.state().mood = Mood::Store;
    let process = Process::start(&server.url(), data.path());
    peer.until("the others", |state| {
        state.stored.contains_key(&game(2, 0)) && state.arrivals[&game(1, 0)] == 2
    })
    .await;
    assert!(process.terminate().await.success());
    let state = peer.state();
    assert_eq!(state.arrivals[&game(1, 3)], 1);
    assert_eq!(state.verdicts["VERDICT_REJECTED"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn games_of_one_run_are_not_sent_to_another() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    let server = killed_with_games(&peer, data.path(), 5).await;
    let kept = spooled(data.path());
    peer.state().answer.run_id = "another-run".to_owned();
    let error = Running::start(options(&server, data.path()))
        .task
        .await
        .unwrap()
        .unwrap_err();
    let text = format!("{error:#}");
    assert!(text.contains("peer-run") && text.contains("another-run"), "{text}");
    assert_eq!(spooled(data.path()), kept, "nothing is lost");
    assert!(
        peer.state().arrivals.values().all(|&times| times == 1),
        "nothing was sent again"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_hands_leases_back_and_ends_well() {
    let data = tempfile::tempdir().unwrap();
    let peer = Peer::new("tic-tac-toe");
    let lease = peer.order(1, self_play(1_000_000), 16);
    let server = peer.serve(ANY_PORT).await;
    let process = Process::start(&server.url(), data.path());
    peer.until("a few games", |state| state.stored.len() >= 10).await;
    assert!(process.terminate().await.success());
    let state = peer.state();
    assert_eq!(state.returned, [lease]);
    let played = state.stored.len() as u32;
    assert!(
        (0..played).all(|index| state.stored.contains_key(&game(1, index))),
        "games in flight are finished"
    );
}
