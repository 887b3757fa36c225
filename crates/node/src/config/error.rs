//! Why a configuration describes no node.

use std::time::Duration;

use catraca_algorithms::SpecError;
use catraca_group::MOST_MEMBERS;

use super::{GIT_TURNS, LEASE_RANGE};

/// Why a configuration describes no node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file is not TOML, or says something that is not known.
    #[error("line {line}: {message}")]
    Toml {
        /// Counted from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// Something else is wrong with a line of the file.
    #[error("line {line}: {error}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong there.
        error: Box<ConfigError>,
    },
    /// A list of members that cannot be read.
    #[error(
        "'{0}' is no member: say NAME=HOST:PORT, as in a=127.0.0.1:7801, or NAME=HOST:PORT@CLUSTER"
    )]
    Unreadable(String),
    /// No name, or one that is not among the members.
    #[error("there is no member '{name}'; the members are {members}")]
    UnknownMember {
        /// The name.
        name: String,
        /// All members.
        members: String,
    },
    /// A list of members without saying which one this is.
    #[error("which member is this node? Say its name")]
    Nameless,
    /// A list without members.
    #[error("a group needs at least one member")]
    Empty,
    /// Too many.
    #[error("a group has at most {MOST_MEMBERS} members, not {0}")]
    Members(usize),
    /// Two members with one name.
    #[error("two members are called '{0}'; give them different names")]
    Twice(String),
    /// Two members with one address.
    #[error("members '{0}' and '{1}' have the same address {2}; each needs its own")]
    SameAddress(String, String, String),
    /// A member's name that cannot be one.
    #[error("'{0}' is no name for a member: letters, digits, '-', '_' and '.', at most 64")]
    Name(String),
    /// A cluster's label that cannot be one.
    #[error("'{0}' is no label for a cluster: letters, digits, '-', '_' and '.', at most 64")]
    Cluster(String),
    /// An address that cannot be one.
    #[error("'{0}' is no address: say HOST:PORT, as in 127.0.0.1:7800")]
    Address(String),
    /// A group's name that cannot be one.
    #[error("'{0}' is no name for a group: letters, digits, '-', '_' and '.', at most 64")]
    Group(String),
    /// An algorithm that cannot guard a namespace.
    #[error("namespace '{pattern}': {error}")]
    Namespace {
        /// The names.
        pattern: String,
        /// Why not.
        error: SpecError,
    },
    /// A namespace without names.
    #[error("a namespace needs names, as in 'ci/*' or '*'")]
    NoNames,
    /// A namespace all of whose names are another's already.
    #[error(
        "namespace '{pattern}' never applies: '{before}' comes first and fits its names; change their order, or leave it out"
    )]
    NeverApplies {
        /// The names.
        pattern: String,
        /// Those of the other.
        before: String,
    },
    /// Names that the group uses itself.
    #[error(
        "namespace '{0}' cannot be: the group itself uses the names '{GIT_TURNS}'; choose other names, or leave it out"
    )]
    Reserved(String),
    /// A time that is none, or too long.
    #[error("{key} is {given}, but is a time in seconds, from 0.001 to 3600")]
    Seconds {
        /// The key.
        key: &'static str,
        /// What was given.
        given: String,
    },
    /// Tests that would begin before the last ones can have ended.
    #[error(
        "the detector tests every {interval:?} but waits {timeout:?} for an answer; make interval at least as long as timeout"
    )]
    Detector {
        /// From one test to the next.
        interval: Duration,
        /// How long it waits.
        timeout: Duration,
    },
    /// A detector that nobody has asked for by its name.
    #[error(
        "a detector by time-outs can take a member for crashed that is only cut off, and let both sides in: leave [detector] out, or say algorithm = 'hi-adsd' in it to have it all the same"
    )]
    Unnamed,
    /// A lease that is too short or too long.
    #[error(
        "a lease lasts from {least:?} to {most:?}, not {0:?}",
        least = LEASE_RANGE.start(),
        most = LEASE_RANGE.end()
    )]
    Lease(Duration),
    /// TLS with a part of what it needs.
    #[error("TLS takes a certificate and its key: say both, or neither and no authority")]
    Incomplete,
    /// Members that could not know each other.
    #[error(
        "a group of several members that uses TLS needs an authority, by whose certificates they know each other: say which"
    )]
    NoAuthority,
    /// A member whose name no certificate can have.
    #[error(
        "no certificate can be for a member called '{0}': where members have certificates, the last part of a name has a letter, and '-' and '.' stand between others"
    )]
    Uncertifiable(String),
    /// Both a directory and an etcd.
    #[error(
        "the registry is either in a directory of this node or in etcd: say one of 'data' and 'registry'"
    )]
    TwoRegistries,
    /// Something about Git that cannot be.
    #[error("[git]: {0}")]
    Git(String),
    /// A `SET NX` that would wait for too long.
    #[error("a SET NX waits at most {1:?} in a queue, not {0:?}")]
    Park(Duration, Duration),
    /// A number out of its range.
    #[error("{key} is {given}, but goes from {least} to {most}")]
    Range {
        /// The key.
        key: &'static str,
        /// What was given.
        given: u64,
        /// The smallest that can be.
        least: u64,
        /// The largest that can be.
        most: u64,
    },
}
