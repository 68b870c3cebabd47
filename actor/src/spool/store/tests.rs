//! The store against a real folder: restarts, damage, bounds, and random histories.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;
use tengen_proto::v1::GameRecord;
use tengen_records::{LeaseId, RunId};

use super::*;

fn id(index: u32) -> RecordId {
    RecordId {
        lease: LeaseId(5),
        index,
    }
}

/// A record in name only, of about `len` bytes.
fn game(index: u32, len: usize) -> Vec<u8> {
    let record = GameRecord {
        lease_id: id(index).lease.to_bytes().to_vec(),
        game_index: index,
        run_id: "x".repeat(len),
        ..GameRecord::default()
    };
    record.encode_to_vec()
}

fn filled(data: &Path, games: std::ops::Range<u32>) -> Store {
    let mut store = Store::open(data, 1 << 20).unwrap();
    for index in games {
        store.append(&game(index, 100));
    }
    store.sync().unwrap();
    store
}

fn drain(store: &mut Store) -> Vec<u32> {
    std::iter::from_fn(|| store.read().unwrap())
        .map(|read| read.id.index)
        .collect()
}

fn files(data: &Path, folder: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(data.join(folder)) else {
        return Vec::new();
    };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn games_come_back_in_order_also_after_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let mut store = filled(data.path(), 0..5);
    assert_eq!(drain(&mut store), [0, 1, 2, 3, 4]);
    assert_eq!(store.games(), 5);
    drop(store);
    let mut store = filled(data.path(), 5..7);
    assert_eq!(drain(&mut store), [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_torn_end_is_cut_off_and_the_rest_is_kept() {
    let data = tempfile::tempdir().unwrap();
    drop(filled(data.path(), 0..3));
    let path = files(data.path(), "spool").remove(0);
    let len = std::fs::metadata(&path).unwrap().len();
    OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(len - 10)
        .unwrap();
    let mut store = Store::open(data.path(), 1 << 20).unwrap();
    assert_eq!(drain(&mut store), [0, 1]);
    assert_eq!(recover(&std::fs::read(&path).unwrap()).torn, None);
    assert!(files(data.path(), "rejected").is_empty());
}

#[test]
fn damage_costs_its_game_and_is_set_aside_with_a_reason() {
    let data = tempfile::tempdir().unwrap();
    let mut store = filled(data.path(), 0..3);
    let path = files(data.path(), "spool").remove(0);
    let at = recover(&std::fs::read(&path).unwrap()).games[1].start as u64;
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(b"?", at + 3).unwrap();
    // Noticed when it is read back, and at the next start.
    assert_eq!(drain(&mut store), [0, 2]);
    store.sync().unwrap();
    assert_eq!(store.games(), 2);
    drop(store);
    let mut store = Store::open(data.path(), 1 << 20).unwrap();
    assert_eq!(drain(&mut store), [0, 2]);
    let kept = files(data.path(), "rejected");
    assert_eq!(kept.len(), 2, "{kept:?}");
    let reason = std::fs::read_to_string(&kept[1]).unwrap();
    assert!(reason.contains("damaged on disk from byte"), "{reason}");
}

#[test]
fn a_segment_goes_when_all_its_games_have_verdicts() {
    let data = tempfile::tempdir().unwrap();
    let mut store = Store::open(data.path(), 16_000).unwrap();
    let segments: Vec<u64> = (0..30)
        .map(|index| {
            store.append(&game(index, 200));
            store.sync().unwrap();
            store.read().unwrap().unwrap().segment
        })
        .collect();
    let distinct: BTreeSet<u64> = segments.iter().copied().collect();
    assert!(distinct.len() > 4, "{segments:?}");
    let before = store.bytes();
    for &segment in &segments[..10] {
        store.settle(segment).unwrap();
    }
    assert!(store.bytes() < before);
    assert_eq!(store.games(), 20);
    for &segment in &segments[10..] {
        store.settle(segment).unwrap();
    }
    store.close().unwrap();
    assert_eq!((store.games(), store.bytes()), (0, 0));
    assert!(files(data.path(), "spool").is_empty());
}

#[test]
fn room_runs_out_for_self_play_before_it_runs_out_for_matches() {
    let data = tempfile::tempdir().unwrap();
    let mut store = Store::open(data.path(), 16_000).unwrap();
    let mut rooms = vec![store.room()];
    let mut segments = Vec::new();
    for index in 0.. {
        store.append(&game(index, 500));
        store.sync().unwrap();
        segments.push(store.read().unwrap().unwrap().segment);
        if rooms.last() != Some(&store.room()) {
            rooms.push(store.room());
        }
        if store.room() == Room::Nothing {
            break;
        }
    }
    assert_eq!(rooms, [Room::Everything, Room::Matches, Room::Nothing]);
    assert!(store.bytes() < 16_000 + 600);
    for segment in segments {
        store.settle(segment).unwrap();
    }
    assert_eq!(store.room(), Room::Everything);
}

#[test]
fn games_of_another_run_are_refused_with_the_way_out_and_an_empty_spool_serves_any() {
    let data = tempfile::tempdir().unwrap();
    let run = |name: &str, created_ms| RunKey {
        id: RunId::new(name).unwrap(),
        created_ms,
    };
    let mut store = filled(data.path(), 0..2);
    store.claim(&run("a", 1)).unwrap_err();
    for _ in 0..2 {
        let segment = store.read().unwrap().unwrap().segment;
        store.settle(segment).unwrap();
    }
    store.claim(&run("a", 1)).unwrap();
    store.append(&game(2, 10));
    store.sync().unwrap();
    store.claim(&run("a", 1)).unwrap();
    // A run that was begun again has forgotten its leases.
    store.claim(&run("a", 2)).unwrap_err();
    let text = store.claim(&run("b", 1)).unwrap_err().to_string();
    assert!(
        text.contains("1 games of run a (created 1 ") && text.contains("serves run b (created 1 "),
        "{text}"
    );
}

/// What a history does.
#[derive(Clone, Debug)]
enum Op {
    Append(usize),
    Sync,
    Read,
    Settle(usize),
    /// The process dies: what was not synced is cut after so many bytes.
    Die(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0usize..300).prop_map(Op::Append),
        3 => Just(Op::Sync),
        4 => Just(Op::Read),
        3 => any::<usize>().prop_map(Op::Settle),
        1 => (0usize..100).prop_map(Op::Die),
    ]
}

/// A store, and what is known of its games without it.
struct History {
    data: tempfile::TempDir,
    store: Store,
    appended: u32,
    waiting: Vec<u32>,
    synced: BTreeSet<u32>,
    settled: BTreeSet<u32>,
    read: Vec<(u64, u32)>,
}

const HISTORY_BYTES_MAX: u64 = 20_000;

impl History {
    fn new() -> History {
        let data = tempfile::tempdir().unwrap();
        History {
            store: Store::open(data.path(), HISTORY_BYTES_MAX).unwrap(),
            data,
            appended: 0,
            waiting: Vec::new(),
            synced: BTreeSet::new(),
            settled: BTreeSet::new(),
            read: Vec::new(),
        }
    }

    fn play(&mut self, op: Op) {
        match op {
            Op::Append(len) => {
                self.store.append(&game(self.appended, len));
                self.waiting.push(self.appended);
                self.appended += 1;
            }
            Op::Sync => {
                self.store.sync().unwrap();
                self.synced.extend(self.waiting.drain(..));
            }
            // The thread reads only what it has synced.
            Op::Read => {
                self.play(Op::Sync);
                if let Some(read) = self.store.read().unwrap() {
                    self.read.push((read.segment, read.id.index));
                }
            }
            Op::Settle(which) if !self.read.is_empty() => {
                let (segment, index) = self.read.swap_remove(which % self.read.len());
                self.store.settle(segment).unwrap();
                self.settled.insert(index);
            }
            Op::Settle(_) => {}
            Op::Die(reached) => self.die(reached),
        }
    }

    fn die(&mut self, reached: usize) {
        // Part of what waits to be written gets as far as the file, and no further.
        if let Some((_, file)) = &mut self.store.writing {
            let part = reached.min(self.store.buffer.len());
            file.write_all(&self.store.buffer[..part]).unwrap();
        }
        self.store = Store::open(self.data.path(), HISTORY_BYTES_MAX).unwrap();
        self.read.clear();
        self.waiting.clear();
        let mut found = BTreeSet::new();
        while let Some(read) = self.store.read().unwrap() {
            assert!(found.insert(read.id.index), "game {} came twice", read.id.index);
            self.read.push((read.segment, read.id.index));
        }
        for index in self.synced.difference(&self.settled) {
            assert!(found.contains(index), "game {index} is lost");
        }
        assert_eq!(self.store.games(), found.len() as u64);
        // Games that a rolled segment or the dying write took to the disk are as good as synced.
        self.synced.extend(&found);
        self.settled.retain(|index| !found.contains(index));
    }
}

proptest! {
    // Every step of a history may sync a real disk: some four milliseconds each.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_history_loses_a_durable_game(ops in vec(op(), 0..120)) {
        let mut history = History::new();
        for op in ops {
            history.play(op);
            let on_disk: u64 = files(history.data.path(), "spool").iter().map(|path| path.metadata().unwrap().len()).sum();
            prop_assert_eq!(history.store.bytes(), on_disk);
        }
        history.die(0);
    }
}
