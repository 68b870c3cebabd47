//! Reads a recorder's log: which calls changed what below a folder.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::Op;

pub(super) struct Reader {
    root: PathBuf,
    /// File offsets by descriptor and path, for calls that do not name theirs; none for those that append.
    offsets: HashMap<(String, PathBuf), Option<u64>>,
    /// Calls that other threads' calls interrupted in the log, by thread.
    unfinished: HashMap<String, String>,
}

impl Reader {
    /// A reader of what happened below `root`.
    pub(super) fn new(root: &Path) -> Reader {
        Reader {
            root: root.to_path_buf(),
            offsets: HashMap::new(),
            unfinished: HashMap::new(),
        }
    }

    /// What the next line tells: when a call had returned, and what it did.
    pub(super) fn line(&mut self, line: &str) -> Option<(u64, Op)> {
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
