//! The event loop: the one place that owns leases, outbox and link.
//!
//! Here are its state and its events; what each event does is in `handle`, what follows from the state once it is done in
//! `advance`, what is told of it in `report`, and the threads that play in `players`.

mod advance;
mod handle;
mod players;
mod report;

use std::future::pending;
use std::io;
use std::sync::Arc;

use anyhow::Context;
use crossbeam_channel::Receiver;
use tengen_proto::v1::{ReportActorResponse, SubmitGameRequest, SubmitGameResponse};
use tengen_records::{LeaseId, ModelId};
use tengen_selfplay::EvaluationCache;
use tengen_selfplay::feeding::Feeding;
use tengen_service::backoff::Backoff;
use tengen_service::channel::{self, Channel};
use tengen_service::files::remove_half_written;
use tengen_service::host;
use tengen_service::usage::UsageMeter;
use tokio::sync::mpsc;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Duration, Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use crate::folder;
use crate::handshake::{HandshakeError, Me, Run};
use crate::identity;
use crate::leases::Leases;
use crate::link::{self, Link};
use crate::models::Models;
use crate::options::Options;
use crate::outbox::Outbox;
use crate::spool::{Level, Room, Spool, SpoolEvent, Store, Ticket};
use crate::work::{Answer, Coming, WorkError};
use crate::worker::WorkerEvent;
use players::Players;
use report::Reports;

/// Finished games that may wait between the playing threads and the spool.
const FINISHED_MAX: usize = 16;
/// Events of the spool that may wait for the event loop.
const EVENTS_MAX: usize = 64;
/// How long threads may take to end once they are told to: one evaluation.
const CLOSE_MAX: Duration = Duration::from_secs(5);
/// How long verdicts are awaited at the end.
const FLUSH_MAX: Duration = Duration::from_secs(10);
/// What is reported as provider before the first network is loaded.
const PROVIDER_UNKNOWN: &str = "none yet";

/// Plays for the coordinator at `options.join` until `shutdown`, then drains.
pub async fn run(mut options: Options, shutdown: CancellationToken) -> anyhow::Result<()> {
    let _folder = if options.share_data {
        let (data, lock) = folder::take_first_free(&options.data)?;
        options.data = data;
        lock
    } else {
        folder::take(&options.data)?
    };
    let me = Me {
        id: identity::load_or_create(&options.data)?.to_string(),
        host: host::name(),
    };
    for folder in ["spool", "rejected", "models"] {
        let folder = options.data.join(folder);
        remove_half_written(&folder).with_context(|| format!("failed to tidy {}", folder.display()))?;
    }
    tengen_inference::init_for(&options.device, options.onnxruntime.as_deref())?;
    let (data, bytes_max) = (options.data.clone(), options.spool_bytes_max);
    let mut store = spawn_blocking(move || Store::open(&data, bytes_max)).await??;
    let channel = channel::connect(&options.join, &options.connect.credentials()?)?;
    tracing::info!(actor = me.id, coordinator = options.join, "joining");
    let provider = PROVIDER_UNKNOWN.to_owned();
    let connecting = link::connect(channel.clone(), me.clone(), provider, None, Duration::ZERO);
    let (run, link) = tokio::select! {
        () = shutdown.cancelled() => return Ok(()),
        connected = connecting => connected.with_context(|| format!("failed to join {}", options.join))?,
    };
    let key = run.key();
    let store = spawn_blocking(move || store.claim(&key).map(|()| store)).await??;
    let (told, game) = (options.clone(), run.game.clone());
    let feeding = spawn_blocking(move || told.feeding(&game)).await?;
    let feeding = feeding.context("no network can be tried here")?;
    let joined = Joined { me, channel, run, link };
    Actor::start(options, feeding, store, joined)?.run(shutdown).await
}

/// How far along its life the actor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Leases are taken, games are started.
    Playing,
    /// No game is started; those in flight go on until then.
    Draining(Instant),
    /// The threads have been told to end.
    Closing(Instant),
    /// Everything is played or given up; verdicts are awaited until then.
    Flushing(Instant),
    /// Nothing is left to do.
    Ended,
}

