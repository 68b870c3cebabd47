//! A power cut at any moment costs no game that the actor has sent, counted or had refused: none of that comes before the
//! fsync it rests on.
//!
//! What is promised (docs/spool.md): a game that was sent is on the disk until it has a verdict; as many games are there
//! as a report says wait for one; a refused game is in the spool or, with its reason, in `rejected/`; a cut never looks
//! like damage, and the games are known to be of their run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use tengen_actor::spool::recover;
use tengen_faults::{Proof, scaled};
use tengen_records::{RecordId, peek_id};
use tengen_service::testing::power_cut::{Disk, Names, Trace, recorder};

use crate::peer::{Mood, Peer, Server, State};
use crate::process::Process;
use crate::spool::segments;
use crate::{ANY_PORT, self_play};

/// Games that the peer refuses, by index.
const REFUSED: u32 = 3;

/// Starts a process, and returns once it has registered: an order that is written before could be handed out in answer to
/// what the killed one asked last, and a signal that is sent before could come before there is anybody to drain.
async fn start(peer: &Peer, under: &[OsString], options: &[&str], server: &Server, data: &Path) -> Process {
    let before = peer.state().registered;
    let process = Process::start_under(under, options, &server.url(), data);
    peer.until("a registration", |state| state.registered > before).await;
    process
}

/// Records an actor: killed while a silent peer has its games, started again, answered, and asked to end; several times.
async fn record(peer: &Peer, server: &Server, data: &Path, trace: &Path) {
    let rounds = scaled(2, 4) as u128;
    let games = scaled(120, 400) as u32;
    let mut all = 0;
    for round in 0..rounds {
        // One game at a time that does not linger has a write and an fsync of its own; eight at a time share them.
        let options: &[&str] = if round % 2 == 0 {
            &["--games", "1", "--spool-linger-ms", "0"]
        } else {
            &["--games", "8", "--spool-linger-ms", "20"]
        };
        peer.state().mood = Mood::Silence;
        // What the process of before said last does not speak for this one.
        peer.state().reports.clear();
        let process = start(peer, &recorder(trace), options, server, data).await;
        peer.order(2 * round + 1, self_play(games), 4);
        all += games;
        peer.until("a lease's games on the disk", |state| {
            state.reports.last().is_some_and(|report| report.queue >= games)
        })
        .await;
        process.signal_recorded("KILL").await;

        peer.state().mood = Mood::Reject(REFUSED);
        let process = start(peer, &recorder(trace), options, server, data).await;
        peer.order(2 * round + 2, self_play(games), 4);
        all += games;
        peer.until("a verdict for every game", |state| {
            state.decided_at.len() == all as usize
        })
        .await;
        assert!(process.signal_recorded("TERM").await.success());
        assert!(segments(data).is_empty());
    }
}

/// What the actor must find again after a cut.
struct Promises<'a> {
    state: &'a State,
    /// Times of decisions, ascending.
    decided: Vec<u64>,
}

impl Promises<'_> {
    fn new(state: &State) -> Promises<'_> {
        let mut decided: Vec<u64> = state.decided_at.values().copied().collect();
        decided.sort_unstable();
        Promises { state, decided }
    }

    /// Checks a data folder as a cut before this time leaves it; returns the number of promises.
    fn check(&self, data: &Path, before: u64) -> usize {
        let spooled = games_in(data);
        let mut checked = 0;
        for (id, _) in self.state.arrived_at.iter().filter(|&(_, &at)| at < before) {
            let (kept, sent) = (spooled.get(id), &self.state.seen[id]);
            let decided = self.state.decided_at.get(id).is_some_and(|&at| at < before);
            match kept {
                Some(kept) => assert_eq!(kept, sent, "game {id}"),
                None if decided && id.index != REFUSED => continue,
                None => assert!(decided && is_refused(data, *id, sent), "game {id} was sent and is lost"),
            }
            checked += 1;
        }
        checked + self.check_count(spooled.len(), before)
    }

    /// As many games are there as were reported last, unless verdicts have come since.
    fn check_count(&self, spooled: usize, before: u64) -> usize {
        let reported = self.state.counted.iter().rfind(|(at, _)| *at < before);
        let Some(&(at, queue)) = reported else { return 0 };
        let first = self.decided.partition_point(|&decided| decided < at);
        if self.decided.get(first).is_some_and(|&decided| decided < before) {
            return 0;
        }
        assert!(
            spooled >= queue as usize,
            "{queue} games were reported, {spooled} are there"
        );
        queue as usize
    }
}

