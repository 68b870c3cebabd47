//! Command-line pieces that every process shares.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

use crate::metrics::MetricsArgs;
use crate::telemetry;

/// What is logged when nobody says how much.
const USUAL_LEVEL: &str = "info";

/// How much to say, and in which form.
#[derive(Args, Clone, Debug)]
pub struct LogArgs {
    /// What to log: error, warn, info, debug, trace, or a filter such as `info,tengen_actor=debug`
    #[arg(long, value_name = "LEVEL", default_value = USUAL_LEVEL, global = true)]
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

    /// The same for a program that a command becomes, whose `words` may speak of the log, too, and no option twice: what
    /// is as it would be anyway, and what the words say themselves, is left out.
    pub fn to_arguments_before(&self, words: &[OsString]) -> Vec<OsString> {
        let usual = [USUAL_LEVEL, LogFormat::default().as_str()];
        let said = |option: &OsString| {
            let begin = [option.as_encoded_bytes(), b"=".as_slice()].concat();
            let same = |word: &OsString| word == option || word.as_encoded_bytes().starts_with(&begin);
            words.iter().any(same)
        };
        let arguments = self.to_arguments();
        let pairs = arguments.chunks(2).zip(usual);
        let kept = pairs.filter(|(pair, usual)| pair[1] != **usual && !said(&pair[0]));
        kept.flat_map(|(pair, _)| pair.to_vec()).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_told_of_the_log_what_it_would_not_do_anyway_and_nothing_twice() {
        let check = |log: &str, log_format: LogFormat, words: &[&str], wanted: &[&str]| {
            let log = LogArgs {
                log: log.to_owned(),
                log_format,
            };
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(log.to_arguments_before(&words), wanted, "{log:?} {words:?}");
        };
        check("info", LogFormat::Text, &["check"], &[]);
        check("info", LogFormat::Json, &["check"], &["--log-format", "json"]);
        check("debug", LogFormat::Text, &[], &["--log", "debug"]);
        check(
            "debug",
            LogFormat::Json,
            &["check"],
            &["--log", "debug", "--log-format", "json"],
        );
        check("debug", LogFormat::Json, &["--log-format=text"], &["--log", "debug"]);
        check("debug", LogFormat::Text, &["--log", "warn"], &[]);
    }
}
