//! One strong 64-bit mixing function for position hashes. Not for untrusted keys, and the same on every platform.

/// Odd constants with well spread bits (the fractional digits of pi, as in wyhash).
const KEY: u64 = 0x243f_6a88_85a3_08d3;
const STEP: u64 = 0x1319_8a2e_0370_7344;

/// Folds words into one hash, order dependent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mixer(u64);

impl Mixer {
    /// A mixer whose results differ from those of other tags.
    pub(crate) const fn new(tag: u64) -> Mixer {
        Mixer(KEY ^ tag)
    }

    /// Adds one word.
    #[must_use]
    pub(crate) const fn with(self, word: u64) -> Mixer {
        let wide = ((self.0 ^ word) as u128).wrapping_mul((STEP ^ word.rotate_left(32)) as u128 | 1);
        Mixer((wide as u64 ^ (wide >> 64) as u64).wrapping_add(KEY))
    }

    /// The hash of everything added.
    pub(crate) const fn finish(self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 29)
    }
}
