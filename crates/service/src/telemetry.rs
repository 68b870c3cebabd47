//! Logging of every process: events with fields, to standard error, as lines for people or as JSON for machines.
//!
//! A process that ends because of an error says so in its last event, which carries `fatal = true` and the exit code.

mod json;
mod text;

use std::str::FromStr;
use std::sync::OnceLock;

use tracing_subscriber::EnvFilter;

use crate::args::{LogArgs, LogFormat};

/// How this process tells why it ends; the first start of the log decides.
static ENDING: OnceLock<Ending> = OnceLock::new();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// With an event of its log.
    Event,
    /// With a sentence, as a command does.
    Sentence,
}

/// Starts the log of a server process. `part` is its name, shown on every line so that several processes can share a
/// terminal.
pub fn init(log: &LogArgs, part: &'static str) -> Result<(), InitError> {
    start(log, part, Ending::Event)
}

/// Starts the log of a command: when it fails it says why in a sentence, unless JSON is asked for.
pub fn init_command(log: &LogArgs, part: &'static str) -> Result<(), InitError> {
    let ending = match log.log_format {
        LogFormat::Text => Ending::Sentence,
        LogFormat::Json => Ending::Event,
    };
    start(log, part, ending)
}

fn start(log: &LogArgs, part: &'static str, ending: Ending) -> Result<(), InitError> {
    let level = log.log.as_str();
    let filter = EnvFilter::from_str(level).map_err(|error| InitError::Level(level.to_owned(), error.to_string()))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(quieten(filter, level))
        .with_writer(std::io::stderr)
        .with_ansi(false);
    let started = match log.log_format {
        LogFormat::Text => builder.event_format(text::Line { part }).try_init(),
        LogFormat::Json => builder.event_format(json::Object { part }).try_init(),
    };
    started.map_err(|error| InitError::Twice(error.to_string()))?;
    // Only the first start gets here.
    let _ = ENDING.set(ending);
    let as_ever = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if tracing::event_enabled!(tracing::Level::ERROR) {
            tell_panic(panic);
        } else {
            as_ever(panic);
        }
    }));
    Ok(())
}

/// Logging could not start.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// The level makes no sense.
    #[error("log level {0:?} is not understood ({1}); use error, warn, info, debug or trace")]
    Level(String, String),
    /// Logging was started before.
    #[error("logging was started twice: {0}")]
    Twice(String),
}

/// Says why the process ends with `exit_code`: as the last event of its log, or as a sentence where there is no log.
pub(crate) fn tell_end(program: &str, error: &anyhow::Error, exit_code: u8) {
    let has_log = ENDING.get() == Some(&Ending::Event) && tracing::event_enabled!(tracing::Level::ERROR);
    if has_log {
        let error = format!("{error:#}");
        tracing::error!(fatal = true, exit_code, error, "the process ends");
    } else {
        eprintln!("{program}: {error:#}");
    }
}

/// A panic of any thread; one of the main thread ends the process.
fn tell_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let current = std::thread::current();
    let thread = current.name().unwrap_or("unnamed");
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    let error = panic.payload_as_str().unwrap_or("no message");
    // 101 is what the runtime ends a process with whose main thread panicked.
    if thread == "main" {
        tracing::error!(fatal = true, exit_code = 101, thread, location, error, "panicked");
    } else {
        tracing::error!(thread, location, error, "panicked");
    }
}

/// ONNX Runtime and the HTTP/2 stack speak about what nobody asked; a plain level leaves them at `warn` or above, and `h2`
/// silent: it writes a line for each connection that misbehaves, so that whoever connects could fill the disk.
fn quieten(filter: EnvFilter, level: &str) -> EnvFilter {
    if level.contains('=') || level.contains(',') || matches!(level, "trace" | "debug") {
        return filter;
    }
    let others = if level == "error" { "error" } else { "warn" };
    ["ort", "hyper", "tonic", "tower"]
        .map(|target| format!("{target}={others}"))
        .into_iter()
        .chain(["h2=off".to_owned()])
        .filter_map(|directive| directive.parse().ok())
        .fold(filter, EnvFilter::add_directive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_not_heard_at_a_plain_level_and_nothing_is_louder_than_asked_for() {
        let filter = |level: &str| quieten(EnvFilter::from_str(level).unwrap(), level).to_string();
        let info = filter("info");
        assert!(info.contains("h2=off") && info.contains("tonic=warn"), "{info}");
        let error = filter("error");
        assert!(error.contains("h2=off") && !error.contains("warn"), "{error}");
        assert!(!filter("debug").contains("h2"));
        assert!(filter("info,h2=warn").contains("h2=warn"));
    }
}
