//! The commands on a data folder: check it, copy it, make it smaller. `tengen db ...` starts them here.
//!
//! They change no game and no setting, and they repair nothing: what a check finds it names, with what to do about it.

mod backup;
mod check;
mod compact;
mod counters;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use rusqlite::{Connection, OpenFlags};

use crate::store::{self, FILE_NAME};
use backup::Damaged;

/// A command on a data folder.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Check the database, every record and every network file; ends with status 1 when something is wrong
    Check {
        #[command(flatten)]
        #[allow(missing_docs, reason = "clap would show a doc comment here as help")]
        folder: DataArgs,
    },
    /// Copy the database and the networks to a new folder, also while the coordinator runs
    Backup {
        /// The new folder
        #[arg(value_name = "FOLDER")]
        to: PathBuf,
        /// Keep the copy although the check finds faults in it
        #[arg(long)]
        even_if_damaged: bool,
        #[command(flatten)]
        #[allow(missing_docs, reason = "clap would show a doc comment here as help")]
        folder: DataArgs,
    },
    /// Give the space of deleted games back to the disk, while no coordinator runs
    Compact {
        #[command(flatten)]
        #[allow(missing_docs, reason = "clap would show a doc comment here as help")]
        folder: DataArgs,
    },
}

/// Which data folder.
#[derive(Args, Clone, Debug)]
pub(crate) struct DataArgs {
    /// The run's data folder [default: the only run in ./data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl DataArgs {
    /// The folder, which holds a database.
    fn find(&self) -> anyhow::Result<PathBuf> {
        let data = match &self.data {
            Some(data) => data.clone(),
            None => only_run(Path::new("data"))?,
        };
        if !data.join(FILE_NAME).exists() {
            bail!("{} holds no run: there is no {FILE_NAME}", data.display());
        }
        Ok(data)
    }
}

fn only_run(parent: &Path) -> anyhow::Result<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let mut runs: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.join(FILE_NAME).exists())
        .collect();
    runs.sort();
    match &runs[..] {
        [run] => Ok(run.clone()),
        [] => bail!("there is no run in {}: name its folder with --data", parent.display()),
        many => {
            let names: Vec<String> = many.iter().map(|path| path.display().to_string()).collect();
            bail!(
                "there is more than one run: name one with --data ({})",
                names.join(", ")
            )
        }
    }
}

/// Runs one command to its end.
pub(crate) fn run(command: DbCommand) -> anyhow::Result<()> {
    match command {
        DbCommand::Check { folder } => check::run(&folder.find()?),
        DbCommand::Backup {
            to,
            even_if_damaged,
            folder,
        } => {
            let damaged = if even_if_damaged {
                Damaged::Kept
            } else {
                Damaged::Dropped
            };
            backup::run(&folder.find()?, &to, damaged)
        }
        DbCommand::Compact { folder } => compact::run(&folder.find()?),
    }
}

/// Opens a database to read it. Only one of this build's schema is looked into.
fn open_reader(data: &Path) -> anyhow::Result<Connection> {
    let path = data.join(FILE_NAME);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || -> Result<_, store::StoreError> {
        let connection = Connection::open_with_flags(&path, flags)?;
        connection.busy_timeout(store::BUSY_TIMEOUT)?;
        store::expect_current(&connection, &path)?;
        Ok(connection)
    };
    open().with_context(|| format!("failed to read {}", path.display()))
}

/// How far something long has come; hidden when standard error is no terminal.
fn bar(what: &'static str, of: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:24} [{bar:30}] {percent:>3} %  {eta} left");
    ProgressBar::new(of)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_message(what)
}

/// That something long is going on whose length nobody knows.
fn spinner(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(what);
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    bar
}
