//! Deliberately broken drivers: each must be caught by the judge.

use std::fmt;
use std::str::FromStr;

/// What a driver does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Some messages arrive twice.
    RepeatsMessages,
    /// Some messages never arrive.
    LosesMessages,
    /// Messages from one member to another overtake each other.
    Reorders,
    /// Some requests reach the member later than others that were made after them.
    DelaysRequests,
    /// Some releases never reach the member.
    ForgetsReleases,
    /// Some clients are not told of their grants.
    DropsGrants,
    /// Sessions end although their clients renew them, and these are not told.
    EndsSessions,
    /// Members hand locks over more often than they should.
    HandsOverTooOften,
}

/// Every flaw.
pub const FLAWS: [Flaw; 8] = [
    Flaw::RepeatsMessages,
    Flaw::LosesMessages,
    Flaw::Reorders,
    Flaw::DelaysRequests,
    Flaw::ForgetsReleases,
    Flaw::DropsGrants,
    Flaw::EndsSessions,
    Flaw::HandsOverTooOften,
];

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Flaw::RepeatsMessages => "repeats-messages",
            Flaw::LosesMessages => "loses-messages",
            Flaw::Reorders => "reorders",
            Flaw::DelaysRequests => "delays-requests",
            Flaw::ForgetsReleases => "forgets-releases",
            Flaw::DropsGrants => "drops-grants",
            Flaw::EndsSessions => "ends-sessions",
            Flaw::HandsOverTooOften => "hands-over-too-often",
        })
    }
}

/// Why a text is no flaw.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{given}' is nothing that a driver of members does wrong: say {names}")]
pub struct FlawError {
    given: String,
    names: String,
}

impl FromStr for Flaw {
    type Err = FlawError;

    fn from_str(text: &str) -> Result<Self, FlawError> {
        let is_it = |flaw: &Flaw| flaw.to_string() == text;
        FLAWS.into_iter().find(is_it).ok_or_else(|| FlawError {
            given: text.to_string(),
            names: FLAWS.map(|flaw| flaw.to_string()).join(", "),
        })
    }
}
