//! How long fault tests are: short in `make test`, long in `make faults`.

/// The short count, or the long one when the variable `FAULTS` is `long`.
pub fn scaled(short: usize, long: usize) -> usize {
    let asked = std::env::var_os("FAULTS");
    if asked.is_some_and(|value| value == "long") {
        long
    } else {
        short
    }
}
