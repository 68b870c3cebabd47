//! Serving a run that is only read: its networks, its gates, its status. It changes nothing, plays nothing, and needs
//! neither the run's configuration nor its game, so a run that this build refuses to go on with stays readable.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tengen_service::files::write_atomic;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::access::{Access, Incoming, Listening};
use crate::archive::{Archive, Still, read_still};
use crate::config::Config;
use crate::files::ModelFiles;
use crate::server::{CoordinatorError, bind, limited, reflected, set_health};
use crate::services::{model_service, run_service};
use crate::store::{FILE_NAME, Readers, expect_current};

/// Services of a run that is only read.
const SERVICES: [&str; 2] = ["tengen.v1.ModelService", "tengen.v1.RunService"];

/// What to read, and where to serve it.
#[derive(Clone, Debug)]
pub struct ReadOnlyOptions {
    /// The run's data folder.
    pub data: PathBuf,
    /// Where to listen: a loopback address; port 0 takes any.
    pub listen: SocketAddr,
    /// File that gets the bound address, for whoever starts this process.
    pub addr_file: Option<PathBuf>,
}

/// Serves a run that is only read.
#[derive(Debug)]
pub struct ReadOnly {
    addr: SocketAddr,
    task: JoinHandle<Result<(), CoordinatorError>>,
}

impl ReadOnly {
    /// Serves what the run was when this began, until `stop` is cancelled. Takes no lock: a coordinator may start on the
    /// same folder meanwhile.
    pub async fn start(options: ReadOnlyOptions, stop: CancellationToken) -> Result<ReadOnly, CoordinatorError> {
        let ReadOnlyOptions {
            data,
            listen,
            addr_file,
        } = options;
        if !listen.ip().is_loopback() {
            return Err(CoordinatorError::ReadOnlyBeyond(listen));
        }
        let folder = data.clone();
        let still = tokio::task::spawn_blocking(move || take_up(&folder)).await??;
        // Who may read the files needs no token to read them here.
        let access = Arc::new(Access::new(Vec::new(), Vec::new(), &Config::default()));
        let Listening { addr, incoming } = bind(listen, None, access.limits()).await?;
        let archive = Archive {
            run_id: still.status.borrow().run_id.clone().into(),
            readers: Readers::new(&data),
            files: ModelFiles::new(&data),
            status: still.status.subscribe(),
            champion: still.champion.subscribe(),
            access,
            is_at_rest: true,
            stop,
        };
        if let Some(path) = addr_file {
            let text = format!("{addr}\n");
            tokio::task::spawn_blocking(move || write_atomic(&path, text.as_bytes())).await??;
        }
        tracing::info!(%addr, run = %archive.run_id, data = %data.display(), "serving, read-only");
        let task = tokio::spawn(serve(archive, incoming, still));
        Ok(ReadOnly { addr, task })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Waits until it has drained.
    pub async fn join(self) -> Result<(), CoordinatorError> {
        self.task.await?
    }
}

/// Reads what the run was. Blocks.
fn take_up(data: &Path) -> Result<Still, CoordinatorError> {
    let no_run = || CoordinatorError::NoRun(data.to_path_buf());
    if !data.join(FILE_NAME).exists() {
        return Err(no_run());
    }
    let still = Readers::new(data).with(|connection| {
        expect_current(connection, &data.join(FILE_NAME))?;
        read_still(connection, data)
    })?;
    still.ok_or_else(no_run)
}

async fn serve(
    archive: Archive,
    incoming: Incoming,
    // Held: a closed outlet would end every watch.
    _still: Still,
) -> Result<(), CoordinatorError> {
    let stop = archive.stop.clone();
    let (health, health_service) = tonic_health::server::health_reporter();
    set_health(&health, &SERVICES, tonic_health::ServingStatus::Serving).await;
    let router = reflected(limited(&archive.access).add_service(health_service))?
        .add_service(model_service(archive.clone(), None))
        .add_service(run_service(archive));
    router
        .serve_with_incoming_shutdown(incoming, stop.cancelled_owned())
        .await?;
    Ok(())
}
