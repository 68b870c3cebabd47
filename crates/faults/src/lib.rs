//! What the proofs under faults share: how long they are ([`scaled`]), the row that each writes about itself ([`Proof`]), and
//! the list of those that there must be ([`wanted::WANTED`]). Benches are apart ([`mod@bench`]).
//!
//! For tests and benches only: no program depends on this crate. It makes no faults and knows nothing of Tengen, so that the
//! tests of every part can write their rows the same way. `make faults` names the folder for them and has the example `results`
//! make one file of it; without a folder nothing is written.

pub mod bench;
mod machine;
pub mod results;
mod row;
pub mod wanted;

pub use row::{Proof, Row, Verdict};

/// The short count of `make test`, or the long one of `make faults`, which sets the variable `FAULTS` to `long`.
pub fn scaled(short: usize, long: usize) -> usize {
    let asked = std::env::var_os("FAULTS");
    if asked.is_some_and(|value| value == "long") {
        long
    } else {
        short
    }
}
