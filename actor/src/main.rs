//! The `tengen-actor` process: flags in, one component run until it is drained.

use std::process::ExitCode;

use clap::Parser;
use tengen_actor::Options;
use tengen_service::args::{ProcessArgs, exit_status};
use tengen_service::{shutdown, telemetry};

/// Plays a run's games and sends them to its coordinator.
#[derive(Parser)]
#[command(name = "tengen-actor", version)]
struct Args {
    #[command(flatten)]
    process: ProcessArgs,
    #[command(flatten)]
    options: Options,
}

fn main() -> ExitCode {
    tengen_inference::forbid_telemetry();
    tengen_service::tls::install_provider();
    exit_status("tengen-actor", run(Args::parse()))
}

fn run(args: Args) -> anyhow::Result<()> {
    telemetry::init(&args.process.log, "actor")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let shutdown = shutdown::watch(&args.process)?;
        tengen_actor::serve_metrics(&args.process.metrics, shutdown.clone()).await?;
        tengen_actor::run(args.options, shutdown).await
    })
}
