//! Progress on a terminal, silence in a pipe.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar that fills from 0 to `length`.
pub(crate) fn bar(length: u64, unit: &str) -> ProgressBar {
    let template = format!("{{bar:40}} {{pos}}/{{len}} {unit}  {{msg}}");
    styled(ProgressBar::new(length), &template)
}

/// A line that is rewritten as things go on, with no known end.
pub(crate) fn line() -> ProgressBar {
    let line = styled(ProgressBar::no_length(), "{spinner} {msg}");
    line.enable_steady_tick(Duration::from_millis(100));
    line
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
