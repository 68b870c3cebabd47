//! What `tengen up` must know of the coordinator's own configuration, which only the coordinator reads whole: whether it
//! serves TLS, and where it keeps the window, because the learner is to read it there.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::bail;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tengen_service::credentials::ConnectArgs;
use tengen_service::process_config::{self, REPLAY_CA_VARIABLE, REPLAY_PASSWORD_FILE_VARIABLE, REPLAY_URL_VARIABLE};

/// The coordinator's word for its own memory.
const MEMORY: &str = "memory";

/// Some keys of the coordinator's configuration. What else stands there is the coordinator's to judge.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Settings {
    replay: Option<String>,
    replay_password_file: Option<PathBuf>,
    replay_ca_file: Option<PathBuf>,
    tls: Option<IgnoredAny>,
}

impl Settings {
    /// Reads the file, if one is given, and the environment, as the coordinator will.
    pub(crate) fn load(file: Option<&Path>) -> anyhow::Result<Settings> {
        Ok(process_config::load("coordinator", file)?)
    }

    /// Refuses a configuration with TLS when nothing here could call such a coordinator.
    pub(crate) fn check_tls(&self, connect: &ConnectArgs) -> anyhow::Result<()> {
        if self.tls.is_some() && connect.ca.is_none() {
            bail!(
                "the coordinator's configuration has [tls]: give the certificate authority that vouches for it with \
                 --ca FILE"
            );
        }
        Ok(())
    }

    /// What tells a learner to read the window from Redis, when it is there. In variables, because the URL may hold a
    /// password and command lines are open to everybody on the machine.
    pub(crate) fn learner_variables(&self) -> Vec<(&'static str, OsString)> {
        let Some(url) = self.replay.as_ref().filter(|replay| *replay != MEMORY) else {
            return Vec::new();
        };
        let files = [
            (REPLAY_PASSWORD_FILE_VARIABLE, &self.replay_password_file),
            (REPLAY_CA_VARIABLE, &self.replay_ca_file),
        ];
        let files = files
            .into_iter()
            .filter_map(|(name, file)| Some((name, file.as_ref()?.clone().into_os_string())));
        [(REPLAY_URL_VARIABLE, OsString::from(url))]
            .into_iter()
            .chain(files)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Settings {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("coordinator.toml");
        tengen_service::files::write_atomic(&path, text.as_bytes()).unwrap();
        Settings::load(Some(&path)).unwrap()
    }

    #[test]
    fn a_window_in_redis_is_told_to_the_learner_in_variables() {
        let redis = settings("replay = \"redis://h:1/0\"\nreplay_ca_file = \"ca.pem\"\n[limits]\nrate = 7\n");
        let told: Vec<(&str, OsString)> = redis.learner_variables();
        assert_eq!(
            told,
            [
                (REPLAY_URL_VARIABLE, "redis://h:1/0".into()),
                (REPLAY_CA_VARIABLE, "ca.pem".into())
            ]
        );
        for memory in ["", "replay = \"memory\""] {
            assert_eq!(settings(memory).learner_variables(), []);
        }
    }

    #[test]
    fn tls_without_an_authority_is_refused() {
        let with_tls = settings("[tls]\ncertificate = \"a.pem\"\n");
        let mut connect = ConnectArgs::default();
        let refused = with_tls.check_tls(&connect).unwrap_err().to_string();
        assert!(refused.contains("--ca FILE"), "{refused}");
        connect.ca = Some("ca.pem".into());
        with_tls.check_tls(&connect).unwrap();
        settings("").check_tls(&ConnectArgs::default()).unwrap();
    }
}
