//! The gRPC services. They parse, ask the run's owner or read the database, and answer; they hold no state of the run.

mod actor;
mod admin;
mod download;
pub(crate) mod errors;
mod examine;
mod games;
mod learner;
mod model;
mod paced;
mod publish;
mod ratings;
mod replay;
mod run;
mod steer;
mod submit;
mod watch;

use std::sync::Arc;

use tengen_proto::v1::actor_service_server::ActorServiceServer;
use tengen_proto::v1::admin_service_server::AdminServiceServer;
use tengen_proto::v1::learner_service_server::LearnerServiceServer;
use tengen_proto::v1::model_service_server::ModelServiceServer;
use tengen_proto::v1::replay_service_server::ReplayServiceServer;
use tengen_proto::v1::run_service_server::RunServiceServer;
use tengen_service::channel::MESSAGE_BYTES_MAX;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::access::Access;
use crate::archive::Archive;
use crate::audit::Auditor;
use crate::disk::Gauge;
use crate::failpoint::Failpoints;
use crate::files::ModelFiles;
use crate::run::Handle;
use crate::store::Readers;
use examine::LeaseBook;
use paced::Paced;
pub(crate) use run::status_now;

/// Record checks that run at once beyond the number of cores.
const CHECKS_SPARE: usize = 2;

/// What every service works with; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) run: Handle,
    pub(crate) archive: Archive,
    pub(crate) leases: Arc<LeaseBook>,
    /// The room on the disk.
    pub(crate) disk: Gauge,
    /// Bounds the record checks that run at once: they keep a core busy.
    pub(crate) checks: Arc<Semaphore>,
    pub(crate) failpoints: Failpoints,
    /// Draws stored games for audits; none when they are off.
    pub(crate) audit: Option<Arc<Auditor>>,
}

impl Shared {
    pub(crate) fn new(
        run: Handle,
        readers: Readers,
        files: ModelFiles,
        access: Arc<Access>,
        disk: Gauge,
        stop: CancellationToken,
        failpoints: Failpoints,
    ) -> Shared {
        let leases = Arc::new(LeaseBook::new(readers.clone(), run.facts()));
        let archive = Archive {
            run_id: run.facts().id.as_str().into(),
            readers,
            files,
            status: run.status(),
            champion: run.champion(),
            access,
            is_at_rest: false,
            stop,
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Shared {
            run,
            archive,
            leases,
            disk,
            checks: Arc::new(Semaphore::new(cores + CHECKS_SPARE)),
            failpoints,
            audit: None,
        }
    }

    pub(crate) fn actor_service(&self) -> ActorServiceServer<actor::ActorApi> {
        ActorServiceServer::new(actor::ActorApi(self.clone()))
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    }

    pub(crate) fn admin_service(&self) -> AdminServiceServer<admin::AdminApi> {
        AdminServiceServer::new(admin::AdminApi(self.clone()))
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    }

    pub(crate) fn learner_service(&self) -> LearnerServiceServer<learner::LearnerApi> {
        LearnerServiceServer::new(learner::LearnerApi(self.clone()))
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    }

    pub(crate) fn replay_service(&self) -> ReplayServiceServer<replay::ReplayApi> {
        ReplayServiceServer::new(replay::ReplayApi(self.clone()))
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    }
}

/// Networks; published to only while the run is `live`. Every actor downloads a new champion at the same time, so the answers
/// are paced.
pub(crate) fn model_service(archive: Archive, live: Option<Shared>) -> Paced<ModelServiceServer<model::ModelApi>> {
    let service = ModelServiceServer::new(model::ModelApi::new(archive, live))
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    Paced(service)
}

/// The run as people watch it.
pub(crate) fn run_service(archive: Archive) -> RunServiceServer<run::RunApi> {
    RunServiceServer::new(run::RunApi(archive))
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX)
}

/// Runs blocking work off the async threads.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Status> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| errors::internal(&error))
}

/// The number below which a page's rows lie: the token of the page before, or `first` where there was none.
fn page_start<N: std::str::FromStr>(token: &str, first: N) -> Result<N, Status> {
    if token.is_empty() {
        return Ok(first);
    }
    token
        .parse()
        .map_err(|_| errors::bad_field("page_token", "it is not one of ours"))
}

/// A page's size from what was asked for.
fn page_size(asked: i32) -> u32 {
    match asked {
        i32::MIN..=0 => 50,
        asked => asked.unsigned_abs().min(1_000),
    }
}
