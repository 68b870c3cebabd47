//! The thread between a test that plays and a test that sends.

use std::path::Path;

use prost::Message;
use tengen_proto::v1::GameRecord;
use tengen_records::LeaseId;

use tengen_service::testing::small_disk::{fill, give_room, small_disk};

use super::super::{batch, recover};
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
        Rig::start_lingering(Duration::from_millis(50), data, bytes_max)
    }

    fn start_lingering(linger: Duration, data: &Path, bytes_max: u64) -> Rig {
        let (games, finished) = bounded(1);
        let (sender, events) = mpsc::channel(4);
        let store = Store::open(data, bytes_max).unwrap();
        Rig {
            spool: Spool::start(linger, store, finished, sender).unwrap(),
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
        self.spool.close().await.unwrap();
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

fn kept(event: &SpoolEvent) -> Option<Vec<u32>> {
    match event {
        SpoolEvent::Kept(ids) => Some(ids.iter().map(|id| id.index).collect()),
        _ => None,
    }
}

#[tokio::test]
async fn games_wait_for_others_until_they_are_many_or_somebody_has_something_to_say() {
    let data = tempfile::tempdir().unwrap();
    let an_hour = Duration::from_secs(3_600);
    let mut rig = Rig::start_lingering(an_hour, data.path(), 1 << 20);
    (0..3).for_each(|index| rig.games.send(finished(index, 100)).unwrap());
    let refused = |index| {
        let reason = "no place".to_owned();
        WorkerEvent::Notice(Notice::Refused { id: id(index), reason })
    };
    rig.games.send(refused(9)).unwrap();
    // A game that comes right behind it changes nothing about that.
    rig.games.send(finished(3, 100)).unwrap();
    assert_eq!(rig.until(kept).await, [0, 1, 2]);
    rig.games.send(refused(9)).unwrap();
    assert_eq!(rig.until(kept).await, [3]);

    let many = batch::GAMES_MAX as u32;
    let games = rig.games.clone();
    let player = std::thread::spawn(move || (0..many).try_for_each(|index| games.send(finished(index, 100))));
    assert_eq!(rig.until(kept).await, (0..many).collect::<Vec<_>>());
    player.join().unwrap().unwrap();

    // Nobody waits for games that are not going to come.
    rig.games.send(finished(7, 100)).unwrap();
    rig.spool.take_all();
    assert_eq!(rig.until(kept).await, [7]);
    rig.close().await;
}

#[tokio::test]
async fn games_that_linger_keep_none_from_being_sent() {
    let data = tempfile::tempdir().unwrap();
    let mut rig = Rig::start_lingering(Duration::from_secs(3_600), data.path(), 1 << 24);
    let window = WINDOW_GAMES_MAX as u32;
    let games = rig.games.clone();
    let player = std::thread::spawn(move || (0..window + 10).try_for_each(|index| games.send(finished(index, 100))));
    let mut tickets = Vec::new();
    while tickets.len() < WINDOW_GAMES_MAX {
        tickets.push(rig.until(unsent).await.0);
    }
    player.join().unwrap().unwrap();
    let refused = Notice::Refused {
        id: id(0),
        reason: "no place".to_owned(),
    };
    rig.games.send(WorkerEvent::Notice(refused)).unwrap();
    rig.until(|event| matches!(event, SpoolEvent::Notice(_)).then_some(()))
        .await;
    // The ten behind the window are durable, and one more lingers.
    rig.games.send(finished(window + 10, 100)).unwrap();
    tickets.into_iter().for_each(|ticket| rig.spool.settle(ticket));
    for index in window..window + 10 {
        assert_eq!(rig.until(unsent).await.1, index);
    }
    rig.close().await;
}

#[tokio::test]
async fn games_that_linger_do_not_hide_that_the_spool_fills_up() {
    let data = tempfile::tempdir().unwrap();
    let mut rig = Rig::start_lingering(Duration::from_secs(3_600), data.path(), 16_000);
    for index in 0..14 {
        rig.games.send(finished(index, 1_000)).unwrap();
    }
    until_room(&mut rig, Room::Matches).await;
    rig.close().await;
}

#[tokio::test]
async fn games_that_linger_are_kept_when_the_spool_fails() {
    let data = tempfile::tempdir().unwrap();
    // A segment for each game.
    let mut rig = Rig::start_lingering(Duration::from_secs(3_600), data.path(), 16_000);
    rig.games.send(finished(0, 1_000)).unwrap();
    let refused = Notice::Refused {
        id: id(9),
        reason: "no place".to_owned(),
    };
    rig.games.send(WorkerEvent::Notice(refused)).unwrap();
    let (ticket, _) = rig.until(unsent).await;
    let segments = || {
        let files = std::fs::read_dir(data.path().join("spool"))
            .unwrap()
            .map(|file| file.unwrap().path());
        files
            .filter(|file| file.extension().is_some_and(|name| name == "segment"))
            .collect::<Vec<_>>()
    };
    let [first] = segments().try_into().unwrap();
    std::fs::remove_file(&first).unwrap();
    std::fs::create_dir(&first).unwrap();
    // The channel holds one: once the second is in it, the first has been taken.
    rig.games.send(finished(1, 1_000)).unwrap();
    rig.games.send(finished(2, 1_000)).unwrap();
    rig.spool.settle(ticket);
    while !matches!(rig.events.recv().await.unwrap(), SpoolEvent::Failed(_)) {}
    let found = segments().into_iter().filter(|segment| segment.is_file());
    let kept: usize = found
        .map(|segment| recover(&std::fs::read(segment).unwrap()).games.len())
        .sum();
    assert!(kept >= 1, "the game that lingered is lost");
    rig.close().await;
}

#[tokio::test]
async fn a_game_that_no_other_joins_is_kept_soon() {
    let data = tempfile::tempdir().unwrap();
    let mut rig = Rig::start(data.path(), 1 << 20);
    rig.games.send(finished(0, 100)).unwrap();
    assert_eq!(rig.until(kept).await, [0]);
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

/// Events up to the first level that says so.
async fn until_room(rig: &mut Rig, room: Room) {
    rig.until(|event| matches!(event, SpoolEvent::Level(level) if level.room == room).then_some(()))
        .await;
}

#[tokio::test]
async fn a_full_disk_keeps_games_waiting_untold_until_there_is_room() {
    let name = "spool::thread::tests::a_full_disk_keeps_games_waiting_untold_until_there_is_room";
    let Some(disk) = small_disk(2, name) else { return };
    let mut rig = Rig::start(&disk, 1 << 30);
    rig.games.send(finished(0, 1_000)).unwrap();
    let (first, _) = rig.until(unsent).await;
    let ballast = fill(&disk, 0);
    rig.games.send(finished(1, 50_000)).unwrap();
    until_room(&mut rig, Room::DiskFull).await;
    // What is full takes nothing more: this one waits in the channel.
    rig.games.send(finished(2, 1_000)).unwrap();
    give_room(&ballast, 200 << 10);
    let mut kept = Vec::new();
    while kept.len() < 2 {
        match rig.events.recv().await.unwrap() {
            SpoolEvent::Kept(ids) => kept.extend(ids),
            SpoolEvent::Level(_) | SpoolEvent::Unsent(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(kept, [id(1), id(2)]);
    // The segment of before is written to no more, and goes with its own last verdict.
    rig.spool.settle(first);
    rig.until(|event| matches!(event, SpoolEvent::Level(level) if level.games == 2).then_some(()))
        .await;
    rig.close().await;
    assert_eq!(Store::open(&disk, 1 << 30).unwrap().games(), 2);
    assert_eq!(std::fs::read_dir(disk.join("spool")).unwrap().count(), 1);
}

#[tokio::test]
async fn a_refusal_that_finds_no_room_keeps_its_game_in_the_spool_until_it_does() {
    let name = "spool::thread::tests::a_refusal_that_finds_no_room_keeps_its_game_in_the_spool_until_it_does";
    let Some(disk) = small_disk(2, name) else { return };
    let mut rig = Rig::start(&disk, 1 << 30);
    rig.games.send(finished(0, 50_000)).unwrap();
    let game = rig
        .until(|event| match event {
            SpoolEvent::Unsent(game) => Some((game.ticket, game.game.clone())),
            _ => None,
        })
        .await;
    let ballast = fill(&disk, 8 << 10);
    rig.spool.set_aside(game.0, game.1.clone(), "refused".to_owned());
    until_room(&mut rig, Room::DiskFull).await;
    std::fs::remove_file(ballast).unwrap();
    rig.until(|event| matches!(event, SpoolEvent::Level(level) if level.games == 0).then_some(()))
        .await;
    rig.close().await;
    let kept = disk.join(format!("rejected/{}.record", id(0)));
    assert_eq!(std::fs::read(kept).unwrap(), game.1);
}

#[tokio::test]
async fn games_that_a_full_disk_never_took_are_given_up_aloud_at_the_end() {
    let name = "spool::thread::tests::games_that_a_full_disk_never_took_are_given_up_aloud_at_the_end";
    let Some(disk) = small_disk(2, name) else { return };
    let mut rig = Rig::start(&disk, 1 << 30);
    rig.games.send(finished(0, 1_000)).unwrap();
    rig.until(unsent).await;
    let _ballast = fill(&disk, 0);
    rig.games.send(finished(1, 50_000)).unwrap();
    until_room(&mut rig, Room::DiskFull).await;
    // The actor is asked to stop: what is in flight is taken, though nothing can be promised about it.
    rig.spool.take_all();
    rig.games.send(finished(2, 1_000)).unwrap();
    let Rig { spool, games, events } = rig;
    drop((games, events));
    let text = spool.close().await.unwrap_err().to_string();
    assert!(
        text.starts_with("the last 2 games did not fit into") && text.contains("No space left"),
        "{text}"
    );
    assert_eq!(Store::open(&disk, 1 << 30).unwrap().games(), 1);
}
