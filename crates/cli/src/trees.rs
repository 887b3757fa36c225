//! Pictures of who points to whom at single instants, of a run or of a trace.

use std::path::Path;

use catraca_draw::trees;
use catraca_trace::Trace;

use crate::Outcome;
use crate::failure::Failure;
use crate::output::PendingPicture;

/// A picture that is still to be drawn.
pub(crate) struct Trees {
    file: PendingPicture,
    /// In ticks.
    instants: Vec<u64>,
}

impl Trees {
    /// Fails at once if there is nothing to draw, or if the place cannot be written to.
    pub(crate) fn create(path: &Path, instants: Vec<u64>) -> Result<Self, Failure> {
        if instants.is_empty() {
            return Err(Failure::input(
                "--tree-diagram draws single instants; say which, as in '--tree-at 2.5', once or \
                 several times",
            ));
        }
        Ok(Trees { file: PendingPicture::create(path)?, instants })
    }

    /// The last instant that is drawn.
    pub(crate) fn last(&self) -> u64 {
        self.instants.iter().copied().max().unwrap_or_default()
    }

    /// `whose` names the run in errors.
    pub(crate) fn finish(self, trace: &Trace, whose: &str) -> Outcome {
        let picture = trees(trace, &self.instants)
            .map_err(|error| Failure::input(format!("{whose} {error}")))?;
        self.file.finish(&picture)
    }
}
