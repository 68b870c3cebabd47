//! What every store of the window does, whoever reads it and by which way: the clauses are functions over a [`Store`], and
//! [`window_contract!`](crate::window_contract) names all of them, so that none is left out anywhere.

use std::sync::Arc;

use crate::{Chunk, Cursor, LoggedGame};

/// Chunks of the contract's readers, bytes.
pub const CHUNK_BYTES: usize = 64;

/// Calls the macro `$with` with the names of all clauses.
#[macro_export]
macro_rules! window_contract {
    ($with:ident) => {
        $with! {
            a_mirror_reads_the_newest_games_in_order,
            a_mirror_goes_on_from_any_cursor,
            a_waiting_mirror_gets_what_is_appended,
            a_new_epoch_begins_anew_whatever_the_cursor,
            a_batch_that_comes_twice_changes_nothing,
            chunks_are_bounded_but_a_large_record_passes,
            an_empty_window_says_that_it_is_read,
        }
    };
}

/// A store with a reader at it.
#[allow(async_fn_in_trait, reason = "tests alone implement and call it, each on one thread")]
pub trait Store {
    /// A new window of this epoch with these games, the newest of all that follow.
    async fn rebuild(&mut self, epoch: u64, capacity: u64, games: &[LoggedGame]);
    /// Appends games that follow the one with sequence `after`; games that are there already change nothing.
    async fn append(&mut self, after: u64, games: &[LoggedGame]);
    /// What a mirror reads next.
    async fn next(&mut self, cursor: Cursor) -> Chunk;

    /// Everything from the cursor on, as the chunks it came in.
    async fn chunks(&mut self, mut cursor: Cursor) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        loop {
            let chunk = self.next(cursor).await;
            cursor = after(&cursor, &chunk);
            let caught_up = chunk.caught_up;
            chunks.push(chunk);
            if caught_up {
                return chunks;
            }
        }
    }

    /// Everything from the cursor on.
    async fn games(&mut self, cursor: Cursor) -> Vec<LoggedGame> {
        self.chunks(cursor)
            .await
            .into_iter()
            .flat_map(|chunk| chunk.games)
            .collect()
    }
}

/// Where a mirror that took this chunk goes on.
pub fn after(cursor: &Cursor, chunk: &Chunk) -> Cursor {
    let same = if cursor.epoch == chunk.epoch {
        cursor.after_sequence
    } else {
        0
    };
    Cursor {
        epoch: chunk.epoch,
        after_sequence: chunk.games.last().map_or(same, |game| game.sequence),
    }
}

/// Games as they are appended to a window in memory.
pub fn taken(games: &[LoggedGame]) -> impl Iterator<Item = (u64, u32, Arc<[u8]>)> {
    games
        .iter()
        .map(|game| (game.sequence, game.positions, Arc::clone(&game.record)))
}

/// Games with sequences 3, 6, 9... (others of the run are no self-play) and records of a few bytes.
pub fn games(positions: &[u32]) -> Vec<LoggedGame> {
    let mut total = 0;
    let games = positions.iter().enumerate().map(|(n, &positions)| {
        total += u64::from(positions);
        LoggedGame {
            sequence: 3 * (n as u64 + 1),
            positions,
            positions_total: total,
            record: Arc::from(vec![n as u8; 4 + n % 30]),
        }
    });
    games.collect()
}

const START: Cursor = Cursor {
    epoch: 0,
    after_sequence: 0,
};

fn sequences(games: &[LoggedGame]) -> Vec<u64> {
    games.iter().map(|game| game.sequence).collect()
}

/// The kept games by the definition: the fewest newest ones that hold `capacity` positions, without those that hold none.
fn newest(all: &[LoggedGame], capacity: u64) -> Vec<LoggedGame> {
    let mut held = 0;
    let mut kept: Vec<LoggedGame> = all
        .iter()
        .rev()
        .take_while(|game| {
            let wanted = held < capacity;
            held += u64::from(game.positions);
            wanted
        })
        .filter(|game| game.positions > 0)
        .cloned()
        .collect();
    kept.reverse();
    kept
}

/// A mirror reads the newest games, in order, and no game without positions.
pub async fn a_mirror_reads_the_newest_games_in_order(mut store: impl Store) {
    let all = games(&[9, 0, 4, 7, 0, 2, 5]);
    store.rebuild(2, 10, &all[..2]).await;
    store.append(all[1].sequence, &all[2..5]).await;
    store.append(all[4].sequence, &all[5..]).await;
    let read = store.games(START).await;
    assert_eq!(read, newest(&all, 10));
    assert_eq!(sequences(&read), [12, 18, 21]);
    assert_eq!(read[2].positions_total, 27);
}

