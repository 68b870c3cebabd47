//! Answers of networks that need not be asked for again.
//!
//! The key is a 128-bit BLAKE3 of the network's file and everything the network is shown, the position's feature planes and
//! the symmetry that they are seen through: two positions with equal planes have equal answers, whatever led to them, a
//! new network never sees an old one's, nor one precision another's, and searches with and without random symmetries share
//! a cache. What is kept are the raw logits, those of the policy in the position's own order; the search masks them for
//! the position that asked. Two different keys collide with a chance of 2^-128 a pair, which is not handled.
//!
//! All memory is taken at the start and never more: a set of a few places for each hash, in which the oldest answer makes
//! room. The sets are spread over locks, so that threads seldom meet.
//!
//! **Nothing is cleared when another network is played.** Nobody can take its answers for another's, and a gate, whose two networks
//! are played in turns with self-play, finds those of both. A network that is played no more loses its places to whoever is: once
//! as many new answers have come as there are places, a fifth of the old ones are left, and after twice as many one in
//! seventy. An answer grows old whether or not it is found.

use std::sync::{Mutex, PoisonError};

use tengen_records::ModelId;

/// Places that one key may be in.
const WAYS: usize = 4;
/// Locks; a power of two.
const SHARDS: usize = 64;

/// What an answer is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(u128);

impl Key {
    /// The key of these planes for the network in this file, which sees them through the symmetry with this index.
    pub(crate) fn of(file: ModelId, planes: &[u8], symmetry: u16) -> Key {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&file.0);
        hasher.update(planes);
        hasher.update(&symmetry.to_le_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        // 0 marks an empty place.
        Key(u128::from_le_bytes(bytes).max(1))
    }

    fn shard(self) -> usize {
        self.0 as usize % SHARDS
    }

    fn set(self, sets: usize) -> usize {
        (self.0 >> 64) as usize % sets
    }
}

/// A bounded cache of evaluations, shared by the threads of a process.
#[derive(Debug)]
pub struct EvaluationCache {
    shards: Vec<Mutex<Shard>>,
    answer_len: usize,
}

#[derive(Debug)]
struct Shard {
    keys: Vec<u128>,
    /// Which place of each set is overwritten next.
    next: Vec<u8>,
    /// Policy logits, then those of win, draw, loss, for each place.
    answers: Vec<f32>,
}

impl EvaluationCache {
    /// A cache for networks of `actions` actions in about so many bytes. `None`: not even one set of answers a lock fits.
    pub fn new(bytes: usize, actions: usize) -> Option<EvaluationCache> {
        let answer_len = actions + 3;
        let set_bytes = WAYS * (answer_len * size_of::<f32>() + size_of::<u128>()) + 1;
        let sets = bytes / SHARDS / set_bytes;
        let shard = || Shard {
            keys: vec![0; sets * WAYS],
            next: vec![0; sets],
            answers: vec![0.0; sets * WAYS * answer_len],
        };
        (sets > 0).then(|| EvaluationCache {
            shards: (0..SHARDS).map(|_| Mutex::new(shard())).collect(),
            answer_len,
        })
    }

    /// Answers it can hold.
    pub fn capacity(&self) -> usize {
        let first = self.shards[0].lock().unwrap_or_else(PoisonError::into_inner);
        first.keys.len() * SHARDS
    }

    /// Copies the answer to `answer`, policy logits and then win, draw, loss, if there is one.
    pub(crate) fn get(&self, key: Key, answer: &mut [f32]) -> bool {
        let shard = self.shards[key.shard()].lock().unwrap_or_else(PoisonError::into_inner);
        let first = key.set(shard.next.len()) * WAYS;
        let found = shard.keys[first..first + WAYS].iter().position(|&kept| kept == key.0);
        let Some(way) = found else { return false };
        let at = (first + way) * self.answer_len;
        answer.copy_from_slice(&shard.answers[at..at + self.answer_len]);
        true
    }

