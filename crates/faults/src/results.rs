//! All rows in one file: complete, or refused with what is missing.

use std::path::Path;

use crate::row::{Row, Verdict, path_of};
use crate::wanted::{WANTED, Wanted};

/// The rows of a folder as one JSON list in the order of [`WANTED`], and everything that is wrong with them.
pub fn collect(folder: &Path) -> (String, Vec<String>) {
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    for wanted in WANTED {
        match read(&path_of(folder, wanted.proof)) {
            Ok(row) => {
                faults.extend(shortcomings(wanted, &row));
                rows.push(row);
            }
            Err(why) => faults.push(format!("{}: no row ({why})", wanted.proof)),
        }
    }
    let text = serde_json::to_string_pretty(&rows).expect("rows are plain data");
    (text + "\n", faults)
}

fn read(path: &Path) -> Result<Row, String> {
    let text = std::fs::read(path).map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}

/// What a row lacks of what is wanted.
fn shortcomings(wanted: &Wanted, row: &Row) -> Vec<String> {
    let mut found = Vec::new();
    if row.verdict != Verdict::Proved {
        found.push(format!("{}: not proved", wanted.proof));
        return found;
    }
    for (what, least) in wanted.least {
        let number = row.counts.get(*what).copied().unwrap_or_default();
        if number < *least {
            found.push(format!(
                "{}: {what} {number}, at least {least} are wanted",
                wanted.proof
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn write(folder: &Path, wanted: &Wanted, verdict: Verdict, less: u64) {
        let row = Row {
            proof: wanted.proof.to_owned(),
            verdict,
            counts: wanted
                .least
                .iter()
                .map(|(what, least)| ((*what).to_owned(), least - less))
                .collect(),
            measured: BTreeMap::new(),
            notes: BTreeMap::new(),
            seconds: 1.0,
            machine: "a machine".to_owned(),
            date: "2026-01-01T00:00:00Z".to_owned(),
        };
        let text = serde_json::to_vec(&row).unwrap();
        #[allow(clippy::disallowed_methods, reason = "a test's row need not survive a crash")]
        std::fs::write(path_of(folder, wanted.proof), text).unwrap();
    }

    #[test]
    fn complete_rows_are_one_list_and_whatever_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        WANTED
            .iter()
            .for_each(|wanted| write(folder.path(), wanted, Verdict::Proved, 0));
        let (text, faults) = collect(folder.path());
        assert_eq!(faults, Vec::<String>::new());
        let rows: Vec<Row> = serde_json::from_str(&text).unwrap();
        assert_eq!(rows.len(), WANTED.len());

        let counted: Vec<&Wanted> = WANTED.iter().filter(|wanted| !wanted.least.is_empty()).collect();
        write(folder.path(), counted[0], Verdict::Proved, 1);
        write(folder.path(), counted[1], Verdict::NotProved, 0);
        std::fs::remove_file(path_of(folder.path(), counted[2].proof)).unwrap();
        let (_, faults) = collect(folder.path());
        let told = faults.join("\n");
        assert_eq!(faults.len(), counted[0].least.len() + 2, "{told}");
        for part in ["at least", "not proved", "no row"] {
            assert!(told.contains(part), "{told}");
        }
    }
}
