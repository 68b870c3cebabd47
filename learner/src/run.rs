//! The learner as a process: registers, restores or begins, starts its tasks, and drains when told to stop.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow};
use clap::{Parser, Subcommand};
use tch::Device;
use tengen_proto::v1::{LearnerStatus, RegisterLearnerRequest, RegisterLearnerResponse};
use tengen_replay::{RedisReader, StepLimit, Window};
use tengen_service::args::ProcessArgs;
use tengen_service::channel::{self, Channel};
use tengen_service::credentials::ConnectArgs;
use tengen_service::files::remove_half_written;
use tengen_service::host;
use tengen_service::lock::lock_folder;
use tengen_service::metrics;
use tengen_service::usage::UsageMeter;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::ancestry;
use crate::batches::{Batches, SharedWindow};
use crate::begin::{Beginning, begin};
use crate::bench::BenchArgs;
use crate::checkpoint::{Checkpoint, CheckpointFolder};
use crate::device::{DeviceChoice, cuda_number, device_name};
use crate::learn::LearnArgs;
use crate::meters;
use crate::mirror::Mirror;
use crate::plan::Planner;
use crate::publish::{self, Place, Publication};
use crate::reporter::Reporter;
use crate::setup::Setup;
use crate::signals::Signals;
use crate::source::{ReplayArgs, StreamSource, expect_store, open_redis};
use crate::training::{Checkpoints, Exports, Training, TrainingError};

/// Trains the run's network
#[derive(Clone, Debug, Parser)]
#[command(name = "tengen-learner", version = tengen_service::BUILD, args_conflicts_with_subcommands = true)]
pub struct Options {
    /// What to do instead of training a run.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The coordinator's address
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7300")]
    pub coordinator: String,
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show a doc comment here as help")]
    pub connect: ConnectArgs,
    /// Folder for checkpoints
    #[arg(long, value_name = "DIR", default_value = "learner")]
    pub data: PathBuf,
    /// auto, cpu or cuda:N; without it the run's configuration decides
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<DeviceChoice>,
    /// Threads of the tensor library
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// ONNX Runtime's library or its folder; without it the usual places are searched
    #[arg(long, value_name = "PATH")]
    pub onnxruntime: Option<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show a doc comment here as help")]
    pub replay: ReplayArgs,
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show a doc comment here as help")]
    pub process: ProcessArgs,
}

/// What the program does beside training a run.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Measure training on this machine for a run's configuration; prints JSON
    Bench(BenchArgs),
    /// Learn from games of people or of other programs, and offer the network to a run as its starting candidate
    Learn(LearnArgs),
}

/// Runs the learner until `stop` is cancelled or it cannot go on.
pub async fn run(options: Options, stop: CancellationToken) -> Result<()> {
    let _lock = lock_folder(&options.data, "learner")?;
    tengen_inference::init(options.onnxruntime.as_deref())?;
    let channel = channel::connect(&options.coordinator, &options.connect.credentials()?)?;
    let redis = options.replay.redis()?;
    let checkpoints = options.data.join("checkpoints");
    remove_half_written(&checkpoints).with_context(|| format!("failed to tidy {}", checkpoints.display()))?;
    let folder = CheckpointFolder::new(checkpoints);
    let checkpoint = folder.newest()?;
    // Whatever ends first (a signal, the loss of our place, an error in training) ends everything.
    let stop = stop.child_token();
    let _ended = stop.clone().drop_guard();

    let request = RegisterLearnerRequest {
        build: tengen_service::BUILD.to_owned(),
        device: options.device.unwrap_or_default().to_string(),
        step: checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.state.step),
        host: host::name(),
    };
    let mut reporter = Reporter::new(channel.clone(), request, stop.clone());
    let Some(registration) = reporter.register().await? else {
        return Ok(());
    };
    expect_store(redis.as_ref(), &registration.window_store)?;
    let redis = match redis {
        None => None,
        Some(redis) => match open_redis(&redis, &registration.run_id, &stop).await? {
            None => return Ok(()),
            opened => opened,
        },
    };
    let Some(learner) = Learner::prepare(&options, &registration, folder, checkpoint, channel, &stop).await? else {
        return Ok(());
    };
    let (shown, usage) = (Arc::clone(&learner.signals), Arc::clone(&learner.usage));
    let refresh = move || {
        meters::show(&shown.status());
        usage.show();
    };
    metrics::serve(
        &options.process.metrics,
        "learner",
        meters::METRICS,
        refresh,
        stop.clone(),
    )
    .await?;
    learner.run(reporter, registration, redis, stop).await
}

type TrainingResult = std::result::Result<(), TrainingError>;

/// Everything that is needed to begin.
struct Learner {
    channel: Channel,
    signals: Arc<Signals>,
    window: SharedWindow,
    training: Training,
    publications: mpsc::Receiver<Publication>,
    usage: Arc<UsageMeter>,
    threads: u16,
}

