//! No bytes make reading a file of this format panic, and what is read is a game by its rules.

#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use tengen_records::exchange::Format;
use tengen_records::testing::exchange::Readers;

thread_local! {
    static READERS: RefCell<Readers> = RefCell::new(Readers::new(Format::Psq));
}

fuzz_target!(|input: &[u8]| {
    READERS.with_borrow_mut(|readers| {
        let _ = readers.judge(input);
    });
});
