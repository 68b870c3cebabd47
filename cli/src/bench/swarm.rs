//! `tengen bench swarm`: how a coordinator bears many actors.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::json;
use tokio::task::JoinSet;

use super::coordinator::{Coordinator, run_file};
use super::games::{Games, GamesArgs};
use super::mib;
use super::synthetic::{Actor, IN_FLIGHT_MAX, Pace};

/// Time that the actors have to register and to get their first leases before their first games are due, and more of it for
/// each of them.
const GATHER: Duration = Duration::from_secs(2);
const GATHER_EACH: Duration = Duration::from_millis(4);
/// At the greatest rate, games of all actors that wait for their verdicts, unless there are more actors: many times what a
/// coordinator commits together, and little memory.
const IN_FLIGHT_TOGETHER: u32 = 256;
/// What the actors then say that they make together, games a second: about what a coordinator takes of two cores.
const CLAIMED_PER_SECOND: f64 = 4_000.0;

#[derive(Args, Debug)]
pub(crate) struct SwarmArgs {
    /// Numbers of actors to measure, one after the other; each actor has a connection of its own
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "10,100,1000", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    actors: Vec<u32>,
    /// Games a second that all of them send together, or `max`: as fast as verdicts come, with about 256 games in flight (one of
    /// each actor where there are more actors), which finds the greatest rate that the coordinator sustains
    #[arg(long, value_name = "X|max", default_value = "200")]
    games_per_second: Rate,
    /// How long they send, for each number of actors
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    #[command(flatten)]
    games: GamesArgs,
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

/// Games a second that may be asked for: the least is one in a quarter of an hour, the most is beyond what any machine takes.
const PER_SECOND_MIN: f64 = 0.001;
const PER_SECOND_MAX: f64 = 1e6;

/// How fast games are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rate {
    /// So many a second over all actors.
    Steady(f64),
    /// As fast as verdicts come.
    Greatest,
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Rate, String> {
        match text.parse::<f64>() {
            Ok(rate) if (PER_SECOND_MIN..=PER_SECOND_MAX).contains(&rate) => Ok(Rate::Steady(rate)),
            Err(_) if text == "max" => Ok(Rate::Greatest),
            _ => Err(format!(
                "a number from {PER_SECOND_MIN} to {PER_SECOND_MAX} or `max` is wanted"
            )),
        }
    }
}

impl Rate {
    /// When one of so many actors sends a game.
    fn pace(self, actors: u32) -> Pace {
        match self {
            Rate::Steady(rate) => Pace::Every(Duration::from_secs_f64(f64::from(actors) / rate)),
            Rate::Greatest => Pace::InFlight(((IN_FLIGHT_TOGETHER / actors) as usize).clamp(1, IN_FLIGHT_MAX)),
        }
    }

    /// What each of so many actors says that it makes.
    fn games_per_minute(self, actors: u32) -> f32 {
        let together = match self {
            Rate::Steady(rate) => rate,
            Rate::Greatest => CLAIMED_PER_SECOND,
        };
        (60.0 * together / f64::from(actors)) as f32
    }
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
    /// Games that were not in the window yet when the last one was acknowledged.
    window_lag_games: u64,
}

impl Measured {
    fn games_per_second(&self) -> f64 {
        self.games as f64 / self.seconds
    }

    /// How many cores the coordinator kept busy.
    fn cpu_cores(&self) -> f64 {
        self.cpu_seconds / self.seconds
    }

    /// What a thousand positions cost the coordinator.
    fn cpu_seconds_per_1000_positions(&self, games: &Games) -> f64 {
        self.cpu_seconds / (self.games as f64 * games.positions()) * 1_000.0
    }
}

pub(crate) async fn run(args: &SwarmArgs) -> anyhow::Result<()> {
    let games = Arc::new(args.games.gather().await?);
    if !args.json {
        println!(
            "{} {} games of {}, {:.1} positions each",
            games.len(),
            games.origin().as_str(),
            games.game_id(),
            games.positions()
        );
        println!(
            "{:>7} {:>9} {:>9} {:>9} {:>14} {:>9} {:>10} {:>10} {:>8}",
            "actors", "games/s", "p50 ms", "p99 ms", "CPU s/1000 pos", "CPU cores", "MiB before", "MiB after", "lag"
        );
    }
    let mut costs: Vec<(u32, f64)> = Vec::new();
    for &actors in &args.actors {
        let measured = measure(args, &games, actors)
            .await
            .with_context(|| format!("with {actors} actors"))?;
        show(&measured, &games, args);
        costs.push((actors, measured.cpu_seconds_per_1000_positions(&games)));
    }
    costs.sort_by(|left, right| left.1.total_cmp(&right.1));
    if let [(cheap, least), .., (dear, most)] = costs.as_slice()
        && !args.json
    {
        println!(
            "a position costs most with {dear} actors, {:.2} times as much as with {cheap}",
            most / least
        );
    }
    Ok(())
}

