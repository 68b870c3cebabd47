//! Taking up a data folder before anything is served: what must not be is refused, the folder is locked, and the run's
//! owner starts on it. Serving is in `server`.

use std::path::Path;
use std::sync::Arc;

use tengen_control::LeaseRules;
use tengen_replay::RedisOptions;
use tengen_service::lock::{FolderLock, lock_folder};
use tengen_service::run_config::RunConfig;
use tokio_rustls::TlsAcceptor;

use crate::access::{self, Access, TokenId};
use crate::audit::{self, AuditConfig};
use crate::clock::unix_ms;
use crate::config::Config;
use crate::disk::file_system;
use crate::disk::{Gauge, GaugeThread};
use crate::facts::RunFacts;
use crate::failpoint::Failpoints;
use crate::run::{self, Handle, OwnerThread, Surroundings};
use crate::server::{CoordinatorError, LiveKeys};
use crate::setup::{SetupError, open_run};
use crate::store::actors::{self, ActorRow};
use crate::store::{StoreError, tokens, window_fence};

/// Refuses what must not be served, before the folder is touched, and reads the certificates. Blocks.
pub(crate) fn prepare(data: &Path, config: &Config) -> Result<Option<TlsAcceptor>, CoordinatorError> {
    if !config.listen.ip().is_loopback() && !config.insecure && !tokens::exist(data)? {
        return Err(CoordinatorError::NotLoopback {
            listen: config.listen,
            data: data.to_path_buf(),
        });
    }
    Ok(access::acceptor(&config.tls)?)
}

/// Who is let in, from the database.
pub(crate) fn admission(connection: &rusqlite::Connection, config: &Config) -> Result<Access, StoreError> {
    let owned = |row: ActorRow| Some((row.actor, TokenId::parse(&row.token?).ok()?));
    let actors = actors::all(connection)?.into_iter().filter_map(owned);
    Ok(Access::new(tokens::all(connection)?, actors.collect(), config))
}

/// A data folder that was taken up.
pub(crate) struct TakenUp {
    pub(crate) run: Handle,
    pub(crate) owner: OwnerThread,
    pub(crate) disk: Gauge,
    /// Fences the window in Redis against the coordinators before this one.
    pub(crate) fence: u64,
    /// How games are audited; none when they are not.
    pub(crate) audits: Option<AuditConfig>,
    pub(crate) held: (GaugeThread, FolderLock),
}

/// Locks the folder and brings the run up. Blocks.
pub(crate) fn take_up(
    (run, live): (RunConfig, LiveKeys),
    data: &Path,
    config: &Config,
    leases: LeaseRules,
    failpoints: Failpoints,
    redis: Option<RedisOptions>,
) -> Result<TakenUp, CoordinatorError> {
    let found = file_system::look(data)?;
    file_system::admit(data, found, &config.disk)?;
    let lock = lock_folder(data, "coordinator")?;
    let audits = audit::prepare(config.audit, config.onnxruntime.as_deref())?;
    let (connection, mut facts): (_, RunFacts) = open_run(data, run, live, unix_ms())?;
    facts.audit = audits.says;
    let fence = window_fence::next(&connection, facts.created_ms).map_err(SetupError::from)?;
    let (disk, watching) = Gauge::start(data, config.disk.clone()).map_err(CoordinatorError::Disk)?;
    let surroundings = Surroundings {
        disk: disk.clone(),
        retention: config.retention,
        redis,
        failpoints,
    };
    let (run, owner) = run::spawn(connection, data, Arc::new(facts), leases, surroundings)?;
    Ok(TakenUp {
        run,
        owner,
        disk,
        fence,
        audits: audits.config,
        held: (watching, lock),
    })
}
