//! How many games a second the coordinator takes durably, over the wire: records of about 60 plies, checked against the
//! rules, committed, acknowledged. Beside it stands what one `fdatasync` costs on the same disk. `make bench` runs it. (How many
//! games one core checks that does nothing else is the bench `records`.)
//!
//! The coordinator runs in this process, and so does the sender: with two cores the figures are those of both together.
//! The records are made before the clock starts. The first argument names the folder to work in (default: `target`).

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rusqlite::Connection;
use tengen_control::LeaseRules;
use tengen_coordinator::{AuditConfig, Config, Coordinator, LiveKeys, Options, store};
use tengen_faults::bench::BenchRows;
use tengen_games::{AnyGame, Fingerprint, Game, GameVisitor};
use tengen_proto::v1;
use tengen_proto::v1::actor_service_client::ActorServiceClient;
use tengen_records::{Endings, Expected, Record, RunId, Work, encode, game_seed, testing};
use tengen_selfplay::wire::order_from_wire;
use tengen_service::metrics::MetricsArgs;
use tengen_service::run_config::RunConfig;
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

const RUN: &str = r#"
[run]
name = "ingest"
game = "caro5?size=9"
seed = 1
[network]
blocks = 1
channels = 4
value_channels = 4
value_hidden = 4
[[schedule]]
from_iteration = 0
games = 1000000
simulations = 32
[gate]
kind = "none"
"#;

/// Plies of a game.
const PLIES: std::ops::RangeInclusive<usize> = 57..=63;
/// Different games; each is sent many times under other ids.
const TEMPLATES: usize = 64;
/// Streams of games, as of so many actors.
const STREAMS: usize = 4;
/// Games of a stream that wait for their verdict.
const IN_FLIGHT: usize = 16;
/// Games sent as fast as they are taken.
const GAMES: usize = 8_000;
/// Games sent at a steady rate, and the rate.
const PACED_GAMES: usize = 5_000;
const PACED_PER_SECOND: u32 = 500;
/// Games before the clock starts.
const WARM_UP: usize = 500;
/// What two cores are to take durably, and how soon.
const STORED_PER_SECOND: f64 = 500.0;
const P99_MS: f64 = 50.0;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    let folder = std::env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let data = tempfile::tempdir_in(&folder).with_context(|| format!("no folder {}", folder.display()))?;
    let (median, p99) = fdatasync(data.path())?;
    println!("fdatasync of 16 KiB: median {median:.1} ms, p99 {p99:.1} ms");

    let stop = CancellationToken::new();
    let options = Options {
        run: RunConfig::from_toml(RUN)?,
        data: data.path().to_path_buf(),
        config: Config {
            listen: "127.0.0.1:0".parse()?,
            // The games are random: an audit would find that out and suspend the actor.
            audit: Some(AuditConfig {
                share: 0.0,
                ..AuditConfig::default()
            }),
            ..Config::default()
        },
        addr_file: None,
        live_keys: LiveKeys::Win,
        leases: LeaseRules::default(),
        metrics: MetricsArgs::default(),
    };
    let coordinator = Coordinator::start(options, stop.clone()).await?;
    let url = format!("http://{}", coordinator.addr());
    let channel = Channel::from_shared(url)?.connect().await?;
    let records = records(&channel, WARM_UP + GAMES + PACED_GAMES).await?;
    let bytes: usize = records.iter().map(Vec::len).sum();
    println!(
        "records: {} of {} bytes on average",
        records.len(),
        bytes / records.len()
    );
    let (warm_up, rest) = records.split_at(WARM_UP);
    let (fast, paced) = rest.split_at(GAMES);

    let rows = BenchRows::of("coordinator")?;
    send(&channel, warm_up, None).await?;
    let (rate, _) = send(&channel, fast, None).await?.told("as fast as they are taken");
    rows.add("coordinator_store", rate, "games/s", rate / STORED_PER_SECOND, 1.0)?;
    let sent = send(&channel, paced, Some(PACED_PER_SECOND)).await?;
    let (_, p99) = sent.told(&format!("at {PACED_PER_SECOND} games/s"));
    rows.add_time("coordinator_store_p99", p99, "ms", P99_MS)?;
    let log = data.path().join(format!("{}-wal", store::FILE_NAME));
    println!("write-ahead log: {} MiB", std::fs::metadata(log)?.len() >> 20);
    stop.cancel();
    coordinator.join().await?;
    let database = Connection::open(data.path().join(store::FILE_NAME))?;
    let stored: usize = database.query_row("SELECT count(*) FROM games", [], |row| row.get(0))?;
    ensure!(
        stored == records.len(),
        "{stored} of {} games are stored",
        records.len()
    );
    Ok(())
}

/// What one durable write costs here, milliseconds: median and 99th percentile.
fn fdatasync(folder: &Path) -> anyhow::Result<(f64, f64)> {
    let mut file = tempfile::tempfile_in(folder)?;
    let mut times = Vec::new();
    for _ in 0..200 {
        let begun = Instant::now();
        file.write_all(&[7; 16 << 10])?;
        file.sync_data()?;
        times.push(begun.elapsed());
    }
    Ok(percentiles(times))
}

fn percentiles(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1_000.0;
    (at(0.5), at(0.99))
}