/// Something that happened.
enum Event {
    /// The process is asked to stop.
    Shutdown,
    /// The link took a game, the queue ran low, or a time has come: look what is to be done.
    Look,
    /// The spool spoke, perhaps for a playing thread.
    Spool(SpoolEvent),
    /// The spool's thread has ended.
    SpoolEnded,
    /// The coordinator decided about a game.
    Verdict(SubmitGameResponse),
    /// The stream of games is gone.
    LinkLost(String),
    /// A report is due.
    ReportDue,
    /// A call has been answered.
    Done(Done),
}

/// The answer to one of our calls.
enum Done {
    Connected(Box<Result<(Run, Link), HandshakeError>>),
    Work(Result<Answer, WorkError>),
    Report {
        returned: Vec<LeaseId>,
        answer: Result<ReportActorResponse, Status>,
    },
}

/// Calls that are on their way; at most one of each kind.
#[derive(Default)]
struct Calls {
    tasks: JoinSet<Done>,
    connect: bool,
    work: bool,
    /// The lease that `work` will bring.
    coming: Coming,
    report: bool,
}

/// What became of the games, for the log's last word.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    stored: u64,
    duplicate: u64,
    conflict: u64,
    rejected: u64,
}

/// The stream of games and its verdicts.
struct Connection {
    /// `None`: it is lost, and is being made again.
    link: Option<Link>,
    /// Whether the present link, or the last one when there is none, has brought a verdict.
    is_proven: bool,
    backoff: Backoff,
}

/// What the event loop has of the spool.
struct SpoolEnd {
    thread: Spool,
    /// What the spool tells; `None` once its thread has ended.
    events: Option<mpsc::Receiver<SpoolEvent>>,
    level: Level,
}

/// How work is asked for.
struct Asking {
    /// When that may be done again.
    after: Instant,
    backoff: Backoff,
    /// Why the coordinator last had no work; a change is worth a line.
    waiting: String,
    /// The network of the newest lease.
    newest_model: Option<ModelId>,
}

/// What joining a run led to.
struct Joined {
    me: Me,
    channel: Channel,
    run: Run,
    link: Link,
}

struct Actor {
    options: Options,
    me: Me,
    channel: Channel,
    run: Run,
    stage: Stage,
    failure: Option<anyhow::Error>,
    models: Arc<Models>,
    players: Players,
    spool: SpoolEnd,
    outbox: Outbox,
    connection: Connection,
    calls: Calls,
    asking: Asking,
    leases: Leases,
    reports: Reports,
    tally: Tally,
}

impl SpoolEnd {
    /// Starts the spool's thread, which keeps what comes from `finished`.
    fn start(linger: Duration, store: Store, finished: Receiver<WorkerEvent>) -> io::Result<SpoolEnd> {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let level = Level {
            games: store.games(),
            bytes: store.bytes(),
            room: Room::Everything,
        };
        Ok(SpoolEnd {
            thread: Spool::start(linger, store, finished, sender)?,
            events: Some(events),
            level,
        })
    }
}

impl Connection {
    fn new(link: Link) -> Connection {
        Connection {
            link: Some(link),
            is_proven: false,
            backoff: Backoff::default(),
        }
    }
}

impl Asking {
    fn new(now: Instant) -> Asking {
        Asking {
            after: now,
            backoff: Backoff::default(),
            waiting: String::new(),
            newest_model: None,
        }
    }
}

impl Actor {
    /// Starts every thread.
    fn start(options: Options, feeding: Feeding, store: Store, joined: Joined) -> anyhow::Result<Actor> {
        let Joined { me, channel, run, link } = joined;
        let (threads, games) = (feeding.division().threads(), feeding.division().games());
        let (finished, spooled) = crossbeam_channel::bounded(FINISHED_MAX);
        let spool =
            SpoolEnd::start(options.spool_linger(), store, spooled).context("failed to start the spool's thread")?;
        let cache_bytes = feeding.division().cache_bytes();
        let cache = EvaluationCache::new(cache_bytes, run.game.spec().actions.len()).map(Arc::new);
        let players = Players::start(feeding, &run.game, cache.as_ref(), &finished)
            .context("failed to start a playing thread")?;
        tracing::info!(run = %run.id, game = run.game.spec().id, threads, games, "joined");
        let usage = Arc::new(UsageMeter::start());
        let models = Models::new(
            &options.data,
            channel.clone(),
            run.clone(),
            Arc::clone(&players.feeding),
            options.precision,
            Arc::clone(&usage),
            options.clock,
        );
        let now = Instant::now();
        Ok(Actor {
            stage: Stage::Playing,
            failure: None,
            models: Arc::new(models),
            players,
            spool,
            outbox: Outbox::default(),
            connection: Connection::new(link),
            calls: Calls::default(),
            asking: Asking::new(now),
            leases: Leases::default(),
            reports: Reports::new(&run, usage, now),
            tally: Tally::default(),
            options,
            me,
            channel,
            run,
        })
    }