/// A mirror that stopped anywhere goes on behind what it has.
pub async fn a_mirror_goes_on_from_any_cursor(mut store: impl Store) {
    let all = games(&[3, 3, 3, 3]);
    store.rebuild(2, 100, &all).await;
    for (after_sequence, expected) in [
        (0, vec![3, 6, 9, 12]),
        (3, vec![6, 9, 12]),
        (7, vec![9, 12]),
        (9, vec![12]),
    ] {
        let cursor = Cursor {
            epoch: 2,
            after_sequence,
        };
        assert_eq!(
            sequences(&store.games(cursor).await),
            expected,
            "after {after_sequence}"
        );
    }
}

/// A mirror that has caught up is given what comes.
pub async fn a_waiting_mirror_gets_what_is_appended(mut store: impl Store) {
    let all = games(&[3, 3, 0, 3]);
    store.rebuild(2, 100, &all[..1]).await;
    let mut cursor = START;
    for chunk in store.chunks(START).await {
        cursor = after(&cursor, &chunk);
    }
    for (n, expected) in [(1, 6), (3, 12)] {
        store.append(cursor.after_sequence, &all[n.min(2)..=n]).await;
        let chunk = store.next(cursor).await;
        cursor = after(&cursor, &chunk);
        assert_eq!((chunk.games[0].sequence, cursor.after_sequence), (expected, expected));
    }
}

/// A new epoch is read from its beginning.
pub async fn a_new_epoch_begins_anew_whatever_the_cursor(mut store: impl Store) {
    let all = games(&[3, 3, 3, 3]);
    store.rebuild(2, 6, &all).await;
    assert_eq!(sequences(&store.games(START).await), [9, 12]);
    store.rebuild(5, 9, &all).await;
    let cursor = Cursor {
        epoch: 2,
        after_sequence: 12,
    };
    let chunks = store.chunks(cursor).await;
    assert!(chunks.iter().all(|chunk| (chunk.epoch, chunk.capacity.get()) == (5, 9)));
    let read: Vec<u64> = chunks.iter().flat_map(|chunk| sequences(&chunk.games)).collect();
    assert_eq!(read, [6, 9, 12]);
}

/// Games that are there already change nothing.
pub async fn a_batch_that_comes_twice_changes_nothing(mut store: impl Store) {
    let all = games(&[3, 4, 0, 5]);
    store.rebuild(2, 9, &all[..1]).await;
    for batch in [&all[1..3], &all[1..3], &all[1..4], &all[..4]] {
        let before = batch[0].sequence - 3;
        store.append(before, batch).await;
    }
    assert_eq!(store.games(START).await, newest(&all, 9));
}

/// A chunk is bounded; one larger record is a chunk of its own.
pub async fn chunks_are_bounded_but_a_large_record_passes(mut store: impl Store) {
    let mut all = games(&[1; 40]);
    all[20].record = Arc::from(vec![7; tengen_records::RECORD_BYTES_MAX]);
    store.rebuild(2, 1_000, &all).await;
    let chunks = store.chunks(START).await;
    for chunk in &chunks {
        let bytes: usize = chunk.games.iter().map(|game| game.record.len()).sum();
        assert!(bytes <= CHUNK_BYTES || chunk.games.len() == 1, "{bytes} bytes");
    }
    let read: Vec<LoggedGame> = chunks.into_iter().flat_map(|chunk| chunk.games).collect();
    assert_eq!(read, all);
}

/// A mirror of an empty window has caught up.
pub async fn an_empty_window_says_that_it_is_read(mut store: impl Store) {
    store.rebuild(2, 10, &[]).await;
    let chunk = store.next(START).await;
    assert_eq!((chunk.epoch, chunk.games.len(), chunk.caught_up), (2, 0, true));
    store.append(0, &games(&[0, 2])).await;
    let cursor = Cursor {
        epoch: 2,
        after_sequence: 0,
    };
    assert_eq!(sequences(&store.next(cursor).await.games), [6]);
}

/// Rebuilds with some of the games, appends the others in batches of these sizes, and compares with the definition after
/// each.
pub async fn law_holds(mut store: impl Store, capacity: u64, positions: &[u32], rebuilt: usize, batches: &[usize]) {
    let all = games(positions);
    let rebuilt = rebuilt.min(all.len());
    store.rebuild(2, capacity, &all[..rebuilt]).await;
    assert_eq!(store.games(START).await, newest(&all[..rebuilt], capacity));
    let mut end = rebuilt;
    for size in batches {
        let begin = end;
        end = (end + size).min(all.len());
        let before = all[..begin].last().map_or(0, |game| game.sequence);
        store.append(before, &all[begin..end]).await;
        assert_eq!(store.games(START).await, newest(&all[..end], capacity));
    }
}
