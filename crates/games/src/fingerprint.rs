//! Fingerprints of rules and features, by which records, runs and models of another game are refused.
//!
//! The rules fingerprint looks at behaviour, not at source: counts of action sequences, and seeded random games played
//! to their end, because a perft alone never sees a win test. Both are the same on every machine.

use std::fmt;

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::game::{Game, State};
use crate::params;
use crate::perft::perft_within;
use crate::random;
use crate::spec::{ActionBlock, OpeningRule};

/// Version of what goes into a fingerprint. A change of it changes every fingerprint.
const RULES_TAG: &[u8] = b"tengen rules 1\n";
const FEATURES_TAG: &[u8] = b"tengen features 1\n";
const PERFT_DEPTH_MAX: u32 = 3;
const PERFT_COUNT_MAX: u64 = 100_000;
const GAMES_MAX: u32 = 256;
const PLIES_MAX: usize = 20_000;
/// Plies whose planes go into the feature fingerprint, and how many of them are left out between two.
const FEATURE_PLIES_MAX: usize = 2_000;
const FEATURE_PLIES_STEP: usize = 5;
const SEED: u64 = 0x7465_6e67_656e;

/// 32 bytes that identify rules, or rules and features. The text form is 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

/// A text that is no fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no fingerprint: expected 64 hexadecimal digits")]
pub struct ParseFingerprintError {
    /// The text as given.
    pub text: String,
}

impl Fingerprint {
    /// Reads the 64 hexadecimal digits that `Display` writes.
    pub fn parse(text: &str) -> Result<Fingerprint, ParseFingerprintError> {
        let mut bytes = [0; 32];
        match hex::decode_to_slice(text, &mut bytes) {
            Ok(()) => Ok(Fingerprint(bytes)),
            Err(_) => Err(ParseFingerprintError { text: text.to_owned() }),
        }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// The fingerprint of the rules of `game`: id with parameters (less those that change only the planes), board, opening, action layout, perft to depth 3 or
/// 100,000 sequences, and up to 256 random games or 20,000 plies.
pub fn rules_fingerprint<G: Game>(game: &G) -> Fingerprint {
    let mut digest = Digest::new(RULES_TAG);
    let spec = game.spec();
    digest.text(&params::rules_id(&spec.id));
    digest.number(spec.rows as u64);
    digest.number(spec.cols as u64);
    digest.number(spec.plies_max as u64);
    digest.text(match spec.opening {
        OpeningRule::None => "none",
        OpeningRule::Swap2 => "swap2",
    });
    digest.number(spec.actions.blocks().len() as u64);
    for &block in spec.actions.blocks() {
        let (name, count) = match block {
            ActionBlock::Cells { planes } => ("cells", planes),
            ActionBlock::Columns => ("columns", 1),
            ActionBlock::Triangle => ("triangle", 1),
            ActionBlock::Global { count } => ("global", count),
        };
        digest.text(name);
        digest.number(count as u64);
    }
    for depth in 1..=PERFT_DEPTH_MAX {
        let Some(count) = perft_within(game, depth, PERFT_COUNT_MAX) else {
            break;
        };
        digest.number(count);
    }
    random_games(game, &mut digest, PLIES_MAX, |_| {});
    digest.finish()
}

/// The fingerprint of the rules and of the feature planes: their names, scales and contents on random positions.
pub fn feature_fingerprint<G: Game>(game: &G) -> Fingerprint {
    let mut digest = Digest::new(FEATURES_TAG);
    digest.bytes(&rules_fingerprint(game).0);
    digest.number(game.spec().planes.len() as u64);
    for plane in &game.spec().planes {
        digest.text(plane.name);
        digest.number(u64::from(plane.scale.to_bits()));
    }
    let mut planes = vec![0; game.spec().planes_len()];
    let mut plies = 0_usize;
    random_games(game, &mut Digest::new(FEATURES_TAG), FEATURE_PLIES_MAX, |state| {
        if plies.is_multiple_of(FEATURE_PLIES_STEP) {
            state.planes(&mut planes);
            digest.bytes(&planes);
        }
        plies += 1;
    });
    digest.finish()
}

/// Plays the seeded games, up to `plies_max` plies in all, and shows every position before it is played on.
fn random_games<G: Game>(game: &G, digest: &mut Digest, plies_max: usize, mut each: impl FnMut(&G::State)) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut legal = Vec::new();
    let mut plies = 0;
    for _ in 0..GAMES_MAX {
        let mut state = game.start();
        state.legal(&mut legal);
        while !legal.is_empty() && plies < plies_max {
            each(&state);
            let action = legal[random::below(&mut rng, legal.len())];
            digest.number(legal.len() as u64);
            digest.number(action.index() as u64);
            digest.number(state.seat().index() as u64);
            // A legal action cannot fail; were it to, the conformance suite says so. Here the game would just end.
            if state.apply(action).is_err() {
                break;
            }
            plies += 1;
            state.legal(&mut legal);
        }
        match state.outcome() {
            Some(outcome) => {
                digest.number(outcome.winner.map_or(2, |seat| seat.index() as u64));
                digest.text(outcome.reason.as_str());
            }
            None => digest.text("cut"),
        }
        if plies >= plies_max {
            break;
        }
    }
}

/// A hasher in which every item is delimited, so that no two lists of items look alike.
struct Digest(blake3::Hasher);

impl Digest {
    fn new(tag: &[u8]) -> Digest {
        let mut hasher = blake3::Hasher::new();
        hasher.update(tag);
        Digest(hasher)
    }

    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn finish(self) -> Fingerprint {
        Fingerprint(self.0.finalize().into())
    }
}
