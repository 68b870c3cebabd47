//! `db backup`: the database and the networks in a new folder, as they were at one moment, checked before it gets its name.
//!
//! The learner's checkpoints, the actors' spools and logs are not part of it: they belong to other processes.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use tengen_service::files::{create_folder, sync_folder, write_atomic_with};

use super::{bar, check, open_reader};
use crate::store::checkpoint::fold_all;
use crate::store::{FILE_NAME, open_writer, progress, retention, snapshot};

/// Folder of network files within a data folder.
const MODELS: &str = "models";

/// What becomes of a copy in which the check finds faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Damaged {
    /// It is removed, and the command fails.
    Dropped,
    /// It is a backup all the same.
    Kept,
}

/// Makes the backup `to` of the folder `data`.
pub(super) fn run(data: &Path, to: &Path, damaged: Damaged) -> anyhow::Result<()> {
    if to.exists() {
        bail!("{} is there already: a backup goes into a new folder", to.display());
    }
    let parent = match to.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    create_folder(parent).with_context(|| format!("failed to make {}", parent.display()))?;
    let unfinished = tempfile::Builder::new()
        .prefix(".backup-")
        .permissions(std::fs::Permissions::from_mode(0o755))
        .tempdir_in(parent)
        .with_context(|| format!("failed to make a folder in {}", parent.display()))?;
    let models = copy(data, unfinished.path())?;
    let report = check::check(unfinished.path())?;
    if report.faults() > 0 {
        report.print();
        if damaged == Damaged::Dropped {
            bail!(
                "{} faults in the copy, which is not kept: see `tengen db check` for the original; --even-if-damaged keeps it",
                report.faults()
            );
        }
    }
    tidy(unfinished.path())?;
    sync_folder(unfinished.path())?;
    // Kept from here on: nothing that follows may delete it.
    let path: PathBuf = unfinished.keep();
    std::fs::rename(&path, to)
        .and_then(|()| sync_folder(parent))
        .with_context(|| {
            format!(
                "the backup is whole and lies in {}, but could not be called {}",
                path.display(),
                to.display()
            )
        })?;
    let bytes = std::fs::metadata(to.join(FILE_NAME))?.len();
    println!(
        "{}: {} of database and {models} networks{}",
        to.display(),
        indicatif::HumanBytes(bytes),
        if report.faults() > 0 {
            ", with the faults above"
        } else {
            ", checked"
        }
    );
    Ok(())
}

/// Copies the networks, the database, and the networks that came meanwhile; returns how many there are.
fn copy(data: &Path, to: &Path) -> anyhow::Result<usize> {
    let source = open_reader(data)?;
    // Networks first: one that retention removes after the database's moment would be missed otherwise.
    let mut copied = BTreeSet::new();
    copy_models(&retention::held_models(&source)?, data, to, &mut copied)?;
    let copying = bar("copying the database", 0);
    snapshot::copy(&source, &to.join(FILE_NAME), |now| {
        copying.set_length(now.of);
        copying.set_position(now.pages);
    })?;
    copying.finish_and_clear();
    mark(to)?;
    let held = retention::held_models(&open_reader(to)?)?;
    copy_models(&held, data, to, &mut copied)?;
    // What the database no longer names is no part of its moment.
    let files = held.iter().flat_map(retention::HeldModel::files);
    let named: BTreeSet<&str> = files.map(|(_, name)| name).collect();
    for stale in copied.iter().filter(|name| !named.contains(name.as_str())) {
        std::fs::remove_file(to.join(MODELS).join(stale))?;
    }
    Ok(held.len())
}

/// Marks the copy as one: whoever starts on it must not take up where mirrors of the original are.
fn mark(to: &Path) -> anyhow::Result<()> {
    let copy = open_writer(to)?;
    let mut standing = progress::load(&copy)?;
    standing.window_epoch = progress::EPOCH_OF_A_BACKUP;
    Ok(progress::save(&copy, &standing)?)
}

/// Takes away what readers leave beside a database: the copy is one file.
fn tidy(to: &Path) -> anyhow::Result<()> {
    let copy = open_writer(to)?;
    fold_all(&copy)?;
    Ok(copy.close().map_err(|(_, error)| error)?)
}

fn copy_models(
    held: &[retention::HeldModel],
    data: &Path,
    to: &Path,
    copied: &mut BTreeSet<String>,
) -> anyhow::Result<()> {
    let files: Vec<&str> = held
        .iter()
        .flat_map(retention::HeldModel::files)
        .map(|(_, name)| name)
        .collect();
    let progress = bar("copying the networks", files.len() as u64);
    for file_name in files {
        progress.inc(1);
        if copied.contains(file_name) {
            continue;
        }
        let from = data.join(MODELS).join(file_name);
        let mut source = match File::open(&from) {
            Ok(source) => source,
            // Gone since the table was read, or lost: the check of the copy tells which.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(|| format!("failed to read {}", from.display())),
        };
        write_atomic_with(&to.join(MODELS).join(file_name), |file| {
            io::copy(&mut source, file).map(drop)
        })?;
        copied.insert(file_name.to_owned());
    }
    progress.finish_and_clear();
    Ok(())
}
