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

    /// What is left of it when somebody has waited for so long already, and asks again. Whoever does not wait
    /// for others gives the group as much time as before to answer.
    pub fn after(self, waited: Duration) -> Self {
        match self {
            Wait::AtMost(limit) => Wait::AtMost(limit.saturating_sub(waited)),
            other => other,
        }
    }

    /// The longest that this waits, if there is an end to it.
    pub fn limit(self) -> Option<Duration> {
        match self {
            Wait::Forever => None,
            Wait::AtMost(limit) | Wait::No(limit) => Some(limit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn who_asks_again_waits_no_longer_than_was_said_at_first() {
        let wait = Wait::AtMost(10 * SECOND);
        assert_eq!(wait.after(3 * SECOND), Wait::AtMost(7 * SECOND));
        assert_eq!(wait.after(11 * SECOND), Wait::AtMost(Duration::ZERO));
        for wait in [Wait::Forever, Wait::no()] {
            assert_eq!(wait.after(SECOND), wait);
        }
    }
}
