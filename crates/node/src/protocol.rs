//! What clients of other processes and a node say to each other: the local control interface.
//!
//! A connection begins with the handshake of [`crate::handshake`]; then frames go both ways. The
//! commands of the binary are the only users; public interfaces are built beside this one.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Who a client is, as lists of locks show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// What the client calls itself.
    pub label: String,
    /// Its process.
    pub pid: u32,
    /// Its machine.
    pub host: String,
}

/// How long a client waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wait {
    /// Until it is inside.
    Endless,
    /// So many milliseconds.
    Millis(u64),
    /// Not for others to leave.
    Not,
}

/// From a client to its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ask {
    /// Opens a session. Without a time to live it ends with the connection; with one it ends that
    /// long after the last sign of life.
    Open { who: Who, ttl_millis: Option<u64> },
    /// Goes on with a session after the connection broke.
    Resume { session: u64 },
    /// A sign of life.
    Alive,
    /// Asks for locks. The client numbers its requests; asking again under the same number, after a
    /// connection broke, asks for nothing new.
    Lock { request: u32, names: Vec<String>, permits: u32, wait: Wait },
    /// Takes a request back, or releases what it was granted.
    Release { request: u32 },
    /// Ends the session: everything that it held is free when `Over` comes.
    Close,
    /// Who holds and who waits: at this node, or in the whole group.
    Locks { whole_group: bool },
    /// How the node and its links are doing.
    Status,
    /// Whether a client of this node is inside one of these locks, each with one permit.
    Held { names: Vec<String> },
}

/// Why a request was not granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Denial {
    /// Somebody else has it.
    Taken,
    /// It did not come in time.
    TimedOut,
    /// The time to live is longer than this; the text says why that cannot be.
    LongTtl(Duration, String),
    /// It cannot be asked for so; the text says why.
    Input(String),
    /// The node cannot do it; the text says why.
    Node(String),
}

/// From a node to its client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Tell {
    /// The session is open.
    Open { session: u64 },
    /// The session is over: what it held is no longer held.
    Over,
    /// The sign of life was seen.
    Alive,
    /// The client is inside. There is one fence for each name, in the order of asking.
    Granted { request: u32, fences: Vec<u64> },
    /// The client is not inside, and will not be.
    Denied { request: u32, why: Denial },
    /// What the request held is free.
    Released { request: u32 },
    /// The answer to `Locks`, or a part of it: a frame cannot hold any number of lines.
    Locks { part: Listing, is_last: bool },
    /// The answer to `Status`.
    Status(Box<Status>),
    /// The answer to `Held`.
    Held { is_held: bool },
}

/// Who holds and who waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// One line per holder and waiter: by name, holders first, waiters in the order of each node.
    pub lines: Vec<Line>,
    /// Members that did not answer.
    pub silent: Vec<String>,
}

/// One holder or waiter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Line {
    /// The lock.
    pub name: String,
    /// How many may be inside.
    pub permits: u32,
    /// The place in the queue of its node, from 1; 0 for a holder.
    pub place: u32,
    /// The number of the entry, for a holder.
    pub fence: Option<u64>,
    /// The member at which it asked.
    pub node: String,
    /// What the client calls itself.
    pub label: String,
    /// The client's process.
    pub pid: u32,
    /// The client's machine.
    pub host: String,
    /// For how long it has been so, in milliseconds.
    pub millis: u64,
}

/// How a node is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The group's name.
    pub group: String,
    /// The member's name.
    pub node: String,
    /// How long it has been running, in milliseconds.
    pub millis: u64,
    /// Every member.
    pub members: Vec<MemberStatus>,
    /// The failure detector, in groups that run one.
    pub detector: Option<DetectorStatus>,
    /// Every namespace, and once more with the algorithm of its semaphores where that is another.
    pub namespaces: Vec<NamespaceStatus>,
    /// How many locks the node keeps.
    pub locks: u64,
    /// How many are held here.
    pub held: u64,
    /// How many clients wait here.
    pub waiting: u64,
    /// Open sessions.
    pub sessions: u64,
    /// Grants since the node began.
    pub grants: u64,
    /// Of these, passed from one client of this node to the next.
    pub handovers: u64,
    /// Messages sent to other members.
    pub messages: u64,
    /// Messages that came from them.
    pub arrived: u64,
    /// What came that cannot come in a correct run.
    pub anomalies: u64,
}

/// A member, as a node sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberStatus {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: String,
    /// Its cluster, if it carries a label.
    pub cluster: Option<String>,
    /// The link to it.
    pub link: LinkStatus,
    /// For how long the node has taken it for crashed, in milliseconds.
    pub suspected: Option<u64>,
}

/// A failure detector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetectorStatus {
    /// From one test to the next, in milliseconds.
    pub interval: u64,
    /// How long a tested member has to answer, in milliseconds.
    pub timeout: u64,
    /// Messages sent by this node's detector.
    pub messages: u64,
    /// A member that takes this one for crashed.
    pub excluded_by: Option<String>,
}

/// A link, as a node sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LinkStatus {
    /// The node itself.
    Itself,
    /// Not connected yet.
    Connecting,
    /// Connected for so many milliseconds.
    Up(u64),
    /// Not connected for so many milliseconds, and why.
    Down(u64, String),
    /// The two do not belong together, and why.
    Refused(String),
}

/// A namespace and what it has cost so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceStatus {
    /// The names.
    pub pattern: String,
    /// Whether this is of its semaphores alone, which another algorithm guards than its locks.
    pub semaphores: bool,
    /// The algorithm.
    pub algorithm: String,
    /// Messages sent by this node, by kind.
    pub messages: Vec<(String, u64)>,
}