async fn measure(args: &SwarmArgs, games: &Arc<Games>, actors: u32) -> anyhow::Result<Measured> {
    let run = format!(
        "{}[selfplay]\nrandom_plies_max = {}\n",
        run_file(games.game_id(), 1, 4),
        games.random_plies_max()
    );
    let coordinator = Coordinator::start(&run, &args.folder, args.redis.as_deref(), actors).await?;
    let begin = Instant::now() + GATHER + GATHER_EACH * actors;
    let pace = args.games_per_second.pace(actors);
    let mut tasks = JoinSet::new();
    for number in 0..actors {
        let turn = match pace {
            // The first games of the others lie between two of one actor.
            Pace::Every(every) => every.mul_f64(f64::from(number) / f64::from(actors)),
            Pace::InFlight(_) => Duration::ZERO,
        };
        let actor = Actor {
            name: format!("swarm-{number:05}"),
            pace,
            games_per_minute: args.games_per_second.games_per_minute(actors),
            begin: begin + turn,
            end: begin + Duration::from_secs(args.seconds),
        };
        let (channel, games) = (coordinator.channel()?, Arc::clone(games));
        tasks.spawn(async move { actor.play(channel, &games).await });
    }
    tokio::time::sleep_until(begin.into()).await;
    let (before, begun) = (coordinator.taken()?, Instant::now());
    let mut took = Vec::new();
    while let Some(played) = tasks.join_next().await {
        took.extend(played.context("an actor panicked")??);
    }
    let seconds = begun.elapsed().as_secs_f64();
    let after = coordinator.taken()?;
    let window_lag_games = coordinator.window_lag_games().await?;
    coordinator.end().await?;
    ensure!(!took.is_empty(), "no game was due: measure longer (--seconds)");
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    Ok(Measured {
        actors,
        games: took.len(),
        seconds,
        median: at(0.5),
        p99: at(0.99),
        cpu_seconds: after.cpu_seconds - before.cpu_seconds,
        resident_bytes: [before.resident_bytes, after.resident_bytes],
        window_lag_games,
    })
}

fn show(measured: &Measured, games: &Games, args: &SwarmArgs) {
    let milliseconds = |time: Duration| time.as_secs_f64() * 1_000.0;
    let [before, after] = measured.resident_bytes;
    if args.json {
        let shown = json!({
            "actors": measured.actors,
            "records": games.origin().as_str(),
            "positions_per_game": games.positions(),
            "games": measured.games,
            "games_per_second": measured.games_per_second(),
            "acknowledged_p50_ms": milliseconds(measured.median),
            "acknowledged_p99_ms": milliseconds(measured.p99),
            "cpu_seconds_per_1000_positions": measured.cpu_seconds_per_1000_positions(games),
            "cpu_cores": measured.cpu_cores(),
            "resident_bytes_before": before,
            "resident_bytes_after": after,
            "window_lag_games": measured.window_lag_games,
        });
        println!("{shown}");
        return;
    }
    println!(
        "{:>7} {:>9.1} {:>9.1} {:>9.1} {:>14.4} {:>9.2} {:>10.1} {:>10.1} {:>8}",
        measured.actors,
        measured.games_per_second(),
        milliseconds(measured.median),
        milliseconds(measured.p99),
        measured.cpu_seconds_per_1000_positions(games),
        measured.cpu_cores(),
        mib(before),
        mib(after),
        measured.window_lag_games
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_above_zero_or_the_greatest() {
        assert_eq!("0.5".parse(), Ok(Rate::Steady(0.5)));
        assert_eq!("max".parse(), Ok(Rate::Greatest));
        for text in ["0", "-1", "inf", "NaN", "most", ""] {
            assert!(text.parse::<Rate>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn at_the_greatest_rate_games_in_flight_are_bounded_over_all_actors_and_for_each() {
        let in_flight = [1, 10, 100, 1_000].map(|actors| Rate::Greatest.pace(actors));
        assert_eq!(in_flight, [64, 25, 2, 1].map(Pace::InFlight));
        assert_eq!(Rate::Steady(500.0).pace(100), Pace::Every(Duration::from_millis(200)));
    }
}
