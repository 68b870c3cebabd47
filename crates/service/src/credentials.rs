//! Who a process is to the coordinator, and whom it believes to be the coordinator: a bearer token and TLS files.
//!
//! Secrets are read here and nowhere else, and never printed.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::Args;
use http::HeaderValue;
use secrecy::{ExposeSecret, SecretString};

use crate::process_config;
use crate::tls::{self, PemError};

/// Longest token that is read from a file; ours have 90 characters.
const TOKEN_BYTES_MAX: u64 = 4096;

/// Where the credentials of a process lie.
#[derive(Args, Clone, Debug, Default)]
pub struct ConnectArgs {
    /// File with the token to show to the coordinator [default: the variable TENGEN_TOKEN, or none]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Certificates (PEM) that the coordinator's certificate must lead to; needed for https://
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// This process's own certificate (PEM), where the coordinator asks for one
    #[arg(long, value_name = "FILE", requires = "client_key")]
    pub client_cert: Option<PathBuf>,
    /// The private key (PEM) of --client-cert
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    pub client_key: Option<PathBuf>,
}

/// The credentials cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The token's file cannot be read.
    #[error("failed to read the token in {path}: {source}", path = path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// There is something else than a token where it should be.
    #[error("{origin} does not hold a token: one line of printable characters without spaces is wanted")]
    NoToken {
        /// The file or the variable.
        origin: String,
    },
    /// A certificate or key cannot be used.
    #[error(transparent)]
    Pem(#[from] PemError),
    /// A certificate without its key, or the other way round.
    #[error("--client-cert and --client-key go together")]
    Half,
}

/// What a process shows and whom it believes.
#[derive(Clone, Default)]
pub struct Credentials {
    token: Option<SecretString>,
    pub(crate) ca: Option<Vec<u8>>,
    /// Certificate chain and key.
    pub(crate) identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("token", &self.token.is_some())
            .field("ca", &self.ca.is_some())
            .field("identity", &self.identity.is_some())
            .finish()
    }
}

impl ConnectArgs {
    /// Reads the files. Blocks.
    pub fn credentials(&self) -> Result<Credentials, CredentialsError> {
        let token = match &self.token_file {
            Some(path) => Some(read_token(path)?),
            None => process_config::token_variable(),
        };
        let credentials = Credentials {
            token: None,
            ca: self.ca.as_deref().map(tls::certificates).transpose()?,
            identity: match (&self.client_cert, &self.client_key) {
                (Some(cert), Some(key)) => Some(tls::identity(cert, key)?),
                (None, None) => None,
                _ => return Err(CredentialsError::Half),
            },
        };
        match token {
            Some(token) => {
                let origin = self.token_file.as_ref().map(|path| path.display().to_string());
                credentials.with_token(token, origin.as_deref().unwrap_or(process_config::TOKEN_VARIABLE))
            }
            None => Ok(credentials),
        }
    }

    /// The same as arguments for a child process; the variable is inherited by itself.
    pub fn to_arguments(&self) -> Vec<std::ffi::OsString> {
        let flags = [
            ("--token-file", &self.token_file),
            ("--ca", &self.ca),
            ("--client-cert", &self.client_cert),
            ("--client-key", &self.client_key),
        ];
        let given = flags
            .into_iter()
            .filter_map(|(flag, path)| Some((flag, path.as_ref()?)));
        given
            .flat_map(|(flag, path)| [flag.into(), path.clone().into()])
            .collect()
    }
}

impl Credentials {
    /// With this token; `origin` says in an error where it comes from.
    pub fn with_token(self, token: SecretString, origin: &str) -> Result<Credentials, CredentialsError> {
        let text = token.expose_secret();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(CredentialsError::NoToken {
                origin: origin.to_owned(),
            });
        }
        Ok(Credentials {
            token: Some(token),
            ..self
        })
    }

    /// With these certificates (PEM) as those that the coordinator's must lead to.
    pub fn with_ca(self, pem: Vec<u8>) -> Credentials {
        Credentials { ca: Some(pem), ..self }
    }

    /// With this certificate and key (PEM) to show where one is asked for.
    pub fn with_identity(self, cert: Vec<u8>, key: Vec<u8>) -> Credentials {
        Credentials {
            identity: Some((cert, key)),
            ..self
        }
    }

    /// The value of the `authorization` header, marked so that nothing prints it.
    pub(crate) fn authorization(&self) -> Option<HeaderValue> {
        let token = self.token.as_ref()?;
        let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()))
            .expect("a token was checked to be printable");
        value.set_sensitive(true);
        Some(value)
    }
}

fn read_token(path: &Path) -> Result<SecretString, CredentialsError> {
    let failed = |source| CredentialsError::Token {
        path: path.to_path_buf(),
        source,
    };
    if std::fs::metadata(path).map_err(failed)?.len() > TOKEN_BYTES_MAX {
        return Err(CredentialsError::NoToken {
            origin: path.display().to_string(),
        });
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    Ok(SecretString::from(text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::write_atomic;

    #[test]
    fn a_token_is_read_from_its_file_and_never_printed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        write_atomic(&path, b"tengen_secret\n").unwrap();
        let args = ConnectArgs {
            token_file: Some(path),
            ..ConnectArgs::default()
        };
        let credentials = args.credentials().unwrap();
        let header = credentials.authorization().unwrap();
        assert_eq!(header, "Bearer tengen_secret");
        assert!(!format!("{credentials:?} {header:?}").contains("secret"));
    }

    #[test]
    fn what_is_no_token_is_refused_by_the_name_of_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        for bad in ["", "two words", "two\nlines", "tökén"] {
            write_atomic(&path, bad.as_bytes()).unwrap();
            let args = ConnectArgs {
                token_file: Some(path.clone()),
                ..ConnectArgs::default()
            };
            let refused = args.credentials().unwrap_err().to_string();
            assert!(refused.contains("token does not hold a token"), "{refused}");
        }
    }
}
