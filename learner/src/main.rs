//! The learner process.

use std::process::ExitCode;

use clap::Parser;
use tengen_learner::{Command, Options, bench, learn, memory};
use tengen_service::{args, shutdown, telemetry};

fn main() -> ExitCode {
    memory::keep();
    tengen_inference::forbid_telemetry();
    tengen_service::tls::install_provider();
    args::exit_status("tengen-learner", start(Options::parse()))
}

fn start(options: Options) -> anyhow::Result<()> {
    let log = &options.process.log;
    match &options.command {
        Some(Command::Bench(_) | Command::Learn(_)) => telemetry::init_command(log, "learner")?,
        None => telemetry::init(log, "learner")?,
    }
    if let Some(Command::Bench(args)) = &options.command {
        return bench::run(args);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let stop = shutdown::watch(&options.process)?;
        match options.command {
            Some(Command::Learn(args)) => learn::run(args, stop).await,
            _ => tengen_learner::run(options, stop).await,
        }
    })
}
