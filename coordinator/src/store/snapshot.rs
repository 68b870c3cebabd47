//! A copy of the database as it is at one moment, while others go on writing to it.
//!
//! It copies the database alone: the network files are copied by whoever wants a whole backup.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use tengen_service::files::{create_folder, sync_folder};

use super::StoreError;

/// Pages of one step, between two reports of progress: 16 MiB.
const STEP_PAGES: i32 = 4_096;

/// How far a copy has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Pages copied.
    pub pages: u64,
    /// Pages there are.
    pub of: u64,
}

/// Copies the database behind `connection` to `path`, replacing what is there. The copy is checked, whole and durable
/// when this returns; when it fails, `path` is as it was. Blocks for as long as the copy takes; writers do not wait.
pub fn copy(connection: &Connection, path: &Path, mut progress: impl FnMut(Copied)) -> Result<(), StoreError> {
    let failed = |reason: String| StoreError::Copy {
        path: path.to_path_buf(),
        reason,
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    create_folder(folder).map_err(|error| failed(error.to_string()))?;
    let temporary = tempfile::Builder::new()
        .prefix(".copying-")
        .permissions(std::fs::Permissions::from_mode(0o644))
        .tempfile_in(folder)
        .map_err(|error| failed(error.to_string()))?;
    copy_pages(connection, temporary.path(), &mut progress).map_err(|error| failed(error.to_string()))?;
    temporary
        .as_file()
        .sync_all()
        .map_err(|error| failed(error.to_string()))?;
    temporary
        .persist(path)
        .map_err(|error| failed(error.error.to_string()))?;
    sync_folder(folder).map_err(|error| failed(error.to_string()))
}

fn copy_pages(source: &Connection, to: &Path, progress: &mut impl FnMut(Copied)) -> Result<(), StoreError> {
    let mut target = Connection::open(to)?;
    // The file counts for nothing before it is whole, synced and renamed.
    target.query_row("PRAGMA journal_mode = OFF", [], |_| Ok(()))?;
    target.pragma_update(None, "synchronous", "OFF")?;
    // One reading transaction over all steps: without it every commit of the owner would begin the copy anew.
    let moment = source.unchecked_transaction()?;
    moment.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    let backup = Backup::new(&moment, &mut target)?;
    loop {
        let step = backup.step(STEP_PAGES)?;
        let now = backup.progress();
        let of = now.pagecount.unsigned_abs();
        progress(Copied {
            pages: u64::from(of.saturating_sub(now.remaining.unsigned_abs())),
            of: u64::from(of),
        });
        match step {
            StepResult::Done => break,
            StepResult::More => {}
            other => return Err(StoreError::corrupt("copy", format!("{other:?} while it is read"))),
        }
    }
    drop(backup);
    let verdict: String = target.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict != "ok" {
        return Err(StoreError::corrupt("page in the copy", verdict));
    }
    target.close().map_err(|(_, error)| error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{FILE_NAME, open_writer};
    use super::*;

    #[test]
    fn a_copy_is_of_one_moment_although_the_writer_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let writer = open_writer(folder.path()).unwrap();
        let insert = |n: i64| {
            let sql = "INSERT INTO audit (id, at_ms, who, action, detail) VALUES (?1, 0, 'test', 'test', ?2)";
            writer.execute(sql, (n, "x".repeat(1 << 20))).unwrap();
        };
        // More than one step of pages.
        (1..=40).for_each(insert);
        let reader = Connection::open(folder.path().join(FILE_NAME)).unwrap();
        let (mut steps, target) = (0, folder.path().join("copy.db"));
        copy(&reader, &target, |copied| {
            assert!(copied.pages <= copied.of);
            steps += 1;
            insert(40 + steps);
        })
        .unwrap();
        assert!(steps >= 2, "{steps} steps: the copy was of no duration");
        let count = |path: &Path| -> i64 {
            let connection = Connection::open(path).unwrap();
            connection
                .query_row("SELECT count(*) FROM audit", [], |row| row.get(0))
                .unwrap()
        };
        assert_eq!(count(&target), 40);
        assert_eq!(count(&folder.path().join(FILE_NAME)), 40 + steps);
    }
}
