//! What the coordinator's process is told beside the run: where it listens, whom it serves, what it may use.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tengen_service::process_config;
use tengen_service::run_config::ConfigError;

use crate::audit::AuditConfig;
use crate::failpoint::DieAt;

/// The coordinator's configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where to listen; port 0 takes any.
    pub listen: SocketAddr,
    /// For tests of crashes: die at this step of a game's way, for example `committed:3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub die_at: Option<DieAt>,
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
            onnxruntime: None,
            audit: None,
        }
    }
}

impl Config {
    /// Reads the file, if one is given, and the environment (`TENGEN_COORDINATOR__LISTEN=...`).
    pub fn load(file: Option<&Path>) -> Result<Config, ConfigError> {
        let config: Config = process_config::load("coordinator", file)?;
        let faults = config.audit.map(|audit| audit.faults()).unwrap_or_default();
        if faults.is_empty() {
            return Ok(config);
        }
        let origin = file.map_or_else(|| "environment".to_owned(), |path| path.display().to_string());
        Err(ConfigError::Faults { origin, faults })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The configuration of a file with this text.
    fn load(text: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("coordinator.toml");
        tengen_service::files::write_atomic(&path, text.as_bytes()).unwrap();
        Config::load(Some(&path)).map_err(|error| error.to_string())
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
