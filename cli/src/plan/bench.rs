//! The measurements: self-play here, as an actor's threads do it, and training in the learner's own program.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use serde::{Deserialize, Serialize};
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_inference::{Devices, Session, batch_times};
use tengen_network::{ActivationRanges, Metadata, Shape, random_weights, write_onnx, write_onnx_as_stated};
use tengen_records::{LeaseId, Precision, RunId, encode};
use tengen_search::Settings;
use tengen_selfplay::feeding::{self, Division, Feeding, Wishes};
use tengen_selfplay::offline::OFFLINE_RUN;
use tengen_selfplay::{Driver, EvaluationCache, GameOrder, Lease, ModelBytes, Order, Plan};
use tengen_service::args::LogArgs;
use tengen_service::run_config::{RunConfig, WantedPrecision};
use tengen_service::usage;
use tokio::process::Command;

use crate::programs;

/// Games that are played to their end at least: before that nothing is known of their length and size.
const GAMES_MIN: u64 = 8;
/// Times the plies asked for that are played at most for the sake of these games.
const PLIES_TIMES_MAX: u64 = 20;

/// What the activations of a random network do not leave.
const ACTIVATION_MAX: f32 = 6.0;

/// What self-play did.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) threads: u32,
    pub(super) provider: String,
    /// What the network computed in.
    pub(super) precision: Precision,
    /// Positions in one evaluation at most.
    pub(super) batch: usize,
    pub(super) positions: u64,
    pub(super) evaluations: u64,
    pub(super) elapsed: Duration,
    /// Time that all threads computed.
    pub(super) busy: Duration,
    pub(super) positions_per_game: f64,
    pub(super) bytes_per_position: f64,
}

impl Measured {
    pub(super) fn positions_per_second(&self) -> f64 {
        self.positions as f64 / self.elapsed.as_secs_f64()
    }

    pub(super) fn evaluations_per_second(&self) -> f64 {
        self.evaluations as f64 / self.elapsed.as_secs_f64()
    }

    pub(super) fn cpu_seconds_per_position(&self) -> f64 {
        self.busy.as_secs_f64() / self.positions as f64
    }
}

/// What training did, as `tengen-learner bench` tells it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Training {
    pub(super) device: String,
    pub(super) threads: u16,
    pub(super) batch: u32,
    pub(super) steps: u64,
    pub(super) steps_per_second: f64,
    pub(super) cpu_seconds_per_step: f64,
}

/// Plays as an actor with `threads` threads on its CPU, or with these GPUs, would: with a random network, for so many
/// plies. Blocks.
pub(super) fn self_play(
    config: &RunConfig,
    simulations: u32,
    threads: u32,
    devices: &Devices,
    plies: u64,
) -> anyhow::Result<Measured> {
    tengen_inference::init_for(devices, None)?;
    let game = AnyGame::parse(&config.run.game).context("run.game")?;
    let shared = Shared {
        plies_wanted: plies,
        plies: AtomicU64::new(0),
        games: AtomicU64::new(0),
    };
    let devices = feeding::find(devices, &game)?;
    let division = Division::new(&devices, &wishes(config, threads), threads as usize);
    let feeding = Feeding::new(division, game.spec().planes_len());
    let lease = lease(config, network(config, &game, &feeding)?, simulations)?;
    let threads = feeding.division().threads();
    let cache_bytes = feeding.division().cache_bytes();
    let cache = EvaluationCache::new(cache_bytes, game.spec().actions.len()).map(Arc::new);
    let parts = std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads)
            .map(|thread| {
                let player = Player {
                    lease: &lease,
                    shared: &shared,
                    feeding: &feeding,
                    cache: cache.clone(),
                    thread,
                };
                let game = game.clone();
                scope.spawn(move || game.visit(player))
            })
            .collect();
        let joined = started
            .into_iter()
            .map(|thread| thread.join().map_err(|_| anyhow!("a thread panicked"))?);
        joined.collect::<anyhow::Result<Vec<Part>>>()
    })?;
    sum(&parts, &feeding, lease.models()[0].precision())
}

