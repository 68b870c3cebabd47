//! The fence under which this process writes the window where others could write it too.

use rusqlite::Connection;

use super::StoreError;

/// The next fence: higher than any that was given before, and than those of runs created earlier.
pub fn next(connection: &Connection, run_created_ms: i64) -> Result<u64, StoreError> {
    let sql =
        "INSERT INTO window_fence VALUES (1, ?1) ON CONFLICT (id) DO UPDATE SET fence = fence + 1 RETURNING fence";
    Ok(connection.query_row(sql, [run_created_ms.max(1)], |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use super::super::open_writer;
    use super::*;

    #[test]
    fn every_start_has_a_higher_fence_and_a_later_run_a_higher_one_still() {
        let (early, late) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let early = open_writer(early.path()).unwrap();
        let fences: Vec<u64> = (0..3).map(|_| next(&early, 1_000_000).unwrap()).collect();
        assert_eq!(fences, [1_000_000, 1_000_001, 1_000_002]);
        let late = open_writer(late.path()).unwrap();
        assert!(next(&late, 2_000_000).unwrap() > fences[2]);
    }
}
