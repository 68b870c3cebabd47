//! A coordinator process for a measurement: on a new folder and a free port of loopback, gone when it is dropped.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use tempfile::TempDir;
use tengen_service::channel::{self, Channel};
use tengen_service::credentials::Credentials;
use tokio::process::{Child, Command};

use crate::programs;

/// Time between two looks for its address.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Ticks of the kernel's accounts a second, the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// The process.
pub(super) struct Coordinator {
    process: Child,
    url: String,
    folder: TempDir,
}

/// What it has taken of the machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    /// Time that it has computed, seconds.
    pub(super) cpu_seconds: f64,
    /// Memory that it holds, bytes.
    pub(super) resident_bytes: u64,
}

impl Coordinator {
    /// Starts it for this run, with its folder in `parent`, for so many connections, all of which come from one address.
    pub(super) async fn start(
        run_toml: &str,
        parent: &Path,
        redis: Option<&str>,
        connections: u32,
    ) -> anyhow::Result<Coordinator> {
        let folder = tempfile::tempdir_in(parent).with_context(|| format!("no folder in {}", parent.display()))?;
        let run = folder.path().join("run.toml");
        tengen_service::files::write_atomic(&run, run_toml.as_bytes())?;
        let address = folder.path().join("address");
        let mut command = Command::new(programs::find("tengen-coordinator")?);
        command
            .arg("--run")
            .arg(&run)
            .arg("--data")
            .arg(folder.path().join("data"))
            .args(["--listen", "127.0.0.1:0", "--log", "error", "--exit-with-parent"])
            .arg("--addr-file")
            .arg(&address)
            // No network is behind the games.
            .env("TENGEN_COORDINATOR__AUDIT__SHARE", "0")
            .env("TENGEN_COORDINATOR__LIMITS__CONNECTIONS_MAX", connections.to_string())
            .env(
                "TENGEN_COORDINATOR__LIMITS__CONNECTIONS_PER_ADDRESS_MAX",
                connections.to_string(),
            )
            .stdin(Stdio::piped())
            .kill_on_drop(true);
        if let Some(redis) = redis {
            command.env("TENGEN_COORDINATOR__REPLAY", redis);
        }
        let mut process = command.spawn().context("failed to start the coordinator")?;
        let url = loop {
            if let Ok(address) = std::fs::read_to_string(&address) {
                break format!("http://{}", address.trim());
            }
            if let Some(status) = process.try_wait()? {
                bail!("the coordinator ended before it served: {status}");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        };
        Ok(Coordinator { process, url, folder })
    }

    /// A connection of its own for somebody.
    pub(super) fn channel(&self) -> anyhow::Result<Channel> {
        Ok(channel::connect(&self.url, &Credentials::default())?)
    }

    /// What it has taken so far.
    pub(super) fn taken(&self) -> anyhow::Result<Taken> {
        let id = self.process.id().context("the coordinator has ended")?;
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
        // The name, in brackets, may hold anything; behind it come the state and then numbers.
        let (_, numbers) = stat
            .rsplit_once(')')
            .context("the kernel tells nothing of the coordinator")?;
        let numbers: Vec<&str> = numbers.split_whitespace().collect();
        let number = |at: usize| numbers.get(at).and_then(|number| number.parse::<f64>().ok());
        let (user, system) = (number(11), number(12));
        let pages: u64 = numbers
            .get(21)
            .and_then(|pages| pages.parse().ok())
            .context("no memory is told")?;
        Ok(Taken {
            cpu_seconds: (user.context("no time is told")? + system.context("no time is told")?) / TICKS_PER_SECOND,
            resident_bytes: pages * rustix::param::page_size() as u64,
        })
    }

    /// Drains it.
    pub(super) async fn end(mut self) -> anyhow::Result<()> {
        drop(self.process.stdin.take());
        let status = self.process.wait().await?;
        anyhow::ensure!(status.success(), "the coordinator did not drain: {status}");
        Ok(self.folder.close()?)
    }
}
