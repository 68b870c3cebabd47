//! The process from the outside: it takes up its data folder, listens, serves, and drains.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tengen_control::LeaseRules;
use tengen_replay::{RedisFault, RedisOptions};
use tengen_service::files::{WriteError, write_atomic};
use tengen_service::lock::{FolderLock, LockError};
use tengen_service::metrics::{self, MetricsArgs, MetricsError};
use tengen_service::run_config::RunConfig;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tower_layer::{Identity, Stack};

use crate::access::{Access, AccessLayer, Incoming, Limits, Listening, TlsError, listen, seconds};
use crate::audit::{self, AuditConfig, AuditStartError, AuditThread};
use crate::config::Config;
use crate::disk::GaugeThread;
use crate::disk::file_system::FileSystemError;
use crate::failpoint::Failpoints;
use crate::feed::{Feeder, await_server};
use crate::files::ModelFiles;
use crate::metrics::METRICS;
use crate::replay_config::ReplayConfigError;
use crate::run::{Handle, OwnerError, OwnerThread};
use crate::services::{Shared, model_service, run_service, status_now};
use crate::setup::SetupError;
use crate::store::{Readers, StoreError};
use crate::take_up::{admission, prepare, take_up};
use crate::window::RunWindow;

/// How often time passes for the run.
const TICK: Duration = Duration::from_millis(500);
/// Streams of one connection that its peer has reset and we have not forgotten yet: more close the connection (rapid reset,
/// CVE-2023-44487 and CVE-2025-8671). The values are those of the h2 crate, fixed here so that no upgrade lifts them.
const RESET_STREAMS_MAX: (usize, usize) = (20, 1_024);
/// How long open requests may take to end once the process drains.
const DRAIN_MAX: Duration = Duration::from_secs(10);

/// What a coordinator is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// The run.
    pub run: RunConfig,
    /// Its data folder.
    pub data: PathBuf,
    /// What this process is told beside the run.
    pub config: Config,
    /// File that gets the bound address, for whoever starts this process.
    pub addr_file: Option<PathBuf>,
    /// Sizes and time limits of leases.
    pub leases: LeaseRules,
    /// Where to show metrics.
    pub metrics: MetricsArgs,
    /// What becomes of keys that were changed while the run went on.
    pub live_keys: LiveKeys,
}

/// What becomes of keys that were changed while the run went on, where the run file says something else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LiveKeys {
    /// They stay as they are.
    #[default]
    Win,
    /// The file is applied.
    GiveWay,
}

