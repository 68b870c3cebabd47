//! The sections `[limits]` and `[tls]` of the coordinator's configuration.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// `[limits]`: what one peer may take of this process. A rate of 0 means no limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Connections at once.
    pub connections_max: u32,
    /// Connections at once from one address (of IPv6, from one /64).
    pub connections_per_address_max: u32,
    /// Streams at once of one connection.
    pub streams_per_connection_max: u32,
    /// Headers of one request, bytes.
    pub header_list_bytes_max: u32,
    /// Time from the first byte of a connection to the end of its handshake, seconds.
    pub handshake_seconds: u32,
    /// Time from a request to the first byte of its answer, seconds; a whole publication counts.
    pub answer_seconds: u32,
    /// Time a connection may stay without a request that is served, seconds.
    pub idle_seconds: u32,
    /// Age at which a connection is asked to make place for a fresh one, seconds.
    pub connection_age_seconds: u32,
    /// Time its streams may go on then, seconds.
    pub connection_grace_seconds: u32,
    /// Silence after which a connection is probed, seconds.
    pub keepalive_seconds: u32,
    /// Time the answer to that probe may take, seconds.
    pub keepalive_timeout_seconds: u32,
    /// Requests of one token, a second.
    pub requests_per_second: u32,
    /// Bytes of messages that one token may have begun to send and not finished, over all its streams.
    pub unfinished_bytes_max: u32,
    /// Games that the actors of one token may send, a minute.
    pub games_per_minute: u32,
    /// Refused records after which an actor is suspended: far more than one bad game, far fewer than a flood.
    pub strikes_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections_max: 2_048,
            connections_per_address_max: 512,
            streams_per_connection_max: 256,
            header_list_bytes_max: 16 * 1024,
            handshake_seconds: 10,
            answer_seconds: 300,
            idle_seconds: 300,
            connection_age_seconds: 6 * 3_600,
            connection_grace_seconds: 60,
            keepalive_seconds: 20,
            keepalive_timeout_seconds: 10,
            requests_per_second: 1_000,
            unfinished_bytes_max: 256 << 20,
            games_per_minute: 120_000,
            strikes_max: 500,
        }
    }
}

impl Limits {
    /// Every value that makes no sense, with its key and the rule.
    pub fn faults(&self) -> Vec<String> {
        let day = 86_400;
        let rules = [
            ("connections_max", self.connections_max, 1, 65_536),
            (
                "connections_per_address_max",
                self.connections_per_address_max,
                1,
                65_536,
            ),
            ("streams_per_connection_max", self.streams_per_connection_max, 8, 4_096),
            ("header_list_bytes_max", self.header_list_bytes_max, 2_048, 1 << 20),
            ("handshake_seconds", self.handshake_seconds, 1, 300),
            ("answer_seconds", self.answer_seconds, 1, day),
            ("idle_seconds", self.idle_seconds, 1, 30 * day),
            ("connection_age_seconds", self.connection_age_seconds, 1, 30 * day),
            ("connection_grace_seconds", self.connection_grace_seconds, 1, day),
            ("keepalive_seconds", self.keepalive_seconds, 1, day),
            ("keepalive_timeout_seconds", self.keepalive_timeout_seconds, 1, day),
            ("requests_per_second", self.requests_per_second, 0, 1_000_000),
            // At least one message of the greatest size.
            ("unfinished_bytes_max", self.unfinished_bytes_max, 17 << 20, u32::MAX),
            ("games_per_minute", self.games_per_minute, 0, 100_000_000),
            ("strikes_max", self.strikes_max, 1, 1_000_000),
        ];
        rules
            .into_iter()
            .filter(|&(_, value, least, most)| value < least || value > most)
            .map(|(key, value, least, most)| format!("limits.{key} = {value}: must be {least} to {most}"))
            .collect()
    }

    pub(crate) fn handshake(&self) -> Duration {
        seconds(self.handshake_seconds)
    }

    pub(crate) fn idle(&self) -> Duration {
        seconds(self.idle_seconds)
    }
}

/// A limit in seconds as a duration.
pub(crate) fn seconds(count: u32) -> Duration {
    Duration::from_secs(count.into())
}

/// `[tls]`: the certificates of this process. Without `cert` and `key` it serves unencrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsConfig {
    /// Certificate chain, PEM.
    pub cert: Option<PathBuf>,
    /// Its private key, PEM.
    pub key: Option<PathBuf>,
    /// Authorities whose certificates clients must show, PEM; without it clients show none.
    pub client_ca: Option<PathBuf>,
}

impl TlsConfig {
    /// What is missing.
    pub fn faults(&self) -> Vec<String> {
        let missing = |key: &str, other: &str| vec![format!("tls.{key} is missing: it goes with tls.{other}")];
        match (&self.cert, &self.key, &self.client_ca) {
            (Some(_), None, _) => missing("key", "cert"),
            (None, Some(_), _) => missing("cert", "key"),
            (None, None, Some(_)) => missing("cert", "client_ca"),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_good_and_a_bad_value_is_named_with_its_rule() {
        assert!(Limits::default().faults().is_empty() && TlsConfig::default().faults().is_empty());
        let bad = Limits {
            connections_max: 0,
            idle_seconds: 0,
            ..Limits::default()
        };
        let faults = bad.faults().join("; ");
        assert!(
            faults.contains("limits.connections_max = 0: must be 1 to 65536"),
            "{faults}"
        );
        assert!(faults.contains("limits.idle_seconds"), "{faults}");
    }

    #[test]
    fn a_certificate_without_its_key_is_named() {
        let half = TlsConfig {
            cert: Some("c.pem".into()),
            ..TlsConfig::default()
        };
        assert_eq!(half.faults(), ["tls.key is missing: it goes with tls.cert"]);
    }
}
