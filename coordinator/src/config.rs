//! What the coordinator's process is told beside the run: where it listens, whom it serves, what it may use.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tengen_service::process_config;
use tengen_service::run_config::ConfigError;

use crate::access::{Limits, TlsConfig};
use crate::failpoint::DieAt;
use crate::replay_config::ReplayStore;

/// The coordinator's configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where to listen; port 0 takes any.
    pub listen: SocketAddr,
    /// For tests of crashes: die at this step of a game's way, for example `committed:3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub die_at: Option<DieAt>,
    /// Serve whoever reaches `listen`, without tokens, although that is more than this machine.
    pub insecure: bool,
    /// Whether the services describe themselves (gRPC reflection), to anybody.
    pub reflection: bool,
    /// What one peer may take.
    pub limits: Limits,
    /// The certificates.
    pub tls: TlsConfig,
    /// Where the window is: `memory`, or the URL of a Redis server: `redis://user@host:6379/0`, `rediss://` for TLS.
    pub replay: ReplayStore,
    /// File with the password of that Redis server, on one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_password_file: Option<PathBuf>,
    /// File with the certificates (PEM) of the CA that signed the Redis server's; without it the system's are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_ca_file: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7300)),
            die_at: None,
            insecure: false,
            reflection: true,
            limits: Limits::default(),
            tls: TlsConfig::default(),
            replay: ReplayStore::default(),
            replay_password_file: None,
            replay_ca_file: None,
        }
    }
}

impl Config {
    /// Reads the file, if one is given, and the environment (`TENGEN_COORDINATOR__LISTEN=...`).
    pub fn load(file: Option<&Path>) -> Result<Config, ConfigError> {
        let config: Config = process_config::load("coordinator", file)?;
        let mut faults = config.limits.faults();
        faults.extend(config.tls.faults());
        if faults.is_empty() {
            return Ok(config);
        }
        let origin = file.map_or_else(|| "environment".to_owned(), |path| path.display().to_string());
        Err(ConfigError::Faults { origin, faults })
    }
}