    /// Keeps an answer.
    pub(crate) fn insert(&self, key: Key, policy: &[f32], wdl: &[f32]) {
        let mut shard = self.shards[key.shard()].lock().unwrap_or_else(PoisonError::into_inner);
        let set = key.set(shard.next.len());
        let first = set * WAYS;
        let way = match shard.keys[first..first + WAYS].iter().position(|&kept| kept == key.0) {
            // Another thread asked at the same time.
            Some(way) => way,
            None => {
                let way = usize::from(shard.next[set]);
                shard.next[set] = ((way + 1) % WAYS) as u8;
                way
            }
        };
        shard.keys[first + way] = key.0;
        let at = (first + way) * self.answer_len;
        let (kept_policy, kept_wdl) = shard.answers[at..at + self.answer_len].split_at_mut(policy.len());
        kept_policy.copy_from_slice(policy);
        kept_wdl.copy_from_slice(wdl);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTIONS: usize = 5;

    fn key(model: u8, position: u32) -> Key {
        Key::of(ModelId([model; 32]), &position.to_le_bytes(), 0)
    }

    fn insert(cache: &EvaluationCache, key: Key, number: f32) {
        cache.insert(key, &[number; ACTIONS], &[-number; 3]);
    }

    fn get(cache: &EvaluationCache, key: Key) -> Option<[f32; ACTIONS + 3]> {
        let mut answer = [0.0; ACTIONS + 3];
        cache.get(key, &mut answer).then_some(answer)
    }

    #[test]
    fn an_answer_belongs_to_its_network_its_planes_and_its_symmetry() {
        let cache = EvaluationCache::new(1 << 20, ACTIONS).unwrap();
        assert_eq!(get(&cache, key(1, 7)), None);
        insert(&cache, key(1, 7), 2.5);
        assert_eq!(
            get(&cache, key(1, 7)),
            Some([2.5, 2.5, 2.5, 2.5, 2.5, -2.5, -2.5, -2.5])
        );
        assert_eq!((get(&cache, key(2, 7)), get(&cache, key(1, 8))), (None, None));
        let mirrored = Key::of(ModelId([1; 32]), &7u32.to_le_bytes(), 1);
        assert_eq!(get(&cache, mirrored), None);
        insert(&cache, key(1, 7), 3.5);
        assert_eq!(get(&cache, key(1, 7)).unwrap()[0], 3.5);
    }

    #[test]
    fn the_oldest_makes_room_and_the_bound_holds() {
        let set_bytes = WAYS * ((ACTIONS + 3) * 4 + 16) + 1;
        assert!(EvaluationCache::new(SHARDS * set_bytes - 1, ACTIONS).is_none());
        let cache = EvaluationCache::new(SHARDS * set_bytes, ACTIONS).unwrap();
        assert_eq!(cache.capacity(), SHARDS * WAYS);
        // One set a lock: these share one.
        let mut together = (0..).map(|position| key(1, position)).filter(|key| key.shard() == 9);
        let keys: Vec<Key> = together.by_ref().take(WAYS + 1).collect();
        for (number, &key) in keys.iter().enumerate() {
            insert(&cache, key, number as f32);
        }
        assert_eq!(get(&cache, keys[0]), None);
        for (number, &key) in keys.iter().enumerate().skip(1) {
            assert_eq!(get(&cache, key).unwrap()[0], number as f32);
        }
    }

    #[test]
    fn answers_of_a_network_that_is_played_no_more_make_room_within_two_fillings() {
        let cache = EvaluationCache::new(1 << 18, ACTIONS).unwrap();
        let places = cache.capacity() as u32;
        let old = 0..3 * places;
        let left = || {
            let found = old.clone().filter(|&position| get(&cache, key(1, position)).is_some());
            found.count() as f64 / f64::from(places)
        };
        old.clone().for_each(|position| insert(&cache, key(1, position), 1.0));
        assert!(left() > 0.99, "{}", left());
        let fill = |positions: std::ops::Range<u32>| {
            positions.for_each(|position| insert(&cache, key(2, position), 2.0));
        };
        fill(0..places);
        assert!((0.17..0.22).contains(&left()), "{}", left());
        fill(places..2 * places);
        assert!((0.005..0.025).contains(&left()), "{}", left());
    }

    #[test]
    fn threads_read_whole_answers_or_none() {
        let cache = EvaluationCache::new(1 << 16, ACTIONS).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let cache = &cache;
                scope.spawn(move || {
                    for round in 0..20_000u32 {
                        let position = (round * 7 + thread) % 3_000;
                        insert(cache, key(1, position), position as f32);
                        if let Some(answer) = get(cache, key(1, position)) {
                            let number = position as f32;
                            assert_eq!(
                                answer,
                                [number, number, number, number, number, -number, -number, -number]
                            );
                        }
                    }
                });
            }
        });
    }
}
