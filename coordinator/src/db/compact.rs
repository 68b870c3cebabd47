//! `db compact`: gives the space of deleted games back to the disk.
//!
//! Only while no coordinator runs: it holds the coordinator's own lock. A crash at any moment leaves the database as it
//! was or as it will be, because SQLite does this in one transaction.

use std::path::Path;

use anyhow::{Context, bail};
use indicatif::HumanBytes;
use tengen_service::lock::lock_folder;

use super::spinner;
use crate::clock::unix_ms;
use crate::store::checkpoint::fold_all;
use crate::store::trail::{self, Entry};
use crate::store::{FILE_NAME, open_writer};

/// Free space that must remain beside what the work needs, bytes.
const SPARE_BYTES: u64 = 64 << 20;

/// Makes the database of `data` as small as its rows.
pub(super) fn run(data: &Path) -> anyhow::Result<()> {
    let _held = lock_folder(data, "coordinator")?;
    let path = data.join(FILE_NAME);
    let connection = open_writer(data)?;
    fold_all(&connection)?;
    let before = std::fs::metadata(&path)?.len();
    let page_bytes: u64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let pages: u64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let free_pages: u64 = connection.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
    // The new content is built in a temporary file and then goes through the write-ahead log.
    let needed = 2 * (pages - free_pages.min(pages)) * page_bytes + SPARE_BYTES;
    let stat = rustix::fs::statvfs(data)?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if free < needed {
        bail!(
            "compacting {} needs {} for the time it takes, and {} are free: make room first, or back it up to another disk",
            path.display(),
            HumanBytes(needed),
            HumanBytes(free)
        );
    }
    // Beside the database, whose room was just looked at: the system's own folder may be a small one.
    connection.pragma_update(None, "temp_store_directory", data.display().to_string())?;
    let waiting = spinner("compacting");
    connection
        .execute_batch("VACUUM")
        .with_context(|| format!("failed to compact {}; it is as it was", path.display()))?;
    fold_all(&connection)?;
    waiting.finish_and_clear();
    let entry = Entry {
        who: "local",
        action: "compact",
        detail: "the database was made as small as its rows",
        old: &format!("{before} bytes"),
        new: &format!("{} bytes", std::fs::metadata(&path)?.len()),
    };
    trail::append(&connection, &entry, unix_ms())?;
    fold_all(&connection)?;
    connection.close().map_err(|(_, error)| error)?;
    let after = std::fs::metadata(&path)?.len();
    println!(
        "{}: {} before, {} now",
        path.display(),
        HumanBytes(before),
        HumanBytes(after)
    );
    Ok(())
}
