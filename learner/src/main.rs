//! The learner process.

use std::process::ExitCode;

use clap::Parser;
use tengen_learner::{Command, Options, bench};
use tengen_service::{args, shutdown, telemetry};

fn main() -> ExitCode {
    tengen_inference::forbid_telemetry();
    tengen_service::tls::install_provider();
    args::exit_status("tengen-learner", start(Options::parse()))
}

fn start(options: Options) -> anyhow::Result<()> {
    if let Some(Command::Bench(args)) = &options.command {
        return bench::run(args);
    }
    telemetry::init(&options.process.log, "learner")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let stop = shutdown::watch(&options.process)?;
        tengen_learner::run(options, stop).await
    })
}
