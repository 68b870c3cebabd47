//! Logging of every process: events with fields, to standard error, as text.

use std::str::FromStr;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// Starts logging at `level` (`error`, `warn`, `info`, `debug`, `trace`, or a filter such as `info,tengen_actor=debug`).
/// `part` is the process's name, shown on every line so that several processes can share a terminal.
pub fn init(level: &str, part: &'static str) -> Result<(), InitError> {
    let filter = EnvFilter::from_str(level).map_err(|error| InitError::Level(level.to_owned(), error.to_string()))?;
    let filter = quieten(filter, level);
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_span_events(FmtSpan::NONE)
        .with_target(false)
        .event_format(Line { part })
        .try_init()
        .map_err(|error| InitError::Twice(error.to_string()))
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

/// `12:30:05 coordinator INFO iteration ended iteration=3 games=200`
struct Line {
    part: &'static str,
}

impl<S, N> tracing_subscriber::fmt::FormatEvent<S, N> for Line
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
    N: for<'a> tracing_subscriber::fmt::FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &tracing_subscriber::fmt::FmtContext<'_, S, N>,
        mut writer: tracing_subscriber::fmt::format::Writer<'_>,
        event: &tracing::Event<'_>,
    ) -> std::fmt::Result {
        let seconds = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_secs())
            % 86_400;
        write!(
            writer,
            "{:02}:{:02}:{:02} {:<11} {:<5} ",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60,
            self.part,
            event.metadata().level()
        )?;
        context.field_format().format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
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
