//! Command-line pieces that every process shares.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

use crate::metrics::MetricsArgs;
use crate::telemetry;

/// How much to say, and in which form.
#[derive(Args, Clone, Debug)]
pub struct LogArgs {
    /// What to log: error, warn, info, debug, trace, or a filter such as `info,tengen_actor=debug`
    #[arg(long, value_name = "LEVEL", default_value = "info", global = true)]
    pub log: String,
    /// Form of the log on standard error
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, global = true)]
    pub log_format: LogFormat,
}

impl LogArgs {
    /// The same for a process that this one starts.
    pub fn to_arguments(&self) -> [OsString; 4] {
        [
            "--log".into(),
            self.log.clone().into(),
            "--log-format".into(),
            self.log_format.as_str().into(),
        ]
    }
}

/// Form of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// A line for people
    #[default]
    Text,
    /// A JSON object a line
    Json,
}

impl LogFormat {
    /// The name on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        }
    }
}

/// What every server process takes beside its own options.
#[derive(Args, Clone, Debug)]
pub struct ProcessArgs {
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show a doc comment here as help")]
    pub log: LogArgs,
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show a doc comment here as help")]
    pub metrics: MetricsArgs,
    /// Drain when standard input closes, so that no process outlives the one that started it
    #[arg(long)]
    pub exit_with_parent: bool,
}

/// An error with an exit status of its own, where 1 would not tell callers enough.
#[derive(Debug)]
pub struct ExitStatus {
    status: u8,
    error: anyhow::Error,
}

impl ExitStatus {
    /// `error`, which ends the process with `status`.
    pub fn new(status: u8, error: impl Into<anyhow::Error>) -> ExitStatus {
        ExitStatus {
            status,
            error: error.into(),
        }
    }
}

impl std::fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.error)
    }
}

impl std::error::Error for ExitStatus {}

/// Exit status of a process that ends because of an error.
const FAILURE: u8 = 1;

/// Ends a process: says the chain of causes, as the last event of its log, and returns the exit status.
pub fn exit_status(program: &str, result: anyhow::Result<()>) -> std::process::ExitCode {
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            let own = error.downcast_ref::<ExitStatus>();
            let status = own.map_or(FAILURE, |own| own.status);
            telemetry::tell_end(program, &error, status);
            status.into()
        }
    }
}
