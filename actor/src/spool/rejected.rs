//! The folder `rejected/`: games that will never be stored, each with the reason beside it, for people to look at.
//!
//! Nothing here is ever sent again. The folder is bounded: the oldest games make place for new ones.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tengen_records::RecordId;
use tengen_service::files::{sync_folder, write_atomic};

use super::SpoolError;

/// Most games kept.
const GAMES_MAX: usize = 1_000;
/// Most bytes of games kept.
const BYTES_MAX: u64 = 256 << 20;

/// The folder.
#[derive(Debug)]
pub(super) struct Rejected {
    folder: PathBuf,
}

impl Rejected {
    pub(super) fn new(folder: PathBuf) -> Rejected {
        Rejected { folder }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Keeps a game and why it is here, durably.
    pub(super) fn keep_game(&self, id: RecordId, game: &[u8], reason: &str) -> Result<(), SpoolError> {
        self.keep(&format!("{id}.record"), game, reason)
    }

    /// Keeps bytes of a segment that are no whole game.
    pub(super) fn keep_damaged(
        &self,
        segment: u64,
        offset: usize,
        bytes: &[u8],
        reason: &str,
    ) -> Result<(), SpoolError> {
        self.keep(&format!("segment-{segment}-{offset}.damaged"), bytes, reason)
    }

    /// The games here.
    pub(super) fn ids(&self) -> Result<HashSet<RecordId>, SpoolError> {
        let read = || -> io::Result<HashSet<RecordId>> {
            let mut ids = HashSet::new();
            for entry in std::fs::read_dir(&self.folder)? {
                let name = entry?.file_name();
                let id = name.to_str().and_then(|name| name.strip_suffix(".record"));
                ids.extend(id.and_then(|id| id.parse::<RecordId>().ok()));
            }
            Ok(ids)
        };
        read()
            .or_else(|error| absent_is_fine(error).map(|()| HashSet::new()))
            .map_err(|source| SpoolError::io("list", &self.folder, source))
    }

    /// Whether this very game is here: it has had its verdict.
    pub(super) fn holds(&self, id: RecordId, game: &[u8]) -> bool {
        let path = self.folder.join(format!("{id}.record"));
        // Not readable is as good as not here: the game is sent once more, and refused once more.
        std::fs::read(path).is_ok_and(|kept| kept == game)
    }

    /// The reason goes first: bytes that are here have one.
    fn keep(&self, name: &str, bytes: &[u8], reason: &str) -> Result<(), SpoolError> {
        write_atomic(&self.folder.join(format!("{name}.txt")), reason.as_bytes())?;
        write_atomic(&self.folder.join(name), bytes)?;
        self.prune(GAMES_MAX, BYTES_MAX)
            .map_err(|source| SpoolError::io("tidy", &self.folder, source))
    }

    /// Removes the oldest until few enough are left.
    fn prune(&self, games_max: usize, bytes_max: u64) -> io::Result<()> {
        let mut kept = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.path().extension().is_some_and(|extension| extension != "txt") {
                let metadata = entry.metadata()?;
                let written = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                kept.push((written, entry.path(), metadata.len()));
            }
        }
        kept.sort();
        let mut bytes: u64 = kept.iter().map(|(_, _, len)| len).sum();
        let mut games = kept.len();
        for (_, path, len) in kept {
            // The newest stays, however large.
            if games <= 1 || (games <= games_max && bytes <= bytes_max) {
                break;
            }
            let mut reason = path.clone().into_os_string();
            reason.push(".txt");
            std::fs::remove_file(&path)?;
            std::fs::remove_file(reason).or_else(absent_is_fine)?;
            bytes -= len;
            games -= 1;
        }
        sync_folder(&self.folder)
    }
}

fn absent_is_fine(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound {
        Ok(())
    } else {
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use tengen_records::LeaseId;

    use super::*;

    fn id(index: u32) -> RecordId {
        RecordId {
            lease: LeaseId(7),
            index,
        }
    }

    #[test]
    fn a_game_is_kept_with_its_reason() {
        let data = tempfile::tempdir().unwrap();
        let rejected = Rejected::new(data.path().join("rejected"));
        rejected.keep_game(id(3), b"a game", "rejected: wrong-seat").unwrap();
        let path = rejected.folder().join("00000000000000000000000000000007-3.record");
        assert_eq!(std::fs::read(&path).unwrap(), b"a game");
        let reason = std::fs::read_to_string(format!("{}.txt", path.display())).unwrap();
        assert_eq!(reason, "rejected: wrong-seat");
        assert!(rejected.holds(id(3), b"a game"));
        assert!(!rejected.holds(id(3), b"another game"));
        assert!(!rejected.holds(id(4), b"a game"));
    }

    #[test]
    fn the_oldest_make_place_with_their_reasons() {
        let data = tempfile::tempdir().unwrap();
        let rejected = Rejected::new(data.path().join("rejected"));
        for index in 0..5 {
            rejected.keep_game(id(index), &[0; 100], "why").unwrap();
            // Written in the same instant, or so it may seem to the file system: tell them apart.
            let file = File::open(rejected.folder().join(format!("{}.record", id(index)))).unwrap();
            let written = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::from(index));
            file.set_modified(written).unwrap();
        }
        rejected.prune(4, u64::MAX).unwrap();
        assert!(!rejected.holds(id(0), &[0; 100]) && rejected.holds(id(1), &[0; 100]));
        rejected.prune(4, 250).unwrap();
        assert!(!rejected.holds(id(2), &[0; 100]) && rejected.holds(id(3), &[0; 100]));
        assert_eq!(std::fs::read_dir(rejected.folder()).unwrap().count(), 4);
        rejected.prune(4, 0).unwrap();
        assert!(rejected.holds(id(4), &[0; 100]), "the newest stays");
    }
}
