//! `db check`: whether a data folder holds what it should, without changing anything.
//!
//! The order is that of trust: the file itself, its references, the counters, then every record against the hash that was
//! noted when it was stored, and every network file against its name.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::bail;
use rusqlite::Connection;

use super::{bar, counters, open_reader, spinner};
use crate::files::ModelFiles;
use crate::store::games::{damaged_game, is_sound};
use crate::store::retention::{self, HeldModel};
use crate::store::{FILE_NAME, StoreError};

/// Findings that are told in full; the rest is counted.
const FINDINGS_MAX: usize = 1_000;
/// Faults of the file that SQLite is asked for.
const FILE_FAULTS_MAX: u32 = 100;
/// Games of one read: no reader holds the log for longer.
const PAGE_GAMES: u32 = 256;

/// What to do about a damaged file.
const RESTORE: &str = "restore the last good backup (docs/data.md); what is still readable can be saved first with \
                       `sqlite3 tengen.db .recover`";
/// What to do about counters.
const COUNTERS: &str = "the run goes on, but please report this with the output of this command; a backup from before is \
                        in order when it passes the same check";

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// What, with the row's ids.
    pub(super) what: String,
    /// What to do about it.
    pub(super) remedy: &'static str,
}

/// What a check found.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) findings: Vec<Finding>,
    /// Findings beyond those.
    more: u64,
    /// Worth knowing, and no fault.
    notes: Vec<String>,
    games: u64,
    models: u64,
}

impl Report {
    pub(super) fn add(&mut self, what: String, remedy: &'static str) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { what, remedy });
        } else {
            self.more += 1;
        }
    }

    /// Adds a fault of the counters.
    pub(super) fn add_counter(&mut self, what: String) {
        self.add(what, COUNTERS);
    }

    pub(super) fn faults(&self) -> u64 {
        self.findings.len() as u64 + self.more
    }

    /// Tells what was found, each remedy once for a run of findings that share it.
    pub(super) fn print(&self) {
        for (n, finding) in self.findings.iter().enumerate() {
            println!("{}", finding.what);
            let next = self.findings.get(n + 1);
            if next.is_none_or(|next| next.remedy != finding.remedy) {
                println!("  what to do: {}", finding.remedy);
            }
        }
        if self.more > 0 {
            println!("... and {} more", self.more);
        }
        for note in &self.notes {
            println!("note: {note}");
        }
    }
}

/// Checks and tells; an error when something is wrong.
pub(super) fn run(data: &Path) -> anyhow::Result<()> {
    let report = check(data)?;
    report.print();
    let (games, models) = (report.games, report.models);
    if report.faults() > 0 {
        bail!(
            "{} faults in {} ({games} games and {models} networks checked)",
            report.faults(),
            data.display()
        );
    }
    println!(
        "{} is sound: {games} games and {models} networks checked",
        data.display()
    );
    Ok(())
}

/// Checks everything.
pub(super) fn check(data: &Path) -> anyhow::Result<Report> {
    let connection = open_reader(data)?;
    let mut report = Report::default();
    let waiting = spinner("checking the file");
    let file = check_file(&connection, &mut report);
    waiting.finish_and_clear();
    // A file that is damaged in its structure makes every further question a gamble; answers are still worth having.
    let rest = file.and_then(|()| {
        counters::check(&connection, &mut report)?;
        check_records(&connection, &mut report)?;
        check_models(&connection, data, &mut report)
    });
    if let Err(error) = rest {
        report.add(
            format!(
                "{} could not be read to its end: {error}",
                data.join(FILE_NAME).display()
            ),
            RESTORE,
        );
    }
    Ok(report)
}

fn check_file(connection: &Connection, report: &mut Report) -> Result<(), StoreError> {
    let mut statement = connection.prepare(&format!("PRAGMA integrity_check({FILE_FAULTS_MAX})"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let verdict: String = row.get(0)?;
        if verdict != "ok" {
            report.add(format!("{FILE_NAME}: {verdict}"), RESTORE);
        }
    }
    let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (table, id, parent): (String, Option<i64>, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let id = id.map_or_else(|| "a row".to_owned(), |id| format!("row {id}"));
        report.add(
            format!("table {table}: {id} names a row of {parent} that is not there"),
            RESTORE,
        );
    }
    Ok(())
}

/// Every record against the hash of its id, a page of games at a time.
fn check_records(connection: &Connection, report: &mut Report) -> Result<(), StoreError> {
    let of: u64 = connection.query_row("SELECT count(*) FROM games", [], |row| row.get(0))?;
    let bar = bar("checking the records", of);
    let sql = "SELECT games.sequence, lease, game_index, record, hash FROM games LEFT JOIN game_ids \
               USING (lease, game_index) WHERE games.sequence > ?1 ORDER BY games.sequence LIMIT ?2";
    let mut statement = connection.prepare(sql)?;
    let mut after: u64 = 0;
    loop {
        let mut rows = statement.query([after, PAGE_GAMES.into()])?;
        let mut games = 0;
        while let Some(row) = rows.next()? {
            (games, after) = (games + 1, row.get(0)?);
            let hash = row.get_ref(4)?.as_blob_or_null()?;
            if !is_sound(row.get_ref(3)?.as_bytes()?, hash) {
                let game = damaged_game(after, row.get_ref(1)?.as_bytes()?, row.get(2)?);
                report.add(
                    format!("table games: the record of {game} is not the one that was stored"),
                    "the game is left out of the window from the next start on and never served; a backup that holds it \
                     can bring it back",
                );
            }
        }
        if games == 0 {
            break;
        }
        report.games += games;
        bar.inc(games);
    }
    bar.finish_and_clear();
    Ok(())
}

/// Every network file against its name, and the folder against the table.
fn check_models(connection: &Connection, data: &Path, report: &mut Report) -> Result<(), StoreError> {
    let files = ModelFiles::new(data);
    let held = retention::held_models(connection)?;
    let bar = bar("checking the networks", held.len() as u64);
    for model in &held {
        report.models += 1;
        bar.inc(1);
        for (id, file_name) in model.files() {
            let problem = match files.verify(id, file_name) {
                Ok(true) => continue,
                Ok(false) => "does not hold the bytes its name says".to_owned(),
                Err(error) => format!("cannot be read ({error})"),
            };
            let table = if id == model.id { "models" } else { "model_variants" };
            // Retention may have removed it since the table was read.
            if is_held(connection, model)? {
                report.add(
                    format!(
                        "table {table}: the file models/{file_name} of network {} {problem}",
                        model.number
                    ),
                    "copy the file from a backup, or from whoever pulled the network: its name is the hash of its bytes",
                );
            }
        }
    }
    bar.finish_and_clear();
    let names = held.iter().flat_map(HeldModel::files).map(|(_, name)| name);
    let known: BTreeSet<&str> = names.collect();
    for name in files.names().unwrap_or_default() {
        if !known.contains(name.as_str()) {
            let note = format!(
                "models/{name} belongs to no network that is kept; it may be deleted while no coordinator runs"
            );
            report.notes.push(note);
        }
    }
    Ok(())
}

fn is_held(connection: &Connection, model: &HeldModel) -> Result<bool, StoreError> {
    let sql = "SELECT count(*) FROM models WHERE number = ?1 AND removed_ms IS NULL";
    Ok(connection.query_row(sql, [model.number], |row| row.get::<_, u32>(0))? > 0)
}
