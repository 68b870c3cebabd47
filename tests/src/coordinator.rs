//! A coordinator process alone, which a test may make die and start again.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_proto::v1::{GetStatusRequest, RunStatus};
use tengen_service::channel::{self, Channel};
use tengen_service::credentials::Credentials;

use crate::cluster::program;

/// The process.
pub struct Coordinator {
    process: Child,
    url: String,
}

impl Coordinator {
    /// Starts it on `data` for the run file `run`, with further keys of its configuration, and waits until it serves.
    pub async fn start(run: &Path, data: &Path, keys: &[(&str, &str)]) -> Coordinator {
        Coordinator::start_under(&[], run, data, keys).await
    }

    /// The same under another program, for example a recorder.
    pub async fn start_under(wrapper: &[OsString], run: &Path, data: &Path, keys: &[(&str, &str)]) -> Coordinator {
        let address_file = data.join("addr");
        if address_file.exists() {
            std::fs::remove_file(&address_file).expect("the address of the one before goes");
        }
        let mut words = wrapper.to_vec();
        words.push(program("tengen-coordinator").into());
        let process = Command::new(&words[0])
            .args(&words[1..])
            .arg("--run")
            .arg(run)
            .arg("--data")
            .arg(data)
            .args(["--listen", "127.0.0.1:0", "--log", "error", "--exit-with-parent"])
            .arg("--addr-file")
            .arg(&address_file)
            // No network is behind the games of these tests.
            .env("TENGEN_COORDINATOR__AUDIT__SHARE", "0")
            .envs(
                keys.iter()
                    .map(|(key, value)| (format!("TENGEN_COORDINATOR__{key}"), value)),
            )
            .stdin(Stdio::piped())
            .spawn()
            .expect("the coordinator can be started");
        let mut coordinator = Coordinator {
            process,
            url: String::new(),
        };
        coordinator.url = coordinator.wait_for_address(address_file).await;
        coordinator
    }

    async fn wait_for_address(&mut self, file: PathBuf) -> String {
        let mut looks = tokio::time::interval(Duration::from_millis(5));
        loop {
            looks.tick().await;
            if let Ok(address) = std::fs::read_to_string(&file) {
                return format!("http://{}", address.trim());
            }
            let ended = self.process.try_wait().expect("it can be waited for");
            assert!(ended.is_none(), "the coordinator ended before it served: {ended:?}");
        }
    }

    /// Its address as a URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A channel to it.
    pub fn channel(&self) -> Channel {
        self.channel_with(&Credentials::default())
    }

    /// A channel to it for whoever has these credentials.
    pub fn channel_with(&self, credentials: &Credentials) -> Channel {
        channel::connect(&self.url, credentials).expect("the address is a url")
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        let address = self.url.trim_start_matches("http://");
        address.parse().expect("the address file holds an address")
    }

    /// Its status.
    pub async fn status(&self) -> RunStatus {
        let mut client = RunServiceClient::new(self.channel());
        client
            .get_status(GetStatusRequest {})
            .await
            .expect("it serves")
            .into_inner()
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// A figure of its memory in KiB, as the kernel names it (`VmRSS`, `VmHWM`).
    pub fn memory_kib(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).expect("it runs");
        let line = status
            .lines()
            .find(|line| line.starts_with(name))
            .expect("the kernel tells");
        let number = line.split_whitespace().nth(1).expect("a number");
        number.parse().expect("a number")
    }

    /// kill -9.
    pub fn kill(&mut self) {
        self.process.kill().expect("it can be killed");
    }

    /// Waits for its end.
    pub async fn ended(mut self) -> ExitStatus {
        tokio::task::spawn_blocking(move || self.process.wait().expect("it can be waited for"))
            .await
            .expect("waiting does not panic")
    }

    /// Has it drain, and waits for its end.
    pub async fn drain(mut self) {
        drop(self.process.stdin.take());
        assert!(self.ended().await.success(), "the coordinator did not drain");
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        // Gone already, unless the test failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
