//! No bytes make the recovery of a spool's segment panic, lose a whole game, or find one that was not written.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tengen_actor::spool::testing::judge;

fuzz_target!(|segment: &[u8]| {
    let _ = judge(segment);
});
