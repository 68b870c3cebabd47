//! The event loop: the one place that owns leases, outbox and link.
//!
//! Here are its state and its events; what each event does is in `handle`.

mod handle;

use std::future::pending;
use std::sync::Arc;

use anyhow::Context;
use tengen_proto::v1;
use tengen_proto::v1::{ReportActorResponse, SubmitGameRequest, SubmitGameResponse};
use tengen_records::{LeaseId, ModelId};
use tengen_selfplay::feeding::Feeding;
use tengen_service::backoff::Backoff;
use tengen_service::channel::{self, Channel};
use tengen_service::files::remove_half_written;
use tengen_service::host;
use tengen_service::usage::UsageMeter;
use tokio::sync::mpsc;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Duration, Instant, Interval, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use crate::folder;
use crate::handshake::{HandshakeError, Me, Run};
use crate::identity;
use crate::leases::Leases;
use crate::link::{self, Link};
use crate::meters::Meters;
use crate::models::Models;
use crate::options::Options;
use crate::outbox::Outbox;
use crate::queue::Queue;
use crate::rates::Rates;
use crate::spool::{Level, Room, Spool, SpoolEvent, Store, Ticket};
use crate::work::{Answer, WorkError};
use crate::worker::{Gauges, Worker};

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
    Actor::start(options, feeding, me, channel, store, (run, link))?
        .run(shutdown)
        .await
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
#[derive(Clone, Copy, Debug, Default)]
struct Calling {
    connect: bool,
    work: bool,
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

struct Actor {
    options: Options,
    me: Me,
    channel: Channel,
    run: Run,
    feeding: Arc<Feeding>,
    models: Arc<Models>,
    queue: Arc<Queue>,
    gauges: Vec<Arc<Gauges>>,
    playing_threads: usize,
    spool: Spool,
    /// What the spool tells; `None` once its thread has ended.
    events: Option<mpsc::Receiver<SpoolEvent>>,
    level: Level,
    link: Option<Link>,
    /// Whether the present link, or the last one when there is none, has brought a verdict.
    link_proven: bool,
    link_backoff: Backoff,
    calls: JoinSet<Done>,
    calling: Calling,
    outbox: Outbox,
    leases: Leases,
    rates: Rates,
    reports: Interval,
    /// When work may be asked for again.
    ask_after: Instant,
    ask_backoff: Backoff,
    /// Why the coordinator last had no work; a change is worth a line.
    waiting: String,
    stage: Stage,
    tally: Tally,
    failure: Option<anyhow::Error>,
    usage: Arc<UsageMeter>,
    meters: Meters,
    /// The network of the newest lease.
    newest_model: Option<ModelId>,
}

impl Actor {
    fn start(
        options: Options,
        feeding: Feeding,
        me: Me,
        channel: Channel,
        store: Store,
        (run, link): (Run, Link),
    ) -> anyhow::Result<Actor> {
        let feeding = Arc::new(feeding);
        let (threads, games) = (feeding.division().threads(), feeding.division().games());
        // An eighth of the games ahead: the next lease is here before the present one runs dry.
        let queue = Arc::new(Queue::new(threads, (games as u64 / 8).max(1)));
        let (finished, spooled) = crossbeam_channel::bounded(FINISHED_MAX);
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let level = Level {
            games: store.games(),
            bytes: store.bytes(),
            room: Room::Everything,
        };
        let spool = Spool::start(store, spooled, sender).context("failed to start the spool's thread")?;
        let gauges: Vec<Arc<Gauges>> = (0..threads).map(|_| Arc::default()).collect();
        let cache = options.cache(&run.game);
        for (index, gauges) in gauges.iter().enumerate() {
            let worker = Worker {
                index,
                game: run.game.clone(),
                feeding: Arc::clone(&feeding),
                cache: cache.clone(),
                queue: Arc::clone(&queue),
                events: finished.clone(),
                gauges: Arc::clone(gauges),
            };
            worker.spawn().context("failed to start a playing thread")?;
        }
        tracing::info!(run = %run.id, game = run.game.spec().id, threads, games, "joined");
        let usage = Arc::new(UsageMeter::start());
        let models = Arc::new(Models::new(
            &options.data,
            channel.clone(),
            run.clone(),
            feeding.sessions(),
            options.precision,
            Arc::clone(&usage),
        ));
        let now = Instant::now();
        Ok(Actor {
            reports: report_interval(&run),
            options,
            me,
            channel,
            run,
            feeding,
            models,
            queue,
            gauges,
            playing_threads: threads,
            spool,
            events: Some(events),
            level,
            link: Some(link),
            link_proven: false,
            link_backoff: Backoff::default(),
            calls: JoinSet::new(),
            calling: Calling::default(),
            outbox: Outbox::default(),
            leases: Leases::default(),
            rates: Rates::new(now),
            ask_after: now,
            ask_backoff: Backoff::default(),
            waiting: String::new(),
            stage: Stage::Playing,
            tally: Tally::default(),
            failure: None,
            usage,
            meters: Meters::new(),
            newest_model: None,
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
        self.events = None;
        let closed = self.spool.close().await;
        let Tally {
            stored,
            duplicate,
            conflict,
            rejected,
        } = self.tally;
        let undecided = self.level.games;
        tracing::info!(stored, duplicate, conflict, rejected, undecided, "drained");
        match self.failure {
            Some(failure) => Err(failure),
            None => closed.context("the spool failed"),
        }
    }

    /// Waits for the next event. Loses nothing when a branch is dropped: every source keeps what it has.
    async fn next(&mut self, shutdown: &CancellationToken) -> Event {
        let (games, verdicts) = match &mut self.link {
            Some(Link { games, verdicts }) => (Some(games), Some(verdicts)),
            None => (None, None),
        };
        let wake = wake_at(self.stage, &self.outbox, (!self.calling.work).then_some(self.ask_after));
        tokio::select! {
            () = shutdown.cancelled(), if self.stage == Stage::Playing => Event::Shutdown,
            event = next_event(&mut self.events) => event.map_or(Event::SpoolEnded, Event::Spool),
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
            Some(done) = self.calls.join_next(), if !self.calls.is_empty() => match done {
                Ok(done) => Event::Done(done),
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            },
            _ = self.reports.tick() => Event::ReportDue,
            () = self.queue.became_low() => Event::Look,
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

fn report_interval(run: &Run) -> Interval {
    let mut reports = interval(run.report_interval);
    reports.set_missed_tick_behavior(MissedTickBehavior::Delay);
    reports
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

fn work_request(actor: &Actor) -> v1::GetWorkRequest {
    v1::GetWorkRequest {
        actor_id: actor.me.id.clone(),
        games_parallel: u32::try_from(actor.feeding.division().games()).unwrap_or(u32::MAX),
        games_per_minute: actor.rates.games_per_minute(),
        takes_players: true,
    }
}
