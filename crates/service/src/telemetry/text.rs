//! An event as a line for people: `12:30:05 coordinator INFO  iteration ended iteration=3 games=200`.

use std::time::{SystemTime, UNIX_EPOCH};

use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The format.
pub(super) struct Line {
    pub(super) part: &'static str,
}

impl<S, N> FormatEvent<S, N> for Line
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &tracing::Event<'_>,
    ) -> std::fmt::Result {
        let seconds = SystemTime::now()
            .duration_since(UNIX_EPOCH)
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
