//! What goes wrong, and when.
//!
//! A fault is a verb with its objects and its time: `crash 3 at 5`, `partition 0,1|2,3 from 5 to
//! 10` (messages between the groups are lost), `hold 0->1 from 4 to 6` (messages are kept back and
//! leave when the hold is released), `pause 1 from 4 to 6` (a member takes no steps; whatever comes
//! meanwhile waits).

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use catraca_core::NodeId;

use crate::time::Time;

/// One thing that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A node stops for ever.
    Crash {
        /// Which node.
        node: NodeId,
        /// When.
        at: Time,
    },
    /// Messages between groups are lost if they are sent meanwhile.
    Partition {
        /// Who can still talk to each other. Nodes in no group form one of their own.
        groups: Vec<Vec<NodeId>>,
        /// From when on.
        from: Time,
        /// Until when.
        to: Time,
    },
    /// Messages from one node to another leave only when the hold ends.
    Hold {
        /// The sender.
        sender: NodeId,
        /// The receiver.
        receiver: NodeId,
        /// From when on.
        from: Time,
        /// Until when.
        to: Time,
    },
    /// A member takes no steps.
    Pause {
        /// Which one.
        node: NodeId,
        /// From when on.
        from: Time,
        /// Until when.
        to: Time,
    },
}

/// Why faults cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// Not one of the forms.
    #[error(
        "'{0}' is no fault: say 'crash 3 at 5', 'partition 0,1|2,3 from 5 to 10', 'hold 0->1 from 4 to 6' or 'pause 1 from 4 to 6'"
    )]
    Form(String),
    /// It ends before it begins.
    #[error("'{0}' ends before it begins")]
    Backwards(String),
    /// It names a node that does not exist.
    #[error("'{fault}' names node {node}, but the nodes are 0 to {last}")]
    UnknownNode {
        /// The fault.
        fault: String,
        /// The node.
        node: u32,
        /// The last node.
        last: u32,
    },
    /// A node is in two groups of one partition.
    #[error("'{fault}' has node {node} in two groups")]
    TwoGroups {
        /// The fault.
        fault: String,
        /// The node.
        node: u32,
    },
    /// A node crashes twice.
    #[error("node {0} crashes twice; a crashed node does not come back")]
    CrashTwice(u32),
    /// Nobody is left.
    #[error("all {0} nodes crash; leave at least one alive")]
    NobodyLeft(u32),
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let form = || FaultError::Form(text.to_string());
        let time = |word: &str| word.parse::<Time>().map_err(|_| form());
        let node = |word: &str| word.trim().parse().map(NodeId).map_err(|_| form());
        let words: Vec<&str> = text.split_whitespace().collect();
        let fault = match words[..] {
            ["crash", who, "at", at] => Fault::Crash { node: node(who)?, at: time(at)? },
            ["partition", groups, "from", from, "to", to] => {
                let group = |group: &str| group.split(',').map(node).collect::<Result<_, _>>();
                let groups = groups.split('|').map(group).collect::<Result<_, _>>()?;
                Fault::Partition { groups, from: time(from)?, to: time(to)? }
            }
            ["hold", link, "from", from, "to", to] => {
                let (sender, receiver) = link.split_once("->").ok_or_else(form)?;
                let (sender, receiver) = (node(sender)?, node(receiver)?);
                Fault::Hold { sender, receiver, from: time(from)?, to: time(to)? }
            }
            ["pause", who, "from", from, "to", to] => {
                Fault::Pause { node: node(who)?, from: time(from)?, to: time(to)? }
            }
            _ => return Err(form()),
        };
        match fault {
            Fault::Partition { from, to, .. }
            | Fault::Hold { from, to, .. }
            | Fault::Pause { from, to, .. }
                if to < from =>
            {
                Err(FaultError::Backwards(text.to_string()))
            }
            fault => Ok(fault),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Crash { node, at } => write!(f, "crash {node} at {at}"),
            Fault::Partition { groups, from, to } => {
                let group = |group: &Vec<NodeId>| {
                    group.iter().map(NodeId::to_string).collect::<Vec<_>>().join(",")
                };
                let groups: Vec<String> = groups.iter().map(group).collect();
                write!(f, "partition {} from {from} to {to}", groups.join("|"))
            }
            Fault::Hold { sender, receiver, from, to } => {
                write!(f, "hold {sender}->{receiver} from {from} to {to}")
            }
            Fault::Pause { node, from, to } => write!(f, "pause {node} from {from} to {to}"),
        }
    }
}

