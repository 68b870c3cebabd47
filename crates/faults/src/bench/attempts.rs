//! Measurements one after the other, of which one that fails does not keep the others from being made.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Names what failed.
#[derive(Debug, Default)]
pub struct Attempts(Vec<String>);

impl Attempts {
    /// Makes one measurement; says why when it fails, also by a panic.
    pub fn make<E: fmt::Display>(&mut self, name: &str, measure: impl FnOnce() -> Result<(), E>) {
        match catch_unwind(AssertUnwindSafe(measure)) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => eprintln!("{name} FAILED: {error:#}"),
            // The panic itself has said what it is.
            Err(_) => eprintln!("{name} FAILED: it panicked"),
        }
        self.0.push(name.to_owned());
    }

    /// The end of a bench.
    ///
    /// # Errors
    /// When anything was not measured; names it.
    pub fn end(self) -> io::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(io::Error::other(format!("not measured: {}", self.0.join(", "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_or_panics_is_named_at_the_end_and_the_rest_is_made() {
        let mut attempts = Attempts::default();
        let mut made = 0;
        attempts.make("first", || Err("it does not start"));
        attempts.make("second", || -> Result<(), String> { panic!("it ended") });
        attempts.make("third", || {
            made += 1;
            Ok::<(), String>(())
        });
        assert_eq!(made, 1);
        assert_eq!(attempts.end().unwrap_err().to_string(), "not measured: first, second");
        assert!(Attempts::default().end().is_ok());
    }
}
