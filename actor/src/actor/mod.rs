//! The event loop: the one place that owns leases, outbox and link.
//!
//! Here are its state and its events; what each event does is in `handle`.

mod handle;

use std::future::pending;
use std::sync::Arc;

use anyhow::Context;
use tengen_proto::v1;
use tengen_proto::v1::{ReportActorResponse, SubmitGameRequest, SubmitGameResponse};
use tengen_records::LeaseId;
use tengen_service::backoff::Backoff;
use tengen_service::channel::{self, Channel};
use tengen_service::lock::lock_folder;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, Interval, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use crate::handshake::{HandshakeError, Me, Run};
use crate::identity;
use crate::leases::Leases;
use crate::link::{self, Link};
use crate::models::Models;
use crate::options::Options;
use crate::outbox::Outbox;
use crate::queue::Queue;
use crate::rates::Rates;
use crate::work::{Answer, WorkError};
use crate::worker::{Gauges, Worker, WorkerEvent};

/// Finished games that may wait between the playing threads and the event loop.
const EVENTS_MAX: usize = 64;
/// How long threads may take to end once they are told to: one evaluation.
const CLOSE_MAX: Duration = Duration::from_secs(5);
/// How long verdicts are awaited at the end.
const FLUSH_MAX: Duration = Duration::from_secs(10);
/// What is reported as provider before the first network is loaded.
const PROVIDER_UNKNOWN: &str = "none yet";

/// Plays for the coordinator at `options.join` until `shutdown`, then drains.
pub async fn run(options: Options, shutdown: CancellationToken) -> anyhow::Result<()> {
    let _folder = lock_folder(&options.data, "actor")?;
    let me = Me {
        id: identity::load_or_create(&options.data)?.to_string(),
        host: identity::host(),
    };
    tengen_inference::init(options.onnxruntime.as_deref())?;
    let channel = channel::connect(&options.join, &options.connect.credentials()?)?;
    tracing::info!(actor = me.id, coordinator = options.join, "joining");
    let connecting = link::connect(channel.clone(), me.clone(), PROVIDER_UNKNOWN.to_owned(), None);
    let (run, link) = tokio::select! {
        () = shutdown.cancelled() => return Ok(()),
        connected = connecting => connected.with_context(|| format!("failed to join {}", options.join))?,
    };
    Actor::start(options, me, channel, run, link)?.run(shutdown).await
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
    /// A playing thread spoke.
    Worker(WorkerEvent),
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
    models: Arc<Models>,
    queue: Arc<Queue>,
    gauges: Vec<Arc<Gauges>>,
    events: mpsc::Receiver<WorkerEvent>,
    playing_threads: usize,
    link: Option<Link>,
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
}

impl Actor {
    fn start(options: Options, me: Me, channel: Channel, run: Run, link: Link) -> anyhow::Result<Actor> {
        let threads = options.worker_threads();
        // An eighth of the games ahead: the next lease is here before the present one runs dry.
        let queue = Arc::new(Queue::new(threads, u64::from(options.games / 8).max(1)));
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let gauges: Vec<Arc<Gauges>> = (0..threads).map(|_| Arc::default()).collect();
        for (index, gauges) in gauges.iter().enumerate() {
            let worker = Worker {
                index,
                game: run.game.clone(),
                driver: options.driver(index, threads),
                sessions: options.sessions(),
                queue: Arc::clone(&queue),
                events: sender.clone(),
                gauges: Arc::clone(gauges),
            };
            worker.spawn().context("failed to start a playing thread")?;
        }
        tracing::info!(run = %run.id, game = run.game.spec().id, threads, games = options.games, "joined");
        let models = Arc::new(Models::new(
            &options.data,
            channel.clone(),
            run.clone(),
            options.sessions(),
        ));
        let now = Instant::now();
        Ok(Actor {
            reports: report_interval(&run),
            options,
            me,
            channel,
            run,
            models,
            queue,
            gauges,
            events,
            playing_threads: threads,
            link: Some(link),
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
        let Tally {
            stored,
            duplicate,
            conflict,
            rejected,
        } = self.tally;
        tracing::info!(
            stored,
            duplicate,
            conflict,
            rejected,
            undecided = self.outbox.len(),
            "drained"
        );
        self.failure.map_or(Ok(()), Err)
    }

    /// Waits for the next event. Loses nothing when a branch is dropped: every source keeps what it has.
    async fn next(&mut self, shutdown: &CancellationToken) -> Event {
        let (games, verdicts) = match &mut self.link {
            Some(Link { games, verdicts }) => (Some(games), Some(verdicts)),
            None => (None, None),
        };
        let linked = games.is_some();
        // Once no more games are started, what the threads hold is bounded, and it must get out of their hands.
        let room = !self.outbox.is_full() || self.stage != Stage::Playing;
        let wake = wake_at(self.stage, &self.outbox, (!self.calling.work).then_some(self.ask_after));
        tokio::select! {
            () = shutdown.cancelled(), if self.stage == Stage::Playing => Event::Shutdown,
            Some(event) = self.events.recv(), if room => Event::Worker(event),
            verdict = next_verdict(verdicts) => match verdict {
                Ok(Some(verdict)) => Event::Verdict(verdict),
                Ok(None) => Event::LinkLost("the coordinator ended the stream".to_owned()),
                Err(status) => Event::LinkLost(status.message().to_owned()),
            },
            permit = room_in_link(games), if self.outbox.has_unsent() => match permit {
                Ok(permit) => {
                    if let Some(record) = self.outbox.next_unsent() {
                        permit.send(SubmitGameRequest { actor_id: self.me.id.clone(), record });
                    }
                    Event::Look
                }
                Err(_) => Event::LinkLost("the stream of games is closed".to_owned()),
            },
            Some(done) = self.calls.join_next(), if !self.calls.is_empty() => match done {
                Ok(done) => Event::Done(done),
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            },
            _ = self.reports.tick(), if linked => Event::ReportDue,
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
        games_parallel: actor.options.games,
        games_per_minute: actor.rates.games_per_minute(),
    }
}
