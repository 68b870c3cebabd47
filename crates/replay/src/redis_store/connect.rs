//! Connections, and the checks that come before anything is written.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisError};

use super::error::RedisFault;
use super::options::RedisOptions;

/// The oldest server that will do: the first in which functions and streams behave as they are used here, among those
/// that are still looked after.
pub const VERSION_MIN: &str = "6.2";
const VERSION_MIN_PARTS: (u32, u32) = (6, 2);

/// A server that takes longer to connect to is away.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A server that takes longer to answer is away. A batch is a few milliseconds of work for it.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long an answer may take.
#[derive(Clone, Copy, Debug)]
pub(super) enum Patience {
    /// As long as any command takes.
    Commands,
    /// For commands that wait for something to happen: no limit of the connection's own.
    Waiting,
}

/// A connection of its own, not shared and not renewed: what becomes of a broken one is the caller's business.
pub(super) async fn connect(options: &RedisOptions, patience: Patience) -> Result<MultiplexedConnection, RedisFault> {
    let response = match patience {
        Patience::Commands => Some(RESPONSE_TIMEOUT),
        Patience::Waiting => None,
    };
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(response);
    let connecting = options.client().get_multiplexed_async_connection_with_config(&config);
    // The handshake waits for answers too, and without a limit of the connection's own nothing else bounds it.
    match tokio::time::timeout(CONNECT_TIMEOUT + RESPONSE_TIMEOUT, connecting).await {
        Ok(connected) => connected.map_err(|error| fault(options, &error)),
        Err(_) => Err(RedisFault::Unreachable {
            server: options.to_string(),
            reason: "no connection in time".to_owned(),
        }),
    }
}

/// Refuses a server that is too old or may drop what is written.
pub(super) async fn check(connection: &mut MultiplexedConnection, options: &RedisOptions) -> Result<(), RedisFault> {
    // `INFO` and not `CONFIG GET`, which hosted servers often do not allow. Servers before 7.0 take one section only.
    let mut sections = redis::pipe();
    sections.cmd("INFO").arg("server").cmd("INFO").arg("memory");
    let answers: (String, String) = sections
        .query_async(connection)
        .await
        .map_err(|error| fault(options, &error))?;
    judge(&answers.0, &answers.1, options)
}

fn judge(server: &str, memory: &str, options: &RedisOptions) -> Result<(), RedisFault> {
    let found = value(server, "redis_version").unwrap_or("unknown");
    if !is_new_enough(found) {
        return Err(RedisFault::TooOld {
            server: options.to_string(),
            found: found.to_owned(),
        });
    }
    let policy = value(memory, "maxmemory_policy").unwrap_or("unknown");
    if policy != "noeviction" {
        return Err(RedisFault::Evicts {
            server: options.to_string(),
            policy: policy.to_owned(),
        });
    }
    Ok(())
}

/// The value of a line `name:value`.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text
        .lines()
        .find_map(|line| line.split_once(':').filter(|(key, _)| *key == name));
    line.map(|(_, value)| value.trim())
}

fn is_new_enough(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= VERSION_MIN_PARTS
}

pub(super) fn fault(options: &RedisOptions, error: &RedisError) -> RedisFault {
    RedisFault::of(&options.to_string(), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(version: &str, policy: &str) -> Result<(), RedisFault> {
        let options = RedisOptions::load("redis://localhost", None, None).unwrap();
        let server = format!("# Server\r\nredis_version:{version}\r\nos:Linux\r\n");
        let memory = format!("# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:{policy}\r\n");
        judge(&server, &memory, &options)
    }

    #[test]
    fn old_servers_are_refused_with_both_versions() {
        for good in ["6.2.0", "7.0.15", "8.2", "10.0.1"] {
            assert_eq!(judged(good, "noeviction"), Ok(()), "{good}");
        }
        for old in ["6.0.16", "5.0.14", "garbage"] {
            let error = judged(old, "noeviction").unwrap_err().to_string();
            assert!(error.contains(old) && error.contains("6.2"), "{error}");
        }
    }

    #[test]
    fn a_server_that_evicts_is_refused_with_the_command_that_changes_it() {
        let error = judged("7.0.15", "allkeys-lru").unwrap_err().to_string();
        assert!(
            error.contains("allkeys-lru") && error.contains("redis-cli CONFIG SET maxmemory-policy noeviction"),
            "{error}"
        );
    }
}
