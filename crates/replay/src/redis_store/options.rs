//! Where the Redis server is and how to get in. Passwords are never shown.

use std::fmt;
use std::path::{Path, PathBuf};

use redis::io::tcp::TcpSettings;
use redis::{Client, ConnectionInfo, IntoConnectionInfo, TlsCertificates};

use super::connect::{Patience, check, connect};
use super::error::RedisFault;

/// What is said instead of a password.
const MASK: &str = "***";

/// The server cannot be addressed like this.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// Not a URL of ours. The URL itself is not shown: it may hold a password.
    #[error(
        "this is not a Redis URL ({reason}); write it like redis://user:password@host:6379/0, or rediss:// for TLS"
    )]
    Url {
        /// What is wrong with it.
        reason: String,
    },
    /// A file that was named.
    #[error("failed to read {what} {path}: {source}", path = path.display())]
    File {
        /// What it should hold.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Two passwords.
    #[error("the password stands in the Redis URL and in {path}: leave one of them out", path = path.display())]
    TwoPasswords {
        /// The password file.
        path: PathBuf,
    },
    /// A CA for a connection without TLS.
    #[error("{path} is a CA for TLS, but the Redis URL begins with redis://: write rediss:// for TLS", path = path.display())]
    CaWithoutTls {
        /// The CA file.
        path: PathBuf,
    },
    /// The CA file holds no certificate that can be used.
    #[error("the CA in {path} cannot be used: {reason}", path = path.display())]
    Ca {
        /// The CA file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// How to reach the server.
#[derive(Clone)]
pub struct RedisOptions {
    client: Client,
    shown: String,
}

impl RedisOptions {
    /// Reads the URL and the files it needs beside it: a password on one line, and the certificates (PEM) of the CA that
    /// signed the server's. Connects to nothing.
    pub fn load(url: &str, password_file: Option<&Path>, ca_file: Option<&Path>) -> Result<RedisOptions, OptionsError> {
        let scheme = parse_scheme(url)?;
        let mut info = url
            .into_connection_info()
            .map_err(|error| OptionsError::Url {
                reason: error.category().to_owned(),
            })?
            // Small commands that wait for their answers: nothing is gained by holding packets back.
            .set_tcp_settings(TcpSettings::default().set_nodelay(true));
        if let Some(path) = password_file {
            info = with_password(info, path)?;
        }
        let shown = shown(scheme, &info);
        let client = match ca_file {
            None => Client::open(info).map_err(|error| OptionsError::Url {
                reason: error.category().to_owned(),
            })?,
            Some(path) if scheme == Scheme::Redis => return Err(OptionsError::CaWithoutTls { path: path.to_owned() }),
            Some(path) => with_ca(info, path)?,
        };
        Ok(RedisOptions { client, shown })
    }

    /// Whether the server can be reached and is fit to hold a window: new enough, and never evicting. Writes nothing.
    pub async fn check(&self) -> Result<(), RedisFault> {
        let mut connection = connect(self, Patience::Commands).await?;
        check(&mut connection, self).await
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }
}

/// How the server is spoken to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scheme {
    /// Without TLS.
    Redis,
    /// Over TLS.
    Rediss,
}

fn parse_scheme(url: &str) -> Result<Scheme, OptionsError> {
    let refused = |reason: &str| OptionsError::Url {
        reason: reason.to_owned(),
    };
    // It would switch the check of the server's certificate off.
    if url.contains('#') {
        return Err(refused("it has a part after #; write # in a password as %23"));
    }
    match url.split_once("://").map(|(scheme, _)| scheme) {
        Some("redis") => Ok(Scheme::Redis),
        Some("rediss") => Ok(Scheme::Rediss),
        _ => Err(refused("it begins with neither redis:// nor rediss://")),
    }
}

fn with_password(info: ConnectionInfo, path: &Path) -> Result<ConnectionInfo, OptionsError> {
    if info.redis_settings().password().is_some() {
        return Err(OptionsError::TwoPasswords { path: path.to_owned() });
    }
    let text = std::fs::read_to_string(path).map_err(|source| OptionsError::File {
        what: "the password of Redis from",
        path: path.to_owned(),
        source,
    })?;
    let settings = info
        .redis_settings()
        .clone()
        .set_password(text.trim_end_matches(['\r', '\n']));
    Ok(info.set_redis_settings(settings))
}

fn with_ca(info: ConnectionInfo, path: &Path) -> Result<Client, OptionsError> {
    let pem = std::fs::read(path).map_err(|source| OptionsError::File {
        what: "the CA of Redis from",
        path: path.to_owned(),
        source,
    })?;
    let certificates = TlsCertificates {
        client_tls: None,
        root_cert: Some(pem),
    };
    Client::build_with_tls(info, certificates).map_err(|error| OptionsError::Ca {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}

fn shown(scheme: Scheme, info: &ConnectionInfo) -> String {
    let scheme = match scheme {
        Scheme::Redis => "redis",
        Scheme::Rediss => "rediss",
    };
    let settings = info.redis_settings();
    let user = settings.username().unwrap_or_default();
    let secret = if settings.password().is_some() {
        format!(":{MASK}@")
    } else if user.is_empty() {
        String::new()
    } else {
        "@".to_owned()
    };
    format!("{scheme}://{user}{secret}{}/{}", info.addr(), settings.db())
}

impl fmt::Display for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisOptions").field(&self.shown).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    #[test]
    fn a_password_is_never_shown() {
        let options = RedisOptions::load("redis://me:s3cret@localhost:7000/2", None, None).unwrap();
        for text in [options.to_string(), format!("{options:?}")] {
            assert!(
                text.contains("redis://me:***@localhost:7000/2") && !text.contains("s3cret"),
                "{text}"
            );
        }
        for bad in [
            "redis://me:s3cret@:bad/",
            "http://s3cret@x",
            "redis://a:s3cret@h/x",
            "s3cret",
        ] {
            let error = RedisOptions::load(bad, None, None).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
            assert!(
                error.to_string().contains("redis://user:password@host:6379/0"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_password_may_come_from_a_file_but_not_from_two_places() {
        let secret = file("s3cret\n");
        let options = RedisOptions::load("redis://me@localhost", Some(secret.path()), None).unwrap();
        let settings = options.client().get_connection_info().redis_settings();
        assert_eq!((settings.username(), settings.password()), (Some("me"), Some("s3cret")));
        assert_eq!(options.to_string(), "redis://me:***@localhost:6379/0");
        let twice = RedisOptions::load("redis://:x@localhost", Some(secret.path()), None).unwrap_err();
        assert!(twice.to_string().contains("leave one of them out"), "{twice}");
        let missing = RedisOptions::load("redis://localhost", Some(Path::new("/nowhere")), None).unwrap_err();
        assert!(missing.to_string().contains("/nowhere"), "{missing}");
    }

    #[test]
    fn a_ca_needs_tls_and_a_certificate_and_its_check_cannot_be_switched_off() {
        let empty = file("no certificate");
        let plain = RedisOptions::load("redis://localhost", None, Some(empty.path())).unwrap_err();
        assert!(plain.to_string().contains("rediss://"), "{plain}");
        let unchecked = RedisOptions::load("rediss://localhost/#insecure", None, None).unwrap_err();
        assert!(unchecked.to_string().contains('#'), "{unchecked}");
        assert!(RedisOptions::load("rediss://localhost", None, None).is_ok());
    }
}
