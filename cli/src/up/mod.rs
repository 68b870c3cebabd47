//! `tengen up`: a coordinator, a learner and actors as child processes on this machine, watched and drained together.
//!
//! The children do all the work; this process starts them, restarts what crashes, shows progress, and ends them in the
//! order actors, learner, coordinator.

mod child;
mod layout;
mod progress;
mod settings;
mod trial;
mod watch;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use tengen_proto::v1::admin_service_client::AdminServiceClient;
use tengen_proto::v1::{GetSettingsRequest, ListTokensRequest};
use tengen_service::args::LogArgs;
use tengen_service::credentials::{ConnectArgs, Credentials};
use tengen_service::lock::lock_folder;
use tengen_service::run_config::RunConfig;
use tengen_service::{health, shutdown};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::Code;

use crate::client::{self, ADDRESS_FILE, LISTEN_DEFAULT, read_address};
use child::{Child, ChildEvent};
use layout::Layout;
use progress::Progress;
use watch::Update;

pub(crate) use trial::{Limits, Trial, trial};

/// How long the coordinator may take to serve after it was started. A large window takes time to rebuild.
const START_MAX: Duration = Duration::from_secs(300);

#[derive(Args, Debug)]
pub(crate) struct UpArgs {
    /// The run's configuration
    #[arg(long, value_name = "FILE", default_value = "runs/quickstart.toml")]
    run: PathBuf,
    /// Data folder of the run; a run found there is resumed [default: data/NAME]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Number of actor processes
    #[arg(long, value_name = "N", default_value_t = 1)]
    actors: u32,
    /// Drain once this generation is champion
    #[arg(long, value_name = "N")]
    until_generation: Option<u32>,
    /// Drain once the run holds this many self-play games
    #[arg(long, value_name = "N")]
    until_games: Option<u64>,
    /// Drain after this time, for example `20m`
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    duration: Option<Duration>,
    /// Address of the coordinator, a loopback one unless the run has tokens; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = LISTEN_DEFAULT)]
    listen: SocketAddr,
    /// Take every key from the run's configuration, also those that were changed while the run went on
    #[arg(long)]
    apply: bool,
    /// Configuration of the coordinator's process (TOML): TLS, limits, disk, a window in Redis, of which the learner is
    /// told; with [tls] in it, give --ca too
    #[arg(long, value_name = "FILE")]
    coordinator_config: Option<PathBuf>,
    /// Serve metrics for Prometheus on this machine: the coordinator at PORT, the learner at the next, the actors at those
    /// after it; 0 takes any. Their addresses are in DIR/metrics
    #[arg(long, value_name = "PORT")]
    metrics: Option<u16>,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(crate) async fn run(args: UpArgs, log: &LogArgs) -> anyhow::Result<()> {
    let config = RunConfig::load(&args.run)?;
    let data = args
        .data
        .clone()
        .unwrap_or_else(|| Path::new("data").join(&config.run.name));
    if args.actors == 0 {
        bail!("--actors 0: a cluster needs at least one actor");
    }
    let layout = Layout::new(&args, &config, data, log)?;
    // Before anything in the folder is touched: a second start must not disturb the first.
    let _held = lock_folder(&layout.data, "up")?;
    let stop = shutdown::on_signals()?;
    let mut progress = Progress::new();
    let Some(mut cluster) = Cluster::start(&layout, args.actors, &stop).await? else {
        progress.note("stopped before the coordinator served");
        return Ok(());
    };
    progress.note(&format!(
        "{} in {}, coordinator {}",
        config.run.name,
        layout.data.display(),
        cluster.url
    ));
    if let Some(note) = live_keys(&cluster).await {
        progress.note(&note);
    }
    let outcome = observe(&mut cluster, &mut progress, &args, &stop).await;
    progress.note("draining");
    cluster.drain().await;
    progress.finish();
    outcome
}

/// Which keys of the run file are not taken, if there are any.
async fn live_keys(cluster: &Cluster) -> Option<String> {
    let mut client = client::runs(client::connect(&cluster.url, &cluster.credentials).ok()?);
    // A coordinator that does not answer now is told about by the display.
    let settings = client.get_settings(GetSettingsRequest {}).await.ok()?.into_inner();
    let keys = settings.live_keys.join(", ");
    (!keys.is_empty()).then(|| {
        format!("changed while the run went on, and not taken from the run file: {keys} (--apply takes the file's)")
    })
}

/// Follows the cluster until a limit is reached, a signal arrives or a child fails for good.
async fn observe(
    cluster: &mut Cluster,
    progress: &mut Progress,
    args: &UpArgs,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let deadline = args.duration.map(|duration| Instant::now() + duration);
    let (updates, mut received) = mpsc::channel(16);
    let watching = tokio::spawn(watch::follow(
        cluster.url.clone(),
        cluster.credentials.clone(),
        updates,
        stop.clone(),
    ));
    let outcome = loop {
        tokio::select! {
            // In order: the status stream ends at the signal too, and then the signal is what counts.
            biased;
            () = stop.cancelled() => break Ok(()),
            () = until(deadline) => break Ok(()),
            event = cluster.events.recv() => {
                if let Some(event) = event {
                    progress.note(&event.to_string());
                }
            }
            update = received.recv() => match update {
                Some(Update::Status(status)) => {
                    progress.show(&status);
                    if status.steering.as_ref().is_some_and(|steering| steering.ended_unix_ms > 0) {
                        progress.note("the run has ended; it can still be read (`tengen status --data DIR`)");
                        break Ok(());
                    }
                    if reached(args, status.generation, status.games) {
                        break Ok(());
                    }
                }
                Some(Update::Decided(gate)) => progress.decided(&gate),
                None => break Err(anyhow::anyhow!("the status stream ended")),
            },
        }
    };
    watching.abort();
    outcome
}

fn reached(args: &UpArgs, generation: u32, games: u64) -> bool {
    args.until_generation.is_some_and(|wanted| generation >= wanted)
        || args.until_games.is_some_and(|wanted| games >= wanted)
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// The running children.
struct Cluster {
    url: String,
    credentials: Credentials,
    coordinator: Child,
    learner: Child,
    actors: Vec<Child>,
    events: mpsc::Receiver<ChildEvent>,
}

impl Cluster {
    /// Starts everything; `None` when `stop` came first. What was started before an error is drained.
    async fn start(layout: &Layout, actors: u32, stop: &CancellationToken) -> anyhow::Result<Option<Cluster>> {
        let (sender, events) = mpsc::channel(64);
        let address_file = layout.data.join(ADDRESS_FILE);
        if address_file.exists() {
            std::fs::remove_file(&address_file)
                .with_context(|| format!("failed to remove the old {}", address_file.display()))?;
        }
        let mut first = layout.coordinator(layout.listen)?;
        if layout.apply {
            // Not when it is started again: what is changed from now on is not the file's to take back.
            first.args.push("--apply".into());
        }
        let mut coordinator = Child::start(first, sender.clone())?;
        let url = match ready(layout, &mut coordinator, stop).await {
            Ok(Some(url)) => url,
            other => {
                coordinator.drain().await;
                return other.map(|_| None);
            }
        };
        match Cluster::join(layout, actors, &url, &sender) {
            Ok((learner, actors)) => {
                // A restarted coordinator must be found where the others look for it.
                coordinator.restart_as(layout.coordinator(address_of(&url).parse()?)?);
                Ok(Some(Cluster {
                    url,
                    credentials: layout.credentials.clone(),
                    coordinator,
                    learner,
                    actors,
                    events,
                }))
            }
            Err(error) => {
                coordinator.drain().await;
                Err(error)
            }
        }
    }

    /// Starts the processes that need the coordinator's address. All programs are looked for before the first starts.
    fn join(
        layout: &Layout,
        actors: u32,
        url: &str,
        events: &mpsc::Sender<ChildEvent>,
    ) -> anyhow::Result<(Child, Vec<Child>)> {
        let learner = layout.learner(url)?;
        let actors = (0..actors as usize)
            .map(|index| layout.actor(url, index))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let learner = Child::start(learner, events.clone())?;
        let actors = actors.into_iter().map(|actor| Child::start(actor, events.clone()));
        Ok((learner, actors.collect::<anyhow::Result<Vec<_>>>()?))
    }

    /// Ends the children in the order in which work flows: nothing that is finished is lost on the way.
    async fn drain(mut self) {
        let mut actors = JoinSet::new();
        for mut actor in self.actors {
            actors.spawn(async move { actor.drain().await });
        }
        actors.join_all().await;
        self.learner.drain().await;
        self.coordinator.drain().await;
    }
}

/// The address in a coordinator's URL.
fn address_of(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, address)| address)
}

