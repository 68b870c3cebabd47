//! Which file systems may hold the data folder.
//!
//! SQLite's write-ahead log keeps an index in memory that all processes share and relies on locks, and its makers say
//! that neither works over a network (<https://sqlite.org/wal.html>, <https://sqlite.org/faq.html#q5>). So every file
//! system that is known to be remote, shared between machines, or passed through from a host is refused.

use std::path::{Path, PathBuf};

use tengen_service::files;

use super::DiskConfig;

/// What a file system is to a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileSystem {
    /// Not known to be remote.
    Local,
    /// Remote, shared or passed through; its name.
    Remote(&'static str),
}

/// Magic numbers of remote file systems as `statfs` tells them. Sources: `linux/magic.h` and the manual page statfs(2);
/// those marked (c) from the list of remote file systems in GNU coreutils `src/stat.c`.
const REMOTE: [(u32, &str); 22] = [
    (0x0000_6969, "NFS"),
    (0x0000_517B, "SMB"),
    (0xFE53_4D42, "SMB 2"),
    (0xFF53_4D42, "CIFS"),
    // One number for all of them; virtiofs, which passes a host's folder into a virtual machine, has it too.
    (0x6573_5546, "FUSE (sshfs, s3fs, rclone, GlusterFS, virtiofs, ...)"),
    (0x0102_1997, "9P (a folder of the host, WSL)"),
    (0x00C3_6400, "Ceph"),
    (0x5346_414F, "AFS"),
    (0x6B41_4653, "kAFS"),
    (0x7375_7245, "Coda"),
    (0x0000_564C, "NCP"),
    (0x7461_636F, "OCFS2"),
    (0x786F_4256, "VirtualBox shared folder"),
    (0x0116_1970, "GFS2"),                 // (c)
    (0x0BD0_0BD0, "Lustre"),               // (c)
    (0x4750_4653, "GPFS"),                 // (c)
    (0x1983_0326, "BeeGFS"),               // (c)
    (0x2003_0528, "OrangeFS"),             // (c)
    (0xAAD7_AAEA, "PanFS"),                // (c)
    (0xBACB_ACBC, "VMware shared folder"), // (c)
    (0x6163_6673, "ACFS"),                 // (c)
    (0xBEEF_DEAD, "SNFS"),                 // (c)
];

/// The verdict on a magic number.
pub(crate) fn verdict(magic: u32) -> FileSystem {
    let known = REMOTE.iter().find(|(number, _)| *number == magic);
    known.map_or(FileSystem::Local, |(_, name)| FileSystem::Remote(name))
}

/// The data folder is not on a disk of this machine.
#[derive(Debug, thiserror::Error)]
pub enum FileSystemError {
    /// Its file system is remote.
    #[error(
        "{folder} is on a network file system ({name}), where a SQLite database can be damaged and acknowledged games lost: \
         choose a --data folder on a disk of this machine, or, if you know that this one is safe, set \
         disk.allow_network_file_system = true in the coordinator's configuration",
        folder = folder.display()
    )]
    Remote {
        /// The folder.
        folder: PathBuf,
        /// The file system.
        name: &'static str,
    },
    /// It cannot be asked.
    #[error("failed to find out the file system of {folder}: {source}", folder = folder.display())]
    Io {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// Makes the data folder if it is missing and finds out what it lies on. Blocks.
pub(crate) fn look(folder: &Path) -> Result<FileSystem, FileSystemError> {
    let failed = |source| FileSystemError::Io {
        folder: folder.to_path_buf(),
        source,
    };
    files::create_folder(folder).map_err(failed)?;
    let stat = rustix::fs::statfs(folder).map_err(|error| failed(error.into()))?;
    // The number has 32 bits; the field is wider and may be signed.
    Ok(verdict(stat.f_type as u32))
}

/// Refuses a data folder on a remote file system, unless the configuration allows it. Blocks.
pub(crate) fn admit(folder: &Path, found: FileSystem, config: &DiskConfig) -> Result<(), FileSystemError> {
    match found {
        FileSystem::Local => Ok(()),
        FileSystem::Remote(name) if config.allow_network_file_system => {
            tracing::warn!(
                folder = %folder.display(),
                name,
                "the data folder is on a NETWORK FILE SYSTEM and disk.allow_network_file_system is set: the database can be \
                 damaged and acknowledged games lost"
            );
            Ok(())
        }
        FileSystem::Remote(name) => Err(FileSystemError::Remote {
            folder: folder.to_path_buf(),
            name,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_file_systems_are_told_from_local_ones() {
        for (magic, part) in [
            (0x6969, "NFS"),
            (0xFF53_4D42, "CIFS"),
            (0xFE53_4D42, "SMB 2"),
            (0x6573_5546, "sshfs"),
            (0x0102_1997, "9P"),
            (0x00C3_6400, "Ceph"),
            (0x0BD0_0BD0, "Lustre"),
        ] {
            let FileSystem::Remote(name) = verdict(magic) else {
                panic!("{magic:x} is {part}");
            };
            assert!(name.contains(part), "{magic:x} is {part}, not {name}");
        }
        // ext, xfs, btrfs, tmpfs, overlay, zfs, f2fs.
        for magic in [
            0xEF53,
            0x5846_5342,
            0x9123_683E,
            0x0102_1994,
            0x794C_7630,
            0x2FC1_2FC1,
            0xF2F5_2010,
        ] {
            assert_eq!(verdict(magic), FileSystem::Local, "{magic:x}");
        }
    }

    #[test]
    fn no_number_is_listed_twice() {
        let mut numbers: Vec<u32> = REMOTE.iter().map(|entry| entry.0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), REMOTE.len());
    }

    #[test]
    fn the_real_file_system_is_asked_and_a_missing_folder_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("not/yet");
        assert_eq!(look(&deep).unwrap(), FileSystem::Local);
        assert!(deep.is_dir());
    }

    #[test]
    fn a_remote_folder_is_refused_with_the_key_that_allows_it() {
        let folder = Path::new("/somewhere");
        let nfs = FileSystem::Remote("NFS");
        let config = DiskConfig::default();
        let refused = admit(folder, nfs, &config).unwrap_err().to_string();
        for part in ["/somewhere", "NFS", "--data", "disk.allow_network_file_system"] {
            assert!(refused.contains(part), "{part:?} in {refused}");
        }
        admit(folder, FileSystem::Local, &config).unwrap();
        let allowing = DiskConfig {
            allow_network_file_system: true,
            ..config
        };
        admit(folder, nfs, &allowing).unwrap();
    }
}