    async fn run(mut self, shutdown: CancellationToken) -> anyhow::Result<()> {
        loop {
            self.advance(Instant::now());
            if self.stage == Stage::Ended {
                break;
            }
            let event = self.next(&shutdown).await;
            self.handle(event, Instant::now());
        }
        // The spool's thread tells nobody any more: it makes durable what it was given, and ends.
        self.spool.events = None;
        let closed = self.spool.thread.close().await;
        let Tally {
            stored,
            duplicate,
            conflict,
            rejected,
        } = self.tally;
        let undecided = self.spool.level.games;
        tracing::info!(stored, duplicate, conflict, rejected, undecided, "drained");
        match self.failure {
            Some(failure) => Err(failure),
            None => closed.context("the spool failed"),
        }
    }

    /// Waits for the next event. Loses nothing when a branch is dropped: every source keeps what it has.
    async fn next(&mut self, shutdown: &CancellationToken) -> Event {
        let (games, verdicts) = match &mut self.connection.link {
            Some(Link { games, verdicts }) => (Some(games), Some(verdicts)),
            None => (None, None),
        };
        let wake = wake_at(
            self.stage,
            &self.outbox,
            (!self.calls.work).then_some(self.asking.after),
        );
        tokio::select! {
            () = shutdown.cancelled(), if self.stage == Stage::Playing => Event::Shutdown,
            event = next_event(&mut self.spool.events) => event.map_or(Event::SpoolEnded, Event::Spool),
            verdict = next_verdict(verdicts) => match verdict {
                Ok(Some(verdict)) => Event::Verdict(verdict),
                Ok(None) => Event::LinkLost("the coordinator ended the stream".to_owned()),
                Err(status) => Event::LinkLost(status.message().to_owned()),
            },
            permit = room_in_link(games), if self.outbox.has_unsent() => match permit {
                Ok(permit) => {
                    if let Some((Ticket(ticket), record)) = self.outbox.next_unsent() {
                        permit.send(SubmitGameRequest { actor_id: self.me.id.clone(), record, ticket });
                    }
                    Event::Look
                }
                Err(_) => Event::LinkLost("the stream of games is closed".to_owned()),
            },
            Some(done) = self.calls.tasks.join_next(), if !self.calls.tasks.is_empty() => match done {
                Ok(done) => Event::Done(done),
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            },
            _ = self.reports.due.tick() => Event::ReportDue,
            () = self.players.queue.became_low() => Event::Look,
            () = sleep_until(wake) => Event::Look,
        }
    }
}

/// When to look again even if nothing happens.
fn wake_at(stage: Stage, outbox: &Outbox, ask_after: Option<Instant>) -> Instant {
    let now = Instant::now();
    let stage = match stage {
        // A time that has passed has been looked at: what it allows waits for an event.
        Stage::Playing => ask_after.filter(|&at| at > now),
        Stage::Draining(until) | Stage::Closing(until) | Stage::Flushing(until) => Some(until),
        Stage::Ended => None,
    };
    let idle = now + Duration::from_secs(60);
    [stage, outbox.due()].into_iter().flatten().min().unwrap_or(idle)
}

async fn next_event(events: &mut Option<mpsc::Receiver<SpoolEvent>>) -> Option<SpoolEvent> {
    match events {
        Some(events) => events.recv().await,
        None => pending().await,
    }
}

async fn next_verdict(
    verdicts: Option<&mut Streaming<SubmitGameResponse>>,
) -> Result<Option<SubmitGameResponse>, Status> {
    match verdicts {
        Some(verdicts) => verdicts.message().await,
        None => pending().await,
    }
}

async fn room_in_link(
    games: Option<&mut mpsc::Sender<SubmitGameRequest>>,
) -> Result<mpsc::Permit<'_, SubmitGameRequest>, mpsc::error::SendError<()>> {
    match games {
        Some(games) => games.reserve().await,
        None => pending().await,
    }
}
