//! The disk as calls leave it, with what a power cut takes away.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::Op;

/// Which names a cut leaves. Of the data of a file there is always what was fsynced, and no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Those that were fsynced with their folder.
    Synced,
    /// Those that processes saw: a file may be there under its new name before its data is.
    Seen,
}

/// What a cut leaves.
#[derive(Debug, Default)]
pub struct Disk {
    files: Vec<File>,
    /// Names as processes see them, and as they are on the disk.
    seen: Tree,
    kept: Tree,
}

#[derive(Clone, Debug, Default)]
struct Tree {
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
    pub(super) fn apply(&mut self, op: &Op) {
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
    ///
    /// # Panics
    /// When that folder cannot be written.
    pub fn lay_out(&self, root: &Path, into: &Path, names: Names) {
        let tree = match names {
            Names::Synced => &self.kept,
            Names::Seen => &self.seen,
        };
        for (path, &file) in &tree.files {
            let within = path.strip_prefix(root).expect("only what is below the root was read");
            let mut above = within
                .ancestors()
                .skip(1)
                .filter(|folder| !folder.as_os_str().is_empty());
            if !above.all(|folder| tree.folders.contains(&root.join(folder))) {
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
