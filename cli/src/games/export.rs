//! `tengen games export`: games of a run or of files, in another format.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use tengen_records::Record;
use tengen_records::exchange::{datapoints, delimited, game_of, json, psq, sgf};

use super::npz::Positions;
use super::sink::{Folder, OneFile, Sink, Stdout};
use super::source::{Extent, FileArgs, FileReader, FilterArgs, Pages, get, record};
use crate::client::CoordinatorArgs;

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// Ids of games of `tengen games list`, or `latest`; without any, all games that the filters below let through
    #[arg(value_name = "GAME", conflicts_with = "from")]
    games: Vec<String>,
    /// Format to write
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: ExportFormat,
    /// File to write, and with --format psq and more than one game the folder [default: standard output, for text]
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
    /// With --format json: several lines an object
    #[arg(long)]
    pretty: bool,
    /// Most games to write, the newest first; 0 writes all
    #[arg(long, value_name = "N", default_value_t = 0)]
    limit: u64,
    #[command(flatten)]
    filter: FilterArgs,
    /// Take the games from these files instead of a run
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["coordinator", "data"])]
    from: Vec<PathBuf>,
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
}

/// The formats that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// Records as they are, each behind its length
    Protobuf,
    /// The JSON of Caro5, for games of five in a row: an object a line
    Json,
    /// Smart Game Format, for five in a row, go, hex and amazons
    Sgf,
    /// Piskvork's files, for five in a row: a file a game
    Psq,
    /// Positions with their best moves and winners, for five in a row
    Datapoints,
    /// Planes, policy, value and weight of every position as numpy arrays
    Npz,
}

pub(crate) async fn run(args: ExportArgs) -> anyhow::Result<()> {
    ensure!(
        args.games.is_empty() || !args.filter.is_any(),
        "games are named, and filtered by something: one of both"
    );
    let mut export = Export::new(&args)?;
    if args.from.is_empty() {
        of_run(&args, &mut export).await?;
    } else {
        of_files(&args, &mut export)?;
    }
    export.finish()
}

async fn of_run(args: &ExportArgs, export: &mut Export<'_>) -> anyhow::Result<()> {
    let run = args.coordinator.reach().await?;
    for name in &args.games {
        export.take(&record(&get(&run, name).await?)?)?;
    }
    if !args.games.is_empty() {
        return Ok(());
    }
    let mut pages = Pages::of(&run, &args.filter, Extent::Whole).await?;
    while let Some(games) = pages.next().await? {
        for game in games {
            if export.is_full() {
                return Ok(());
            }
            if game.damaged {
                export.skip(&format!(
                    "the record of game {} is damaged",
                    super::source::id_of(&game)
                ));
                continue;
            }
            export.take(&record(&game)?)?;
        }
    }
    Ok(())
}

fn of_files(args: &ExportArgs, export: &mut Export<'_>) -> anyhow::Result<()> {
    let mut reader = FileReader::new(&args.files);
    for path in &args.from {
        for game in reader.read(path)? {
            if export.is_full() {
                return Ok(());
            }
            match game.record {
                Ok(record) => export.take(&record)?,
                Err(error) => export.skip(&format!("{}: {}: {error}", path.display(), game.label)),
            }
        }
    }
    Ok(())
}

/// An export on its way.
struct Export<'a> {
    args: &'a ExportArgs,
    target: Target,
    written: u64,
    skipped: u64,
}

/// What games become.
enum Target {
    Games(Box<dyn Sink>),
    /// Positions; those of the first game decide which game they are of.
    Positions(Option<Box<Positions>>),
}

impl Export<'_> {
    fn new(args: &ExportArgs) -> anyhow::Result<Export<'_>> {
        Ok(Export {
            args,
            target: target(args)?,
            written: 0,
            skipped: 0,
        })
    }

    fn is_full(&self) -> bool {
        self.args.limit > 0 && self.written >= self.args.limit
    }

    fn take(&mut self, record: &Record) -> anyhow::Result<()> {
        let not_written = || format!("game {} was not written", record.id);
        match &mut self.target {
            Target::Games(sink) => {
                let bytes = bytes(record, self.args).with_context(not_written)?;
                sink.take(&record.id.to_string(), &bytes)?;
            }
            Target::Positions(gathered) => {
                let positions = match gathered {
                    Some(positions) => positions,
                    None => gathered.insert(Box::new(Positions::new(game_of(record)?)?)),
                };
                positions.add(record).with_context(not_written)?;
            }
        }
        self.written += 1;
        Ok(())
    }

    fn skip(&mut self, why: &str) {
        eprintln!("left out: {why}");
        self.skipped += 1;
    }

    fn finish(self) -> anyhow::Result<()> {
        let Export {
            args,
            target,
            written,
            skipped,
        } = self;
        ensure!(written > 0, "there is no such game, and nothing was written");
        let what = match target {
            Target::Games(sink) => format!("{written} games in {}", sink.finish()?),
            Target::Positions(positions) => {
                let path = out(args)?;
                let len = positions.as_ref().map_or(0, |positions| positions.len());
                if let Some(positions) = positions {
                    positions.finish(path)?;
                }
                format!("{len} positions of {written} games in {}", path.display())
            }
        };
        // Standard output may hold the games themselves.
        eprintln!("{what}");
        ensure!(skipped == 0, "{skipped} games were left out");
        Ok(())
    }
}

fn out(args: &ExportArgs) -> anyhow::Result<&Path> {
    let binary = "bytes do not belong on a terminal: say --out FILE";
    args.out.as_deref().context(binary)
}

fn target(args: &ExportArgs) -> anyhow::Result<Target> {
    let one_game = args.games.len() == 1 || args.limit == 1;
    Ok(Target::Games(match (args.format, &args.out) {
        (ExportFormat::Npz, _) => {
            out(args)?;
            return Ok(Target::Positions(None));
        }
        (ExportFormat::Protobuf, _) => Box::new(OneFile::new(out(args)?)?),
        (ExportFormat::Psq, None) if !one_game => {
            bail!("a psq file holds one game: name one, or the folder to write them to (--out DIR)")
        }
        (ExportFormat::Psq, Some(path)) if !one_game => Box::new(Folder::new(path, "psq")),
        (_, Some(path)) => Box::new(OneFile::new(path)?),
        (_, None) => Box::new(Stdout),
    }))
}

fn bytes(record: &Record, args: &ExportArgs) -> anyhow::Result<Vec<u8>> {
    Ok(match args.format {
        ExportFormat::Json => {
            let document = json::export(record)?;
            let text = if args.pretty {
                serde_json::to_string_pretty(&document)?
            } else {
                serde_json::to_string(&document)?
            };
            (text + "\n").into_bytes()
        }
        ExportFormat::Sgf => sgf::export(record)?.into_bytes(),
        ExportFormat::Psq => psq::export(record)?.into_bytes(),
        ExportFormat::Datapoints => datapoints::export(record)?.into_bytes(),
        ExportFormat::Protobuf | ExportFormat::Npz => {
            let mut bytes = Vec::new();
            delimited::append(record, &mut bytes);
            bytes
        }
    })
}
