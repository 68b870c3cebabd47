//! The proofs that there must be, each with what it must have done at full length. `docs/reliability.md` tells what they
//! are.

/// A proof that must have its row.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Its name.
    pub proof: &'static str,
    /// Counts of its row, and how high each must at least be.
    pub least: &'static [(&'static str, u64)],
}

const fn wanted(proof: &'static str, least: &'static [(&'static str, u64)]) -> Wanted {
    Wanted { proof, least }
}

/// All of them, in the order of `docs/reliability.md`.
#[rustfmt::skip] // one row a proof
pub const WANTED: &[Wanted] = &[
    wanted("coordinator-killed", &[("kills", 600)]),
    wanted("coordinator-power-cut", &[("cuts", 2_500)]),
    wanted("actor-power-cut", &[("cuts", 1_000)]),
    wanted("learner-power-cut", &[("cuts", 1_000)]),
    wanted("processes-killed-in-turn", &[("kills", 4), ("promotions", 1)]),
    wanted("learner-killed", &[("kills", 100)]),
    wanted("actor-killed", &[("kills", 6)]),
    wanted("actor-killed-before-verdict", &[("kills", 20)]),
    wanted("network-bad", &[("kinds", 4), ("seconds_each", 60)]),
    wanted("network-delivers-twice", &[("deliveries", 30)]),
    wanted("actors-return-at-once", &[("actors", 200)]),
    wanted("redis-faults", &[("kills", 20), ("freezes", 20), ("wipes", 20), ("out_of_memory", 5)]),
    wanted("coordinator-disk-full", &[("acknowledged_games", 4)]),
    wanted("actor-disk-full", &[("kept_games", 20)]),
    wanted("learner-disk-full", &[("candidates", 2)]),
    wanted("honest-actor-keeps-its-rate", &[("attacks", 3), ("connections", 200)]),
    wanted("memory-flat-under-attack", &[("rounds", 10), ("connections", 200)]),
    wanted("decompression-bombs", &[("bombs", 1)]),
    wanted("records-spoilt-in-process", &[("mutations", 1_000_000), ("records_cut", 1_000), ("honest_games", 100_000)]),
    wanted("records-spoilt-on-the-wire", &[("mutations", 100_000)]),
    wanted("downloads-flipped", &[("flips", 1_000)]),
    wanted("stored-records-flipped", &[("flips", 10_000)]),
    wanted("two-coordinators", &[]),
    wanted("two-learners", &[("takeovers", 10)]),
];
