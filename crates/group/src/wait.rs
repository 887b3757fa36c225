//! How long somebody waits for a lock.

use core::time::Duration;

use serde::{Deserialize, Serialize};

/// How long somebody waits for a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Wait {
    /// Until it is granted.
    #[default]
    Forever,
    /// So long.
    AtMost(Duration),
    /// Not for others to leave: only so long for the group's answer.
    No(Duration),
}

impl Wait {
    /// How long a request that does not wait for others waits for the group's answer, unless
    /// somebody says otherwise.
    pub const ANSWER: Duration = Duration::from_millis(250);

    /// Does not wait for others to leave.
    pub const fn no() -> Self {
        Wait::No(Self::ANSWER)
    }

    /// The longest that this waits, if there is an end to it.
    pub fn limit(self) -> Option<Duration> {
        match self {
            Wait::Forever => None,
            Wait::AtMost(limit) | Wait::No(limit) => Some(limit),
        }
    }
}
