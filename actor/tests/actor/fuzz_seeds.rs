//! The kept inputs of the fuzz target `spool_recovery`: they keep every promise, as do pieces of them put together, and
//! are what is written today.

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use tengen_actor::spool::testing::{judge, seeds};

#[test]
fn every_kept_segment_keeps_every_promise() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds/spool_recovery");
    let mut games = Vec::new();
    for (name, input) in seeds() {
        // Otherwise the format has changed: cargo run -p tengen-actor --example spool_fuzz_seeds
        assert!(std::fs::read(folder.join(name)).unwrap() == input, "{name}");
        let found = judge(&input);
        games.push((name, found.games.len(), found.damaged.len(), found.torn.is_some()));
    }
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), games.len());
    let expected = [
        ("damaged-game", 2, 1, false),
        ("damaged-length", 2, 1, false),
        ("empty", 0, 0, false),
        ("frame-in-a-game", 2, 0, false),
        ("torn-game", 2, 0, true),
        ("torn-header", 2, 0, true),
        ("torn-then-more", 3, 1, false),
        ("whole", 3, 0, false),
        ("zeros-behind", 3, 0, true),
    ];
    assert_eq!(games, expected);
}

proptest! {
    #[test]
    fn spliced_and_damaged_segments_keep_every_promise(
        pieces in vec((any::<Index>(), any::<Index>(), any::<Index>()), 1..6),
        noise in vec(any::<u8>(), 0..60),
        flips in vec((any::<Index>(), 1..=255_u8), 0..3),
    ) {
        let kept = seeds();
        let mut bytes = noise;
        for (which, begin, len) in pieces {
            let piece = &which.get(&kept).1;
            let begin = begin.index(piece.len() + 1);
            let end = begin + len.index(piece.len() - begin + 1);
            bytes.extend_from_slice(&piece[begin..end]);
        }
        for (place, flip) in flips {
            let place = place.index(bytes.len() + 1);
            if let Some(byte) = bytes.get_mut(place) {
                *byte ^= flip;
            }
        }
        judge(&bytes);
    }
}
