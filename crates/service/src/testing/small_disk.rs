//! A disk that fills up: a real one of a few megabytes, in memory, that one test has to itself.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the disk is, in the process that has one.
const DISK: &str = "TENGEN_TEST_SMALL_DISK";

/// A disk of so many mebibytes: in the process that has one its folder; otherwise the test with this full name is run
/// again in such a process, which must succeed, and there is nothing more to do here.
///
/// The disk lives in a mount namespace of that process (in a user namespace, too, for whoever is not root), so that
/// nothing is left behind however it ends.
///
/// # Panics
/// When there can be no such process, or the test fails in it.
pub fn small_disk(mebibytes: u32, test: &str) -> Option<PathBuf> {
    if let Some(disk) = std::env::var_os(DISK) {
        return Some(disk.into());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let script = r#"
        if [ "$(id -u)" = 0 ]; then space=--mount; else space="--user --map-root-user --mount"; fi
        exec unshare $space sh -c 'mount -t tmpfs -o size="$1"m tengen-test "$2" && shift 2 && exec "$@"' sh "$@"
    "#;
    let output = Command::new("sh")
        .args(["-c", script, "sh", &mebibytes.to_string()])
        .arg(folder.path())
        .arg(std::env::current_exe().expect("a test knows its program"))
        .args(["--exact", test, "--nocapture"])
        .env(DISK, folder.path())
        .output()
        .expect("sh can be started");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    None
}

/// Takes all room on the disk but about `left` bytes; the room is there again when the file is removed.
///
/// # Panics
/// When the disk cannot be written at all.
pub fn fill(disk: &Path, left: u64) -> PathBuf {
    let path = disk.join("ballast");
    let mut ballast = File::create(&path).expect("a file");
    for chunk in [1 << 20, 4 << 10] {
        while ballast.write_all(&vec![1; chunk]).is_ok() {}
    }
    let len = ballast.metadata().expect("a file has a length").len();
    ballast.set_len(len.saturating_sub(left)).expect("a file can be cut");
    path
}

/// Gives `bytes` of the ballast's room back.
///
/// # Panics
/// When there is no ballast.
pub fn give_room(ballast: &Path, bytes: u64) {
    let ballast = OpenOptions::new().write(true).open(ballast).expect("the ballast");
    let len = ballast.metadata().expect("a file has a length").len();
    ballast.set_len(len.saturating_sub(bytes)).expect("a file can be cut");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;

    #[test]
    fn a_full_disk_takes_nothing_until_there_is_room() {
        let name = "testing::small_disk::tests::a_full_disk_takes_nothing_until_there_is_room";
        let Some(disk) = small_disk(2, name) else { return };
        let ballast = fill(&disk, 64 << 10);
        let path = disk.join("file");
        files::write_atomic(&path, &[1; 32 << 10]).unwrap();
        let refused = files::write_atomic(&path, &[2; 128 << 10]).unwrap_err();
        assert!(refused.is_out_of_room(), "{refused}");
        assert_eq!(std::fs::read(&path).unwrap(), [1; 32 << 10]);
        give_room(&ballast, 256 << 10);
        files::write_atomic(&path, &[2; 128 << 10]).unwrap();
    }
}
