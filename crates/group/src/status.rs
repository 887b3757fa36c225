//! How a member is doing, for operators.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::shard::{Counts, Shard};

/// How a node is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The group's name.
    pub group: String,
    /// The member's name.
    pub node: String,
    /// How long it has been running, in milliseconds.
    pub millis: u64,
    /// The epoch of its view.
    pub epoch: u32,
    /// Whether it grants locks.
    pub readiness: Readiness,
    /// For how long it may go on to grant locks without hearing from the registry, in milliseconds.
    pub valid: Option<u64>,
    /// Every member, also those that are not in the view.
    pub members: Vec<MemberStatus>,
    /// Where the group keeps its registry, and how that is doing.
    pub registry: Option<RegistryStatus>,
    /// The last views that began here, the newest last.
    pub views: Vec<PastView>,
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

/// How a node stands in its group: what can be told without a look at every lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeState {
    /// The group's name.
    pub group: String,
    /// The member's name.
    pub node: String,
    /// How long it has been running, in milliseconds.
    pub millis: u64,
    /// The epoch of its view.
    pub epoch: u32,
    /// Whether it grants locks.
    pub readiness: Readiness,
    /// For how long it may go on to grant locks without hearing from the registry, in milliseconds.
    pub valid: Option<u64>,
    /// Every member, also those that are not in the view.
    pub members: Vec<MemberStatus>,
    /// Where the group keeps its registry, and how that is doing.
    pub registry: Option<RegistryStatus>,
    /// The last views that began here, the newest last.
    pub views: Vec<PastView>,
    /// Open sessions.
    pub sessions: u64,
    /// What came that cannot come in a correct run.
    pub anomalies: u64,
}

/// Whether a member grants locks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Readiness {
    /// It does.
    Ready,
    /// Not until it is in a view of its group, and what keeps it from that.
    Joining(String),
    /// Not until these members have been connected.
    Waiting(Vec<String>),
    /// It does not belong to its group any more, and why.
    Expelled(String),
    /// This member takes it for crashed: it grants no locks of algorithms that rely on the detector.
    Excluded(String),
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
    /// Whether it is in the view.
    pub is_in_view: bool,
    /// How long ago it was heard to renew its lease, in milliseconds.
    pub renewed: Option<u64>,
    /// The link to it.
    pub link: LinkStatus,
    /// For how long the node has taken it for crashed, in milliseconds.
    pub suspected: Option<u64>,
}

/// A registry, as a node sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryStatus {
    /// Where it is, in a word or two.
    pub place: String,
    /// Who leads it, if that is known.
    pub leader: Option<String>,
    /// Whose votes count.
    pub voters: Vec<String>,
    /// Those of them that cannot be reached from here.
    pub missing: Vec<String>,
    /// What is wrong with it, if something is.
    pub trouble: Option<String>,
}

/// A view that the node has been through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastView {
    /// Its number.
    pub epoch: u32,
    /// How many members it had.
    pub members: u32,
    /// Why it began.
    pub cause: String,
    /// How long ago it began here, in milliseconds.
    pub age: u64,
    /// How long nothing was granted here before it began, in milliseconds.
    pub took: u64,
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

/// What the shards of a member show together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many locks there are, how many are held here, and how many clients wait.
    pub(crate) sizes: [u64; 3],
    pub(crate) counts: Counts,
    /// The messages sent so far by kind, of each namespace and algorithm.
    pub(crate) messages: BTreeMap<(usize, String), BTreeMap<&'static str, u64>>,
}

impl Tally {
    /// Adds what a shard shows, which takes a look at each of its locks.
    pub fn add(&mut self, shard: &Shard) {
        self.sizes.iter_mut().zip(shard.sizes()).for_each(|(sum, more)| *sum += more);
        self.counts.add(shard.counts());
        for ((namespace, algorithm), messages) in shard.messages() {
            let sum = self.messages.entry((namespace, algorithm.to_string())).or_default();
            for (kind, count) in messages {
                *sum.entry(kind).or_default() += count;
            }
        }
    }
}
