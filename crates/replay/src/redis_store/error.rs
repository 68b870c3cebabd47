//! What can go wrong with the window in Redis, sorted by what is to be done about it.

use redis::RedisError;

use super::connect::VERSION_MIN;

/// The window in Redis could not be read or written. Each says what to do; none holds a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedisFault {
    /// No answer: the server is down, slow, or somewhere else.
    #[error(
        "Redis at {server} does not answer: {reason}; is it up, and does `redis-cli -u {server} ping` (with the password in \
         place of ***, if there is one) say PONG on this machine?"
    )]
    Unreachable {
        /// The server.
        server: String,
        /// What the connection said.
        reason: String,
    },
    /// The server lacks what is needed.
    #[error("Redis at {server} is version {found}, and {VERSION_MIN} or later is needed: upgrade it")]
    TooOld {
        /// The server.
        server: String,
        /// Its version.
        found: String,
    },
    /// The server may drop what was written.
    #[error(
        "Redis at {server} may evict the window: its maxmemory-policy is {policy:?} and must be \"noeviction\"; run \
         `redis-cli CONFIG SET maxmemory-policy noeviction` against it, and put the same into its configuration"
    )]
    Evicts {
        /// The server.
        server: String,
        /// What it does when memory is full.
        policy: String,
    },
    /// The server has no memory left.
    #[error(
        "Redis at {server} has reached its maxmemory and takes no more games: raise it, for example \
         `redis-cli CONFIG SET maxmemory 2gb`, or lower the run's replay.capacity_positions"
    )]
    OutOfMemory {
        /// The server.
        server: String,
    },
    /// A later coordinator has the window.
    #[error(
        "another coordinator writes the window {key:?} (its fence is {newest}, this one's is {ours}): stop one of them; if \
         it is gone for good, for example because this database was restored from an older copy, run `redis-cli DEL \
         {key}`"
    )]
    Fenced {
        /// The pointer's key.
        key: String,
        /// Our fence.
        ours: u64,
        /// The one that is good.
        newest: u64,
    },
    /// What is there is not what was written last: it was wiped, or is somebody else's. It is to be rebuilt.
    #[error("the window {key:?} in Redis was wiped or changed by somebody else")]
    Lost {
        /// The pointer's key.
        key: String,
    },
    /// The server has forgotten its newest writes: what is after `last` is to be sent again.
    #[error("the window {key:?} in Redis ends with game {last}, games up to {after} were expected")]
    Gap {
        /// The pointer's key.
        key: String,
        /// The newest game it has.
        last: u64,
        /// The game the batch followed on.
        after: u64,
    },
    /// Nobody has written a window yet, or it is being rebuilt.
    #[error("Redis at {server} has no window {key:?} yet")]
    NoWindow {
        /// The server.
        server: String,
        /// The pointer's key.
        key: String,
    },
    /// An entry that is none of ours.
    #[error("the stream {key:?} in Redis holds an entry {id:?} that is no game of this build")]
    Foreign {
        /// The stream's key.
        key: String,
        /// The entry's id.
        id: String,
    },
    /// Games that do not follow each other.
    #[error("game {sequence} cannot follow game {last} in a batch")]
    Order {
        /// The sequence.
        sequence: u64,
        /// The one before it.
        last: u64,
    },
    /// The server refuses for another reason, for example a wrong password.
    #[error("Redis at {server} refuses: {reason}")]
    Refused {
        /// The server.
        server: String,
        /// What it said.
        reason: String,
    },
}

impl RedisFault {
    /// Sorts an error of the client.
    pub(super) fn of(server: &str, error: &RedisError) -> RedisFault {
        let (server, reason) = (server.to_owned(), error.to_string());
        // A function that fails on its first write reports the error of that write.
        if error.code() == Some("OOM") || reason.contains("OOM command not allowed") {
            return RedisFault::OutOfMemory { server };
        }
        let passes = matches!(
            error.code(),
            Some("LOADING" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN")
        );
        if passes || error.is_io_error() || error.is_timeout() || error.is_connection_dropped() {
            RedisFault::Unreachable { server, reason }
        } else {
            RedisFault::Refused { server, reason }
        }
    }

    /// Whether waiting may help, so that a process that starts should wait a little before it gives up.
    pub fn may_pass(&self) -> bool {
        matches!(self, RedisFault::Unreachable { .. })
    }
}
