//! Power cuts, replayed: what a process did to its files is recorded with strace, and the disk is rebuilt as a cut after any
//! prefix of it could leave it. (kill -9 leaves the page cache, so it cannot show this.)
//!
//! The disk here is as forgetful as POSIX allows: of a file there is what was written before its last fsync, and a name
//! (created, renamed or removed) holds only once its folder was fsynced. Shared-memory files are left out: nobody expects
//! them after a cut.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The system calls that change files or make changes durable.
const CALLS: &str = "openat,open,creat,write,pwrite64,writev,pwritev,ftruncate,truncate,fallocate,rename,renameat,renameat2,\
                     unlink,unlinkat,mkdir,mkdirat,rmdir,fsync,fdatasync,lseek,link,linkat,copy_file_range,sendfile";

/// The command that runs a program, and all it starts, under the recorder.
pub fn recorder(trace: &Path) -> Vec<OsString> {
    let calls = format!("trace={CALLS}");
    let fixed = [
        "strace",
        "-f",
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
        let mut reader = Reader {
            root: root.to_path_buf(),
            offsets: HashMap::new(),
            unfinished: HashMap::new(),
        };
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

struct Reader {
    root: PathBuf,
    /// File offsets by descriptor and path, for calls that do not name theirs; none for those that append.
    offsets: HashMap<(String, PathBuf), Option<u64>>,
    /// Calls that other threads' calls interrupted in the log, by thread.
    unfinished: HashMap<String, String>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Option<(u64, Op)> {
        let (thread, rest) = line.split_once(' ')?;
        let (begun, call) = rest.trim_start().split_once(' ')?;
        if let Some(begin) = call.strip_suffix(" <unfinished ...>") {
            self.unfinished.insert(thread.to_owned(), begin.to_owned());
            return None;
        }
        if let Some(resumed) = call.strip_prefix("<... ") {
            let whole = self.unfinished.remove(thread)? + resumed.split_once(" resumed>")?.1;
            // The line's time is the one at which the call went on, that is, returned.
            return Some((micros(begun)?, self.call(&whole)?.0));
        }
        let (op, took) = self.call(call)?;
        Some((micros(begun)? + took, op))
    }

    /// A whole call: what it did below the root, and how long it took in microseconds.
    fn call(&mut self, call: &str) -> Option<(Op, u64)> {
        let (body, took) = call.strip_suffix('>')?.rsplit_once(" <")?;
        let (body, result) = body.rsplit_once(" = ")?;
        if result.starts_with('-') || result.starts_with('?') {
            return None;
        }
        let (name, arguments) = body.split_once('(')?;
        let arguments = arguments.trim_end().strip_suffix(')')?;
        let op = self.op(name, arguments, result)?;
        Some((op, micros(took)?))
    }

    fn op(&mut self, name: &str, arguments: &str, result: &str) -> Option<Op> {
        let paths = || {
            quoted(arguments)
                .into_iter()
                .map(|path| PathBuf::from(OsString::from_vec(path)))
        };
        match name {
            "openat" | "open" | "creat" => {
                let (fd, path) = descriptor(result)?;
                self.keep(&path)?;
                let flags = arguments;
                let begin = (!flags.contains("O_APPEND")).then_some(0);
                self.offsets.insert((fd, path.clone()), begin);
                let truncate = flags.contains("O_TRUNC");
                (flags.contains("O_CREAT") || truncate).then_some(Op::Create { path, truncate })
            }
            "write" | "pwrite64" | "writev" | "pwritev" => self.write(name, arguments, result),
            "lseek" => {
                let (fd, path) = descriptor(arguments)?;
                self.keep(&path)?;
                if let Some(Some(at)) = self.offsets.get_mut(&(fd, path)) {
                    *at = result.parse().ok()?;
                }
                None
            }
            "ftruncate" | "fallocate" => {
                let (_, path) = descriptor(arguments)?;
                let len = arguments.rsplit(", ").next()?.parse().ok()?;
                assert_eq!(name, "ftruncate", "fallocate of {path:?}: the model lacks that");
                self.keep(&path)?;
                Some(Op::Resize { path, len })
            }
            "fsync" | "fdatasync" => {
                let (_, path) = descriptor(arguments)?;
                self.keep(&path)?;
                Some(Op::Sync { path })
            }
            "rename" | "renameat" | "renameat2" => {
                let (from, to) = (paths().next()?, paths().nth(1)?);
                self.keep(&to)?;
                Some(Op::Rename { from, to })
            }
            "unlink" | "unlinkat" | "rmdir" => {
                let path = paths().next()?;
                self.keep(&path)?;
                Some(Op::Remove { path })
            }
            "mkdir" | "mkdirat" => {
                let path = paths().next()?;
                self.keep(&path)?;
                Some(Op::MakeFolder { path })
            }
            other => {
                assert!(
                    paths().all(|path| self.keep(&path).is_none()),
                    "{other}: the model lacks that"
                );
                None
            }
        }
    }

    fn write(&mut self, name: &str, arguments: &str, result: &str) -> Option<Op> {
        let (fd, path) = descriptor(arguments)?;
        self.keep(&path)?;
        let mut bytes: Vec<u8> = quoted(arguments).concat();
        bytes.truncate(result.parse().ok()?);
        let offset = if name.starts_with('p') {
            Some(arguments.rsplit(", ").next()?.parse().ok()?)
        } else {
            let at = self.offsets.get_mut(&(fd, path.clone()))?;
            let offset = *at;
            *at = at.map(|at| at + bytes.len() as u64);
            offset
        };
        Some(Op::Write { path, offset, bytes })
    }

    /// Whether this path is one of ours.
    fn keep(&self, path: &Path) -> Option<()> {
        let ours = path.starts_with(&self.root) && !path.to_string_lossy().ends_with("-shm");
        ours.then_some(())
    }
}

fn micros(seconds: &str) -> Option<u64> {
    let (whole, fraction) = seconds.split_once('.')?;
    Some(whole.parse::<u64>().ok()? * 1_000_000 + fraction.parse::<u64>().ok()?)
}

/// The strings of a call, which are all in hexadecimal.
fn quoted(text: &str) -> Vec<Vec<u8>> {
    text.split('"').skip(1).step_by(2).map(unhex).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.split("\\x").filter(|digits| !digits.is_empty());
    digits
        .map(|digits| u8::from_str_radix(digits, 16).expect("the recorder writes two digits"))
        .collect()
}

/// A decorated descriptor at the beginning: its number and its path.
fn descriptor(text: &str) -> Option<(String, PathBuf)> {
    let (fd, rest) = text.split_once('<')?;
    let (path, _) = rest.split_once('>')?;
    path.starts_with("\\x")
        .then(|| (fd.to_owned(), PathBuf::from(OsString::from_vec(unhex(path)))))
}

/// What a cut leaves.
#[derive(Debug, Default)]
pub struct Disk {
    files: Vec<File>,
    /// Names as processes see them, and as they are on the disk.
    seen: Names,
    kept: Names,
}

#[derive(Clone, Debug, Default)]
struct Names {
    files: BTreeMap<PathBuf, usize>,
    folders: BTreeSet<PathBuf>,
}

#[derive(Debug, Default)]
struct File {
    /// As processes see it.
    len: u64,
    synced: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write(u64, Vec<u8>),
    Resize(u64),
}

impl Disk {
    fn apply(&mut self, op: &Op) {
        match op {
            Op::Create { path, truncate } => {
                if !self.seen.files.contains_key(path) {
                    self.files.push(File::default());
                    self.seen.files.insert(path.clone(), self.files.len() - 1);
                } else if *truncate {
                    self.change(path, |file| file.resize(0));
                }
            }
            Op::Write { path, offset, bytes } => self.change(path, |file| {
                let offset = offset.unwrap_or(file.len);
                file.len = file.len.max(offset + bytes.len() as u64);
                Change::Write(offset, bytes.clone())
            }),
            Op::Resize { path, len } => self.change(path, |file| file.resize(*len)),
            Op::Rename { from, to } => {
                if let Some(file) = self.seen.files.remove(from) {
                    self.seen.files.insert(to.clone(), file);
                } else {
                    assert!(
                        !self.seen.folders.contains(from),
                        "a folder is renamed: the model lacks that"
                    );
                }
            }
            Op::Remove { path } => {
                self.seen.files.remove(path);
                self.seen.folders.remove(path);
            }
            Op::MakeFolder { path } => {
                self.seen.folders.insert(path.clone());
            }
            Op::Sync { path } => match self.seen.files.get(path) {
                Some(&file) => self.files[file].sync(),
                None => self.sync_folder(path),
            },
        }
    }

    fn change(&mut self, path: &Path, change: impl FnOnce(&mut File) -> Change) {
        // A file that was removed while it was open changes unseen.
        if let Some(&file) = self.seen.files.get(path) {
            let file = &mut self.files[file];
            let change = change(file);
            file.pending.push(change);
        }
    }

    fn sync_folder(&mut self, folder: &Path) {
        let inside = |path: &Path| path.parent() == Some(folder);
        self.kept.files.retain(|path, _| !inside(path));
        self.kept.folders.retain(|path| !inside(path));
        let files = self.seen.files.iter().filter(|(path, _)| inside(path));
        self.kept.files.extend(files.map(|(path, &file)| (path.clone(), file)));
        let folders = self.seen.folders.iter().filter(|path| inside(path));
        self.kept.folders.extend(folders.cloned());
    }

    /// Lays the disk's part below `root` out in the folder `into`.
    pub fn lay_out(&self, root: &Path, into: &Path) {
        for (path, &file) in &self.kept.files {
            let within = path.strip_prefix(root).expect("only what is below the root was read");
            let mut above = within
                .ancestors()
                .skip(1)
                .filter(|folder| !folder.as_os_str().is_empty());
            if !above.all(|folder| self.kept.folders.contains(&root.join(folder))) {
                continue;
            }
            let target = into.join(within);
            std::fs::create_dir_all(target.parent().expect("a file lies in a folder")).expect("a folder");
            #[allow(clippy::disallowed_methods, reason = "a test's copy need not survive a crash")]
            std::fs::write(target, &self.files[file].synced).expect("a copy");
        }
    }
}

impl File {
    fn resize(&mut self, len: u64) -> Change {
        self.len = len;
        Change::Resize(len)
    }

    fn sync(&mut self) {
        for change in self.pending.drain(..) {
            match change {
                Change::Resize(len) => self.synced.resize(len as usize, 0),
                Change::Write(offset, bytes) => {
                    let (begin, end) = (offset as usize, offset as usize + bytes.len());
                    if self.synced.len() < end {
                        self.synced.resize(end, 0);
                    }
                    self.synced[begin..end].copy_from_slice(&bytes);
                }
            }
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
            let into = tempfile::tempdir().expect("a folder");
            disk.lay_out(Path::new("/r"), into.path());
            left.push((std::fs::read(into.path().join("file")).ok(), before));
        });
        assert_eq!(left[1], (None, 100_000_010));
        assert_eq!(left[5], (None, 100_000_051));
        assert_eq!(left[6], (Some(b"good".to_vec()), u64::MAX));
    }
}
