//! `tengen bench swarm`: how a coordinator bears many actors.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::json;
use tengen_games::AnyGame;
use tokio::task::JoinSet;

use super::coordinator::{Coordinator, Taken, run_file};
use super::mib;
use super::synthetic::{Actor, Templates};

/// Time that the actors have to register and to get their first leases before their first games are due, and more of it for
/// each of them.
const GATHER: Duration = Duration::from_secs(2);
const GATHER_EACH: Duration = Duration::from_millis(4);

#[derive(Args, Debug)]
pub(crate) struct SwarmArgs {
    /// Numbers of actors to measure, one after the other; each actor has a connection of its own
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "10,100,1000", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    actors: Vec<u32>,
    /// Games a second that all of them send together
    #[arg(long, value_name = "X", default_value_t = 200.0)]
    games_per_second: f64,
    /// How long they send, for each number of actors
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Game of the records
    #[arg(long, value_name = "GAME", default_value = "caro5?size=9")]
    game: String,
    /// Redis for the window, for example redis://127.0.0.1:6379; without it the window is in the coordinator's memory
    #[arg(long, value_name = "URL")]
    redis: Option<String>,
    /// Folder whose disk the coordinator writes to
    #[arg(long, value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// Print one JSON object for each number of actors instead of a table
    #[arg(long)]
    json: bool,
}

/// What one number of actors came to.
#[derive(Clone, Copy, Debug)]
struct Measured {
    actors: u32,
    games: usize,
    seconds: f64,
    median: Duration,
    p99: Duration,
    cpu_seconds: f64,
    /// Memory before the first game and after the last.
    resident_bytes: [u64; 2],
    positions_per_game: f64,
}

impl Measured {
    fn games_per_second(&self) -> f64 {
        self.games as f64 / self.seconds
    }

    /// What a thousand positions cost the coordinator.
    fn cpu_seconds_per_1000_positions(&self) -> f64 {
        self.cpu_seconds / (self.games as f64 * self.positions_per_game) * 1_000.0
    }
}

pub(crate) async fn run(args: &SwarmArgs) -> anyhow::Result<()> {
    let rate = args.games_per_second;
    ensure!(
        rate > 0.0 && rate.is_finite(),
        "--games-per-second is {rate}, and must be above 0"
    );
    let game = AnyGame::parse(&args.game)?;
    let templates = Arc::new(Templates::of(&game));
    if !args.json {
        println!(
            "{:>7} {:>9} {:>9} {:>9} {:>14} {:>12} {:>12}",
            "actors", "games/s", "p50 ms", "p99 ms", "CPU s/1000 pos", "MiB before", "MiB after"
        );
    }
    let mut rows: Vec<Measured> = Vec::new();
    for &actors in &args.actors {
        let measured = measure(args, &game, &templates, actors)
            .await
            .with_context(|| format!("with {actors} actors"))?;
        show(&measured, args);
        rows.push(measured);
    }
    if !args.json {
        for pair in rows.windows(2) {
            let growth = pair[1].cpu_seconds_per_1000_positions() / pair[0].cpu_seconds_per_1000_positions();
            let (few, many) = (pair[0].actors, pair[1].actors);
            println!("from {few} to {many} actors a position came to cost {growth:.2} times as much");
        }
    }
    Ok(())
}

async fn measure(
    args: &SwarmArgs,
    game: &AnyGame,
    templates: &Arc<Templates>,
    actors: u32,
) -> anyhow::Result<Measured> {
    let run = run_file(&game.spec().id, 1, 4);
    let coordinator = Coordinator::start(&run, &args.folder, args.redis.as_deref(), actors).await?;
    let begin = Instant::now() + GATHER + GATHER_EACH * actors;
    let every = Duration::from_secs_f64(f64::from(actors) / args.games_per_second);
    let mut tasks = JoinSet::new();
    for number in 0..actors {
        let actor = Actor {
            name: format!("swarm-{number:05}"),
            every,
            begin: begin + every.mul_f64(f64::from(number) / f64::from(actors)),
            end: begin + Duration::from_secs(args.seconds),
        };
        let (channel, templates) = (coordinator.channel()?, Arc::clone(templates));
        tasks.spawn(async move { actor.play(channel, &templates).await });
    }
    tokio::time::sleep_until(begin.into()).await;
    let (before, begun) = (coordinator.taken()?, Instant::now());
    let mut took = Vec::new();
    while let Some(played) = tasks.join_next().await {
        took.extend(played.context("an actor panicked")??);
    }
    let seconds = begun.elapsed().as_secs_f64();
    let after = coordinator.taken()?;
    coordinator.end().await?;
    ensure!(!took.is_empty(), "no game was due: measure longer (--seconds)");
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    let cpu = |taken: Taken| taken.cpu_seconds;
    Ok(Measured {
        actors,
        games: took.len(),
        seconds,
        median: at(0.5),
        p99: at(0.99),
        cpu_seconds: cpu(after) - cpu(before),
        resident_bytes: [before.resident_bytes, after.resident_bytes],
        positions_per_game: templates.positions(),
    })
}

fn show(measured: &Measured, args: &SwarmArgs) {
    let milliseconds = |time: Duration| time.as_secs_f64() * 1_000.0;
    let [before, after] = measured.resident_bytes;
    if args.json {
        let shown = json!({
            "actors": measured.actors,
            "games": measured.games,
            "games_per_second": measured.games_per_second(),
            "acknowledged_p50_ms": milliseconds(measured.median),
            "acknowledged_p99_ms": milliseconds(measured.p99),
            "cpu_seconds_per_1000_positions": measured.cpu_seconds_per_1000_positions(),
            "resident_bytes_before": before,
            "resident_bytes_after": after,
            "positions_per_game": measured.positions_per_game,
        });
        println!("{shown}");
        return;
    }
    println!(
        "{:>7} {:>9.1} {:>9.1} {:>9.1} {:>14.4} {:>12.1} {:>12.1}",
        measured.actors,
        measured.games_per_second(),
        milliseconds(measured.median),
        milliseconds(measured.p99),
        measured.cpu_seconds_per_1000_positions(),
        mib(before),
        mib(after)
    );
}