/// Refuses a token that the learner and the actors would be refused with: they show this process's own.
async fn may_start(url: &str, credentials: &Credentials) -> anyhow::Result<()> {
    let mut admin = AdminServiceClient::new(client::connect(url, credentials)?);
    match admin
        .list_tokens(ListTokensRequest {
            page_size: 1,
            ..ListTokensRequest::default()
        })
        .await
    {
        Err(status) if matches!(status.code(), Code::Unauthenticated | Code::PermissionDenied) => bail!(
            "this run has tokens, and `tengen up` starts its learner and actors with the one it is given, which must be an \
             admin's (--token-file FILE): {}",
            status.message()
        ),
        // Any other failure is one of the connection, which the display tells about.
        _ => Ok(()),
    }
}

/// Waits until the coordinator serves and returns its address; `None` when `stop` came first.
async fn ready(layout: &Layout, coordinator: &mut Child, stop: &CancellationToken) -> anyhow::Result<Option<String>> {
    let give_up = Instant::now() + START_MAX;
    let mut looks = tokio::time::interval(Duration::from_millis(50));
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(None),
            () = coordinator.crashed() => bail!("the coordinator did not start:\n{}", coordinator.last_words()),
            _ = looks.tick() => {
                if let Ok(url) = read_address(&layout.data, &layout.connect)
                    && health::probe(&url, &layout.credentials).await.is_ok()
                {
                    may_start(&url, &layout.credentials).await?;
                    return Ok(Some(url));
                }
            }
        }
        if Instant::now() > give_up {
            bail!(
                "the coordinator did not serve within {START_MAX:?}:\n{}",
                coordinator.last_words()
            );
        }
    }
}
