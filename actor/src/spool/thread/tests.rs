//! The thread between a test that plays and a test that sends.

use std::path::Path;

use prost::Message;
use tengen_proto::v1::GameRecord;
use tengen_records::LeaseId;

use super::*;

fn id(index: u32) -> RecordId {
    RecordId {
        lease: LeaseId(5),
        index,
    }
}

/// A record in name only, of about `len` bytes.
fn finished(index: u32, len: usize) -> WorkerEvent {
    let record = GameRecord {
        lease_id: id(index).lease.to_bytes().to_vec(),
        game_index: index,
        run_id: "x".repeat(len),
        ..GameRecord::default()
    };
    WorkerEvent::Finished {
        id: id(index),
        game: record.encode_to_vec(),
    }
}

/// A spool with both its ends in the test's hands.
struct Rig {
    spool: Spool,
    games: Sender<WorkerEvent>,
    events: mpsc::Receiver<SpoolEvent>,
}

impl Rig {
    fn start(data: &Path, bytes_max: u64) -> Rig {
        let (games, finished) = bounded(1);
        let (sender, events) = mpsc::channel(4);
        let store = Store::open(data, bytes_max).unwrap();
        Rig {
            spool: Spool::start(store, finished, sender).unwrap(),
            games,
            events,
        }
    }

    /// Takes events until one is as wanted, and returns what that makes of it.
    async fn until<T>(&mut self, wanted: impl Fn(&SpoolEvent) -> Option<T>) -> T {
        loop {
            let event = self.events.recv().await.expect("the spool lives");
            assert!(!matches!(event, SpoolEvent::Failed(_)), "{event:?}");
            if let Some(found) = wanted(&event) {
                return found;
            }
        }
    }

    async fn close(self) {
        drop(self.events);
        self.spool.close().await;
    }
}

fn unsent(event: &SpoolEvent) -> Option<(Ticket, u32)> {
    match event {
        SpoolEvent::Unsent(game) => Some((game.ticket, game.id.index)),
        _ => None,
    }
}

#[tokio::test]
async fn a_full_spool_takes_nothing_until_verdicts_make_room() {
    let data = tempfile::tempdir().unwrap();
    let mut rig = Rig::start(data.path(), 16_000);
    // More than fits: the last of them wait in the channel, and behind it.
    let games = rig.games.clone();
    let player = std::thread::spawn(move || (0..40).try_for_each(|index| games.send(finished(index, 1_000))));
    let mut tickets = Vec::new();
    loop {
        match rig.events.recv().await.unwrap() {
            SpoolEvent::Level(level) if level.room == Room::Nothing => {
                assert!(level.bytes < 16_000 + 1_100, "{level:?}");
                break;
            }
            SpoolEvent::Unsent(game) => tickets.push(game.ticket),
            _ => {}
        }
    }
    // Everything else is handed out as it is settled, in order, without loss.
    let mut last = tickets.len() as u32;
    while last < 40 {
        for ticket in tickets.drain(..) {
            rig.spool.settle(ticket);
        }
        let (ticket, index) = rig.until(unsent).await;
        assert_eq!(index, last);
        last += 1;
        tickets.push(ticket);
    }
    player.join().unwrap().unwrap();
    rig.close().await;
}

#[tokio::test]
async fn once_no_game_is_started_everything_is_taken() {
    let data = tempfile::tempdir().unwrap();
    let mut rig = Rig::start(data.path(), 4_000);
    rig.spool.take_all();
    let games = rig.games.clone();
    let player = std::thread::spawn(move || {
        (0..40).try_for_each(|index| games.send(finished(index, 1_000)))?;
        games.send(WorkerEvent::Notice(Notice::Ended {
            worker: 0,
            result: Ok(()),
        }))
    });
    // The thread's last word does not overtake its games.
    let mut kept = Vec::new();
    loop {
        match rig.events.recv().await.unwrap() {
            SpoolEvent::Kept(ids) => kept.extend(ids),
            SpoolEvent::Notice(Notice::Ended { worker: 0, .. }) => break,
            _ => {}
        }
    }
    assert_eq!(kept, (0..40).map(id).collect::<Vec<_>>());
    player.join().unwrap().unwrap();
    rig.close().await;
    assert_eq!(Store::open(data.path(), 4_000).unwrap().games(), 40);
}

#[tokio::test]
async fn a_game_too_large_for_the_wire_is_set_aside_at_the_door() {
    let data = tempfile::tempdir().unwrap();
    let mut rig = Rig::start(data.path(), 1 << 30);
    rig.games.send(finished(0, RECORD_BYTES_MAX)).unwrap();
    rig.games.send(finished(1, 10)).unwrap();
    let (large, bytes) = rig
        .until(|event| match event {
            SpoolEvent::TooLarge { id, bytes } => Some((*id, *bytes)),
            _ => None,
        })
        .await;
    assert_eq!(large, id(0));
    let (ticket, index) = rig.until(unsent).await;
    assert_eq!(index, 1, "the large one is not sent");
    rig.spool.settle(ticket);
    rig.until(|event| matches!(event, SpoolEvent::Level(level) if level.games == 0).then_some(()))
        .await;
    rig.close().await;
    let kept = data.path().join("rejected").join(format!("{}.record", id(0)));
    assert_eq!(std::fs::metadata(&kept).unwrap().len(), bytes as u64);
    let reason = std::fs::read_to_string(format!("{}.txt", kept.display())).unwrap();
    assert!(reason.starts_with("not sent: 83"), "{reason}");
}

#[tokio::test]
async fn the_send_window_is_bounded_and_moves_on() {
    let data = tempfile::tempdir().unwrap();
    let mut rig = Rig::start(data.path(), 1 << 30);
    let games = rig.games.clone();
    let count = WINDOW_GAMES_MAX as u32 + 20;
    let player = std::thread::spawn(move || (0..count).try_for_each(|index| games.send(finished(index, 50))));
    let mut out = Vec::new();
    let mut kept = 0;
    while kept < count as usize || out.len() < WINDOW_GAMES_MAX {
        match rig.events.recv().await.unwrap() {
            SpoolEvent::Kept(ids) => kept += ids.len(),
            SpoolEvent::Unsent(game) => out.push(game.ticket),
            _ => {}
        }
    }
    player.join().unwrap().unwrap();
    assert_eq!(out.len(), WINDOW_GAMES_MAX);
    rig.spool.settle(out[0]);
    let (_, next) = rig.until(unsent).await;
    assert_eq!(next as usize, WINDOW_GAMES_MAX);
    rig.close().await;
}
