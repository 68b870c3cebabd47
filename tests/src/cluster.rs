//! A local cluster started by the real `tengen up`, and what a test does to it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_proto::v1::{GetStatusRequest, RunStatus};
use tengen_service::channel::{self, Channel};
use tengen_service::credentials::Credentials;

/// The program `name` as this workspace built it, for the profile the tests were built with.
pub fn program(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a test knows its own path");
    let folder = own.ancestors().nth(2).expect("a test lies in target/PROFILE/deps");
    let path = folder.join(name);
    assert!(
        path.exists(),
        "{} is missing: run `make test`, or `cargo build --workspace` first",
        path.display()
    );
    path
}

/// The repository's root.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("this crate lies in the repository")
}

/// Runs `tengen` with `args` to its end.
pub fn tengen<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    Command::new(program("tengen"))
        .args(args)
        .current_dir(repository())
        .output()
        .expect("tengen can be started")
}

/// Standard output of a `tengen` command that must succeed.
pub fn tengen_ok<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> String {
    let output = tengen(args);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// A running `tengen up`.
pub struct Up {
    process: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
    url: String,
}

impl Up {
    /// Starts `tengen up` for the run file `run` on the data folder `data`, with more arguments, and waits until its
    /// coordinator serves.
    pub fn start(run: &Path, data: &Path, more: &[&str]) -> Up {
        Up::start_with(run, data, more, &[])
    }

    /// The same with keys of the coordinator's configuration.
    pub fn start_with(run: &Path, data: &Path, more: &[&str], keys: &[(&str, &str)]) -> Up {
        let mut process = Command::new(program("tengen"))
            .arg("up")
            .arg("--run")
            .arg(run)
            .arg("--data")
            .arg(data)
            .args(["--listen", "127.0.0.1:0"])
            .args(more)
            .envs(
                keys.iter()
                    .map(|(key, value)| (format!("TENGEN_COORDINATOR__{key}"), value)),
            )
            .current_dir(repository())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("tengen can be started");
        let output = process.stdout.take().expect("standard output is piped");
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                println!("{line}");
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut up = Up {
            process,
            lines,
            seen: Vec::new(),
            url: String::new(),
        };
        let line = up.wait_for(", coordinator http://");
        up.url = line
            .rsplit(' ')
            .next()
            .expect("the line ends in the address")
            .to_owned();
        up
    }

    /// The coordinator's address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The next line that contains `part`.
    pub fn wait_for(&mut self, part: &str) -> String {
        loop {
            let line = self.lines.recv().unwrap_or_else(|_| {
                panic!(
                    "`tengen up` ended before it said {part:?}; it said\n{}",
                    self.seen.join("\n")
                )
            });
            self.seen.push(line.clone());
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Waits until it ends by itself and returns everything it said.
    pub fn finish(mut self) -> (ExitStatus, Vec<String>) {
        let status = self.process.wait().expect("tengen can be waited for");
        self.seen.extend(self.lines.iter());
        (status, std::mem::take(&mut self.seen))
    }

    /// What Ctrl-C does.
    pub fn interrupt(self) -> (ExitStatus, Vec<String>) {
        signal("INT", self.process.id());
        self.finish()
    }

    /// Process ids of its children by part: `coordinator`, `learner`, `actor`.
    pub fn children(&self) -> BTreeMap<String, u32> {
        children_of(self.process.id())
    }

    /// Its own process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The status now.
    pub async fn status(&self) -> RunStatus {
        ask(self.channel()).await.expect("the coordinator answers")
    }

    /// The status now, or why there is none, also when the coordinator does not answer for so long.
    pub async fn status_within(&self, patience: Duration) -> Result<RunStatus, tonic::Status> {
        ask(self.channel().with_deadline(patience)).await
    }

    /// A channel to the coordinator.
    pub fn channel(&self) -> Channel {
        channel::connect(&self.url, &Credentials::default()).expect("the address is good")
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // A failed test must not leave a cluster behind: its children drain when their parent is gone.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn ask(channel: Channel) -> Result<RunStatus, tonic::Status> {
    let mut client = RunServiceClient::new(channel);
    Ok(client.get_status(GetStatusRequest {}).await?.into_inner())
}

/// Sends a signal to one process.
pub fn signal(name: &str, process: u32) {
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("kill -{name} {process}"))
        .status();
    assert!(
        status.expect("sh can be started").success(),
        "no process {process} to signal"
    );
}

/// Process ids of the children of `parent` by part.
pub fn children_of(parent: u32) -> BTreeMap<String, u32> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).expect("the parent lives");
    let lists = tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let mut found = BTreeMap::new();
    for list in lists {
        for id in list.split_whitespace().filter_map(|id| id.parse::<u32>().ok()) {
            let command = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            let program = command.split(|&byte| byte == 0).next().unwrap_or_default();
            let name = String::from_utf8_lossy(program)
                .rsplit('/')
                .next()
                .unwrap_or_default()
                .to_owned();
            if let Some(part) = name.strip_prefix("tengen-") {
                found.insert(part.to_owned(), id);
            }
        }
    }
    found
}

/// Whether a process is alive (not ended, not a zombie).
pub fn is_alive(process: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .trim_start()
            .starts_with('Z')
    })
}
