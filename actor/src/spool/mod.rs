//! The spool: finished games on disk until the coordinator has decided about each of them.
//!
//! Lives in the actor's data folder. `spool/` holds segment files of framed games ([`recover`] tells how they are read
//! after a crash); a game counts as finished only once it is durable there. `rejected/` holds the games that will never be
//! stored, with the reason beside each.
//!
//! A segment is removed when every game in it has its verdict. There are no marks for single games: after a crash the
//! games of the segments that are left are sent again, and the coordinator answers `duplicate` to those it has.
//!
//! When the disk is full the spool keeps what it has, hands it out to be sent, and takes nothing more until there is room.
//!
//! Deliberately absent: the wire, leases, and async code. One named thread does all reading, writing and syncing.

mod batch;
mod frame;
mod rejected;
mod store;
pub mod testing;
mod thread;

use std::io;
use std::path::{Path, PathBuf};

use tengen_service::files::{WriteError, is_out_of_room};

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
    /// Games that waited for room when the process ended.
    #[error(
        "the last {games} games did not fit into {path} and were never sent, whoever takes their lease plays them again: \
         make room on this disk ({source})",
        path = path.display()
    )]
    Unkept {
        games: usize,
        path: PathBuf,
        #[source]
        source: Box<SpoolError>,
    },
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
    /// Whether the disk is full: then the same may work later.
    pub(crate) fn is_out_of_room(&self) -> bool {
        match self {
            SpoolError::Io { source, .. } => is_out_of_room(source),
            SpoolError::Write(error) => error.is_out_of_room(),
            SpoolError::Unkept { .. } | SpoolError::OtherRun { .. } => false,
        }
    }

    fn io(doing: &'static str, path: &Path, source: io::Error) -> SpoolError {
        SpoolError::Io {
            doing,
            path: path.to_path_buf(),
            source,
        }
    }
}
