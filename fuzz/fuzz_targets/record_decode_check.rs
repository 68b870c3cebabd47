//! No bytes make decoding or the check panic, and what the check accepts keeps every promise of a record.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_records::testing::fuzz::Ring;

static RING: LazyLock<Ring> = LazyLock::new(Ring::new::<Xoshiro256PlusPlus>);

fuzz_target!(|input: &[u8]| {
    let _ = RING.judge(input);
});
