//! What recovery promises about any bytes, for tests and for the fuzz target `spool_recovery` (folder `fuzz/`), whose kept
//! inputs ordinary tests run too.

use super::frame::{HEADER_BYTES, Recovery, header, recover};

/// Recovers the games of a segment and holds the result against every promise.
///
/// # Panics
/// When one is broken.
pub fn judge(bytes: &[u8]) -> Recovery {
    let found = recover(bytes);
    let frames: Vec<_> = found
        .games
        .iter()
        .map(|game| game.start - HEADER_BYTES..game.end)
        .collect();
    let torn = found.torn.clone();
    // Nothing is left out, and nothing is counted twice.
    let mut parts = [
        frames.clone(),
        found.damaged.clone(),
        torn.clone().into_iter().collect(),
    ]
    .concat();
    parts.sort_by_key(|part| part.start);
    let mut at = 0;
    for part in &parts {
        assert!(part.start == at && part.end > at, "{part:?} does not follow {at}");
        at = part.end;
    }
    assert_eq!(at, bytes.len(), "the end is not accounted for");
    // A game is what was framed, to the last bit.
    for (frame, game) in frames.iter().zip(&found.games) {
        assert_eq!(bytes[frame.start..game.start], header(&bytes[game.clone()]), "{game:?}");
    }
    // Only the end can be torn, and without it the rest is what it was: a second crash finds what the first one left.
    let kept = torn.map_or(bytes.len(), |torn| {
        assert_eq!(torn.end, bytes.len(), "{torn:?} is not the end");
        torn.start
    });
    let again = recover(&bytes[..kept]);
    assert_eq!(
        (&again.games, &again.damaged, &again.torn),
        (&found.games, &found.damaged, &None)
    );
    // The frames alone are a segment without damage.
    let alone: Vec<u8> = frames.iter().flat_map(|frame| &bytes[frame.clone()]).copied().collect();
    let alone = recover(&alone);
    assert_eq!(
        (alone.games.len(), alone.damaged.len(), alone.torn),
        (frames.len(), 0, None)
    );
    found
}

/// Inputs to begin from, with their names: segments as they are written, and as crashes and disks leave them.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let frame = |game: &[u8]| [header(game).as_slice(), game].concat();
    let three = [frame(b"the first game"), frame(b""), frame(&[0x5a; 100])].concat();
    let cut = |len: usize| three[..three.len() - len].to_vec();
    let with = |tail: &[u8]| [three.as_slice(), tail].concat();
    let mut flipped = three.clone();
    flipped[HEADER_BYTES + 3] ^= 1;
    let mut long = three.clone();
    long[5] ^= 0x80;
    // A game that holds a frame, and one whose frame is cut short and followed by another.
    let sly = [frame(&frame(b"inside")), frame(b"outside")].concat();
    vec![
        ("damaged-game", flipped),
        ("damaged-length", long),
        ("empty", Vec::new()),
        ("frame-in-a-game", sly),
        ("torn-game", cut(7)),
        ("torn-header", cut(100 + 5)),
        ("torn-then-more", [cut(3), frame(b"after a crash")].concat()),
        ("whole", three.clone()),
        ("zeros-behind", with(&[0; 40])),
    ]
}
