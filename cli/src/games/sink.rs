//! Where exported games go: one file of many games, a file a game, or standard output.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tengen_service::files::{write_atomic, write_atomic_with};

/// Takes the games of one export in their order.
pub(super) trait Sink {
    /// Takes one game: its bytes in the format, and its id.
    fn take(&mut self, id: &str, bytes: &[u8]) -> anyhow::Result<()>;

    /// Ends the export: what was written is whole and durable. Says where it is.
    fn finish(self: Box<Self>) -> anyhow::Result<String>;
}

/// Standard output.
pub(super) struct Stdout;

impl Sink for Stdout {
    fn take(&mut self, _id: &str, bytes: &[u8]) -> anyhow::Result<()> {
        io::stdout().write_all(bytes).context("failed to write")
    }

    fn finish(self: Box<Self>) -> anyhow::Result<String> {
        io::stdout().flush().context("failed to write")?;
        Ok("standard output".to_owned())
    }
}

/// One file, which appears when it is whole.
pub(super) struct OneFile {
    path: PathBuf,
    gathered: File,
}

impl OneFile {
    pub(super) fn new(path: &Path) -> anyhow::Result<OneFile> {
        Ok(OneFile {
            path: path.to_path_buf(),
            gathered: tempfile::tempfile().context("failed to make a temporary file")?,
        })
    }
}

impl Sink for OneFile {
    fn take(&mut self, _id: &str, bytes: &[u8]) -> anyhow::Result<()> {
        self.gathered
            .write_all(bytes)
            .context("failed to write a temporary file")
    }

    fn finish(mut self: Box<Self>) -> anyhow::Result<String> {
        self.gathered.rewind()?;
        write_atomic_with(&self.path, |file| io::copy(&mut self.gathered, file).map(drop))?;
        Ok(self.path.display().to_string())
    }
}

/// A file a game in one folder, named by the games' ids.
pub(super) struct Folder {
    path: PathBuf,
    ending: &'static str,
}

impl Folder {
    pub(super) fn new(path: &Path, ending: &'static str) -> Folder {
        Folder {
            path: path.to_path_buf(),
            ending,
        }
    }
}

impl Sink for Folder {
    fn take(&mut self, id: &str, bytes: &[u8]) -> anyhow::Result<()> {
        Ok(write_atomic(&self.path.join(format!("{id}.{}", self.ending)), bytes)?)
    }

    fn finish(self: Box<Self>) -> anyhow::Result<String> {
        Ok(self.path.display().to_string())
    }
}
