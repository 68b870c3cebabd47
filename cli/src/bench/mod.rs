//! `tengen bench`: how much a coordinator on this machine takes.

mod coordinator;
mod swarm;
mod synthetic;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Many synthetic actors send games to a coordinator of their own: what it takes a second, how soon it answers, and what
    /// that costs it
    Swarm(swarm::SwarmArgs),
}

pub(crate) async fn run(command: BenchCommand) -> anyhow::Result<()> {
    match command {
        BenchCommand::Swarm(args) => swarm::run(&args).await,
    }
}
