//! `tengen plan`: what a run will do on this machine, from a short benchmark and its configuration.

mod bench;
mod forecast;

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use serde_json::json;
use tengen_inference::Devices;
use tengen_service::args::LogArgs;
use tengen_service::run_config::RunConfig;

use bench::{Measured, Training};
use forecast::{Forecast, Limit};

#[derive(Args, Debug)]
pub(crate) struct PlanArgs {
    /// The run's configuration
    #[arg(long, value_name = "FILE")]
    run: PathBuf,
    /// Plies of self-play to measure; more are more exact
    #[arg(long, value_name = "N", default_value_t = 3_000, value_parser = clap::value_parser!(u64).range(1..))]
    plies: u64,
    /// Steps of training to measure
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,
    /// Actors like the one measured: the first beside the learner on this machine, the others on machines like it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    actors: u32,
    /// Iteration whose row of the schedule is meant
    #[arg(long, value_name = "I", default_value_t = 0)]
    iteration: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: PlanArgs, log: &LogArgs) -> anyhow::Result<()> {
    let config = RunConfig::load(&args.run)?;
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let (learner_threads, actor_threads) = config.cpu.divide(cores);
    let row = config.row(args.iteration);
    let devices: Devices = config.actor.device.parse().context("actor.device")?;
    let (measured_config, plies) = (config.clone(), args.plies);
    // One after the other: on few cores they would measure each other.
    let self_play = tokio::task::spawn_blocking(move || {
        bench::self_play(&measured_config, row.simulations, actor_threads, &devices, plies)
    });
    let self_play = self_play.await??;
    let training = bench::training(&args.run, learner_threads, args.steps, log).await?;
    let forecast = Forecast::new(&config, row, &self_play, &training, (args.actors, cores));
    if args.json {
        println!(
            "{}",
            serde_json::to_string_pretty(&as_json(&self_play, &training, &forecast))?
        );
    } else {
        print!("{}", page(&config, &self_play, &training, &forecast));
    }
    Ok(())
}

fn page(config: &RunConfig, self_play: &Measured, training: &Training, forecast: &Forecast) -> String {
    let Forecast {
        positions_per_hour,
        minutes_per_iteration,
        window_turnover_hours,
        bytes_per_day,
        limit,
        one_more_actor,
        faster_learner,
        ..
    } = forecast;
    let mut lines = vec![
        format!(
            "measured: {:.0} positions/s of self-play on {} threads ({} {}, batches of {}), {:.0} evaluations/s, games of \
             {:.0} positions",
            self_play.positions_per_second(),
            self_play.threads,
            self_play.provider,
            self_play.precision,
            self_play.batch,
            self_play.evaluations_per_second(),
            self_play.positions_per_game
        ),
        format!(
            "measured: {:.1} steps/s of {} positions on {} threads ({})",
            training.steps_per_second, training.batch, training.threads, training.device
        ),
        format!("{}:", config.run.name),
        format!(
            "  positions an hour    {positions_per_hour:.0} ({})",
            limit_in_words(*limit)
        ),
        format!("  time an iteration    {minutes_per_iteration:.1} minutes, its share of the gate included"),
        format!("  window turned over   in {window_turnover_hours:.1} hours"),
        format!(
            "  data a day           {}",
            indicatif::HumanBytes(*bytes_per_day as u64)
        ),
        format!(
            "  one more such actor  {one_more_actor:.0} positions an hour ({:+.0} %)",
            gain(*one_more_actor, *positions_per_hour)
        ),
        format!(
            "  a learner on a GPU   {faster_learner:.0} positions an hour ({:+.0} %), if training then takes no time",
            gain(*faster_learner, *positions_per_hour)
        ),
    ];
    lines.push(format!(
        "  actors on a GPU      {}",
        match limit {
            Limit::SelfPlay | Limit::Cores => format!(
                "up to {:.0} positions an hour, where the learner is the limit",
                forecast.learner_positions_per_hour
            ),
            Limit::Learner => "nothing: the learner is the limit".to_owned(),
        }
    ));
    lines.join("\n") + "\n"
}

fn limit_in_words(limit: Limit) -> &'static str {
    match limit {
        Limit::SelfPlay => "self-play is the limit",
        Limit::Cores => "the cores of this machine are the limit: its actor and its learner share them",
        Limit::Learner => "the learner is the limit: self-play waits for it",
    }
}

/// How much more one rate is than another, per cent.
fn gain(more: f64, than: f64) -> f64 {
    (more / than - 1.0) * 100.0
}

fn as_json(self_play: &Measured, training: &Training, forecast: &Forecast) -> serde_json::Value {
    json!({
        "self_play": {
            "threads": self_play.threads,
            "provider": self_play.provider,
            "precision": self_play.precision.as_str(),
            "batch": self_play.batch,
            "positions_per_second": self_play.positions_per_second(),
            "evaluations_per_second": self_play.evaluations_per_second(),
            "cpu_seconds_per_position": self_play.cpu_seconds_per_position(),
            "positions_per_game": self_play.positions_per_game,
            "bytes_per_position": self_play.bytes_per_position,
        },
        "training": training,
        "forecast": {
            "positions_per_hour": forecast.positions_per_hour,
            "self_play_positions_per_hour": forecast.self_play_positions_per_hour,
            "learner_positions_per_hour": forecast.learner_positions_per_hour,
            "limit": match forecast.limit { Limit::SelfPlay => "self-play", Limit::Learner => "learner", Limit::Cores => "cores" },
            "minutes_per_iteration": forecast.minutes_per_iteration,
            "window_turnover_hours": forecast.window_turnover_hours,
            "bytes_per_day": forecast.bytes_per_day,
            "positions_per_hour_one_more_actor": forecast.one_more_actor,
            "positions_per_hour_learner_on_gpu": forecast.faster_learner,
        },
    })
}