/// Whole games in a folder that has no damage.
fn games_in(data: &Path) -> BTreeMap<RecordId, Vec<u8>> {
    let mut games = BTreeMap::new();
    for bytes in segments(data) {
        let found = recover(&bytes);
        assert!(found.damaged.is_empty(), "a cut looks like damage: {found:?}");
        for game in found.games {
            let game = &bytes[game];
            games.insert(peek_id(game).unwrap(), game.to_vec());
        }
    }
    if !games.is_empty() {
        let run = std::fs::read_to_string(data.join("spool/run")).unwrap();
        assert!(run.starts_with("peer-run"), "{run}");
    }
    games
}

fn is_refused(data: &Path, id: RecordId, game: &[u8]) -> bool {
    let path = data.join(format!("rejected/{id}.record"));
    let reason = std::fs::read_to_string(format!("{}.txt", path.display()));
    reason.is_ok_and(|reason| reason.contains("REJECTED")) && std::fs::read(path).is_ok_and(|kept| kept == game)
}

/// A data folder as a cut leaves it.
fn laid_out(disk: &Disk, root: &Path, names: Names) -> tempfile::TempDir {
    let into = tempfile::tempdir().unwrap();
    disk.lay_out(root, into.path(), names);
    into
}

#[tokio::test(flavor = "multi_thread")]
async fn no_game_that_was_sent_or_counted_is_lost_by_a_power_cut_at_any_moment() {
    let proof = Proof::begin("actor-power-cut");
    let folder = tempfile::tempdir().unwrap();
    let (root, trace) = (folder.path().join("root"), folder.path().join("trace"));
    std::fs::create_dir(&root).unwrap();
    // The actor makes its own data folder, which must be there after the cut as well.
    let data = root.join("data");
    let peer = Peer::new("tic-tac-toe");
    let server = peer.serve(ANY_PORT).await;
    record(&peer, &server, &data, &trace).await;

    let trace = Trace::read(&trace, &root);
    let cuts = scaled(150, 2_000).min(trace.len());
    let restarts = scaled(2, 20);
    let (mut checked, mut left) = (0, Vec::new());
    {
        let state = peer.state();
        let promises = Promises::new(&state);
        let after = (0..=cuts).map(|cut| cut * trace.len() / cuts);
        trace.cuts(after, |disk, before| {
            for names in [Names::Synced, Names::Seen] {
                let into = laid_out(disk, &root, names);
                let data = into.path().join("data");
                checked += promises.check(&data, before);
                if !segments(&data).is_empty() {
                    left.push(into);
                }
            }
        });
    }
    assert!(checked > cuts * 20, "the cuts came too early to say anything");

    // And the actor itself finds them again.
    peer.state().mood = Mood::Store;
    for restart in 1..=restarts {
        let data = left[restart * (left.len() - 1) / restarts].path().join("data");
        let mut games = games_in(&data);
        games.retain(|&id, game| !is_refused(&data, id, game));
        peer.state().arrivals.clear();
        let process = start(&peer, &[], &["--games", "8"], &server, &data).await;
        peer.until("every game that the cut left", |state| {
            games.keys().all(|id| state.arrivals.contains_key(id))
        })
        .await;
        let status = process.terminate().await;
        assert!(status.success(), "restart {restart}: {status}");
        assert!(segments(&data).is_empty());
    }
    let proof = proof.count("cuts", cuts).count("calls", trace.len());
    let proof = proof.count("fsyncs", trace.syncs()).count("restarts", restarts);
    proof.count("promises_kept", checked).proved();
}
