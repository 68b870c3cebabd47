//! What the coordinator's process is told beside the run: where it listens, whom it serves, what it may use.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tengen_service::process_config;
use tengen_service::run_config::ConfigError;

use crate::access::{Limits, TlsConfig};
use crate::audit::AuditConfig;
use crate::disk::DiskConfig;
use crate::failpoint::DieAt;
use crate::replay_config::ReplayStore;
use crate::retention::RetentionConfig;

/// The coordinator's configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// The disk under the data folder.
    pub disk: DiskConfig,
    /// What may be forgotten.
    pub retention: RetentionConfig,
    /// ONNX Runtime's library for audits, or the folder it is in; looked up when not given.
    pub onnxruntime: Option<PathBuf>,
    /// How games are audited; when not given, by the section's defaults if ONNX Runtime is found.
    pub audit: Option<AuditConfig>,
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
            disk: DiskConfig::default(),
            retention: RetentionConfig::default(),
            onnxruntime: None,
            audit: None,
        }
    }
}

impl Config {
    /// Reads the file, if one is given, and the environment (`TENGEN_COORDINATOR__LISTEN=...`).
    pub fn load(file: Option<&Path>) -> Result<Config, ConfigError> {
        let config: Config = process_config::load("coordinator", file)?;
        let mut faults = config.limits.faults();
        faults.extend(config.tls.faults());
        faults.extend(config.disk.faults());
        faults.extend(config.retention.faults());
        faults.extend(config.audit.map(|audit| audit.faults()).unwrap_or_default());
        if faults.is_empty() {
            return Ok(config);
        }
        let origin = file.map_or_else(|| "environment".to_owned(), |path| path.display().to_string());
        Err(ConfigError::Faults { origin, faults })
    }
}

#[cfg(test)]
mod tests {
    use tengen_service::files::write_atomic;

    use super::*;

    /// The configuration of a file with this text.
    fn load(text: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("coordinator.toml");
        write_atomic(&path, text.as_bytes()).unwrap();
        Config::load(Some(&path)).map_err(|error| error.to_string())
    }

    #[test]
    fn every_fault_of_a_section_is_named_with_its_key_and_value() {
        let good = load("[disk]\ndata_bytes_max = 100000000\n[retention]\nkeep_games = 5000\n").unwrap();
        assert_eq!(
            (good.disk.data_bytes_max, good.retention.keep_games),
            (100_000_000, 5_000)
        );
        assert_eq!(good.disk.free_bytes_min, DiskConfig::default().free_bytes_min);
        let refused = load("[disk]\ndata_bytes_max = 7\n[retention]\nkeep_every = 3\n").unwrap_err();
        for part in [
            "disk.data_bytes_max = 7",
            "retention.keep_every = 3",
            "coordinator.toml",
        ] {
            assert!(refused.contains(part), "{part:?} in {refused}");
        }
        let refused = load("[disk]\nfree_bytes = 7\n").unwrap_err();
        assert!(refused.contains("free_bytes"), "{refused}");
    }

    #[test]
    fn a_section_that_is_written_down_has_its_defaults_and_is_checked() {
        assert_eq!(load("").unwrap().audit, None);
        let audit = AuditConfig {
            share: 1.0,
            ..AuditConfig::default()
        };
        assert_eq!(load("[audit]\nshare = 1").unwrap().audit, Some(audit));
        let refused = load("[audit]\nshare = 1.5\nstrikes = 0").unwrap_err();
        assert!(refused.contains("audit.share = 1.5 is not in 0..=1"), "{refused}");
        assert!(refused.contains("audit.strikes = 0 is not at least 1"), "{refused}");
        assert!(load("[audit]\nshares = 1").unwrap_err().contains("shares"));
    }
}
