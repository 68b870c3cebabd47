//! Where games come from: a run, by its coordinator or read from its files, or files in any format that can be read.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use tengen_games::AnyGame;
use tengen_proto::v1;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_records::exchange::{Format, Imported, Reader};
use tengen_records::{Record, RecordId, decode};
use tengen_service::channel::Channel;

use crate::client::{CoordinatorArgs, Reached, explain};
use crate::models;
use crate::rules::AnyGameArg;

/// Games of one call.
const PAGE_GAMES: i32 = 1_000;

/// Which games of a run.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FilterArgs {
    /// Games stored while this iteration was played
    #[arg(long, value_name = "N")]
    iteration: Option<u32>,
    /// Games with this network: `champion`, `latest`, `gen:N`, or at least 8 hexadecimal digits of its id
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Games that were played for this
    #[arg(long, value_enum, value_name = "KIND")]
    kind: Option<KindArg>,
    /// Games that ended like this
    #[arg(long, value_enum, value_name = "RESULT")]
    result: Option<ResultArg>,
    /// Games that this actor sent
    #[arg(long, value_name = "ID")]
    actor: Option<String>,
}

/// What games are played for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum KindArg {
    /// Data for the window
    SelfPlay,
    /// The match of a gate
    Gate,
    /// A rating match
    Rating,
}

/// How games end.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ResultArg {
    /// Seat 0 won
    #[value(name = "seat-0")]
    Seat0,
    /// Seat 1 won
    #[value(name = "seat-1")]
    Seat1,
    /// Nobody won
    Draw,
}

impl FilterArgs {
    /// The self-play games.
    pub(crate) fn self_play() -> FilterArgs {
        FilterArgs {
            kind: Some(KindArg::SelfPlay),
            ..FilterArgs::default()
        }
    }

    /// Whether anything is filtered by.
    pub(crate) fn is_any(&self) -> bool {
        self.iteration.is_some()
            || self.model.is_some()
            || self.kind.is_some()
            || self.result.is_some()
            || self.actor.is_some()
    }

    /// The filter as a message; a network's name is looked up in the run.
    async fn to_wire(&self, run: &Reached) -> anyhow::Result<v1::GameFilter> {
        let model_id = match &self.model {
            Some(name) => models::find(&mut run.models()?, name).await?.model_id,
            None => Vec::new(),
        };
        let kind = self.kind.map_or(v1::GameKind::Unspecified, |kind| match kind {
            KindArg::SelfPlay => v1::GameKind::SelfPlay,
            KindArg::Gate => v1::GameKind::Gate,
            KindArg::Rating => v1::GameKind::Rating,
        });
        let result = self.result.map_or(v1::GameResult::Unspecified, |result| match result {
            ResultArg::Seat0 => v1::GameResult::Seat0,
            ResultArg::Seat1 => v1::GameResult::Seat1,
            ResultArg::Draw => v1::GameResult::Draw,
        });
        Ok(v1::GameFilter {
            iteration: self.iteration,
            model_id,
            kind: kind.into(),
            result: result.into(),
            actor: self.actor.clone().unwrap_or_default(),
        })
    }
}

/// How much of each game is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What is known of it.
    Headings,
    /// That, its record and its work order.
    Whole,
}

/// The games of a run, page by page.
pub(crate) struct Pages {
    client: RunServiceClient<Channel>,
    request: v1::ListGamesRequest,
    ended: bool,
}

impl Pages {
    pub(crate) async fn of(run: &Reached, filter: &FilterArgs, extent: Extent) -> anyhow::Result<Pages> {
        Ok(Pages {
            client: run.runs()?,
            request: v1::ListGamesRequest {
                page_size: PAGE_GAMES,
                page_token: String::new(),
                filter: Some(filter.to_wire(run).await?),
                with_records: extent == Extent::Whole,
            },
            ended: false,
        })
    }

    /// At most `games` a page.
    pub(crate) fn with_page_size(mut self, games: u64) -> Pages {
        self.request.page_size = i32::try_from(games).unwrap_or(PAGE_GAMES).clamp(1, PAGE_GAMES);
        self
    }

    /// The next games, newest first; `None` at the end.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<Vec<v1::StoredGame>>> {
        if self.ended {
            return Ok(None);
        }
        let page = self.client.list_games(self.request.clone()).await;
        let page = page.map_err(|status| explain(&status))?.into_inner();
        self.ended = page.next_page_token.is_empty();
        self.request.page_token = page.next_page_token;
        Ok(Some(page.games))
    }
}

/// One game of a run by its id, or the newest one.
pub(crate) async fn get(run: &Reached, name: &str) -> anyhow::Result<v1::StoredGame> {
    let mut client = run.runs()?;
    let request = if name == "latest" {
        let request = v1::ListGamesRequest {
            page_size: 1,
            ..v1::ListGamesRequest::default()
        };
        let page = client.list_games(request).await.map_err(|status| explain(&status))?;
        let newest = page.into_inner().games.into_iter().next();
        let newest = newest.context("the run has no game yet")?;
        v1::GetGameRequest {
            lease_id: newest.lease_id,
            game_index: newest.game_index,
        }
    } else {
        let id: RecordId = name
            .parse()
            .with_context(|| format!("{name:?} names no game: take an id of `tengen games list`, or `latest`"))?;
        v1::GetGameRequest {
            lease_id: id.lease.to_bytes().to_vec(),
            game_index: id.index,
        }
    };
    let game = client.get_game(request).await.map_err(|status| explain(&status))?;
    Ok(game.into_inner())
}

