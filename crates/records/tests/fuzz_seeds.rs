//! The kept inputs of the fuzz target: honest records, accepted as they are.

use std::path::Path;

use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_records::testing::fuzz::{Judged, Ring};

#[test]
fn every_kept_input_is_an_accepted_record() {
    let ring = Ring::new::<Xoshiro256PlusPlus>();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/record_decode_check");
    let seeds = ring.seeds::<Xoshiro256PlusPlus>();
    for (name, input) in &seeds {
        let kept = std::fs::read(folder.join(name)).expect("a kept input");
        assert_eq!(ring.judge(&kept), Judged::Accepted, "{name}");
        // Otherwise rules or schema have changed: cargo run -p tengen-records --example fuzz_seeds
        assert!(kept == *input, "{name} is not what is written today");
    }
    assert_eq!(std::fs::read_dir(folder).expect("a folder").count(), seeds.len());
    for (input, judged) in [(&[][..], Judged::Unreadable), (&[0, 1, 2], Judged::Unreadable)] {
        assert_eq!(ring.judge(input), judged);
    }
    let mut spoilt = seeds[0].1.clone();
    *spoilt.last_mut().expect("bytes") ^= 1;
    spoilt[0] = 1;
    assert_eq!(ring.judge(&spoilt), Judged::Rejected, "another game's lease");
}
