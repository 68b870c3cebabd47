//! A run at rest: read through a coordinator of our own that only reads and ends with this command.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;
use tempfile::TempDir;
use tengen_service::credentials::{ConnectArgs, Credentials};
use tengen_service::health;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::time::Instant;

use crate::client::{ADDRESS_FILE, read_address};
use crate::programs;

/// How long it may take to serve. It rebuilds nothing.
const START_MAX: Duration = Duration::from_secs(60);

/// The reading coordinator; it ends when this is dropped, because its standard input closes.
#[derive(Debug)]
pub(crate) struct Reader {
    _process: Child,
    _folder: TempDir,
}

impl Reader {
    /// Starts reading the run in `data`; returns the address that serves it.
    pub(crate) async fn start(data: &Path) -> anyhow::Result<(String, Reader)> {
        let folder = tempfile::tempdir()?;
        let mut process = Command::new(programs::find("tengen-coordinator")?)
            .args([
                "--read-only",
                "--exit-with-parent",
                "--log",
                "error",
                "--log-format",
                "json",
                "--listen",
                "127.0.0.1:0",
            ])
            .arg("--data")
            .arg(data)
            .arg("--addr-file")
            .arg(folder.path().join(ADDRESS_FILE))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .context("failed to start tengen-coordinator")?;
        let give_up = Instant::now() + START_MAX;
        let mut looks = tokio::time::interval(Duration::from_millis(10));
        // Held apart: waiting for a process closes a standard input that it still owns.
        let lifeline = process.stdin.take();
        loop {
            tokio::select! {
                ended = process.wait() => {
                    let _ = ended.context("failed to wait for tengen-coordinator")?;
                    bail!("{}", last_words(&mut process).await);
                }
                _ = looks.tick() => {}
            }
            if let Ok(url) = read_address(folder.path(), &ConnectArgs::default())
                && health::probe(&url, &Credentials::default()).await.is_ok()
            {
                process.stdin = lifeline;
                return Ok((
                    url,
                    Reader {
                        _process: process,
                        _folder: folder,
                    },
                ));
            }
            if Instant::now() > give_up {
                bail!("the run in {} could not be read within {START_MAX:?}", data.display());
            }
        }
    }
}

/// Why it ended: the error of its last event, or else whatever it said.
async fn last_words(process: &mut Child) -> String {
    let mut words = String::new();
    if let Some(stderr) = &mut process.stderr {
        // Without its words the status alone must do.
        let _ = stderr.read_to_string(&mut words).await;
    }
    let mut events = words
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let fatal = events.rfind(|event| event["fields"]["fatal"] == true);
    let error = fatal.and_then(|event| event["fields"]["error"].as_str().map(str::to_owned));
    error.unwrap_or_else(|| words.trim().to_owned())
}
