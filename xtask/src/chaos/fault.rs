//! What can be done to a group.

use std::fmt;

use clap::ValueEnum;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Kind {
    /// A member is killed, and started again after a while
    Kill,
    /// All members are killed at the same time, and started again
    Blackout,
    /// A member is stopped for less than its lease
    Pause,
    /// A member is stopped for longer than its lease
    Freeze,
    /// A member is told to end, and started again
    Restart,
    /// All members are told to end and started again, one after the other
    Rolling,
    /// A member is cut off from everybody, or from everybody but its clients
    Cut,
    /// A member hears the others but is not heard, or is heard but does not hear
    OneWay,
    /// Two members do not hear each other; both hear everybody else
    Partial,
    /// A member is cut off and connected again, many times
    Flap,
    /// The link of a member is so slow that messages queue up and are dropped
    Slow,
    /// The disk of a member is full for a while
    Disk,
    /// A server of etcd is killed, and started again
    EtcdKill,
    /// A server of etcd is stopped for a while
    EtcdPause,
    /// A server of etcd is cut off
    EtcdCut,
    /// A client is killed, and another one started
    ClientKill,
    /// A client is stopped, for less or for longer than its time to live
    ClientPause,
}

impl Kind {
    /// Whether it is done to the servers of etcd.
    pub(crate) fn needs_etcd(self) -> bool {
        matches!(self, Kind::EtcdKill | Kind::EtcdPause | Kind::EtcdCut)
    }

    /// Whether it is done to the registry that the members keep themselves.
    pub(crate) fn needs_data(self) -> bool {
        matches!(self, Kind::Disk)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_possible_value() {
            Some(value) => f.write_str(value.get_name()),
            None => write!(f, "{self:?}"),
        }
    }
}

/// A place in the network, with a process or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Host {
    Member(usize),
    Etcd(usize),
    /// All clients are in one place.
    Clients,
}

impl Host {
    pub(crate) fn address(self) -> String {
        let last = match self {
            Host::Member(number) => 1 + number,
            Host::Etcd(number) => 101 + number,
            Host::Clients => 201,
        };
        format!("10.77.0.{last}")
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Member(number) => write!(f, "{}", member_name(*number)),
            Host::Etcd(number) => write!(f, "etcd{number}"),
            Host::Clients => f.write_str("clients"),
        }
    }
}

/// Members are called a, b, c.
pub(crate) fn member_name(number: usize) -> char {
    char::from(b'a' + number as u8)
}

/// Who is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) members: usize,
    pub(crate) etcd: usize,
    /// Those that may be killed and stopped.
    pub(crate) clients: usize,
}

impl Layout {
    pub(crate) fn hosts(&self) -> Vec<Host> {
        let members = (0..self.members).map(Host::Member);
        members.chain((0..self.etcd).map(Host::Etcd)).chain([Host::Clients]).collect()
    }
}

/// A process that something is done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    Member(usize),
    Etcd(usize),
    Client(usize),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Member(number) => Host::Member(*number).fmt(f),
            Target::Etcd(number) => Host::Etcd(*number).fmt(f),
            Target::Client(number) => write!(f, "c{number}"),
        }
    }
}

/// One step of a fault, or of its healing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    /// A line of the log, before what it describes.
    Say(String),
    Kill(Target),
    Terminate(Target),
    /// Runs from now on; at once, or as soon as the process before it has ended.
    Start(Target),
    Stop(Target),
    Continue(Target),
    /// What `from` sends does not reach `to`.
    Drop {
        from: Host,
        to: Host,
    },
    /// It does again.
    Pass {
        from: Host,
        to: Host,
    },
    Slow(Host),
    Fast(Host),
    Fill(usize),
    Free(usize),
}
