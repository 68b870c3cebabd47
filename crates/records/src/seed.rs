//! Where a game's seed comes from.

/// The seed of the game with this `index` under a lease with this `lease_seed`.
///
/// It is the first eight bytes, little endian, of BLAKE3 over the ASCII text `tengen/v1/game-seed`, the lease's seed
/// (8 bytes, little endian) and the index (4 bytes, little endian). A game's random choices therefore depend on its
/// lease and index alone, not on the machine, the thread or the order in which games finish, and neighbouring indexes
/// share nothing. Part of the record's contract: the check recomputes it, so it never changes within a schema version.
pub fn game_seed(lease_seed: u64, index: u32) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"tengen/v1/game-seed");
    hasher.update(&lease_seed.to_le_bytes());
    hasher.update(&index.to_le_bytes());
    let mut first = [0; 8];
    hasher.finalize_xof().fill(&mut first);
    u64::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_pinned_and_distinct() {
        assert_eq!(
            (game_seed(0, 0), game_seed(7, 41)),
            (17_262_144_017_225_749_346, 6_127_041_427_536_022_869)
        );
        let mut seeds: Vec<u64> = (0..1000).map(|index| game_seed(1, index)).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 1000);
    }
}
