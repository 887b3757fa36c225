//! What no run may show: one invariant a file.
//!
//! Monitors watch a run from outside the algorithm, at the moments at which their invariant can
//! break. The first violation ends the run.

mod bypass;
mod capacity;
mod fence;
mod progress;
mod token;

use serde::Serialize;

pub(crate) use bypass::Bypass;
pub(crate) use capacity::Capacity;
pub(crate) use fence::Fences;
pub(crate) use progress::deadlock;
pub(crate) use token::OneToken;

use crate::time::Time;

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Which one.
    pub invariant: &'static str,
    /// What was seen.
    pub what: String,
    /// When it was seen.
    #[serde(serialize_with = "as_text")]
    pub at: Time,
}

fn as_text<S: serde::Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(time)
}

/// What a monitor says when its invariant breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) invariant: &'static str,
    pub(crate) what: String,
}
