//! The configuration of one process: what it is told beside the run, from a TOML file and from the environment.
//!
//! The run's own configuration (`run_config`) is stored with the run and travels with its models, so nothing that is
//! secret or belongs to one machine may stand in it. That stands here: addresses, certificates, limits, files.

use std::collections::HashMap;
use std::path::Path;

use secrecy::SecretString;
use serde::de::DeserializeOwned;

use crate::run_config::ConfigError;

/// The variable that may hold a token.
pub(crate) const TOKEN_VARIABLE: &str = "TENGEN_TOKEN";

/// The variable that may hold the URL of the Redis server a learner reads: it can hold a password, which other users of
/// the machine would see on a command line.
pub const REPLAY_URL_VARIABLE: &str = "TENGEN_REPLAY_URL";
/// The variable that may name the file with that server's password.
pub const REPLAY_PASSWORD_FILE_VARIABLE: &str = "TENGEN_REPLAY_PASSWORD_FILE";
/// The variable that may name the file with the certificates of that server's CA.
pub const REPLAY_CA_VARIABLE: &str = "TENGEN_REPLAY_CA";

/// Variables under the prefix `TENGEN_` that belong to a process and not to the run.
const PROCESS_VARIABLES: [&str; 5] = [
    "TENGEN_COORDINATOR__",
    TOKEN_VARIABLE,
    REPLAY_URL_VARIABLE,
    REPLAY_PASSWORD_FILE_VARIABLE,
    REPLAY_CA_VARIABLE,
];

/// Reads the configuration of the process `part` (for example `coordinator`): defaults, then the file, then variables
/// such as `TENGEN_COORDINATOR__LISTEN`. Unknown keys are refused.
pub fn load<T: DeserializeOwned>(part: &str, file: Option<&Path>) -> Result<T, ConfigError> {
    let origin = file.map_or_else(|| "environment".to_owned(), |path| path.display().to_string());
    let mut builder = config::Config::builder();
    if let Some(path) = file {
        builder = builder.add_source(config::File::from(path).format(config::FileFormat::Toml).required(true));
    }
    let environment = config::Environment::with_prefix(&format!("TENGEN_{}", part.to_uppercase()))
        .prefix_separator("__")
        .separator("__")
        .try_parsing(true);
    builder
        .add_source(environment)
        .build()
        .and_then(config::Config::try_deserialize)
        .map_err(|error| ConfigError::Read {
            origin,
            reason: error.to_string(),
        })
}

/// The token in the environment, if there is one.
pub(crate) fn token_variable() -> Option<SecretString> {
    let value = std::env::var_os(TOKEN_VARIABLE)?;
    // What is no UTF-8 is refused as a token by what follows.
    Some(SecretString::from(value.to_string_lossy().trim()))
}

/// The environment without the variables of processes: what may override the run's configuration.
pub(crate) fn run_variables() -> HashMap<String, String> {
    let of_process = |name: &str| PROCESS_VARIABLES.iter().any(|prefix| name.starts_with(prefix));
    // Variables that are no UTF-8 cannot be ours.
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| !of_process(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Config {
        listen: String,
        deep: Deep,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Deep {
        bytes_max: u64,
    }

    #[test]
    fn a_file_fills_what_it_names_and_unknown_keys_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part.toml");
        crate::files::write_atomic(&path, b"[deep]\nbytes_max = 7\n").unwrap();
        let config: Config = load("testing", Some(&path)).unwrap();
        assert_eq!(config.deep, Deep { bytes_max: 7 });
        assert_eq!(load::<Config>("testing", None).unwrap(), Config::default());
        crate::files::write_atomic(&path, b"[deep]\nbyte_max = 7\n").unwrap();
        let refused = load::<Config>("testing", Some(&path)).unwrap_err().to_string();
        assert!(
            refused.contains("byte_max") && refused.contains("part.toml"),
            "{refused}"
        );
    }
}
