//! The process from the outside: it takes up its data folder, listens, serves, and drains.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tengen_control::LeaseRules;
use tengen_service::files::{WriteError, write_atomic};
use tengen_service::lock::{FolderLock, LockError, lock_folder};
use tengen_service::run_config::RunConfig;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::audit::{self, AuditConfig, AuditStartError, AuditThread};
use crate::clock::unix_ms;
use crate::config::Config;
use crate::facts::RunFacts;
use crate::failpoint::Failpoints;
use crate::files::ModelFiles;
use crate::run::{self, Handle, OwnerError, OwnerThread};
use crate::services::{Shared, model_service, run_service};
use crate::setup::{SetupError, open_run};
use crate::store::{Readers, StoreError};

/// How often time passes for the run.
const TICK: Duration = Duration::from_millis(500);
/// Streams of one connection.
const STREAMS_MAX: u32 = 256;
/// Headers of one request, bytes.
const HEADER_LIST_BYTES_MAX: u32 = 16 * 1024;
/// Silence after which a connection is probed, and how long the probe may take.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(10));
/// Longest time to the first byte of an answer; a whole publication counts.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(300);
/// A connection this old is asked to make place for a fresh one.
const CONNECTION_AGE_MAX: Duration = Duration::from_secs(6 * 3_600);
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
}

/// The coordinator cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum CoordinatorError {
    /// Only this machine is served.
    #[error("{0} is not a loopback address: this version serves its own machine only; listen on 127.0.0.1 or [::1]")]
    NotLoopback(SocketAddr),
    /// The address is taken or not ours.
    #[error("failed to listen on {addr}: {source}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
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
    /// The run's owner failed.
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// Audits are asked for and cannot be done.
    #[error(transparent)]
    Audit(#[from] AuditStartError),
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
        } = options;
        let listen = config.listen;
        if !listen.ip().is_loopback() {
            return Err(CoordinatorError::NotLoopback(listen));
        }
        let failpoints = Failpoints::new(config.die_at);
        let (folder, fail) = (data.clone(), failpoints.clone());
        let (lock, run, owner, audits) =
            tokio::task::spawn_blocking(move || take_up(run, &config, &folder, leases, &fail)).await??;
        let (incoming, addr) = bind(listen)?;
        let mut shared = Shared::new(run, Readers::new(&data), ModelFiles::new(&data), stop, failpoints);
        let auditor = audits.map(|config| start_audits(&mut shared, config)).transpose()?;
        let router = build(&shared)?;
        if let Some(path) = addr_file {
            let text = format!("{addr}\n");
            tokio::task::spawn_blocking(move || write_atomic(&path, text.as_bytes())).await??;
        }
        tracing::info!(%addr, run = %shared.run.facts().id, data = %data.display(), "serving");
        let task = tokio::spawn(serve(shared, router, incoming, (owner, auditor), lock));
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

/// Locks the folder and brings the run up. Blocks.
fn take_up(
    run: RunConfig,
    config: &Config,
    data: &std::path::Path,
    leases: LeaseRules,
    failpoints: &Failpoints,
) -> Result<(FolderLock, Handle, OwnerThread, Option<AuditConfig>), CoordinatorError> {
    let lock = lock_folder(data, "coordinator")?;
    let audits = audit::prepare(config.audit, config.onnxruntime.as_deref())?;
    let (connection, mut facts): (_, RunFacts) = open_run(data, run, unix_ms())?;
    facts.audit = audits.says;
    let (handle, owner) = run::spawn(connection, data, Arc::new(facts), leases, failpoints.clone())?;
    Ok((lock, handle, owner, audits.config))
}

fn start_audits(shared: &mut Shared, config: AuditConfig) -> Result<AuditThread, AuditStartError> {
    let (auditor, thread) = audit::start(config, shared.run.clone(), &shared.archive)?;
    shared.audit = Some(auditor);
    Ok(thread)
}

pub(crate) type Router = tonic::transport::server::Router;

fn build(shared: &Shared) -> Result<(Router, tonic_health::server::HealthReporter), CoordinatorError> {
    let (health, health_service) = tonic_health::server::health_reporter();
    let router = reflected(limited().add_service(health_service))?
        .add_service(shared.actor_service())
        .add_service(model_service(shared.archive.clone(), Some(shared.clone())))
        .add_service(shared.learner_service())
        .add_service(shared.replay_service())
        .add_service(run_service(shared.archive.clone()));
    Ok((router, health))
}

/// Takes the address.
pub(crate) fn bind(listen: SocketAddr) -> Result<(TcpIncoming, SocketAddr), CoordinatorError> {
    let refused = |source| CoordinatorError::Listen { addr: listen, source };
    let incoming = TcpIncoming::bind(listen).map_err(refused)?.with_nodelay(Some(true));
    let addr = incoming.local_addr().map_err(refused)?;
    Ok((incoming, addr))
}

/// A server with every limit set.
pub(crate) fn limited() -> Server {
    Server::builder()
        .timeout(REQUEST_TIMEOUT)
        .max_concurrent_streams(STREAMS_MAX)
        .concurrency_limit_per_connection(STREAMS_MAX as usize)
        .http2_max_header_list_size(HEADER_LIST_BYTES_MAX)
        .http2_keepalive_interval(Some(KEEPALIVE.0))
        .http2_keepalive_timeout(Some(KEEPALIVE.1))
        .max_connection_age(CONNECTION_AGE_MAX)
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
const SERVICES: [&str; 5] = [
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
    incoming: TcpIncoming,
    (owner, auditor): (OwnerThread, Option<AuditThread>),
    lock: FolderLock,
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
    drop(lock);
    served??;
    owned?;
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
