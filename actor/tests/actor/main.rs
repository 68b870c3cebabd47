//! The actor against a peer that speaks the coordinator's half of the wire.

#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod devices;
mod disk;
mod flips;
mod fuzz_seeds;
mod models;
mod peer;
mod play;
mod power_cut;
mod precision;
mod process;
mod ready;
mod spool;

use std::net::SocketAddr;
use std::path::Path;

use peer::Server;
use tengen_actor::{Clock, Options};
use tengen_inference::Device;
use tengen_selfplay::Plan;
use tengen_service::credentials::ConnectArgs;
use tengen_service::run_config::WantedPrecision;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// More than any test here fills, unless it means to.
pub(crate) const SPOOL_BYTES_MAX: u64 = 1 << 30;

pub(crate) fn self_play(games: u32) -> Plan {
    Plan::SelfPlay {
        games,
        random_plies_max: 1,
    }
}

pub(crate) fn options(server: &Server, data: &Path) -> Options {
    options_at(server.url(), data)
}

/// The options of an actor whose coordinator has this address, whether it answers or not.
pub(crate) fn options_at(join: String, data: &Path) -> Options {
    Options {
        join,
        connect: ConnectArgs::default(),
        data: data.to_path_buf(),
        share_data: false,
        games: Some(8),
        batch_max: Some(8),
        cache_mib: Some(4),
        threads: Some(2),
        threads_per_device: 2,
        device: Device::Cpu.into(),
        share_sessions: false,
        precision: WantedPrecision::Auto,
        onnxruntime: None,
        drain_seconds: 20,
        spool_bytes_max: SPOOL_BYTES_MAX,
        spool_linger_ms: 20,
        clock: Clock::default(),
    }
}

/// An actor in this process.
pub(crate) struct Running {
    pub(crate) stop: CancellationToken,
    pub(crate) task: JoinHandle<anyhow::Result<()>>,
}

impl Running {
    pub(crate) fn start(options: Options) -> Running {
        let stop = CancellationToken::new();
        Running {
            task: tokio::spawn(tengen_actor::run(options, stop.clone())),
            stop,
        }
    }

    /// Asks it to stop and waits until it has.
    pub(crate) async fn drain(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.task.await.unwrap()
    }
}
