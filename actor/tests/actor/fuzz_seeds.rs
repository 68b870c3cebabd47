//! The kept inputs of the fuzz target `spool_recovery`: they keep every promise, and are what is written today.

use std::path::Path;

use tengen_actor::spool::testing::{judge, seeds};

#[test]
fn every_kept_segment_keeps_every_promise() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds/spool_recovery");
    let mut games = Vec::new();
    for (name, input) in seeds() {
        // Otherwise the format has changed: cargo run -p tengen-actor --example fuzz_seeds
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
