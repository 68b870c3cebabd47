//! `tengen duel`: two players, paired openings, a score with its interval.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tengen_games::AnyGame;
use tengen_inference::{Device, SessionOptions};
use tengen_network::{Metadata, read_metadata};
use tengen_records::{ModelId, NetworkPlay, Player as NamedPlayer, Precision};
use tengen_search::Settings;
use tengen_selfplay::ModelBytes;
use tengen_selfplay::duel::{DuelGame, DuelOptions, DuelReport, Player, Tally, duel};
use tengen_selfplay::model::identity;

use crate::client::CoordinatorArgs;
use crate::debug_data::DebugFiles;
use crate::models;
use crate::pull::{self, variant};

#[derive(Args, Debug)]
pub(crate) struct DuelArgs {
    /// First player: `random`, `one-ply` (takes a win, blocks a loss), `rollout:N` (tree search with N random playouts a
    /// move), or a network: one of the run (`champion`, `latest`, `gen:N`, the first digits of an id), a model file or a
    /// pulled folder. A network of the run or in a pulled folder may say in which precision: `gen:3:int8`. A network may say
    /// how it searches: `gen:3:policy` plays its best action without search, `gen:3:int8:200` searches with 200 root visits
    a: String,
    /// Second player, named the same way
    b: String,
    /// Games; every opening is played twice with seats swapped
    #[arg(long, value_name = "N", default_value_t = 100)]
    games: u32,
    /// Root visits of each search of a network that does not name its own; 0 plays its best action without search
    #[arg(long, value_name = "S", default_value_t = 64)]
    simulations: u32,
    /// Let networks see each position through a symmetry of the rules that follows from the position, as runs with
    /// `search.random_symmetry = true` do
    #[arg(long)]
    random_symmetry: bool,
    /// Game, when neither player is a network that names one
    #[arg(long, value_name = "GAME")]
    game: Option<String>,
    /// Seed of openings and games
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// `auto`, `cpu`, `openvino`, `cuda:N` or `tensorrt:N`
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: Device,
    /// Folder for a file a game with the first player's searches, which must be a network's: every position reached with its
    /// visits, value and prior, every candidate, and how long it took
    #[arg(long, value_name = "DIR")]
    debug_data: Option<PathBuf>,
    /// Print one JSON object instead of words
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
}

/// A player as named, and what its network says of itself.
struct Contestant {
    player: Player,
    metadata: Option<Metadata>,
}

pub(crate) async fn run(args: DuelArgs) -> anyhow::Result<()> {
    let first = contestant(&args.a, &args).await?;
    let second = contestant(&args.b, &args).await?;
    let game = game(&args, [&first, &second])?;
    if args.debug_data.is_some() {
        let searches = matches!(first.player, Player::Network { .. });
        ensure!(
            searches,
            "--debug-data keeps the searches of a network, and {} is none",
            args.a
        );
    }
    tengen_inference::init_for(&args.device.into(), None)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let options = DuelOptions {
        games: args.games,
        seed: args.seed,
        threads: args.threads.unwrap_or(cores),
        settings: Settings {
            // Whoever is to play without search says so itself.
            simulations: args.simulations.max(1),
            random_symmetry: args.random_symmetry,
            ..Settings::default()
        },
        traced: args.debug_data.is_some(),
        ..DuelOptions::default()
    };
    let sessions = SessionOptions {
        device: args.device,
        intra_threads: 1,
        batch_max: options.batch_max,
    };
    let bar = progress_bar(args.games);
    let files = args.debug_data.clone().map(|folder| DebugFiles {
        folder,
        players: [args.a.clone(), args.b.clone()],
    });
    let played = tokio::task::spawn_blocking(move || -> anyhow::Result<DuelReport> {
        let mut written = Ok(());
        let mut heard = |tally: Tally, finished: DuelGame| {
            bar.set_position(u64::from(tally.games()));
            if let (Some(files), Ok(())) = (&files, &written) {
                written = files.write(&game, &finished);
            }
        };
        let report = duel(&game, &first.player, &second.player, &options, &sessions, &mut heard);
        bar.finish_and_clear();
        written?;
        Ok(report?)
    });
    let report = played.await??;
    if args.json {
        println!("{}", as_json(&args, &report));
    } else {
        println!("{}", in_words(&args, &report));
    }
    Ok(())
}

fn progress_bar(games: u32) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("[{bar:40}] {pos}/{len} games").expect("the template is a constant");
    ProgressBar::new(u64::from(games.next_multiple_of(2))).with_style(style.progress_chars("=> "))
}

async fn contestant(name: &str, args: &DuelArgs) -> anyhow::Result<Contestant> {
    let named: NamedPlayer<String> = name.parse()?;
    if let NamedPlayer::Human(person) = &named {
        bail!(
            "{} is a person: a duel is between players that this program plays",
            person.as_str()
        );
    }
    let bytes = match named.network() {
        Some(network) => Some(network_bytes(network, args).await?),
        None => None,
    };
    let metadata = bytes
        .as_deref()
        .map(|bytes| read_metadata(bytes).with_context(|| format!("{name} is not a network of ours")));
    let metadata = metadata.transpose()?;
    let model = bytes
        .zip(metadata.as_ref())
        .map(|(bytes, metadata)| held(bytes, metadata));
    let player = named.try_map(|name| model.with_context(|| format!("no network {name:?}")))?;
    let player = match player {
        Player::Network {
            network,
            play: NetworkPlay::AsOrdered,
        } if args.simulations == 0 => Player::Network {
            network,
            play: NetworkPlay::Policy,
        },
        other => other,
    };
    Ok(Contestant { player, metadata })
}

