//! `tengen runs`: the data folders of this machine, whether their coordinators run or not. Nothing here starts a run or
//! waits for one.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Subcommand;
use indicatif::HumanBytes;
use rusqlite::{Connection, OpenFlags};
use tengen_games::AnyGame;
use tengen_network::Shape;
use tengen_service::files::{create_folder, write_atomic};
use tengen_service::lock::is_held;
use tengen_service::run_config::RunConfig;

use crate::disk::folder_bytes;
use crate::settings::{Assignment, rewrite};
use crate::store::{FILE_NAME, StoreError, expect_current, progress, steering};

/// The run file within the data folder of a run that was made here.
const RUN_FILE: &str = "run.toml";
/// The file with the address of a coordinator that `tengen up` started.
const ADDRESS_FILE: &str = "coordinator.addr";
/// How long another process may hold a database up: a list is no reason to wait.
const BUSY_TIMEOUT: Duration = Duration::from_millis(500);

/// A command about the runs of this machine.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List the runs of this machine: what they are, how far they are, and whether they are being served
    List {
        /// The folder of their data folders
        #[arg(long, value_name = "DIR", default_value = "data")]
        dir: PathBuf,
    },
    /// Make the data folder of a new run, with a run file in it that may be edited until the first start
    New {
        /// Name of the run: letters, digits, `-`, `_`, `.`
        name: String,
        /// The run file to begin from
        #[arg(long, value_name = "FILE", default_value = "runs/quickstart.toml")]
        from: PathBuf,
        /// A key of the new run file: `run.game=hex`, `network.blocks=6`
        #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse)]
        assignments: Vec<Assignment>,
        /// The folder of the data folders
        #[arg(long, value_name = "DIR", default_value = "data")]
        dir: PathBuf,
    },
}

fn parse(text: &str) -> Result<Assignment, String> {
    let (key, value) = text.split_once('=').ok_or_else(|| "it is not KEY=VALUE".to_owned())?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// Runs one command to its end.
pub(crate) fn run(command: RunsCommand) -> anyhow::Result<()> {
    match command {
        RunsCommand::List { dir } => {
            print!("{}", table(&list(&dir)?));
            Ok(())
        }
        RunsCommand::New {
            name,
            from,
            assignments,
            dir,
        } => {
            let file = new(&dir, &name, &from, assignments)?;
            let data = file.parent().unwrap_or(&dir).display();
            println!("{}", file.display());
            println!("start it with: tengen up --run {} --data {data}", file.display());
            Ok(())
        }
    }
}

/// A run as it lies there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listed {
    folder: PathBuf,
    name: String,
    game: String,
    /// Generation, iteration and self-play games; none before the first start.
    progress: Option<(u32, u32, u64)>,
    bytes: u64,
    standing: Standing,
}

/// What goes on with a run.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    /// It was made and never started.
    New,
    AtRest,
    /// A coordinator runs on it, at this address when it was left there.
    Served(Option<String>),
    Ended,
    /// It cannot be read by this build.
    Unreadable(String),
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Standing::New => f.write_str("not started yet"),
            Standing::AtRest => f.write_str("at rest"),
            Standing::Served(Some(address)) => write!(f, "served at {address}"),
            Standing::Served(None) => f.write_str("served"),
            Standing::Ended => f.write_str("ended"),
            Standing::Unreadable(why) => write!(f, "cannot be read: {why}"),
        }
    }
}

/// Every run in the folders of `dir`, by name.
fn list(dir: &Path) -> anyhow::Result<Vec<Listed>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("failed to read {}", dir.display())),
    };
    let mut runs: Vec<Listed> = entries.flatten().filter_map(|entry| look(&entry.path())).collect();
    runs.sort_by(|left, right| left.folder.cmp(&right.folder));
    Ok(runs)
}

/// The run in a folder, if there is one.
fn look(folder: &Path) -> Option<Listed> {
    let name = folder.file_name()?.to_string_lossy().into_owned();
    let mut listed = Listed {
        folder: folder.to_path_buf(),
        name,
        game: String::new(),
        progress: None,
        bytes: folder_bytes(folder, 0),
        standing: Standing::New,
    };
    if !folder.join(FILE_NAME).exists() {
        let config = RunConfig::from_toml(&std::fs::read_to_string(folder.join(RUN_FILE)).ok()?).ok()?;
        (listed.name, listed.game) = (config.run.name, config.run.game);
        return Some(listed);
    }
    let served = is_held(folder, "coordinator").unwrap_or(false);
    match read(folder, &mut listed) {
        // Tokens may have been made before the run.
        Ok(None) if !served => {}
        Ok(_) if served => listed.standing = Standing::Served(address(folder)),
        Ok(Some(true)) => listed.standing = Standing::Ended,
        Ok(_) => listed.standing = Standing::AtRest,
        Err(error) => listed.standing = Standing::Unreadable(error.to_string()),
    }
    Some(listed)
}

/// Fills in what the database says, and tells whether the run has ended; `None` when there is no run in it yet.
fn read(folder: &Path, listed: &mut Listed) -> Result<Option<bool>, StoreError> {
    let path = folder.join(FILE_NAME);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    expect_current(&connection, &path)?;
    let Some(run) = progress::run(&connection)? else {
        return Ok(None);
    };
    (listed.name, listed.game) = (run.run_id, run.game);
    let standing = progress::load(&connection)?;
    listed.progress = Some((standing.generation, standing.iteration, standing.self_play_games));
    Ok(Some(steering::load(&connection)?.steering.ended))
}

fn address(folder: &Path) -> Option<String> {
    let text = std::fs::read_to_string(folder.join(ADDRESS_FILE)).ok()?;
    Some(text.trim().to_owned()).filter(|address| !address.is_empty())
}