impl Fault {
    fn nodes(&self) -> Vec<NodeId> {
        match self {
            Fault::Crash { node, .. } | Fault::Pause { node, .. } => vec![*node],
            Fault::Partition { groups, .. } => groups.concat(),
            Fault::Hold { sender, receiver, .. } => vec![*sender, *receiver],
        }
    }
}

/// Everything that goes wrong in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    faults: Vec<Fault>,
}

impl Faults {
    /// Checks that `faults` can happen in a group of `nodes`.
    pub fn new(faults: Vec<Fault>, nodes: u32) -> Result<Self, FaultError> {
        let mut crashed = BTreeSet::new();
        for fault in &faults {
            let named = fault.nodes();
            if let Some(node) = named.iter().find(|node| node.0 >= nodes) {
                let (fault, node, last) = (fault.to_string(), node.0, nodes - 1);
                return Err(FaultError::UnknownNode { fault, node, last });
            }
            match fault {
                Fault::Crash { node, .. } if !crashed.insert(*node) => {
                    return Err(FaultError::CrashTwice(node.0));
                }
                Fault::Partition { .. } => {
                    let mut seen = BTreeSet::new();
                    if let Some(node) = named.iter().find(|node| !seen.insert(**node)) {
                        let (fault, node) = (fault.to_string(), node.0);
                        return Err(FaultError::TwoGroups { fault, node });
                    }
                }
                _ => {}
            }
        }
        if crashed.len() == nodes as usize {
            return Err(FaultError::NobodyLeft(nodes));
        }
        Ok(Faults { faults })
    }

