//! The house's other programs, which lie beside this one.

use std::path::PathBuf;

use anyhow::{Context, bail};

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
