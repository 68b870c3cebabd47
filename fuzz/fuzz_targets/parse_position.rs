//! No text makes reading a position panic, and what is read says the same when it is written and read again.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tengen_records::testing::texts::{Text, Texts};

static TEXTS: LazyLock<Texts> = LazyLock::new(|| Texts::new(Text::Position));

fuzz_target!(|input: &[u8]| {
    let _ = TEXTS.judge(input);
});