/// The network that an actor of this run would play, once there is a trained one: a random one of its shape, which is as
/// fast, in the precision that the run offers and the actor takes.
fn network(config: &RunConfig, game: &AnyGame, feeding: &Feeding) -> anyhow::Result<Arc<ModelBytes>> {
    let shape = Shape::new(game.spec(), &config.network)?;
    let weights = random_weights(&shape, config.run.seed);
    let metadata = Metadata {
        game: game.spec().id.clone(),
        rules_fingerprint: game.rules_fingerprint(),
        feature_fingerprint: game.feature_fingerprint(),
        ..Metadata::of_shape(&shape)
    };
    let whole = ModelBytes::new(write_onnx(&shape, &weights, &metadata)?);
    // The first network of a run comes in fp32, and settles the size of a batch.
    feeding.measure(&whole)?;
    let is_gpu = feeding.division().devices().as_slice()[0].is_gpu();
    let wanted = match config.actor.precision {
        WantedPrecision::Fp32 => return Ok(whole),
        WantedPrecision::Int8 => Precision::Int8,
        WantedPrecision::Fp16 => Precision::Fp16,
        WantedPrecision::Auto if is_gpu => Precision::Fp16,
        WantedPrecision::Auto => Precision::Int8,
    };
    let mut offered = config.export.precisions.iter().map(|listed| listed.precision());
    let Some(precision) = offered.find(|offered| offered.as_str() == wanted.as_str()) else {
        return Ok(whole);
    };
    let metadata = metadata.in_precision(precision, whole.id().to_bytes());
    let ranges = ActivationRanges::within(&shape, ACTIVATION_MAX);
    let file = write_onnx_as_stated(&shape, &weights, &ranges, &metadata)?;
    let reduced = ModelBytes::variant(whole.id(), wanted, file);
    if config.actor.precision != WantedPrecision::Auto {
        return Ok(reduced);
    }
    let options = &feeding.sessions()[0];
    let mut in_fp32 = Session::load(whole.bytes(), options)?;
    let mut in_less = Session::load(reduced.bytes(), options)?;
    let planes = vec![0; game.spec().planes_len()];
    let [whole_time, reduced_time] = batch_times([&mut in_fp32, &mut in_less], &planes, options.batch_max)?;
    Ok(if reduced_time < whole_time { reduced } else { whole })
}

/// What the run file wants of an actor; 0 leaves it to the devices.
fn wishes(config: &RunConfig, threads: u32) -> Wishes {
    let number = |told: u32| (told > 0).then_some(told as usize);
    Wishes {
        games: number(config.actor.games),
        batch_max: number(config.actor.batch_max),
        threads: number(threads),
        threads_per_device: config.actor.threads_per_device as usize,
        sessions_per: None,
        cache_mib: config.actor.cache_mib.map(|mib| mib as usize),
    }
}

fn sum(parts: &[Part], feeding: &Feeding, precision: Precision) -> anyhow::Result<Measured> {
    let total = |number: fn(&Part) -> u64| parts.iter().map(number).sum::<u64>();
    let (games, game_positions) = (total(|part| part.games), total(|part| part.game_positions));
    ensure!(games > 0, "no game came to its end: measure more plies (--plies)");
    Ok(Measured {
        threads: parts.len() as u32,
        provider: parts.first().map(|part| part.provider.clone()).unwrap_or_default(),
        precision,
        batch: feeding.batch(),
        positions: total(|part| part.plies),
        evaluations: total(|part| part.evaluations),
        elapsed: parts.iter().map(|part| part.elapsed).max().unwrap_or_default(),
        busy: parts.iter().map(|part| part.busy).max().unwrap_or_default(),
        positions_per_game: game_positions as f64 / games as f64,
        bytes_per_position: total(|part| part.bytes) as f64 / game_positions as f64,
    })
}

