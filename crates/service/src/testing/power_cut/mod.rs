//! Power cuts, replayed: what a process did to its files is recorded with strace, and the disk is rebuilt as a cut after any
//! prefix of it could leave it. (kill -9 leaves the page cache, so it cannot show this.)
//!
//! The disk here is as forgetful as POSIX allows: of a file there is what was written before its last fsync, and a name
//! (created, renamed or removed) holds only once its folder was fsynced, or else at once ([`Names`]): disks do both.
//! Shared-memory files are left out: nobody expects them after a cut.

mod disk;
mod reader;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use disk::{Disk, Names};
use reader::Reader;

/// The system calls that change files or make changes durable.
const CALLS: &str = "openat,open,creat,write,pwrite64,writev,pwritev,ftruncate,truncate,fallocate,rename,renameat,renameat2,\
                     unlink,unlinkat,mkdir,mkdirat,rmdir,fsync,fdatasync,lseek,link,linkat,copy_file_range,sendfile";

/// The command that runs a program, and all it starts, under the recorder. What is in the trace already stays: a process
/// that is started again goes on in it.
pub fn recorder(trace: &Path) -> Vec<OsString> {
    let calls = format!("trace={CALLS}");
    let fixed = [
        "strace",
        "-f",
        "-A",
        "--seccomp-bpf",
        "-ttt",
        "-T",
        "-y",
        "-s",
        "67108864",
        "--strings-in-hex=all",
        "-e",
    ];
    let mut command: Vec<OsString> = fixed.iter().map(OsString::from).collect();
    command.extend([calls.into(), "-o".into(), trace.into()]);
    command
}

/// One thing that was done to the files below a folder.
#[derive(Debug)]
enum Op {
    Create {
        path: PathBuf,
        truncate: bool,
    },
    /// Without an offset it appends.
    Write {
        path: PathBuf,
        offset: Option<u64>,
        bytes: Vec<u8>,
    },
    Resize {
        path: PathBuf,
        len: u64,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    Remove {
        path: PathBuf,
    },
    MakeFolder {
        path: PathBuf,
    },
    Sync {
        path: PathBuf,
    },
}

/// What was recorded, in the order in which the calls returned.
#[derive(Debug)]
pub struct Trace {
    /// Microseconds since the Unix epoch at which each call had returned.
    times: Vec<u64>,
    ops: Vec<Op>,
}

impl Trace {
    /// Reads what was done below `root`.
    ///
    /// # Panics
    /// On a call that this model does not know.
    pub fn read(trace: &Path, root: &Path) -> Trace {
        let text = std::fs::read_to_string(trace).expect("the recorder wrote a trace");
        let mut reader = Reader::new(root);
        let (mut times, mut ops) = (Vec::new(), Vec::new());
        for line in text.lines() {
            if let Some((time, op)) = reader.line(line) {
                times.push(time);
                ops.push(op);
            }
        }
        Trace { times, ops }
    }

    /// Number of calls.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Number of fsyncs.
    pub fn syncs(&self) -> usize {
        self.ops.iter().filter(|op| matches!(op, Op::Sync { .. })).count()
    }

    /// Visits the disk as it is left by a cut after each of these numbers of calls (ascending), with the time before which
    /// everything that was promised must be found on it.
    pub fn cuts(&self, after: impl IntoIterator<Item = usize>, mut visit: impl FnMut(&Disk, u64)) {
        let mut disk = Disk::default();
        let mut done = 0;
        for calls in after {
            while done < calls.min(self.ops.len()) {
                disk.apply(&self.ops[done]);
                done += 1;
            }
            visit(&disk, self.times.get(done).copied().unwrap_or(u64::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> String {
        text.bytes().map(|byte| format!("\\x{byte:02x}")).collect()
    }

    /// A trace of a file that is written, synced, renamed, and its folder synced.
    fn trace(folder: &Path) -> Trace {
        let (temp, file, root) = (hex("/r/.new"), hex("/r/file"), hex("/r"));
        let lines = [
            format!("7 100.000001 openat(AT_FDCWD<{root}>, \"{temp}\", O_RDWR|O_CREAT, 0600) = 3<{temp}> <0.000002>"),
            format!("7 100.000005 write(3<{temp}>, \"{}\", 4 <unfinished ...>", hex("good")),
            format!(
                "8 100.000006 write(9<{}>, \"{}\", 1) = 1 <0.000001>",
                hex("/else"),
                hex("x")
            ),
            "7 100.000010 <... write resumed>) = 4 <0.000005>".to_owned(),
            format!("7 100.000020 fsync(3<{temp}>) = 0 <0.000004>"),
            format!("7 100.000030 write(3<{temp}>, \"{}\", 4) = 2 <0.000001>", hex("lost")),
            format!("7 100.000040 rename(\"{temp}\", \"{file}\") = 0 <0.000001>"),
            format!("7 100.000050 fsync(4<{root}>) = 0 <0.000001>"),
        ];
        let path = folder.join("trace");
        #[allow(clippy::disallowed_methods, reason = "a test's trace need not survive a crash")]
        std::fs::write(&path, lines.join("\n")).expect("a trace");
        Trace::read(&path, Path::new("/r"))
    }

    #[test]
    fn only_what_was_synced_under_a_name_that_was_synced_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = trace(folder.path());
        assert_eq!((trace.len(), trace.syncs()), (6, 2));
        let mut left = Vec::new();
        trace.cuts(0..=6, |disk, before| {
            let [kept, seen] = [Names::Synced, Names::Seen].map(|names| {
                let into = tempfile::tempdir().expect("a folder");
                disk.lay_out(Path::new("/r"), into.path(), names);
                std::fs::read(into.path().join("file")).ok()
            });
            left.push((kept, seen, before));
        });
        let good = Some(b"good".to_vec());
        assert_eq!(left[1], (None, None, 100_000_010));
        assert_eq!(left[5], (None, good.clone(), 100_000_051));
        assert_eq!(left[6], (good.clone(), good, u64::MAX));
    }
}
