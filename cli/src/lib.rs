//! The user's command: starts a local cluster, watches it, lists and pulls models, plays them against each other.
//!
//! It holds no training and no rules of its own: subcommands that belong to another process start that process.

mod actors;
mod at_rest;
mod client;
mod db;
mod doctor;
mod duel;
mod json;
mod models;
mod plan;
mod programs;
mod pull;
mod ratings;
mod rules;
mod status;
mod token;
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
    /// List, show and pull networks
    #[command(subcommand)]
    Models(models::ModelsCommand),
    /// Predict what a run will do on this machine, from a short benchmark
    Plan(plan::PlanArgs),
    /// Play two players against each other
    Duel(duel::DuelArgs),
    /// Show how strong champions and baselines are, and who scored what against whom
    Ratings(ratings::RatingsArgs),
    /// Ask the rules: list games, judge moves, count, show planes, check a game
    #[command(subcommand)]
    Rules(rules::RulesCommand),
    /// Make, list and revoke the tokens that people and processes show to a coordinator
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// List, suspend and resume actors, and take their games out of the window
    #[command(subcommand)]
    Actors(actors::ActorsCommand),
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
            Command::Models(command) => models::run(command).await,
            Command::Plan(args) => plan::run(args).await,
            Command::Duel(args) => duel::run(args).await,
            Command::Ratings(args) => ratings::run(args).await,
            Command::Rules(command) => rules::run(command, &cli.log).await,
            Command::Token(command) => token::run(command).await,
            Command::Actors(command) => actors::run(command).await,
            Command::Db(args) => db::run(&args),
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
