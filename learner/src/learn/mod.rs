//! Supervised learning: `tengen-learner learn`, of which `tengen learn` asks.
//!
//! A network learns the moves and results of games that somebody else played, from prepared sets. Everything it needs lies in
//! one folder: checkpoints to go on from, a report of every epoch, and the network of the best one. A coordinator takes that as
//! a starting candidate: it plays its gate like any other, and the run's learner goes on from it. The training itself needs no
//! coordinator and no run.

mod lessons;
mod offer;
mod report;
mod school;
mod validation;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use tengen_games::AnyGame;
use tengen_network::{Metadata, Shape};
use tengen_service::credentials::ConnectArgs;
use tengen_service::files::remove_half_written;
use tengen_service::lock::lock_folder;
use tengen_service::run_config::RunConfig;
use tokio_util::sync::CancellationToken;

use crate::config::LearnerConfig;
use crate::device::DeviceChoice;
use offer::Offer;
use school::School;

/// The best network, as it will be offered.
const MODEL: &str = "model.onnx";

/// What to learn, and for whom.
#[derive(Args, Clone, Debug)]
pub struct LearnArgs {
    /// Folder of a prepared set, as `tengen games import` writes them; may be given several times
    #[arg(long, value_name = "DIR", required = true)]
    from: Vec<PathBuf>,
    /// The run's configuration: its game, network, batch size and learning rate hold
    #[arg(long, value_name = "FILE")]
    run: PathBuf,
    /// Folder for checkpoints, report.json and model.onnx; what is there already is gone on with
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// How often to learn from as many positions as there are
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    epochs: u32,
    /// Address of the coordinator that the network is offered to as its run's starting candidate; without it the network stays
    /// in --out, and the same command with --coordinator offers it later
    #[arg(long, value_name = "URL")]
    coordinator: Option<String>,
    #[command(flatten)]
    connect: ConnectArgs,
    /// auto, cpu or cuda:N; without it the run's configuration decides
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceChoice>,
    /// Threads of the tensor library
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// ONNX Runtime's library or its folder; without it the usual places are searched
    #[arg(long, value_name = "PATH")]
    onnxruntime: Option<PathBuf>,
}

/// What a run's configuration says of the network and its training.
#[derive(Clone, Debug)]
struct Subject {
    name: String,
    seed: u64,
    game: AnyGame,
    shape: Shape,
    config: LearnerConfig,
}

impl Subject {
    fn load(path: &Path) -> Result<Subject> {
        let run = RunConfig::load(path)?;
        let game = AnyGame::parse(&run.run.game).context("run.game")?;
        Ok(Subject {
            shape: Shape::new(game.spec(), &run.network)?,
            config: LearnerConfig::from_sections(&run.learner, &run.export)?,
            name: run.run.name,
            seed: run.run.seed,
            game,
        })
    }

    /// What a network that learned from others says of itself, but for the run it is offered to.
    fn metadata(&self, run: &str, extra: impl IntoIterator<Item = (&'static str, String)>) -> Metadata {
        Metadata {
            run: run.to_owned(),
            game: self.game.spec().id.clone(),
            rules_fingerprint: self.game.rules_fingerprint(),
            feature_fingerprint: self.game.feature_fingerprint(),
            extra: extra.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
            ..Metadata::of_shape(&self.shape)
        }
    }
}

/// Learns until all epochs are done or `stop` is cancelled, and offers the network where a coordinator is named.
pub async fn run(args: LearnArgs, stop: CancellationToken) -> Result<()> {
    let _lock = lock_folder(&args.out, "learner")?;
    tengen_inference::init(args.onnxruntime.as_deref())?;
    remove_half_written(&args.out).with_context(|| format!("failed to tidy {}", args.out.display()))?;
    let subject = Subject::load(&args.run)?;
    let offer = match &args.coordinator {
        None => None,
        // Before hours of training, not after.
        Some(url) => match Offer::prepare(url, &args.connect.credentials()?, &subject, &stop).await? {
            None => return Ok(()),
            offer => offer,
        },
    };
    let lessons = lessons::read(&args.from, &subject.game)?;
    println!("{lessons}");
    let school = School {
        device: args.device.unwrap_or(subject.config.device).resolve()?,
        subject: subject.clone(),
        lessons,
        out: args.out.clone(),
        epochs: args.epochs,
        threads: args.threads,
    };
    let stopped = stop.clone();
    let learned = tokio::task::spawn_blocking(move || school.learn(&stopped)).await;
    let Some(graduate) = learned.context("training panicked")?? else {
        println!("stopped; the same command goes on from here");
        return Ok(());
    };
    let path = args.out.join(MODEL);
    println!("{}: {graduate}", path.display());
    match offer {
        None => Ok(()),
        Some(offer) => {
            offer
                .make(&subject, &path, graduate, usize::from(args.threads), &stop)
                .await
        }
    }
}