fn lease(config: &RunConfig, model: Arc<ModelBytes>, simulations: u32) -> anyhow::Result<Arc<Lease>> {
    let order = Order {
        lease: LeaseId(1),
        models: vec![model.id()],
        settings: Settings {
            simulations,
            ..config.search
        },
        settings_revision: 0,
        seed: config.run.seed,
        plan: Plan::SelfPlay {
            games: u32::MAX,
            random_plies_max: config.selfplay.random_plies_max,
        },
    };
    Ok(Lease::new(RunId::new(OFFLINE_RUN)?, order, vec![model])?)
}

/// What the threads know of each other.
struct Shared {
    plies_wanted: u64,
    plies: AtomicU64,
    games: AtomicU64,
}

impl Shared {
    fn go_on(&self) -> bool {
        let plies = self.plies.load(Ordering::Relaxed);
        let few_games = self.games.load(Ordering::Relaxed) < GAMES_MIN;
        plies < self.plies_wanted || few_games && plies < self.plies_wanted * PLIES_TIMES_MAX
    }
}

/// One thread.
struct Player<'a> {
    lease: &'a Arc<Lease>,
    shared: &'a Shared,
    feeding: &'a Feeding,
    cache: Option<Arc<EvaluationCache>>,
    thread: usize,
}

/// What one thread did.
struct Part {
    provider: String,
    plies: u64,
    evaluations: u64,
    elapsed: Duration,
    busy: Duration,
    games: u64,
    game_positions: u64,
    bytes: u64,
}

impl GameVisitor for Player<'_> {
    type Output = anyhow::Result<Part>;

    fn visit<G: Game>(self, game: G) -> anyhow::Result<Part> {
        let (feeding, thread) = (self.feeding, self.thread);
        let driver = Driver::new(game, feeding.evaluator(thread), feeding.driver(thread));
        let mut driver = driver.sharing(self.cache);
        let mut indexes = (thread as u32..).step_by(feeding.division().threads());
        let mut records = Vec::new();
        let mut part = Part {
            provider: String::new(),
            plies: 0,
            evaluations: 0,
            elapsed: Duration::ZERO,
            busy: Duration::ZERO,
            games: 0,
            game_positions: 0,
            bytes: 0,
        };
        // The first round loads the network.
        let mut begun = None;
        while self.shared.go_on() {
            while driver.free() > 0 {
                let index = indexes.next().context("no more games")?;
                driver.start(GameOrder {
                    lease: Arc::clone(self.lease),
                    index,
                })?;
            }
            driver.tick(&mut records)?;
            let counters = driver.counters();
            let (_, _, before) = *begun.get_or_insert((Instant::now(), usage::busy(), counters));
            let plies = counters.plies - before.plies;
            self.shared.plies.fetch_add(plies - part.plies, Ordering::Relaxed);
            (part.plies, part.evaluations) = (plies, counters.evaluations - before.evaluations);
            for record in records.drain(..) {
                self.shared.games.fetch_add(1, Ordering::Relaxed);
                part.games += 1;
                part.game_positions += u64::from(record.positions());
                part.bytes += encode(&record).len() as u64;
            }
        }
        let (at, busy, _) = begun.context("nothing was played")?;
        part.elapsed = at.elapsed();
        part.busy = usage::busy() - busy;
        let provider = driver.evaluator().provider();
        part.provider = provider.unwrap_or_else(|| "unknown".to_owned());
        Ok(part)
    }
}

/// Has the learner's program measure training.
pub(super) async fn training(run: &Path, threads: u32, steps: u64, log: &LogArgs) -> anyhow::Result<Training> {
    let output = Command::new(programs::find("tengen-learner")?)
        .args([
            "bench",
            "--threads",
            &threads.to_string(),
            "--steps",
            &steps.to_string(),
            "--run",
        ])
        .arg(run)
        .args(log.to_arguments())
        .stderr(Stdio::inherit())
        .output()
        .await
        .context("failed to start tengen-learner")?;
    ensure!(output.status.success(), "tengen-learner could not measure training");
    serde_json::from_slice(&output.stdout).context("tengen-learner said something else than a measurement")
}
