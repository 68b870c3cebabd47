//! The command line of the coordinator process.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use tengen_control::LeaseRules;
use tengen_service::args::ProcessArgs;
use tengen_service::run_config::RunConfig;
use tengen_service::{shutdown, telemetry};

use crate::config::Config;
use crate::db::{self, DbCommand};
use crate::init::init;
use crate::read_only::{ReadOnly, ReadOnlyOptions};
use crate::runs::{self, RunsCommand};
use crate::server::{Coordinator, LiveKeys, Options};

/// Serves one run: checks and stores its games, hands out its work, decides its gates
#[derive(Clone, Debug, Parser)]
#[command(
    name = "tengen-coordinator",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// The run's configuration
    #[arg(long, value_name = "FILE", required_unless_present = "read_only")]
    run: Option<PathBuf>,
    /// Only let the run in the data folder be read: its networks, gates and status. Needs neither its configuration nor
    /// its game
    #[arg(long, conflicts_with = "run")]
    read_only: bool,
    /// The run's data folder; created when missing
    #[arg(long, value_name = "DIR", required = true)]
    data: Option<PathBuf>,
    /// Take every key from the run's configuration, also those that were changed while the run went on
    #[arg(long, requires = "run")]
    apply: bool,
    /// Configuration of this process (TOML); `TENGEN_COORDINATOR__KEY` in the environment overrides a key of it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where to listen; port 0 takes any [default: 127.0.0.1:7300, or `listen` of the configuration]
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Listen beyond this machine although there are no tokens: whoever reaches the address may do everything
    #[arg(long)]
    insecure: bool,
    /// Write the bound address to this file once it serves
    #[arg(long, value_name = "FILE")]
    addr_file: Option<PathBuf>,
    /// ONNX Runtime's library for audits, or the folder it is in; without it the coordinator does not start then [default:
    /// looked up, and no audits where it is not found]
    #[arg(long, value_name = "PATH")]
    onnxruntime: Option<PathBuf>,
    #[command(flatten)]
    process: ProcessArgs,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    /// Check, copy or compact a data folder
    #[command(subcommand)]
    Db(DbCommand),
    /// List the runs of this machine, or make the folder of a new one
    #[command(subcommand)]
    Runs(RunsCommand),
    /// Make the first tokens of a run: one file for each role, which nobody but their owner may read
    Init(InitArgs),
}

#[derive(Args, Clone, Debug)]
struct InitArgs {
    /// The run's data folder; created when missing
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Where to write viewer.token, actor.token, learner.token and admin.token; files that are there are never overwritten
    #[arg(long, value_name = "DIR")]
    tokens: PathBuf,
}

/// Runs the process until it is told to stop, or does what its subcommand says.
pub fn run(cli: Cli) -> anyhow::Result<()> {
    match cli.command {
        Some(Command::Init(args)) => {
            quiet_log(&cli.process)?;
            first_tokens(&args)
        }
        Some(Command::Db(command)) => {
            quiet_log(&cli.process)?;
            db::run(command)
        }
        Some(Command::Runs(command)) => {
            quiet_log(&cli.process)?;
            runs::run(command)
        }
        None => serve(cli),
    }
}

/// What a command has to say it prints; the log is for what goes wrong beside it.
fn quiet_log(process: &ProcessArgs) -> anyhow::Result<()> {
    let mut log = process.log.clone();
    if log.log == "info" {
        "warn".clone_into(&mut log.log);
    }
    telemetry::init_command(&log, "coordinator")?;
    Ok(())
}

fn first_tokens(args: &InitArgs) -> anyhow::Result<()> {
    for path in init(&args.data, &args.tokens)? {
        println!("{}", path.display());
    }
    Ok(())
}

fn serve(cli: Cli) -> anyhow::Result<()> {
    telemetry::init(&cli.process.log, "coordinator")?;
    let data = cli.data.context("--data DIR is needed")?;
    let run = cli.run.as_deref().map(RunConfig::load).transpose()?;
    let mut config = Config::load(cli.config.as_deref())?;
    config.listen = cli.listen.unwrap_or(config.listen);
    config.insecure |= cli.insecure;
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
                data,
                listen: config.listen,
                addr_file: cli.addr_file,
            };
            return Ok(ReadOnly::start(options, stop).await?.join().await?);
        };
        let options = Options {
            run,
            config,
            data,
            addr_file: cli.addr_file,
            leases: LeaseRules::default(),
            metrics: cli.process.metrics,
            live_keys: if cli.apply { LiveKeys::GiveWay } else { LiveKeys::Win },
        };
        Coordinator::start(options, stop).await?.join().await?;
        Ok(())
    })
}