impl Learner {
    /// Checks what is to be trained and restores or begins it. `None`: stopped meanwhile.
    async fn prepare(
        options: &Options,
        registration: &RegisterLearnerResponse,
        folder: CheckpointFolder,
        checkpoint: Option<Checkpoint>,
        channel: Channel,
        stop: &CancellationToken,
    ) -> Result<Option<Learner>> {
        let setup = Setup::from_registration(registration)?;
        let wanted = options.device.unwrap_or(setup.config.device);
        let device = wanted.resolve()?;
        let begun = begin(&setup, checkpoint, &folder, device, channel.clone(), stop).await?;
        let Some(Beginning { trainer, limit, line }) = begun else {
            return Ok(None);
        };
        let step = trainer.step();
        tracing::info!(
            run = setup.identity.run_id,
            game = setup.identity.game,
            shape = setup.shape.describe(),
            device = device_name(device),
            threads = options.threads,
            step,
            "learner ready"
        );
        let signals = Arc::new(Signals::default());
        signals.update(|inputs| inputs.paused = registration.training_paused);
        signals.set_status(|status| *status = first_status(wanted, device, step, &limit));
        let usage = Arc::new(UsageMeter::start());
        usage.computes_on(cuda_number(device));

        let Setup {
            identity,
            game,
            shape: _,
            config,
            capacity_positions,
            seed,
        } = setup;
        let capacity = NonZeroU64::new(capacity_positions).context("replay.capacity_positions is 0")?;
        let window = Arc::new(Mutex::new(Window::new(capacity, config.split)));
        let batches = Batches::start(&game, Arc::clone(&window), limit.batch as usize, seed, step)?;
        // The loop has one publication under way at most.
        let (sender, publications) = mpsc::channel(1);
        let training = Training {
            trainer,
            planner: Planner::new(limit, config.window_min_positions),
            identity,
            line,
            batches,
            sampler_seed: seed,
            checkpoints: Checkpoints {
                folder,
                every_steps: config.checkpoint_every_steps,
            },
            exports: Exports {
                precisions: config.export,
                threads: usize::from(options.threads),
                publications: sender,
            },
            signals: Arc::clone(&signals),
        };
        Ok(Some(Learner {
            channel,
            signals,
            window,
            training,
            publications,
            usage,
            threads: options.threads,
        }))
    }

    async fn run(
        self,
        reporter: Reporter,
        registration: RegisterLearnerResponse,
        redis: Option<RedisReader>,
        stop: CancellationToken,
    ) -> Result<()> {
        let Learner {
            channel,
            signals,
            window,
            training,
            publications,
            usage,
            threads,
        } = self;
        let (place, watched) = watch::channel(Place {
            fence: registration.fence,
            reports_accepted: 0,
        });
        let mirror = Mirror::new(window, Arc::clone(&signals));
        let mut tasks = JoinSet::new();
        match redis {
            Some(reader) => tasks.spawn(mirror.run(reader, stop.clone())),
            None => tasks.spawn(mirror.run(StreamSource::new(channel.clone()), stop.clone())),
        };
        tasks.spawn(ancestry::watch_champion(
            channel.clone(),
            Arc::clone(&signals),
            stop.clone(),
        ));
        tasks.spawn(publish::run(
            channel,
            publications,
            watched,
            Arc::clone(&signals),
            stop.clone(),
        ));
        let (thread, mut result) = start(training, threads).context("failed to start the training thread")?;
        let mut trained = None;

        let reported = tokio::select! {
            reported = reporter.run(&registration.run_id, &place, &signals, &usage) => {
                reported.map_err(anyhow::Error::from)
            }
            ended = &mut result => {
                trained = Some(ended);
                Ok(())
            }
            // Each of them ends when the learner is stopped, and before that only by a panic.
            Some(task) = tasks.join_next() => task.context("a task of the learner ended early"),
        };
        signals.update(|inputs| inputs.stop = true);
        let trained = match trained {
            Some(trained) => trained,
            // It comes after the last checkpoint.
            None => result.await,
        };
        stop.cancel();
        thread.join().map_err(|_| anyhow!("the training thread panicked"))?;
        // When both failed, training's error is the nearer one.
        trained.context("the training thread ended without a result")??;
        reported?;
        tracing::info!("learner stopped");
        Ok(())
    }
}

/// What is told of the learner before its first step.
fn first_status(wanted: DeviceChoice, device: Device, step: u64, limit: &StepLimit) -> LearnerStatus {
    LearnerStatus {
        device: device_name(device),
        device_wanted: wanted.to_string(),
        host: host::name(),
        build: tengen_service::BUILD.to_owned(),
        step,
        limit_from_step: limit.from_step,
        limit_from_positions: limit.from_positions,
        ..LearnerStatus::default()
    }
}

/// Runs training on its own thread, which sends its result when it ends.
fn start(training: Training, threads: u16) -> std::io::Result<(JoinHandle<()>, oneshot::Receiver<TrainingResult>)> {
    let (ended, result) = oneshot::channel();
    let body = move || {
        // OpenMP keeps the number per calling thread, so it is set here and not at start.
        tch::set_num_threads(i32::from(threads));
        // Nobody waits for it any more only when the process is already ending.
        let _ = ended.send(training.run());
    };
    let thread = std::thread::Builder::new()
        .name("learner-train".to_owned())
        .spawn(body)?;
    Ok((thread, result))
}
