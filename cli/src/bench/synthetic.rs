//! A synthetic actor: takes leases and reports like a real one, and sends games that somebody else has played.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use tengen_proto::v1;
use tengen_proto::v1::actor_service_client::ActorServiceClient;
use tengen_proto::v1::get_work_response;
use tengen_records::RunId;
use tengen_selfplay::Order;
use tengen_selfplay::wire::order_from_wire;
use tengen_service::channel::Channel;
use tokio::sync::{mpsc, watch};
use tokio::time::Interval;
use tokio_stream::wrappers::ReceiverStream;

use super::games::Games;

/// Games that wait for their verdicts at most; a real actor has a larger window.
pub(super) const IN_FLIGHT_MAX: usize = 64;

/// When an actor sends a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Whenever so much time has passed.
    Every(Duration),
    /// Whenever fewer games than this wait for their verdicts.
    InFlight(usize),
}

/// What one actor is to do.
#[derive(Clone, Debug)]
pub(super) struct Actor {
    pub(super) name: String,
    pub(super) pace: Pace,
    /// What it says that it makes; its leases are sized by it.
    pub(super) games_per_minute: f32,
    /// When its first game is due.
    pub(super) begin: Instant,
    /// No game is begun from here on; one that was waited for at this moment still goes.
    pub(super) end: Instant,
}

impl Actor {
    /// Sends games until the end, and reports meanwhile as often as the coordinator wants it; how long each game took to its
    /// verdict.
    pub(super) async fn play(self, channel: Channel, games: &Games) -> anyhow::Result<Vec<Duration>> {
        let mut client = ActorServiceClient::new(channel);
        let hello = v1::RegisterActorRequest {
            actor_id: self.name.clone(),
            protocol_min: tengen_proto::PROTOCOL,
            protocol_max: tengen_proto::PROTOCOL,
            ..v1::RegisterActorRequest::default()
        };
        let run = client.register(hello).await?.into_inner();
        let (tell, told) = watch::channel(v1::ReportActorRequest {
            actor_id: self.name.clone(),
            games_per_minute: self.games_per_minute,
            ..v1::ReportActorRequest::default()
        });
        let every = Duration::from_millis(run.report_interval_ms.max(1).into());
        let run_id = RunId::new(run.run_id)?;
        tokio::select! {
            took = self.send(&run_id, client.clone(), games, tell) => took,
            failure = report(client, every, told) => Err(failure.into()),
        }
    }

    /// Sends a game whenever one is due, and tells in the reports how many those are and from which lease.
    async fn send(
        &self,
        run: &RunId,
        mut client: ActorServiceClient<Channel>,
        games: &Games,
        tell: watch::Sender<v1::ReportActorRequest>,
    ) -> anyhow::Result<Vec<Duration>> {
        let (requests, stream) = mpsc::channel(IN_FLIGHT_MAX);
        let mut verdicts = client.submit_games(ReceiverStream::new(stream)).await?.into_inner();
        let (in_flight_max, mut ticks) = match self.pace {
            Pace::Every(every) => (IN_FLIGHT_MAX, Some(tokio::time::interval_at(self.begin.into(), every))),
            Pace::InFlight(most) => (most.min(IN_FLIGHT_MAX), None),
        };
        let (mut took, mut waiting) = (Vec::new(), HashMap::new());
        let mut ticket = 0u64;
        // Its first lease an actor has before it plays.
        let mut lease = Some((self.work(&mut client).await?, 0u32));
        loop {
            tokio::select! {
                () = self.due(&mut ticks), if waiting.len() < in_flight_max && Instant::now() < self.end => {
                    let (order, index) = match lease.take() {
                        Some(held) => held,
                        None => (self.work(&mut client).await?, 0),
                    };
                    let record = games.next(run, &order, index);
                    tell.send_modify(|report| {
                        report.games += 1;
                        report.lease_ids = vec![order.lease.to_bytes().to_vec()];
                    });
                    ticket += 1;
                    waiting.insert(ticket, Instant::now());
                    let actor_id = self.name.clone();
                    requests.send(v1::SubmitGameRequest { actor_id, record, ticket }).await?;
                    lease = (index + 1 < order.plan.games()).then_some((order, index + 1));
                }
                verdict = verdicts.message() => {
                    let verdict = verdict?.context("the coordinator ended the stream")?;
                    ensure!(verdict.verdict() == v1::Verdict::Stored, "{verdict:?}");
                    let sent = waiting.remove(&verdict.ticket).context("a verdict on no game")?;
                    took.push(sent.elapsed());
                }
                () = tokio::time::sleep_until(self.end.into()), if waiting.is_empty() => return Ok(took),
            }
        }
    }

    /// Waits until a game is due, as far as that goes by the clock.
    async fn due(&self, ticks: &mut Option<Interval>) {
        match ticks {
            Some(ticks) => {
                ticks.tick().await;
            }
            None => tokio::time::sleep_until(self.begin.into()).await,
        }
    }

    async fn work(&self, client: &mut ActorServiceClient<Channel>) -> anyhow::Result<Order> {
        let request = v1::GetWorkRequest {
            actor_id: self.name.clone(),
            games_per_minute: self.games_per_minute,
            ..v1::GetWorkRequest::default()
        };
        match client.get_work(request).await?.into_inner().work {
            Some(get_work_response::Work::Order(order)) => Ok(order_from_wire(&order)?),
            other => bail!("the coordinator has no work: {other:?}"),
        }
    }
}

/// Reports again and again what an actor tells; the first failure.
async fn report(
    mut client: ActorServiceClient<Channel>,
    every: Duration,
    told: watch::Receiver<v1::ReportActorRequest>,
) -> tonic::Status {
    let mut due = tokio::time::interval(every);
    loop {
        due.tick().await;
        let request = v1::ReportActorRequest {
            clock_unix_ms: tengen_service::host::unix_ms(),
            ..told.borrow().clone()
        };
        if let Err(failure) = client.report(request).await {
            return failure;
        }
    }
}
