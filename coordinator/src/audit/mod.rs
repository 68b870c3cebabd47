//! Audits: a share of the stored games has some positions evaluated again with the network it names.
//!
//! A named thread of low priority does it, with ONNX Runtime on that thread alone. Games come to it through a bounded
//! queue **after** their verdict; one that finds the queue full is not audited and is counted as missed. Which games and
//! positions are drawn follows from their id and a secret of this process, so that an actor cannot foresee it.
//!
//! Findings go to the run's owner, which counts them and suspends actors; **nothing is decided here**, and a failed
//! game stays stored: it is evidence.

mod config;
mod library;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use rand::TryRng;
use rand::rngs::SysRng;
use tengen_records::{ModelId, Precision, Record, RecordId, decode};
use tengen_selfplay::audit::{AuditError, InferenceError, draw_plies, evaluator, load_runtime, networks};
use tengen_selfplay::{ModelBytes, SessionEvaluator};
use tengen_service::backoff::Backoff;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::archive::Archive;
use crate::run::Handle;
use crate::run::request::{AuditReport, Request};
use crate::store::{Readers, StoreError, games};

use library::{Found, Library};

pub use config::AuditConfig;
pub(crate) use config::Place;

/// Drawn games that may wait: minutes of the largest cluster's share, a few dozen bytes each.
const QUEUE_MAX: usize = 1_024;
/// The audit thread's niceness: it gets what nobody else wants.
const NICENESS: i32 = 10;

