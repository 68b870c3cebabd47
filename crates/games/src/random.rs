//! Uniform choice whose results never change with a library version: fingerprints and match openings depend on them.

use rand::Rng;

/// A uniform index below `bound` (at least 1), from one draw; the bias is below 2^-48 for the bounds of board games.
pub(crate) fn below<R: Rng>(rng: &mut R, bound: usize) -> usize {
    ((u128::from(rng.next_u64()) * bound as u128) >> 64) as usize
}

/// Shuffles `items` uniformly (Fisher-Yates).
pub(crate) fn shuffle<T, R: Rng>(items: &mut [T], rng: &mut R) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(rng, last + 1));
    }
}
