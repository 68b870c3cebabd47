//! A synthetic actor: takes leases and reports like a real one, and sends games that were played at random and carry what a
//! search of some dozens of simulations leaves behind.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_proto::v1;
use tengen_proto::v1::actor_service_client::ActorServiceClient;
use tengen_proto::v1::get_work_response;
use tengen_records::{Expected, Kind, Record, RecordId, RunId, Work, encode, game_seed, testing};
use tengen_selfplay::Order;
use tengen_selfplay::wire::order_from_wire;
use tengen_service::channel::Channel;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

/// Different games; each is sent many times under other names.
const TEMPLATES: usize = 64;
/// Games that wait for their verdicts at most; a real actor has a larger window.
const IN_FLIGHT: usize = 64;

/// Games to send, played by the rules of one game.
#[derive(Clone, Debug)]
pub(super) struct Templates(Vec<Record>);

impl Templates {
    /// Random games of this game.
    pub(super) fn of(game: &AnyGame) -> Templates {
        struct Play;
        impl GameVisitor for Play {
            type Output = Vec<Record>;
            fn visit<G: Game>(self, game: G) -> Vec<Record> {
                let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
                let expected = Expected {
                    work: Work::SelfPlay {
                        index_end: u32::MAX,
                        // The leases of this run draw no opening either.
                        random_plies_max: 0,
                    },
                    ..testing::expected(&game, Kind::SelfPlay, &mut rng)
                };
                let mut records: Vec<Record> = (0..TEMPLATES as u32)
                    .map(|index| testing::random_record(&game, &expected, index, &mut rng))
                    .collect();
                records.iter_mut().for_each(testing::thin_out);
                records
            }
        }
        Templates(game.visit(Play))
    }

    /// Positions of a game on average.
    pub(super) fn positions(&self) -> f64 {
        let positions: u32 = self.0.iter().map(Record::positions).sum();
        f64::from(positions) / self.0.len() as f64
    }

    /// Game number `index` of this order.
    fn game(&self, run_id: &str, order: &Order, index: u32) -> anyhow::Result<Vec<u8>> {
        let mut record = self.0[index as usize % self.0.len()].clone();
        record.id = RecordId {
            lease: order.lease,
            index,
        };
        record.run_id = RunId::new(run_id)?;
        record.models.clone_from(&order.models);
        record.settings_revision = order.settings_revision;
        record.seed = game_seed(order.seed, index);
        record.created_unix_ms = tengen_service::host::unix_ms();
        Ok(encode(&record))
    }
}

/// What one actor is to do.
#[derive(Clone, Debug)]
pub(super) struct Actor {
    pub(super) name: String,
    /// Time between two of its games.
    pub(super) every: Duration,
    /// When its first game is due; those of others lie between.
    pub(super) begin: Instant,
    /// No game is sent from here on.
    pub(super) end: Instant,
}

impl Actor {
    /// Sends games until the end, and reports meanwhile as often as the coordinator wants it; how long each game took to its
    /// verdict.
    pub(super) async fn play(self, channel: Channel, templates: &Templates) -> anyhow::Result<Vec<Duration>> {
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
            games_per_minute: self.games_per_minute(),
            ..v1::ReportActorRequest::default()
        });
        let every = Duration::from_millis(run.report_interval_ms.max(1).into());
        tokio::select! {
            took = self.send(&run.run_id, client.clone(), templates, tell) => took,
            failure = report(client, every, told) => Err(failure.into()),
        }
    }

    /// Sends a game whenever one is due, and tells in the reports how many those are and from which lease.
    async fn send(
        &self,
        run_id: &str,
        mut client: ActorServiceClient<Channel>,
        templates: &Templates,
        tell: watch::Sender<v1::ReportActorRequest>,
    ) -> anyhow::Result<Vec<Duration>> {
        let (games, stream) = mpsc::channel(IN_FLIGHT);
        let mut verdicts = client.submit_games(ReceiverStream::new(stream)).await?.into_inner();
        let mut due = tokio::time::interval_at(self.begin.into(), self.every);
        let (mut took, mut waiting) = (Vec::new(), HashMap::new());
        let mut ticket = 0u64;
        // Its first lease an actor has before it plays.
        let mut lease = Some((self.work(&mut client).await?, 0u32));
        loop {
            tokio::select! {
                _ = due.tick(), if waiting.len() < IN_FLIGHT && Instant::now() < self.end => {
                    let (order, index) = match lease.take() {
                        Some(held) => held,
                        None => (self.work(&mut client).await?, 0),
                    };
                    let record = templates.game(run_id, &order, index)?;
                    tell.send_modify(|report| {
                        report.games += 1;
                        report.lease_ids = vec![order.lease.to_bytes().to_vec()];
                    });
                    ticket += 1;
                    waiting.insert(ticket, Instant::now());
                    let actor_id = self.name.clone();
                    games.send(v1::SubmitGameRequest { actor_id, record, ticket }).await?;
                    lease = (index + 1 < order.plan.games()).then_some((order, index + 1));
                }
                verdict = verdicts.message() => {
                    let verdict = verdict?.context("the coordinator ended the stream")?;
                    ensure!(verdict.verdict() == v1::Verdict::Stored, "{verdict:?}");
                    let sent = waiting.remove(&verdict.ticket).context("a verdict on no game")?;
                    took.push(sent.elapsed());
                }
                () = tokio::time::sleep_until(self.end.into()), if waiting.is_empty() && Instant::now() >= self.end => {
                    return Ok(took);
                }
            }
            if waiting.is_empty() && Instant::now() >= self.end {
                return Ok(took);
            }
        }
    }

    async fn work(&self, client: &mut ActorServiceClient<Channel>) -> anyhow::Result<Order> {
        let request = v1::GetWorkRequest {
            actor_id: self.name.clone(),
            games_per_minute: self.games_per_minute(),
            ..v1::GetWorkRequest::default()
        };
        match client.get_work(request).await?.into_inner().work {
            Some(get_work_response::Work::Order(order)) => Ok(order_from_wire(&order)?),
            other => bail!("the coordinator has no work: {other:?}"),
        }
    }

    fn games_per_minute(&self) -> f32 {
        (60.0 / self.every.as_secs_f64()) as f32
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