fn table(runs: &[Listed]) -> String {
    let row = |run: &Listed| {
        let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        format!(
            "{:<20}  {:<24}  {:>10}  {:>9}  {:>8}  {:>10}  {}  {}\n",
            run.name,
            run.game,
            number(run.progress.map(|progress| progress.0.into())),
            number(run.progress.map(|progress| progress.1.into())),
            number(run.progress.map(|progress| progress.2)),
            HumanBytes(run.bytes).to_string(),
            run.folder.display(),
            run.standing
        )
    };
    let head = format!(
        "{:<20}  {:<24}  {:>10}  {:>9}  {:>8}  {:>10}  FOLDER  STANDING\n",
        "RUN", "GAME", "GENERATION", "ITERATION", "GAMES", "SIZE"
    );
    std::iter::once(head).chain(runs.iter().map(row)).collect()
}

/// Makes the folder of a new run and writes its run file, which is returned.
fn new(dir: &Path, name: &str, from: &Path, mut assignments: Vec<Assignment>) -> anyhow::Result<PathBuf> {
    let preset = std::fs::read_to_string(from).with_context(|| format!("failed to read {}", from.display()))?;
    // Quoted, so that a name that looks like a number stays a name.
    assignments.push(("run.name".to_owned(), toml::Value::String(name.to_owned()).to_string()));
    let text = rewrite(&preset, &assignments)?;
    let config = RunConfig::from_toml(&text)?;
    let game = AnyGame::parse(&config.run.game)?;
    Shape::new(game.spec(), &config.network).context("[network]")?;
    let folder = dir.join(&config.run.name);
    if folder.exists() {
        bail!("{} is there already: give the run another name", folder.display());
    }
    create_folder(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
    let file = folder.join(RUN_FILE);
    write_atomic(&file, format!("# From {}\n\n{text}", from.display()).as_bytes())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use tengen_service::lock::lock_folder;

    use super::*;
    use crate::clock::unix_ms;
    use crate::server::LiveKeys;
    use crate::setup::open_run;

    const PRESET: &str = r#"
        # A comment.
        [run]
        name = "preset"
        game = "tic-tac-toe"
        [network]
        blocks = 1
        channels = 4
        [[schedule]]
        from_iteration = 0
        games = 4
        simulations = 8
    "#;

    fn make(dir: &Path, name: &str, keys: &[(&str, &str)]) -> anyhow::Result<PathBuf> {
        let preset = dir.join("preset.toml");
        write_atomic(&preset, PRESET.as_bytes())?;
        let keys = keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        new(&dir.join("data"), name, &preset, keys.collect())
    }

    #[test]
    fn a_new_run_has_a_file_of_its_own_that_a_start_takes() {
        let dir = tempfile::tempdir().unwrap();
        let file = make(dir.path(), "7", &[("run.game", "connect-four"), ("gate.kind", "none")]).unwrap();
        assert_eq!(file, dir.path().join("data/7/run.toml"));
        let config = RunConfig::load(&file).unwrap();
        assert_eq!(
            (config.run.name.as_str(), config.run.game.as_str()),
            ("7", "connect-four")
        );
        assert_eq!(config.gate.kind, tengen_service::run_config::GateKind::None);
        let refuse = |name: &str, keys: &[(&str, &str)], part: &str| {
            let refused = format!("{:#}", make(dir.path(), name, keys).unwrap_err());
            assert!(refused.contains(part), "{part:?} in {refused}");
        };
        refuse("7", &[], "is there already");
        refuse("a/b", &[], "run.name");
        refuse("b", &[("run.game", "chess")], "chess");
        refuse("b", &[("gate.thresh", "1")], "thresh");
        refuse("b", &[("network.blocks", "0")], "blocks");
        assert_eq!(
            list(&dir.path().join("data")).unwrap().len(),
            1,
            "nothing is left of what was refused"
        );
    }

    #[test]
    fn runs_are_listed_whatever_goes_on_with_them() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        assert_eq!(list(&data).unwrap(), []);
        for name in ["fresh", "rests", "served", "ended", "strange"] {
            make(dir.path(), name, &[]).unwrap();
        }
        create_folder(&data.join("no run")).unwrap();
        for name in ["rests", "served", "ended"] {
            let folder = data.join(name);
            let config = RunConfig::load(&folder.join(RUN_FILE)).unwrap();
            let (connection, _) = open_run(&folder, config, LiveKeys::Win, unix_ms()).unwrap();
            if name == "ended" {
                let mut row = steering::load(&connection).unwrap();
                row.ended_ms = Some(1);
                steering::save(&connection, &row).unwrap();
            }
        }
        write_atomic(
            &data.join("strange").join(FILE_NAME),
            b"no database at all, but long enough to be one",
        )
        .unwrap();
        let _held = lock_folder(&data.join("served"), "coordinator").unwrap();
        write_atomic(&data.join("served").join(ADDRESS_FILE), b"127.0.0.1:7300\n").unwrap();
        let runs = list(&data).unwrap();
        let rows: Vec<(&str, String)> = runs
            .iter()
            .map(|run| (run.name.as_str(), run.standing.to_string()))
            .collect();
        assert_eq!(
            rows[..4],
            [
                ("ended", "ended".to_owned()),
                ("fresh", "not started yet".to_owned()),
                ("rests", "at rest".to_owned()),
                ("served", "served at 127.0.0.1:7300".to_owned()),
            ]
        );
        assert!(rows[4].1.starts_with("cannot be read: "), "{rows:?}");
        assert_eq!(
            (runs[2].game.as_str(), runs[2].progress),
            ("tic-tac-toe", Some((0, 0, 0)))
        );
        assert!(runs[2].bytes > 10_000);
        let text = table(&runs);
        assert_eq!(text.lines().count(), 6, "{text}");
    }
}
