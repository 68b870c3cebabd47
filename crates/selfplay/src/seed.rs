//! Where a game's randomness comes from: its own generator, seeded by lease and index alone.

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

pub use tengen_records::game_seed;

/// The generator of the game with this seed (of [`game_seed`]).
pub fn game_rng(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// SplitMix64's finaliser (Steele, Lea, Flood 2014, constants of Stafford's Mix13): spreads every input bit over the
/// output.
pub(crate) fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}
