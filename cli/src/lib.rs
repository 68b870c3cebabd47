//! The user's command: starts a local cluster, watches it, lists and pulls models, plays them against each other.
//!
//! It holds no training and no rules of its own: subcommands that belong to another process start that process.

mod actors;
mod at_rest;
mod bench;
mod client;
mod db;
mod debug_data;
mod doctor;
mod duel;
mod games;
mod iterations;
mod json;
mod learn;
mod models;
mod plan;
mod programs;
mod pull;
mod ratings;
mod rules;
mod runs;
mod settings;
mod status;
mod steer;
mod token;
mod trail;
mod up;

use clap::{Parser, Subcommand};
use tengen_service::args::LogArgs;

/// Train an AlphaZero-style player for a board game.
#[derive(Debug, Parser)]
#[command(name = "tengen", version, about, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    log: LogArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a whole cluster on this machine and show its progress; Ctrl-C drains it
    Up(up::UpArgs),
    /// Show how a run is doing
    Status(status::StatusArgs),
    /// Say why nothing moves, or what slows a run down: each cause with its evidence and what helps
    Doctor(doctor::DoctorArgs),
    /// List the iterations that ended, newest first, with their games and times
    Iterations(iterations::IterationsArgs),
    /// List, show and pull networks
    #[command(subcommand)]
    Models(models::ModelsCommand),
    /// Predict what a run will do on this machine, from a short benchmark
    Plan(plan::PlanArgs),
    /// Measure how much a coordinator on this machine takes
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    /// Play two players against each other
    Duel(duel::DuelArgs),
    /// Learn from games of people or of other programs, and offer the network to a run as its starting candidate
    Learn(learn::LearnArgs),
    /// List, show, export, import, check and replay games
    #[command(subcommand)]
    Games(games::GamesCommand),
    /// Show how strong champions and baselines are, and who scored what against whom
    Ratings(ratings::RatingsArgs),
    /// Ask the rules: list games, judge moves, count, show planes, check a game
    #[command(subcommand)]
    Rules(rules::RulesCommand),
    /// Make, list and revoke the tokens that people and processes show to a coordinator
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Pause self-play, training or gating; what is under way ends, nothing of it begins (needs the role admin)
    Pause(steer::ActivityArgs),
    /// Let what was paused go on (needs the role admin)
    Resume(steer::ActivityArgs),
    /// Make a network champion by hand, whatever its gate says (needs the role admin)
    Promote(steer::ModelArgs),
    /// Give up the candidate that waits for its gate or is in it (needs the role admin)
    Reject(steer::ModelArgs),
    /// Make an earlier champion champion again; the learner goes on from its own weights (needs the role admin)
    Rollback(steer::RollbackArgs),
    /// Let no gate change the champion; gates are played all the same (needs the role admin)
    Pin(steer::PinArgs),
    /// Let gates promote again (needs the role admin)
    Unpin(steer::PinArgs),
    /// End a run for good: no more work, no more candidates; it stays readable (needs the role admin)
    End(steer::EndArgs),
    /// Show a run's settings, and change them while it goes on
    #[command(subcommand)]
    Settings(settings::SettingsCommand),
    /// List who changed what in a run, newest first (needs the role admin)
    Audit(trail::AuditArgs),
    /// List, suspend and resume actors, and take their games out of the window
    #[command(subcommand)]
    Actors(actors::ActorsCommand),
    /// List the runs of this machine, or make the data folder of a new one
    Runs(runs::RunsArgs),
    /// Check, copy or compact a run's data folder
    Db(db::DbArgs),
    /// Succeed when the coordinator serves, fail otherwise
    Health(client::CoordinatorArgs),
    /// Print versions
    Version,
}

/// Runs one command to its end.
pub fn run(cli: Cli) -> anyhow::Result<()> {
    let mut log = cli.log.clone();
    if matches!(cli.command, Command::Up(_)) && log.log == "info" {
        // The progress display owns the terminal; warnings still show.
        "warn".clone_into(&mut log.log);
    }
    tengen_service::telemetry::init_command(&log, "tengen")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match cli.command {
            Command::Up(args) => up::run(args, &cli.log).await,
            Command::Status(args) => status::run(args).await,
            Command::Doctor(args) => doctor::run(args).await,
            Command::Iterations(args) => iterations::run(args).await,
            Command::Models(command) => models::run(command).await,
            Command::Plan(args) => plan::run(args, &cli.log).await,
            Command::Bench(command) => bench::run(command).await,
            Command::Duel(args) => duel::run(args).await,
            Command::Learn(args) => learn::run(&args, &cli.log),
            Command::Games(command) => games::run(command).await,
            Command::Ratings(args) => ratings::run(args).await,
            Command::Rules(command) => rules::run(command, &cli.log).await,
            Command::Token(command) => token::run(command, &cli.log).await,
            Command::Pause(args) => steer::pause(args).await,
            Command::Resume(args) => steer::resume(args).await,
            Command::Promote(args) => steer::promote(args).await,
            Command::Reject(args) => steer::reject(args).await,
            Command::Rollback(args) => steer::rollback(args).await,
            Command::Pin(args) => steer::pin(args).await,
            Command::Unpin(args) => steer::unpin(args).await,
            Command::End(args) => steer::end(args).await,
            Command::Settings(command) => settings::run(command).await,
            Command::Audit(args) => trail::run(args).await,
            Command::Actors(command) => actors::run(command).await,
            Command::Runs(args) => runs::run(&args, &cli.log),
            Command::Db(args) => db::run(&args, &cli.log),
            Command::Health(args) => health(&args).await,
            Command::Version => version(),
        }
    })
}

async fn health(args: &client::CoordinatorArgs) -> anyhow::Result<()> {
    let url = args.served_url()?;
    tengen_service::health::probe(&url, &args.credentials()?).await?;
    println!("{url} serves");
    Ok(())
}

fn version() -> anyhow::Result<()> {
    println!("tengen {}", tengen_service::BUILD);
    println!("protocol {}", tengen_proto::PROTOCOL);
    match tengen_inference::init(None) {
        Ok(()) => {
            if let Some(runtime) = tengen_inference::runtime() {
                println!("onnxruntime {} ({})", runtime.build, runtime.path.display());
            }
        }
        Err(error) => println!("onnxruntime not found: {error}"),
    }
    Ok(())
}