/// Encoded games of one lease.
async fn records(channel: &Channel, count: usize) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut client = ActorServiceClient::new(channel.clone());
    let hello = v1::RegisterActorRequest {
        actor_id: "ingest".to_owned(),
        protocol_min: tengen_proto::PROTOCOL,
        protocol_max: tengen_proto::PROTOCOL,
        ..v1::RegisterActorRequest::default()
    };
    let run = client.register(hello).await?.into_inner();
    let request = v1::GetWorkRequest {
        actor_id: "ingest".to_owned(),
        games_per_minute: 1e6,
        ..v1::GetWorkRequest::default()
    };
    let Some(v1::get_work_response::Work::Order(order)) = client.get_work(request).await?.into_inner().work else {
        anyhow::bail!("there is no work");
    };
    let order = order_from_wire(&order)?;
    let expected = Expected {
        run_id: RunId::new(run.run_id)?,
        game_id: run.game.clone(),
        rules_fingerprint: Fingerprint(
            run.rules_fingerprint
                .try_into()
                .map_err(|_| anyhow::anyhow!("no fingerprint"))?,
        ),
        lease: order.lease,
        models: order.models.clone(),
        players: None,
        settings_revision: order.settings_revision,
        lease_seed: order.seed,
        work: Work::SelfPlay {
            index_end: u32::MAX,
            random_plies_max: 0,
        },
        endings: Endings::default(),
    };
    let mut templates = AnyGame::parse(&run.game)?.visit(Play(&expected));
    let records = (0..count).map(|n| {
        let record = &mut templates[n % TEMPLATES];
        record.id.index = n as u32;
        record.seed = game_seed(expected.lease_seed, record.id.index);
        encode(record)
    });
    Ok(records.collect())
}

/// Plays games of the right length at random.
struct Play<'a>(&'a Expected);

impl GameVisitor for Play<'_> {
    type Output = Vec<Record>;

    fn visit<G: Game>(self, game: G) -> Vec<Record> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut templates = Vec::new();
        while templates.len() < TEMPLATES {
            let mut record = testing::random_record(&game, self.0, 0, &mut rng);
            if PLIES.contains(&record.plies.len()) {
                testing::thin_out(&mut record);
                templates.push(record);
            }
        }
        templates
    }
}

/// What sending came to.
struct Sent {
    games: usize,
    took: Duration,
    acknowledged: Vec<Duration>,
}

impl Sent {
    /// Prints it; games a second, and the 99th percentile of the time to a verdict, milliseconds.
    fn told(self, how: &str) -> (f64, f64) {
        let rate = self.games as f64 / self.took.as_secs_f64();
        let (median, p99) = percentiles(self.acknowledged);
        println!("{how}: {rate:.0} games/s, acknowledged after {median:.1} ms (median), {p99:.1} ms (p99)");
        (rate, p99)
    }
}

/// Sends games over all streams; with a rate, one after another at that rate.
async fn send(channel: &Channel, records: &[Vec<u8>], per_second: Option<u32>) -> anyhow::Result<Sent> {
    let begun = Instant::now();
    let tick = per_second.map(|rate| Duration::from_secs(1) * STREAMS as u32 / rate);
    let mut streams = Vec::new();
    for records in records.chunks(records.len().div_ceil(STREAMS)) {
        streams.push(tokio::spawn(send_stream(channel.clone(), records.to_vec(), tick)));
    }
    let mut acknowledged = Vec::new();
    for stream in streams {
        acknowledged.extend(stream.await??);
    }
    Ok(Sent {
        games: records.len(),
        took: begun.elapsed(),
        acknowledged,
    })
}

/// Sends games over one stream, at most so many unanswered; how long each took to its verdict.
async fn send_stream(channel: Channel, records: Vec<Vec<u8>>, tick: Option<Duration>) -> anyhow::Result<Vec<Duration>> {
    let (games, stream) = mpsc::channel(IN_FLIGHT);
    let mut client = ActorServiceClient::new(channel);
    let mut verdicts = client.submit_games(ReceiverStream::new(stream)).await?.into_inner();
    let (count, room) = (records.len(), Arc::new(Semaphore::new(IN_FLIGHT)));
    let (times, mut sent_at) = mpsc::channel(count.max(1));
    let sending = Arc::clone(&room);
    let sender = tokio::spawn(async move {
        let mut ticks = tick.map(tokio::time::interval);
        for record in records {
            if let Some(ticks) = &mut ticks {
                ticks.tick().await;
            }
            sending.acquire().await?.forget();
            let index = tengen_records::peek_id(&record).map_or(0, |id| id.index);
            times.send((index, Instant::now())).await?;
            let game = v1::SubmitGameRequest {
                actor_id: "ingest".to_owned(),
                record,
                ..v1::SubmitGameRequest::default()
            };
            games.send(game).await?;
        }
        anyhow::Ok(())
    });
    let (mut waiting, mut took) = (std::collections::HashMap::new(), Vec::with_capacity(count));
    while took.len() < count {
        let answer = verdicts.message().await?.context("the stream ended")?;
        ensure!(answer.verdict() == v1::Verdict::Stored, "{answer:?}");
        while !waiting.contains_key(&answer.game_index) {
            let (index, at) = sent_at.recv().await.context("a verdict on a game that was not sent")?;
            waiting.insert(index, at);
        }
        took.extend(waiting.remove(&answer.game_index).map(|at: Instant| at.elapsed()));
        room.add_permits(1);
    }
    sender.await??;
    Ok(took)
}
