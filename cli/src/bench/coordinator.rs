//! A coordinator process for a measurement: on a new folder and a free port of loopback, gone when it is dropped.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;
use tengen_proto::v1::GetStatusRequest;
use tengen_service::channel::{self, Channel};
use tengen_service::credentials::Credentials;
use tokio::process::{Child, Command};

use crate::client::runs;
use crate::programs;

/// Time between two looks for its address.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Ticks of the kernel's accounts a second, the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;
/// Connections beside those of the actors.
const CONNECTIONS_SPARE: u32 = 16;
/// Files that a process has open beside its connections, with room to spare.
const FILES_BESIDE: u64 = 256;

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
    /// Starts it for this run, with its folder in `parent`, for so many actors, each of which has a connection of its own and all
    /// of which come from one address.
    pub(super) async fn start(
        run_toml: &str,
        parent: &Path,
        redis: Option<&str>,
        actors: u32,
    ) -> anyhow::Result<Coordinator> {
        let connections = actors + CONNECTIONS_SPARE;
        allow_connections(connections)?;
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
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id()?))?;
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

    /// Stored games that are not in the window yet.
    pub(super) async fn window_lag_games(&self) -> anyhow::Result<u64> {
        let status = runs(self.channel()?).get_status(GetStatusRequest {}).await?;
        Ok(status.into_inner().window_lag_games)
    }

    /// Has [`Coordinator::peak_bytes`] begin anew.
    pub(super) fn forget_peak(&self) -> anyhow::Result<()> {
        let path = format!("/proc/{}/clear_refs", self.id()?);
        let asked = std::fs::OpenOptions::new().write(true).open(path);
        // 5 is the word for this (proc(5)).
        asked
            .and_then(|mut file| file.write_all(b"5"))
            .context("the kernel does not let the peak of the memory be forgotten")
    }

    /// The most memory that it has held since the peak was forgotten, bytes.
    pub(super) fn peak_bytes(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()?))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        Ok(kibibytes.context("no peak of the memory is told")? << 10)
    }

    fn id(&self) -> anyhow::Result<u32> {
        self.process.id().context("the coordinator has ended")
    }

    /// Drains it.
    pub(super) async fn end(mut self) -> anyhow::Result<()> {
        drop(self.process.stdin.take());
        let status = self.process.wait().await?;
        ensure!(status.success(), "the coordinator did not drain: {status}");
        Ok(self.folder.close()?)
    }
}

/// A run that does not end while it is measured, with a network of this shape.
pub(super) fn run_file(game: &str, blocks: usize, channels: usize) -> String {
    format!(
        r#"
[run]
name = "bench"
game = "{game}"
[network]
blocks = {blocks}
channels = {channels}
value_channels = 4
value_hidden = 4
[[schedule]]
from_iteration = 0
games = 10000000
simulations = 32
[gate]
kind = "none"
[learner]
steps_behind_max = 1000000000
"#
    )
}

/// Lets this process, and those that it starts, hold so many connections: many systems let a process open 1,024 files unless it
/// asks for more.
fn allow_connections(connections: u32) -> anyhow::Result<()> {
    let wanted = u64::from(connections) + FILES_BESIDE;
    let limit = getrlimit(Resource::Nofile);
    // Without a number there is no limit.
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let most = limit.maximum.unwrap_or(u64::MAX);
    ensure!(
        most >= wanted,
        "{connections} connections take {wanted} open files, and this system lets a process have {most}: raise its hard limit \
         (`ulimit -Hn`), or measure fewer actors"
    );
    let raised = Rlimit {
        current: Some(wanted),
        ..limit
    };
    setrlimit(Resource::Nofile, raised).context("failed to raise the limit on open files")
}