/// The coordinator cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum CoordinatorError {
    /// Without tokens only this machine is served.
    #[error(
        "{listen} is more than this machine (no loopback address), and {data} has no tokens: make them with \
         `tengen-coordinator init --data {data} --tokens DIR`, or say --insecure to let everybody who reaches it do everything",
        data = data.display()
    )]
    NotLoopback {
        /// The address.
        listen: SocketAddr,
        /// The data folder.
        data: PathBuf,
    },
    /// A run that is only read is this machine's affair.
    #[error("{0} is not a loopback address: a run that is only read is served to its own machine only")]
    ReadOnlyBeyond(SocketAddr),
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The address is taken or not ours.
    #[error("failed to listen on {addr}: {source}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The folder lies on a file system that no database should be on.
    #[error(transparent)]
    FileSystem(#[from] FileSystemError),
    /// The disk cannot be watched.
    #[error("failed to watch the disk of the data folder: {0}")]
    Disk(#[source] std::io::Error),
    /// Somebody else has the folder.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The data folder is another run's, or damaged.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// There is nothing to read.
    #[error("{} holds no run: name the data folder of one", .0.display())]
    NoRun(PathBuf),
    /// The database cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The keys about the window make no sense.
    #[error(transparent)]
    ReplayConfig(#[from] ReplayConfigError),
    /// The window's server is away or unfit.
    #[error("replay: {0}")]
    Window(#[from] RedisFault),
    /// The run's owner failed.
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// Audits are asked for and cannot be done.
    #[error(transparent)]
    Audit(#[from] AuditStartError),
    /// The metrics cannot be shown.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The address file could not be written.
    #[error(transparent)]
    AddrFile(#[from] WriteError),
    /// The server failed.
    #[error("failed to serve: {0}")]
    Serve(#[from] tonic::transport::Error),
    /// The reflection service could not be built.
    #[error("failed to build the reflection service: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// A task of the process panicked.
    #[error("a part of the process panicked: {0}")]
    Panicked(#[from] tokio::task::JoinError),
}

/// A coordinator that serves.
#[derive(Debug)]
pub struct Coordinator {
    addr: SocketAddr,
    task: JoinHandle<Result<(), CoordinatorError>>,
}

impl Coordinator {
    /// Takes up the data folder, binds, and serves until `stop` is cancelled.
    pub async fn start(options: Options, stop: CancellationToken) -> Result<Coordinator, CoordinatorError> {
        let Options {
            run,
            data,
            config,
            addr_file,
            leases,
            metrics,
            live_keys,
        } = options;
        let failpoints = Failpoints::new(config.die_at);
        let (folder, wanted) = (data.clone(), config.clone());
        let (tls, redis) = tokio::task::spawn_blocking(move || {
            let tls = prepare(&folder, &wanted)?;
            Ok::<_, CoordinatorError>((tls, wanted.redis()?))
        })
        .await??;
        if let Some(options) = &redis {
            await_server(options).await?;
        }
        let (folder, wanted, fail, options) = (data.clone(), config.clone(), failpoints.clone(), redis.clone());
        let prepared = tokio::task::spawn_blocking(move || {
            let taken = take_up((run, live_keys), &folder, &wanted, leases, fail, options)?;
            let access = Readers::new(&folder).with(|connection| admission(connection, &wanted))?;
            Ok::<_, CoordinatorError>((taken, access))
        });
        let (taken, access) = prepared.await??;
        let Listening { addr, incoming } = bind(config.listen, tls, &config.limits).await?;
        tell(&access, &config, addr);
        let (readers, files) = (Readers::new(&data), ModelFiles::new(&data));
        let (access, disk) = (Arc::new(access), taken.disk);
        let mut shared = Shared::new(taken.run, readers, files, access, disk, stop, failpoints);
        let auditor = taken
            .audits
            .map(|config| start_audits(&mut shared, config))
            .transpose()?;
        let shown = shared.archive.clone();
        let refresh = move || crate::metrics::show(&status_now(&shown));
        metrics::serve(&metrics, "coordinator", METRICS, refresh, shared.archive.stop.clone()).await?;
        let (router, health) = build(&shared);
        let router = if config.reflection { reflected(router)? } else { router };
        if let Some(path) = addr_file {
            let text = format!("{addr}\n");
            tokio::task::spawn_blocking(move || write_atomic(&path, text.as_bytes())).await??;
        }
        let access = shared.archive.access.in_words();
        tracing::info!(%addr, access, run = %shared.run.facts().id, data = %data.display(), "serving");
        let feeder = redis.and_then(|options| feed(&shared, options, taken.fence));
        let workers = Workers {
            owner: taken.owner,
            auditor,
            feeder,
        };
        let task = tokio::spawn(serve(shared, (router, health), incoming, workers, taken.held));
        Ok(Coordinator { addr, task })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Waits until it has drained; everything acknowledged is in the database file then.
    pub async fn join(self) -> Result<(), CoordinatorError> {
        self.task.await?
    }
}

/// Says plainly what is dangerous about the way this process listens.
fn tell(access: &Access, config: &Config, addr: SocketAddr) {
    if config.listen.ip().is_loopback() {
        return;
    }
    if !access.is_locked() {
        tracing::warn!(%addr, "INSECURE: there are no tokens, and whoever reaches this address may do everything");
    } else if config.tls.cert.is_none() {
        tracing::warn!(%addr, "there is no TLS: whoever is on the way can read tokens and games; set [tls] cert and key");
    }
}

/// What works beside the server, and ends after it.
struct Workers {
    owner: OwnerThread,
    auditor: Option<AuditThread>,
    feeder: Option<JoinHandle<()>>,
}

/// Begins to audit games.
fn start_audits(shared: &mut Shared, config: AuditConfig) -> Result<AuditThread, AuditStartError> {
    let (auditor, thread) = audit::start(config, shared.run.clone(), &shared.archive)?;
    shared.audit = Some(auditor);
    Ok(thread)
}

/// Begins to feed the window in Redis.
fn feed(shared: &Shared, options: RedisOptions, fence: u64) -> Option<JoinHandle<()>> {
    let RunWindow::Redis(feed) = shared.run.window() else {
        return None;
    };
    let (run, readers) = (shared.run.clone(), shared.archive.readers.clone());
    let feeder = Feeder::new(options, fence, Arc::clone(feed), run, readers);
    Some(tokio::spawn(feeder.run(shared.archive.stop.clone())))
}

pub(crate) type Router = tonic::transport::server::Router<Stack<AccessLayer, Identity>>;

fn build(shared: &Shared) -> (Router, tonic_health::server::HealthReporter) {
    let (health, health_service) = tonic_health::server::health_reporter();
    let router = limited(&shared.archive.access)
        .add_service(health_service)
        .add_service(shared.admin_service())
        .add_service(shared.actor_service())
        .add_service(model_service(shared.archive.clone(), Some(shared.clone())))
        .add_service(shared.learner_service())
        .add_service(shared.replay_service())
        .add_service(run_service(shared.archive.clone()));
    (router, health)
}

/// Takes the address.
pub(crate) async fn bind(
    addr: SocketAddr,
    tls: Option<TlsAcceptor>,
    limits: &Limits,
) -> Result<Listening, CoordinatorError> {
    let refused = |source| CoordinatorError::Listen { addr, source };
    listen(addr, tls, limits).await.map_err(refused)
}

/// A server with every limit set and its gate before every service.
pub(crate) fn limited(access: &Arc<Access>) -> Server<Stack<AccessLayer, Identity>> {
    let limits = access.limits();
    Server::builder()
        .timeout(seconds(limits.answer_seconds))
        .max_concurrent_streams(limits.streams_per_connection_max)
        .concurrency_limit_per_connection(limits.streams_per_connection_max as usize)
        .http2_max_header_list_size(limits.header_list_bytes_max)
        .http2_max_pending_accept_reset_streams(Some(RESET_STREAMS_MAX.0))
        .http2_max_local_error_reset_streams(Some(RESET_STREAMS_MAX.1))
        .http2_keepalive_interval(Some(seconds(limits.keepalive_seconds)))
        .http2_keepalive_timeout(Some(seconds(limits.keepalive_timeout_seconds)))
        .max_connection_age(seconds(limits.connection_age_seconds))
        .max_connection_age_grace(seconds(limits.connection_grace_seconds))
        .layer(AccessLayer(Arc::clone(access)))
}

/// Adds reflection, in both versions that tools ask for.
pub(crate) fn reflected(router: Router) -> Result<Router, CoordinatorError> {
    let descriptors = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(tengen_proto::DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    Ok(router
        .add_service(descriptors().build_v1()?)
        .add_service(descriptors().build_v1alpha()?))
}

/// Names of our services, for the health service.
const SERVICES: [&str; 6] = [
    "tengen.v1.AdminService",
    "tengen.v1.ActorService",
    "tengen.v1.ModelService",
    "tengen.v1.LearnerService",
    "tengen.v1.ReplayService",
    "tengen.v1.RunService",
];

pub(crate) async fn set_health(
    health: &tonic_health::server::HealthReporter,
    services: &[&str],
    status: tonic_health::ServingStatus,
) {
    health.set_service_status("", status).await;
    for service in services {
        health.set_service_status(service, status).await;
    }
}

async fn serve(
    shared: Shared,
    (router, health): (Router, tonic_health::server::HealthReporter),
    incoming: Incoming,
    workers: Workers,
    held: (GaugeThread, FolderLock),
) -> Result<(), CoordinatorError> {
    let stop = shared.archive.stop.clone();
    let run = shared.run.clone();
    drop(shared);
    set_health(&health, &SERVICES, tonic_health::ServingStatus::Serving).await;
    let drained = drain(run.clone(), health, stop.clone());
    let mut server = tokio::spawn(router.serve_with_incoming_shutdown(incoming, drained));
    let served = tokio::select! {
        served = &mut server => served,
        () = overdue(&stop) => {
            tracing::warn!("open requests were cut off");
            server.abort();
            // Connections outlive the server that accepted them, and a peer that does not read keeps its own open.
            run.stop().await;
            // Only an aborted task ends without a result of its own.
            server.await.or_else(|error| if error.is_cancelled() { Ok(Ok(())) } else { Err(error) })
        }
    };
    // Also when the server ended by itself: nobody else is told to stop then.
    stop.cancel();
    let Workers { owner, auditor, feeder } = workers;
    let fed = match feeder {
        Some(feeder) => feeder.await,
        None => Ok(()),
    };
    // Every other handle is gone with the server and the auditor, or the owner was stopped: it commits what waits and
    // ends.
    drop(run);
    let owned = tokio::task::spawn_blocking(move || {
        if let Some(auditor) = auditor {
            auditor.join();
        }
        owner.join()
    })
    .await?;
    drop(held);
    served??;
    owned?;
    fed?;
    tracing::info!("drained");
    Ok(())
}

/// Lets time pass until the process is to stop, then stops the hand-out of work; the server stops accepting when this
/// returns.
async fn drain(run: Handle, health: tonic_health::server::HealthReporter, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => run.tick(),
            // An owner that ended by itself has failed: the process must not go on without it.
            () = run.gone() => {
                stop.cancel();
                break;
            }
            () = stop.cancelled() => break,
        }
    }
    set_health(&health, &SERVICES, tonic_health::ServingStatus::NotServing).await;
    run.drain().await;
}

/// Returns some time after the process was told to stop.
async fn overdue(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(DRAIN_MAX).await;
}
