//! `tengen bench`: how much a coordinator on this machine takes.

mod coordinator;
mod fan_out;
mod games;
mod swarm;
mod synthetic;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Many synthetic actors send games to a coordinator of their own: what it takes a second, how soon it answers, and what
    /// that costs it
    Swarm(swarm::SwarmArgs),
    /// Many actors fetch a network from a coordinator of their own at the same time: how soon all of them have it, and what
    /// that costs it
    FanOut(fan_out::FanOutArgs),
}

pub(crate) async fn run(command: BenchCommand) -> anyhow::Result<()> {
    match command {
        BenchCommand::Swarm(args) => swarm::run(&args).await,
        BenchCommand::FanOut(args) => fan_out::run(&args).await,
    }
}

/// Bytes as mebibytes, for people.
fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
