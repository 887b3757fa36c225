//! The page that plays a run, as a file.

use std::path::Path;

use catraca_player::{PlayerError, Window, check_nodes, page, record};
use catraca_trace::Trace;

use crate::Outcome;
use crate::failure::Failure;
use crate::output::PendingFile;

/// A page that is written when the run is over.
pub(crate) struct PendingPage {
    file: PendingFile,
    window: Window,
}

impl PendingPage {
    /// Fails at once if the place cannot be written to or the group cannot be shown.
    pub(crate) fn create(path: &Path, nodes: u32, window: Window) -> Result<Self, Failure> {
        check_nodes(nodes).map_err(|error| refused("the run", &error))?;
        Ok(PendingPage { file: PendingFile::create(path)?, window })
    }

    /// Whether an event at this time is on it.
    pub(crate) fn shows(&self, at: u64) -> bool {
        self.window.shows(at)
    }

    /// Writes the page of a trace, which a message calls `what`.
    pub(crate) fn finish(self, trace: &Trace, what: &str) -> Outcome {
        let recording = record(trace, self.window).map_err(|error| refused(what, &error))?;
        if recording.is_empty() {
            return Err(refused(what, &PlayerError::Empty));
        }
        let page = page(&recording).map_err(|error| Failure::System(error.into()))?;
        self.file.finish_with(page.as_bytes())
    }
}

/// Why there is no page.
pub(crate) fn refused(what: &str, error: &PlayerError) -> Failure {
    Failure::input(format!("{what} {error}"))
}
