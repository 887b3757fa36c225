//! What a daemon tells its operator: one line per event, on standard error, as text or as JSON.

use std::fmt::{Debug, Write as _};
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use catraca_node::rfc3339;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// How a line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line: time, level, message, fields.
    Json,
}

/// Begins to write events of at least this weight.
pub(crate) fn install(level: Level, format: Format) {
    // It fails only if there is one already, which is as good.
    tracing::subscriber::set_global_default(Log(level, format)).ok();
}

struct Log(Level, Format);

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.0 && metadata.target().starts_with("catraca")
    }

    fn event(&self, event: &Event<'_>) {
        let (time, level) = (clock(), *event.metadata().level());
        let line = match self.1 {
            Format::Text => {
                let mut line = Line::default();
                event.record(&mut line);
                line.text(&time, level)
            }
            Format::Json => {
                let mut object = Object::default();
                event.record(&mut object);
                object.json(time, level)
            }
        };
        // If standard error is closed there is nobody to tell.
        writeln!(std::io::stderr().lock(), "{line}").ok();
    }

    // Nothing here opens spans.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Date and time, in UTC, as the operator's other logs have them.
fn clock() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    rfc3339(since.as_millis() as u64)
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Line {
    fn text(self, time: &str, level: Level) -> String {
        let weight = match level {
            Level::ERROR => "error: ",
            Level::WARN => "warning: ",
            _ => "",
        };
        let Line { message, fields } = self;
        format!("{time} {weight}{message}{fields}")
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a text cannot fail. What others sent must not break the line.
        let text = format!("{value:?}").replace(char::is_control, " ");
        match field.name() {
            "message" => self.message = text,
            name => write!(self.fields, ", {name} {text}").unwrap_or_default(),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

/// An event as an object.
#[derive(Default)]
struct Object {
    message: String,
    fields: Map<String, Value>,
}

impl Object {
    fn json(self, time: String, level: Level) -> String {
        let Object { message, fields } = self;
        let level = level.as_str().to_lowercase();
        let mut object = Map::new();
        object.insert("time".to_string(), time.into());
        object.insert("level".to_string(), level.into());
        object.insert("message".to_string(), message.into());
        if !fields.is_empty() {
            object.insert("fields".to_string(), fields.into());
        }
        Value::Object(object).to_string()
    }

    fn put(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            (name, value) => {
                self.fields.insert(name.to_string(), value);
            }
        }
    }
}

impl Visit for Object {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Keeps the lines that an event makes, in both forms.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<[String; 2]>>>);

    impl Subscriber for Lines {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn event(&self, event: &Event<'_>) {
            let (mut line, mut object) = (Line::default(), Object::default());
            event.record(&mut line);
            event.record(&mut object);
            let level = *event.metadata().level();
            let both = [line.text("TIME", level), object.json("TIME".to_string(), level)];
            self.0.lock().unwrap().push(both);
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn an_event_is_one_line_of_text_or_one_object_whatever_others_sent() {
        let lines = Lines::default();
        let hostile = "a\nb\"\u{1b}[2J";
        tracing::subscriber::with_default(lines.clone(), || {
            tracing::warn!(member = %hostile, count = 3u64, up = true, "does not answer");
            tracing::info!("a view begins: {hostile}");
        });
        let lines = lines.0.lock().unwrap();
        let expected = [
            [
                "TIME warning: does not answer, member a b\" [2J, count 3, up true",
                r#"{"time":"TIME","level":"warn","message":"does not answer","fields":{"member":"a\nb\"\u001b[2J","count":3,"up":true}}"#,
            ],
            [
                "TIME a view begins: a b\" [2J",
                r#"{"time":"TIME","level":"info","message":"a view begins: a\nb\"\u001b[2J"}"#,
            ],
        ];
        for (lines, expected) in lines.iter().zip(expected) {
            assert_eq!(lines[0], expected[0]);
            let (one, other): (Value, Value) = (
                serde_json::from_str(&lines[1]).unwrap(),
                serde_json::from_str(expected[1]).unwrap(),
            );
            assert_eq!(one, other);
            assert!(!lines[1].contains(['\n', '\u{1b}']), "nothing breaks the line");
        }
        assert_eq!(lines.len(), 2);
    }
}
