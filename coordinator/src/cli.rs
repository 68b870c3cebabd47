//! The command line of the coordinator process.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use tengen_control::LeaseRules;
use tengen_service::args::ProcessArgs;
use tengen_service::run_config::RunConfig;
use tengen_service::{shutdown, telemetry};

use crate::config::Config;
use crate::read_only::{ReadOnly, ReadOnlyOptions};
use crate::server::{Coordinator, Options};

/// Serves one run: checks and stores its games, hands out its work, decides its gates
#[derive(Clone, Debug, Parser)]
#[command(name = "tengen-coordinator", version)]
pub struct Cli {
    /// The run's configuration
    #[arg(long, value_name = "FILE", required_unless_present = "read_only")]
    pub run: Option<PathBuf>,
    /// Only let the run in the data folder be read: its networks, gates and status. Needs neither its configuration nor
    /// its game
    #[arg(long, conflicts_with = "run")]
    pub read_only: bool,
    /// The run's data folder; created when missing
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Configuration of this process (TOML); `TENGEN_COORDINATOR__KEY` in the environment overrides a key of it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where to listen; port 0 takes any [default: 127.0.0.1:7300, or `listen` of the configuration]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// Write the bound address to this file once it serves
    #[arg(long, value_name = "FILE")]
    pub addr_file: Option<PathBuf>,
    /// ONNX Runtime's library for audits, or the folder it is in; without it the coordinator does not start then [default:
    /// looked up, and no audits where it is not found]
    #[arg(long, value_name = "PATH")]
    pub onnxruntime: Option<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show a doc comment here as help")]
    pub process: ProcessArgs,
}

/// Runs the process until it is told to stop.
pub fn run(cli: Cli) -> anyhow::Result<()> {
    telemetry::init(&cli.process.log.log, "coordinator")?;
    let run = cli.run.as_deref().map(RunConfig::load).transpose()?;
    let mut config = Config::load(cli.config.as_deref())?;
    config.listen = cli.listen.unwrap_or(config.listen);
    config.onnxruntime = cli.onnxruntime.or(config.onnxruntime);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("coordinator-io")
        .build()
        .context("failed to start the async threads")?;
    runtime.block_on(async {
        let stop = shutdown::watch(&cli.process).context("failed to watch for signals")?;
        let Some(run) = run else {
            let options = ReadOnlyOptions {
                data: cli.data,
                listen: config.listen,
                addr_file: cli.addr_file,
            };
            return Ok(ReadOnly::start(options, stop).await?.join().await?);
        };
        let options = Options {
            run,
            config,
            data: cli.data,
            addr_file: cli.addr_file,
            leases: LeaseRules::default(),
        };
        Coordinator::start(options, stop).await?.join().await?;
        Ok(())
    })
}
