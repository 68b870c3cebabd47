//! The house's other programs, which lie beside this one.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};
use tengen_service::args::LogArgs;

/// Where the program `name` is.
pub(crate) fn find(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("failed to find this program's own path")?;
    let program = own.parent().context("this program has no folder")?.join(name);
    if !program.exists() {
        bail!(
            "{} is missing: build the whole workspace (`make build`)",
            program.display()
        );
    }
    Ok(program)
}

/// Becomes another program of the house, with this subcommand, its words, and what was said about the log before it.
pub(crate) fn become_program(name: &str, subcommand: &str, words: &[OsString], log: &LogArgs) -> anyhow::Result<()> {
    let program = find(name)?;
    let log = log.to_arguments_before(words);
    // Only a failure to start comes back: signals and the exit status are those of the command itself.
    let failed = Command::new(&program).arg(subcommand).args(log).args(words).exec();
    Err(failed).with_context(|| format!("failed to start {}", program.display()))
}