/// Audits cannot be done although they are asked for.
#[derive(Debug, thiserror::Error)]
pub enum AuditStartError {
    /// There is no ONNX Runtime.
    #[error(
        "audits are configured ([audit] or --onnxruntime) and cannot be done: {0}; without either the coordinator starts without audits"
    )]
    Runtime(#[from] InferenceError),
    /// The system gives no secret.
    #[error("the system gives no random bits to draw audited games with")]
    Secret,
    /// The thread could not be started.
    #[error("failed to start the audit thread: {0}")]
    Thread(#[source] io::Error),
}

/// Whether audits are done, and how that is told.
#[derive(Debug)]
pub(crate) struct Readiness {
    /// How; none when they are off.
    pub(crate) config: Option<AuditConfig>,
    /// The same for people.
    pub(crate) says: String,
}

/// Looks for ONNX Runtime. Blocks.
pub(crate) fn prepare(wanted: Option<AuditConfig>, runtime: Option<&Path>) -> Result<Readiness, AuditStartError> {
    let off = |says: String| Readiness { config: None, says };
    let config = wanted.unwrap_or_default();
    if config.share <= 0.0 {
        return Ok(off("off: audit.share is 0".to_owned()));
    }
    match load_runtime(runtime) {
        Ok(()) => Ok(Readiness {
            config: Some(config),
            says: format!(
                "{} % of the games, {} positions each",
                config.share * 100.0,
                config.positions
            ),
        }),
        Err(error) if wanted.is_some() || runtime.is_some() => Err(error.into()),
        Err(error) => {
            tracing::warn!(%error, "games are not audited");
            Ok(off("off: ONNX Runtime was not found".to_owned()))
        }
    }
}

/// A stored game that was drawn.
#[derive(Debug)]
pub(crate) struct Sampled {
    game: RecordId,
    actor: String,
    /// Seed that its positions are drawn with.
    seed: u64,
}

/// Draws games and hands them to the audit thread.
#[derive(Debug)]
pub(crate) struct Auditor {
    secret: [u8; 32],
    share: f64,
    queue: mpsc::Sender<Sampled>,
    missed: Arc<AtomicU64>,
}

impl Auditor {
    /// Takes a game that was just stored. Never waits.
    pub(crate) fn offer(&self, game: RecordId, actor: &str) {
        let Some(seed) = draw(&self.secret, self.share, game) else {
            return;
        };
        let sampled = Sampled {
            game,
            actor: actor.to_owned(),
            seed,
        };
        if self.queue.try_send(sampled).is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The seed of a game that is drawn.
fn draw(secret: &[u8; 32], share: f64, game: RecordId) -> Option<u64> {
    let mut bytes = [0; 16];
    blake3::Hasher::new_keyed(secret)
        .update(&game.to_bytes())
        .finalize_xof()
        .fill(&mut bytes);
    let [lot, seed] = [0, 8].map(|from| {
        bytes[from..from + 8]
            .iter()
            .fold(0, |all, &byte| all << 8 | u64::from(byte))
    });
    // 53 bits of the lot as a number in [0, 1).
    let drawn = ((lot >> 11) as f64) / ((1u64 << 53) as f64) < share;
    drawn.then_some(seed)
}

/// The audit thread.
#[derive(Debug)]
pub(crate) struct AuditThread(JoinHandle<()>);

impl AuditThread {
    /// Waits until it has ended, which it does once the process is told to stop. Blocks for one audit at most.
    pub(crate) fn join(self) {
        if self.0.join().is_err() {
            tracing::error!("the audit thread panicked");
        }
    }
}

/// Starts the audit thread. It ends when the process is told to stop; what waits then is not audited.
pub(crate) fn start(
    config: AuditConfig,
    run: Handle,
    archive: &Archive,
) -> Result<(Arc<Auditor>, AuditThread), AuditStartError> {
    let mut secret = [0; 32];
    SysRng
        .try_fill_bytes(&mut secret)
        .map_err(|_| AuditStartError::Secret)?;
    let (queue, drawn) = mpsc::channel(QUEUE_MAX);
    let missed = Arc::new(AtomicU64::new(0));
    let desk = Desk {
        config,
        run,
        readers: archive.readers.clone(),
        library: Library::new(archive.readers.clone(), archive.files.clone()),
        evaluator: evaluator(),
        missed: Arc::clone(&missed),
        stop: archive.stop.clone(),
        runtime: tokio::runtime::Handle::current(),
    };
    let thread = std::thread::Builder::new()
        .name("audit".to_owned())
        .spawn(move || desk.serve(drawn))
        .map_err(AuditStartError::Thread)?;
    let auditor = Auditor {
        secret,
        share: config.share,
        queue,
        missed,
    };
    Ok((Arc::new(auditor), AuditThread(thread)))
}

/// Why a drawn game was not audited. None of it is the actor's fault.
#[derive(Debug, thiserror::Error)]
enum Miss {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the game is not stored any more")]
    Game,
    #[error("its record cannot be read: {0}")]
    Record(#[from] tengen_records::Rejection),
    #[error("the file of model {0} cannot be read: {1}")]
    File(ModelId, io::Error),
    #[error("the file of model {0} does not hold what its name says")]
    Damaged(ModelId),
    #[error("model {0} computes something else in {1} on this CPU, which proves nothing about the game")]
    Unproven(ModelId, Precision),
    #[error(transparent)]
    Audit(#[from] AuditError),
}

impl Miss {
    fn tell(&self, game: RecordId) {
        match self {
            // That was said when the network was looked at, and stands in the status.
            Miss::Unproven(..) => tracing::debug!(%game, error = %self, "a game is not audited"),
            _ => tracing::warn!(%game, error = %self, "a game could not be audited"),
        }
    }
}

/// Plies of a record, and the networks to evaluate them with.
type Evidence = (Vec<usize>, Vec<Arc<ModelBytes>>);

/// What the thread works with.
struct Desk {
    config: AuditConfig,
    run: Handle,
    readers: Readers,
    library: Library,
    evaluator: SessionEvaluator,
    missed: Arc<AtomicU64>,
    stop: CancellationToken,
    runtime: tokio::runtime::Handle,
}

impl Desk {
    fn serve(mut self, mut drawn: mpsc::Receiver<Sampled>) {
        lower_priority();
        let runtime = self.runtime.clone();
        while let Some(sampled) = runtime.block_on(next(&mut drawn, &self.stop)) {
            let report = match self.audit(&sampled) {
                Ok(report) => report,
                Err(miss) => {
                    miss.tell(sampled.game);
                    self.missed.fetch_add(1, Ordering::Relaxed);
                    None
                }
            };
            if !runtime.block_on(self.tell(report)) {
                return;
            }
        }
    }

    /// `None` for a game without networks: there is nothing to evaluate again.
    fn audit(&mut self, sampled: &Sampled) -> Result<Option<AuditReport>, Miss> {
        let bytes = self
            .readers
            .with(|connection| games::record(connection, sampled.game))?;
        let record = decode(&bytes.ok_or(Miss::Game)?)?;
        if !record.plies.iter().any(|ply| record.network(ply.model).is_some()) {
            return Ok(None);
        }
        let drawn = draw_plies(&record, self.config.positions as usize, sampled.seed);
        let (plies, models) = self.evidence(&record, drawn)?;
        let game = Arc::clone(&self.run.facts().game);
        let differences = game.audit(&record, &plies, &models, &mut self.evaluator)?;
        Ok(Some(AuditReport {
            game: sampled.game,
            actor: sampled.actor.clone(),
            model: record.models.first().copied().unwrap_or(ModelId([0; 32])),
            positions: differences.len() as u32,
            differences,
            config: self.config,
        }))
    }

    /// Those of the drawn plies that can be evaluated again, and the networks that this takes, each in the precision that the
    /// record states.
    fn evidence(&mut self, record: &Record, drawn: Vec<usize>) -> Result<Evidence, Miss> {
        let (mut models, mut unproven) = (Vec::new(), Vec::new());
        for (id, precision) in networks(record, &drawn) {
            match self.library.find(id, precision)? {
                Found::Ready(model) => models.push(model),
                Found::Unproven => unproven.push((id, precision)),
            }
        }
        let is_proven = |ply: &usize| networks(record, &[*ply]).iter().all(|named| !unproven.contains(named));
        let plies: Vec<usize> = drawn.into_iter().filter(is_proven).collect();
        match unproven.first() {
            Some(&(model, precision)) if plies.is_empty() => Err(Miss::Unproven(model, precision)),
            _ => Ok((plies, models)),
        }
    }

    /// Hands findings to the owner until they are committed, and what is not judged; `false` when the process stops first.
    async fn tell(&self, report: Option<AuditReport>) -> bool {
        let mut backoff = Backoff::default();
        loop {
            let missed = self.missed.swap(0, Ordering::Relaxed);
            let report = report.clone().map(Box::new);
            let withheld = self.library.withheld();
            let request = |reply| Request::Audited {
                report,
                missed,
                withheld,
                reply,
            };
            if self.run.ask(request).await.is_ok() {
                return true;
            }
            self.missed.fetch_add(missed, Ordering::Relaxed);
            if !backoff.wait(&self.stop).await {
                return false;
            }
        }
    }
}

async fn next(drawn: &mut mpsc::Receiver<Sampled>, stop: &CancellationToken) -> Option<Sampled> {
    tokio::select! {
        biased;
        () = stop.cancelled() => None,
        sampled = drawn.recv() => sampled,
    }
}

/// Linux keeps a niceness for each thread; elsewhere it is the whole process's and stays as it is.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getpriority_process, setpriority_process};
        let nicer = getpriority_process(None).map(|niceness| niceness.max(NICENESS));
        if let Err(error) = nicer.and_then(|niceness| setpriority_process(None, niceness)) {
            tracing::debug!(%error, "the audit thread keeps its priority");
        }
    }
}

#[cfg(test)]
mod tests {
    use tengen_records::LeaseId;

    use super::*;

    #[test]
    fn the_share_of_drawn_games_is_the_configured_one_and_depends_on_the_secret() {
        let games = (0..40_000).map(|index| RecordId {
            lease: LeaseId(u128::from(index) << 64 | 9),
            index,
        });
        let drawn = |secret: u8| -> Vec<RecordId> {
            games
                .clone()
                .filter(|&game| draw(&[secret; 32], 0.02, game).is_some())
                .collect()
        };
        let (one, other) = (drawn(1), drawn(2));
        // 800 expected, standard deviation 28.
        for drawn in [&one, &other] {
            assert!((660..940).contains(&drawn.len()), "{}", drawn.len());
        }
        let both = one.iter().filter(|game| other.contains(game)).count();
        assert!(both < 60, "{both} of {} are drawn with either secret", one.len());
        assert!(games.clone().all(|game| draw(&[1; 32], 1.0, game).is_some()));
        assert!(games.clone().all(|game| draw(&[1; 32], 0.0, game).is_none()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_the_audit_thread_gives_way() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let before = niceness();
        let thread = std::thread::spawn(move || {
            lower_priority();
            niceness()
        });
        assert_eq!(thread.join().unwrap(), before.max(NICENESS));
        assert_eq!(niceness(), before);
    }

    #[test]
    fn a_game_that_finds_the_queue_full_is_counted_as_missed() {
        let (queue, mut drawn) = mpsc::channel(1);
        let auditor = Auditor {
            secret: [3; 32],
            share: 1.0,
            queue,
            missed: Arc::default(),
        };
        for index in 0..3 {
            let lease = LeaseId(1);
            auditor.offer(RecordId { lease, index }, "actor");
        }
        assert_eq!(auditor.missed.load(Ordering::Relaxed), 2);
        assert_eq!(drawn.try_recv().map(|sampled| sampled.game.index), Ok(0));
    }

    #[test]
    fn without_onnx_runtime_audits_are_off_unless_they_were_asked_for() {
        let nowhere = Path::new("/nowhere/at/all");
        let asked = prepare(None, Some(nowhere)).unwrap_err().to_string();
        assert!(asked.contains("/nowhere/at/all"), "{asked}");
        let config = AuditConfig {
            share: 0.0,
            ..AuditConfig::default()
        };
        let off = prepare(Some(config), Some(nowhere)).unwrap();
        assert_eq!((off.config, off.says.as_str()), (None, "off: audit.share is 0"));
    }
}
