//! JSON documents that say of themselves what they are, which version wrote them, and how to repeat it.
//!
//! `docs/schema/` has a schema for each format; `docs/DATA.md` shows how to load them.

use catraca_lab::Estimate;
use serde::Serialize;

use crate::Outcome;
use crate::failure::Failure;
use crate::output::PendingFile;

/// What a document is. The number goes up when a reader of the last one would read it wrongly.
#[derive(Clone, Copy, Serialize)]
pub(crate) enum Format {
    /// One run of nodes.
    #[serde(rename = "catraca-run-1")]
    Run,
    /// One run of whole members.
    #[serde(rename = "catraca-members-1")]
    Members,
    /// Many runs side by side.
    #[serde(rename = "catraca-comparison-1")]
    Comparison,
    /// An experiment.
    #[serde(rename = "catraca-experiment-1")]
    Experiment,
    /// Runs on an evolving graph.
    #[serde(rename = "catraca-graph-run-1")]
    GraphRun,
}

#[derive(Serialize)]
struct Document<'a, T> {
    format: Format,
    version: &'static str,
    command: &'a str,
    #[serde(flatten)]
    content: T,
}

/// The document with this content, which `command` makes again.
pub(crate) fn json(
    format: Format,
    command: &str,
    content: impl Serialize,
) -> Result<Vec<u8>, Failure> {
    let document = Document { format, version: env!("CARGO_PKG_VERSION"), command, content };
    let mut text = serde_json::to_vec_pretty(&document).map_err(|error| {
        Failure::System(anyhow::Error::new(error).context("the figures as JSON"))
    })?;
    text.push(b'\n');
    Ok(text)
}

/// Writes such a document.
pub(crate) fn write(
    file: PendingFile,
    format: Format,
    command: &str,
    content: impl Serialize,
) -> Outcome {
    file.finish_with(&json(format, command, content)?)
}

/// A figure over all seeds.
#[derive(Serialize)]
pub(crate) struct Figure {
    mean: f64,
    /// Half the width of Student's interval of 95 %.
    ci95: f64,
}

impl From<Estimate> for Figure {
    fn from(estimate: Estimate) -> Self {
        Figure { mean: estimate.mean, ci95: estimate.half_width }
    }
}

/// How certain figures are, in words for a reader of the document.
pub(crate) const INTERVAL: &str =
    "Student, 95 %: ci95 is half the width; 0 where all seeds agree or there is one";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_says_what_it_is_and_has_its_content_beside_that() {
        #[derive(Serialize)]
        struct Content {
            entries: u32,
        }
        let text = json(Format::Run, "catraca sim --nodes 3", Content { entries: 4 }).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let expected = serde_json::json!({
            "format": "catraca-run-1", "version": env!("CARGO_PKG_VERSION"),
            "command": "catraca sim --nodes 3", "entries": 4
        });
        assert_eq!(value, expected);
        assert!(text.ends_with(b"}\n"));
    }
}