/// The record of a stored game.
pub(crate) fn record(game: &v1::StoredGame) -> anyhow::Result<Record> {
    let id = id_of(game);
    if game.damaged {
        bail!("the record of game {id} is damaged: `tengen db check` says what to do");
    }
    decode(&game.record).with_context(|| format!("failed to read the record of game {id}"))
}

/// The id of a stored game, as text.
pub(crate) fn id_of(game: &v1::StoredGame) -> String {
    format!("{}-{}", hex::encode(&game.lease_id), game.game_index)
}

/// Which format files are in, and which game they are of.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FileArgs {
    /// Game that the files are of, where they do not name it: for example `renju` or `gomoku-freestyle?size=20`
    #[arg(long, value_name = "GAME")]
    game: Option<AnyGameArg>,
    /// Format of the files [default: by the ending of each name]
    #[arg(long, value_enum, value_name = "FORMAT")]
    input_format: Option<FormatArg>,
}

/// The formats that can be read.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FormatArg {
    /// Records as they are (.binpb)
    Protobuf,
    /// The JSON of Caro5 (.json, .jsonl)
    Json,
    /// Smart Game Format (.sgf)
    Sgf,
    /// Piskvork's files (.psq)
    Psq,
    /// Positions with their best moves (.datapoints)
    Datapoints,
    /// RenjuNet's XML (.rif, .xml)
    Rif,
}

impl From<FormatArg> for Format {
    fn from(argument: FormatArg) -> Format {
        match argument {
            FormatArg::Protobuf => Format::Protobuf,
            FormatArg::Json => Format::Json,
            FormatArg::Sgf => Format::Sgf,
            FormatArg::Psq => Format::Psq,
            FormatArg::Datapoints => Format::Datapoints,
            FormatArg::Rif => Format::Rif,
        }
    }
}

/// Reads files.
pub(crate) struct FileReader {
    reader: Reader,
    format: Option<Format>,
}

impl FileReader {
    pub(crate) fn new(args: &FileArgs) -> FileReader {
        let game: Option<AnyGame> = args.game.clone().map(AnyGameArg::into_game);
        FileReader {
            reader: Reader::new(game),
            format: args.input_format.map(Format::from),
        }
    }

    /// The games of a file: each of them, or why it is none.
    pub(crate) fn read(&mut self, path: &Path) -> anyhow::Result<Vec<Imported>> {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let Some(format) = self.format.or_else(|| Format::of_ending(ending)) else {
            let endings: Vec<String> = Format::ALL
                .iter()
                .flat_map(|format| format.endings())
                .map(|ending| format!(".{ending}"))
                .collect();
            bail!(
                "{} does not end like a file of games ({}): say --input-format",
                path.display(),
                endings.join(", ")
            );
        };
        let bytes = std::fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
        Ok(self.reader.read(format, &bytes))
    }
}

/// One game: of a run, or of a file.
#[derive(Args, Debug)]
pub(crate) struct OneGameArgs {
    /// Id of a game of `tengen games list`, or `latest`; with --file the number of the game in the file
    #[arg(value_name = "GAME", default_value = "latest")]
    name: String,
    /// Take the game from this file instead of a run
    #[arg(long, value_name = "FILE", conflicts_with_all = ["coordinator", "data"])]
    file: Option<PathBuf>,
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
}

/// A game that was found.
pub(crate) struct Found {
    pub(crate) record: Record,
    /// What its run knows of it; `None` for a game of a file.
    pub(crate) stored: Option<v1::StoredGame>,
}

impl OneGameArgs {
    pub(crate) async fn find(&self) -> anyhow::Result<Found> {
        if let Some(path) = &self.file {
            return Ok(Found {
                record: self.of_file(path)?,
                stored: None,
            });
        }
        let run = self.coordinator.reach().await?;
        let stored = get(&run, &self.name).await?;
        Ok(Found {
            record: record(&stored)?,
            stored: Some(stored),
        })
    }

    /// The coordinator's side, for a game of a run.
    pub(crate) async fn reach(&self) -> anyhow::Result<Reached> {
        if let Some(path) = &self.file {
            bail!(
                "{} is a file: its searches cannot be run again, only a run's can",
                path.display()
            );
        }
        self.coordinator.reach().await
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn of_file(&self, path: &Path) -> anyhow::Result<Record> {
        let mut games = FileReader::new(&self.files).read(path)?;
        let number = match &self.name[..] {
            "latest" => games.len(),
            number => number
                .parse()
                .with_context(|| format!("{number:?} is no number of a game in {}", path.display()))?,
        };
        let place = number.checked_sub(1).filter(|&place| place < games.len());
        let Some(place) = place else {
            bail!(
                "{} has {} games and none with number {number}",
                path.display(),
                games.len()
            );
        };
        let game = games.swap_remove(place);
        game.record
            .with_context(|| format!("{}: {} (line {})", path.display(), game.label, game.line))
    }
}
