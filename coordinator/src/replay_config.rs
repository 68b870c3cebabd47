//! The keys `replay*`: where the coordinator keeps the window for learners to read.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};
use tengen_replay::{OptionsError, RedisOptions};

use crate::config::Config;

/// The word for the coordinator's own memory.
const MEMORY: &str = "memory";

/// A key about the window makes no sense.
#[derive(Debug, thiserror::Error)]
pub enum ReplayConfigError {
    /// A file for a server that is not used.
    #[error("{key} is set, but replay is \"memory\": name the Redis server there, or leave {key} out")]
    WithoutRedis {
        /// The key.
        key: &'static str,
    },
    /// The server.
    #[error("replay: {0}")]
    Redis(#[from] OptionsError),
}

impl Config {
    /// The Redis server that holds the window, or `None` for the memory. Reads the files.
    pub fn redis(&self) -> Result<Option<RedisOptions>, ReplayConfigError> {
        let password = self.replay_password_file.as_deref();
        let ca = self.replay_ca_file.as_deref();
        if self.replay.0 != MEMORY {
            return Ok(Some(RedisOptions::load(&self.replay.0, password, ca)?));
        }
        for (key, file) in [("replay_password_file", password), ("replay_ca_file", ca)] {
            if file.is_some() {
                return Err(ReplayConfigError::WithoutRedis { key });
            }
        }
        Ok(None)
    }
}

/// `memory` or a URL. A URL may hold a password, so only its host is ever shown.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct ReplayStore(String);

impl Default for ReplayStore {
    fn default() -> Self {
        ReplayStore(MEMORY.to_owned())
    }
}

impl From<String> for ReplayStore {
    fn from(text: String) -> Self {
        ReplayStore(text)
    }
}

impl fmt::Display for ReplayStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.rsplit_once('@') {
            Some((_, host)) => write!(f, "***@{host}"),
            None => f.write_str(&self.0),
        }
    }
}

impl fmt::Debug for ReplayStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for ReplayStore {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(replay: &str) -> Config {
        Config {
            replay: replay.to_owned().into(),
            ..Config::default()
        }
    }

    #[test]
    fn without_a_word_the_window_is_in_memory() {
        assert!(Config::default().redis().unwrap().is_none());
        let misplaced = Config {
            replay_ca_file: Some("ca.pem".into()),
            ..Config::default()
        };
        let error = misplaced.redis().unwrap_err().to_string();
        assert!(error.contains("replay_ca_file"), "{error}");
    }

    #[test]
    fn a_url_is_checked_and_its_password_never_shown() {
        let good = config("redis://me:s3cret@host:6380/1");
        assert_eq!(good.redis().unwrap().unwrap().to_string(), "redis://me:***@host:6380/1");
        let json = serde_json::to_string(&good).unwrap();
        for text in [format!("{good:?}"), json] {
            assert!(!text.contains("s3cret") && text.contains("host:6380"), "{text}");
        }
        let error = config("Memory").redis().unwrap_err().to_string();
        assert!(error.starts_with("replay: "), "{error}");
    }
}