/// The network of a file, in the precision that the file says.
fn held(bytes: Vec<u8>, metadata: &Metadata) -> Arc<ModelBytes> {
    let file = ModelId(tengen_network::model_id(&bytes));
    match identity(metadata, file) {
        Some((_, Precision::Fp32)) | None => ModelBytes::new(bytes),
        Some((id, precision)) => ModelBytes::variant(id, precision, bytes),
    }
}

/// The file of the network called `name`: here, or in the run.
async fn network_bytes(name: &str, args: &DuelArgs) -> anyhow::Result<Vec<u8>> {
    let (network, precision) = in_precision(name);
    if let Some(path) = local_file(name, network, precision) {
        return std::fs::read(&path).with_context(|| format!("failed to read {}", path.display()));
    }
    let run = args.coordinator.reach().await?;
    let mut client = run.models()?;
    let model = models::find(&mut client, network)
        .await
        .with_context(|| format!("{name:?} is no file here, so it was looked for in the run"))?;
    if precision == Precision::Fp32 {
        return pull::download(&mut client, &model).await;
    }
    let variant = variant::find(&model, precision)
        .with_context(|| format!("{network} does not come in {precision} (`tengen models list`)"))?;
    pull::download_variant(&mut client, variant).await
}

/// A network's name apart from the precision that may stand behind it.
fn in_precision(name: &str) -> (&str, Precision) {
    let split = name.rsplit_once(':').filter(|(network, _)| !network.is_empty());
    let precise = split.and_then(|(network, word)| Some((network, Precision::parse(word)?)));
    precise.unwrap_or((name, Precision::Fp32))
}

/// The model file that `name` means, if it is a file, or if `network` is a pulled folder with one in this precision.
fn local_file(name: &str, network: &str, precision: Precision) -> Option<PathBuf> {
    // These always mean the run's, even beside a folder of that name; `./champion` means the folder.
    if matches!(network, "champion" | "latest") || name.starts_with("gen:") {
        return None;
    }
    let inside = Path::new(network).join(variant::file_name(precision));
    [PathBuf::from(name), inside].into_iter().find(|path| path.is_file())
}

/// The game both players play: their networks must name the same, with the rules and planes that this build knows.
fn game(args: &DuelArgs, contestants: [&Contestant; 2]) -> anyhow::Result<AnyGame> {
    let metadata: Vec<&Metadata> = contestants.iter().filter_map(|one| one.metadata.as_ref()).collect();
    let named = metadata.first().map(|metadata| metadata.game.as_str());
    let Some(id) = args.game.as_deref().or(named) else {
        bail!("neither player names a game: add --game, for example --game connect-four");
    };
    let game = AnyGame::parse(id)?;
    let features = game.feature_fingerprint();
    for metadata in metadata {
        ensure!(
            metadata.game == game.spec().id && metadata.feature_fingerprint == features,
            "a network for {} (features {}) cannot play {} (features {features})",
            metadata.game,
            metadata.feature_fingerprint,
            game.spec().id
        );
    }
    Ok(game)
}

fn in_words(args: &DuelArgs, report: &DuelReport) -> String {
    let DuelReport {
        tally,
        score,
        pairs,
        pairs_random,
    } = report;
    let mut text = format!(
        "{} against {}: +{} ={} -{} in {} games, score {:.3} (95 % interval {:.3} to {:.3}), {} simulations",
        args.a,
        args.b,
        tally.wins,
        tally.draws,
        tally.losses,
        tally.games(),
        score.mean,
        score.low,
        score.high,
        args.simulations
    );
    if args.random_symmetry {
        text += ", random symmetries";
    }
    if *pairs_random > 0 {
        text += &format!(
            "\n{pairs_random} of {pairs} pairs went on from random openings: the game has no more distinct ones"
        );
    }
    text
}

fn as_json(args: &DuelArgs, report: &DuelReport) -> serde_json::Value {
    json!({
        "a": args.a,
        "b": args.b,
        "simulations": args.simulations,
        "random_symmetry": args.random_symmetry,
        "games": report.tally.games(),
        "wins": report.tally.wins,
        "draws": report.tally.draws,
        "losses": report.tally.losses,
        "score": report.score.mean,
        "score_low": report.score.low,
        "score_high": report.score.high,
        "pairs": report.pairs,
        "pairs_random": report.pairs_random,
    })
}

#[cfg(test)]
mod tests {
    use tengen_service::files::write_atomic;

    use super::*;

    #[test]
    fn a_precision_stands_behind_the_networks_name() {
        assert_eq!(in_precision("gen:3:int8"), ("gen:3", Precision::Int8));
        assert_eq!(in_precision("pulled:fp16"), ("pulled", Precision::Fp16));
        for plain in ["champion", "gen:3", "a:b", ":int8", "./model.int8.onnx"] {
            assert_eq!(in_precision(plain), (plain, Precision::Fp32));
        }
    }

    #[test]
    fn a_pulled_folder_holds_a_file_for_each_precision() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["model.onnx", "model.int8.onnx"] {
            write_atomic(&folder.path().join(name), b"x").unwrap();
        }
        let pulled = folder.path().to_str().unwrap();
        let file = |name: &str| {
            let (network, precision) = in_precision(name);
            local_file(name, network, precision)
        };
        assert_eq!(file(pulled), Some(folder.path().join("model.onnx")));
        assert_eq!(
            file(&format!("{pulled}:int8")),
            Some(folder.path().join("model.int8.onnx"))
        );
        assert_eq!(file(&format!("{pulled}:fp16")), None);
        let itself = format!("{pulled}/model.int8.onnx");
        assert_eq!(file(&itself), Some(PathBuf::from(&itself)));
        assert_eq!(
            (file("champion"), file("gen:1:int8"), file("champion:int8")),
            (None, None, None)
        );
    }
}
