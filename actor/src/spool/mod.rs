//! The spool: finished games on disk until the coordinator has decided about each of them.
//!
//! Lives in the actor's data folder. `spool/` holds segment files of framed games ([`recover`] tells how they are read
//! after a crash); a game counts as finished only once it is durable there. `rejected/` holds the games that will never be
//! stored, with the reason beside each.
//!
//! A segment is removed when every game in it has its verdict. There are no marks for single games: after a crash the
//! games of the segments that are left are sent again, and the coordinator answers `duplicate` to those it has.
//!
//! Deliberately absent: the wire, leases, and async code. One named thread does all reading, writing and syncing.

mod frame;
mod rejected;
mod store;
pub mod testing;
mod thread;

use std::io;
use std::path::{Path, PathBuf};

use tengen_service::files::WriteError;

use crate::handshake::RunKey;

pub use frame::{HEADER_BYTES, Recovery, recover};
use store::Read;
pub(crate) use store::{Room, Store};
pub(crate) use thread::{Level, Spool, SpoolEvent, Ticket, Unsent};

/// The spool cannot go on: a game that it does not take may be lost.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpoolError {
    /// The disk.
    #[error("failed to {doing} {path}: {source}", path = path.display())]
    Io {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The disk, in a file that is written whole.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The games are of another run.
    #[error(
        "{path} holds {games} games of run {old} that have no verdict, and the coordinator serves run {new}: let this actor \
         join the coordinator of {old} until they are sent, or remove the folder to give them up, or use another --data",
        path = path.display()
    )]
    OtherRun {
        path: PathBuf,
        games: u64,
        old: String,
        new: RunKey,
    },
}

impl SpoolError {
    fn io(doing: &'static str, path: &Path, source: io::Error) -> SpoolError {
        SpoolError::Io {
            doing,
            path: path.to_path_buf(),
            source,
        }
    }
}
