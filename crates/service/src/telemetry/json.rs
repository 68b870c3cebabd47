//! An event as one JSON object a line: `time`, `level`, `part`, `target`, `message`, and the event's own `fields`.

use std::fmt;
use std::time::SystemTime;

use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The format.
pub(super) struct Object {
    pub(super) part: &'static str,
}

impl<S, N> FormatEvent<S, N> for Object
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &tracing::Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        writeln!(writer, "{}", object(self.part, &time, event.metadata(), fields))
    }
}

fn object(part: &str, time: &str, metadata: &tracing::Metadata<'_>, fields: Fields) -> Value {
    json!({
        "time": time,
        "level": metadata.level().as_str().to_lowercase(),
        "part": part,
        "target": metadata.target(),
        "message": fields.message,
        "fields": fields.others,
    })
}

/// The fields of one event, numbers and truths as what they are.
#[derive(Default)]
struct Fields {
    message: String,
    others: Map<String, Value>,
}

impl Fields {
    fn note(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            (name, value) => drop(self.others.insert(name.to_owned(), value)),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.note(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.note(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.note(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.note(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.note(field, value.into());
    }

    /// A number that JSON does not have is written as `null`.
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.note(field, value.into());
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_event_is_one_object_with_its_fields_as_they_are() {
        let paper = Paper::default();
        let writer = paper.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .event_format(Object { part: "actor" })
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(games = 3, share = 0.5, run = %"a \"b\"\n", "a game ended");
            tracing::error!(fatal = true, exit_code = 1, error = "x", "the process ends");
        });
        let text = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(
            lines[0]["fields"],
            json!({"games": 3, "share": 0.5, "run": "a \"b\"\n"})
        );
        assert_eq!(
            (&lines[0]["level"], &lines[0]["part"], &lines[0]["message"]),
            (&json!("info"), &json!("actor"), &json!("a game ended"))
        );
        assert_eq!(lines[1]["fields"], json!({"fatal": true, "exit_code": 1, "error": "x"}));
        let time = lines[1]["time"].as_str().unwrap();
        assert!(humantime::parse_rfc3339(time).is_ok(), "{time}");
    }
}