    /// Who crashes, and when.
    pub(crate) fn crashes(&self) -> impl Iterator<Item = (Time, NodeId)> + '_ {
        self.faults.iter().filter_map(|fault| match fault {
            Fault::Crash { node, at } => Some((*at, *node)),
            _ => None,
        })
    }

    /// Who pauses, from when to when.
    pub(crate) fn pauses(&self) -> impl Iterator<Item = (NodeId, Time, Time)> + '_ {
        self.faults.iter().filter_map(|fault| match fault {
            Fault::Pause { node, from, to } => Some((*node, *from, *to)),
            _ => None,
        })
    }

    /// When the network and all members work again as they should; crashes have no end.
    pub(crate) fn end(&self) -> Time {
        let end = |fault: &Fault| match fault {
            Fault::Crash { at, .. } => *at,
            Fault::Partition { to, .. } | Fault::Hold { to, .. } | Fault::Pause { to, .. } => *to,
        };
        self.faults.iter().map(end).max().unwrap_or(Time::ZERO)
    }

    /// When partitions begin and end.
    pub(crate) fn cuts(&self) -> impl Iterator<Item = Time> + '_ {
        let times = |fault: &Fault| match fault {
            Fault::Partition { from, to, .. } => vec![*from, *to],
            _ => Vec::new(),
        };
        self.faults.iter().flat_map(times)
    }

    /// When a message that is sent now leaves, on a link that sends again what a partition has
    /// lost.
    pub(crate) fn kept_departure(&self, now: Time, sender: NodeId, receiver: NodeId) -> Time {
        let mut departure = now;
        while let Some(released) = self
            .held_until(departure, sender, receiver)
            .max(self.cut_until(departure, sender, receiver))
        {
            departure = released;
        }
        departure
    }

    /// When a message that is sent now leaves; `None` if it is lost.
    #[inline]
    pub(crate) fn departure(&self, now: Time, sender: NodeId, receiver: NodeId) -> Option<Time> {
        if self.is_cut(now, sender, receiver) {
            return None;
        }
        let mut departure = now;
        // One hold may end while another goes on.
        while let Some(released) = self.held_until(departure, sender, receiver) {
            departure = released;
        }
        Some(departure)
    }

    /// Whether a partition is between the two.
    pub(crate) fn is_cut(&self, at: Time, sender: NodeId, receiver: NodeId) -> bool {
        self.cut_until(at, sender, receiver).is_some()
    }

    fn cut_until(&self, at: Time, sender: NodeId, receiver: NodeId) -> Option<Time> {
        let ends = self.faults.iter().filter_map(|fault| match fault {
            Fault::Partition { groups, from, to } if (*from..*to).contains(&at) => {
                let group_of = |node| groups.iter().position(|group| group.contains(&node));
                (group_of(sender) != group_of(receiver)).then_some(*to)
            }
            _ => None,
        });
        ends.max()
    }

    fn held_until(&self, at: Time, sender: NodeId, receiver: NodeId) -> Option<Time> {
        let ends = self.faults.iter().filter_map(|fault| match fault {
            Fault::Hold { sender: s, receiver: r, from, to }
                if (*s, *r) == (sender, receiver) && (*from..*to).contains(&at) =>
            {
                Some(*to)
            }
            _ => None,
        });
        ends.max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(texts: &[&str]) -> Result<Faults, FaultError> {
        let faults = texts.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
        Faults::new(faults, 4)
    }

    #[test]
    fn faults_read_back_as_they_are_written() {
        let holding = ["hold 0->1 from 4 to 6", "pause 1 from 4 to 6"];
        for text in ["crash 3 at 5", "partition 0,1|2 from 5 to 10.5"].into_iter().chain(holding) {
            assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn impossible_faults_are_refused() {
        let text = |texts| faults(texts).unwrap_err().to_string();
        assert!(text(&["explode 3 at 5"]).contains("say 'crash 3 at 5'"));
        assert!(text(&["hold 0->1 from 6 to 4"]).contains("ends before it begins"));
        assert!(text(&["crash 4 at 1"]).contains("nodes are 0 to 3"));
        assert!(text(&["crash 1 at 1", "crash 1 at 2"]).contains("crashes twice"));
        assert!(text(&["partition 0,1|1,2 from 0 to 1"]).contains("node 1 in two groups"));
        let all = ["crash 0 at 1", "crash 1 at 1", "crash 2 at 1", "crash 3 at 1"];
        assert!(text(&all).contains("all 4 nodes crash"));
    }

    #[test]
    fn a_partition_loses_what_crosses_it_and_a_hold_delays() {
        let faults = faults(&["partition 0,1|2 from 5 to 10", "hold 0->1 from 4 to 6"]).unwrap();
        let depart = |at, from, to| faults.departure(Time::units(at), NodeId(from), NodeId(to));
        assert_eq!(depart(5, 0, 2), None);
        assert_eq!(depart(5, 2, 3), None, "the unnamed node is in a group of its own");
        assert_eq!(depart(10, 0, 2), Some(Time::units(10)));
        assert_eq!(depart(5, 0, 1), Some(Time::units(6)));
        assert_eq!(depart(5, 1, 0), Some(Time::units(5)));
    }

    #[test]
    fn a_link_that_sends_again_waits_for_partitions_and_holds() {
        let texts =
            ["partition 0,1|2 from 5 to 10", "hold 0->2 from 9 to 12", "pause 2 from 0 to 9"];
        let faults = faults(&texts).unwrap();
        let depart = |at| faults.kept_departure(Time::units(at), NodeId(0), NodeId(2));
        assert_eq!(depart(4), Time::units(4));
        assert_eq!(depart(5), Time::units(12));
        assert_eq!(depart(12), Time::units(12));
        assert_eq!(faults.cuts().collect::<Vec<_>>(), [5, 10].map(Time::units));
    }

    #[test]
    fn a_message_waits_for_every_hold_that_overlaps_its_own() {
        let holds = ["hold 0->1 from 1 to 4", "hold 0->1 from 3 to 6", "hold 0->1 from 7 to 8"];
        let faults = faults(&holds).unwrap();
        let depart = |at| faults.departure(Time::units(at), NodeId(0), NodeId(1));
        assert_eq!(depart(2), Some(Time::units(6)));
        assert_eq!(depart(6), Some(Time::units(6)));
    }
}
