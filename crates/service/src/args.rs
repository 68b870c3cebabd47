//! Command-line pieces that every process shares.

use clap::Args;

/// How much to say.
#[derive(Args, Clone, Debug)]
pub struct LogArgs {
    /// What to log: error, warn, info, debug, trace, or a filter such as `info,tengen_actor=debug`
    #[arg(long, value_name = "LEVEL", default_value = "info", global = true)]
    pub log: String,
}

/// What every server process takes beside its own options.
#[derive(Args, Clone, Debug)]
pub struct ProcessArgs {
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show a doc comment here as help")]
    pub log: LogArgs,
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

/// Ends a process: prints the chain of causes to standard error and returns the exit status.
pub fn exit_status(part: &str, result: anyhow::Result<()>) -> std::process::ExitCode {
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{part}: {error:#}");
            match error.downcast_ref::<ExitStatus>() {
                Some(ExitStatus { status, .. }) => (*status).into(),
                None => std::process::ExitCode::FAILURE,
            }
        }
    }
}
