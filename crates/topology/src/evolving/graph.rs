//! The graph: nodes with names, contacts with times.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use catraca_core::NodeId;

use super::generate::MAX_STEPS;

/// The most nodes that a graph may have.
pub const MAX_GRAPH_NODES: u32 = 1_000_000;
/// The most contacts that a graph may have: half a gigabyte of them.
pub const MAX_CONTACTS: usize = 20_000_000;
/// The last possible instant, of a graph or of a question about one.
pub const MAX_INSTANT: u64 = 1 << 60;
/// A journey may take a lap for each node; all these laps together are not longer.
const MAX_LAPS: u64 = 1 << 62;

/// Two nodes are neighbours at every instant from the first to the last, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Contact {
    /// The first instant.
    pub from: u64,
    /// The last instant.
    pub to: u64,
    /// The neighbour with the smaller id.
    pub a: NodeId,
    /// The other neighbour.
    pub b: NodeId,
}

impl Contact {
    /// Two nodes that meet at one instant.
    pub fn at(instant: u64, a: u32, b: u32) -> Self {
        Contact::between(instant, instant, a, b)
    }

    /// Two nodes that are neighbours from one instant to another.
    pub fn between(from: u64, to: u64, a: u32, b: u32) -> Self {
        Contact { from, to, a: NodeId(a.min(b)), b: NodeId(a.max(b)) }
    }

    /// Whether they are neighbours at `instant`.
    pub fn is_at(&self, instant: u64) -> bool {
        self.from <= instant && instant <= self.to
    }

    /// The neighbour of `node`, which is one of the two.
    pub fn other(&self, node: NodeId) -> NodeId {
        if node == self.a { self.b } else { self.a }
    }
}

/// Why contacts make no graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// No nodes at all.
    #[error("has no nodes; a graph needs at least one contact, or a line that names its nodes")]
    Empty,
    /// A contact of a node with itself.
    #[error("has a contact of node {0} with itself at instant {1}; leave it out")]
    Itself(String, u64),
    /// A contact of a node that is not there.
    #[error("has a contact of node {node}, but it has {nodes} nodes")]
    UnknownNode {
        /// The node.
        node: u32,
        /// How many there are.
        nodes: u32,
    },
    /// A contact that ends before it begins.
    #[error("has a contact from instant {0} to {1}; put the smaller one first")]
    Backwards(u64, u64),
    /// A contact after the last instant.
    #[error("ends with instant {last}, but has a contact at {at}; let it end later")]
    Beyond {
        /// The last instant.
        last: u64,
        /// The contact.
        at: u64,
    },
    /// The cycle begins after the end.
    #[error(
        "ends with instant {last}, but is to repeat from {cycle}; repeat from an instant of it"
    )]
    Cycle {
        /// The last instant.
        last: u64,
        /// The first instant of the cycle.
        cycle: u64,
    },
    /// Too large to be held.
    #[error("has more than {MAX_GRAPH_NODES} nodes; take a part of it")]
    TooManyNodes,
    /// Too large to be held.
    #[error("has more than {MAX_CONTACTS} contacts; take a part of it")]
    TooManyContacts,
    /// Too large to be drawn at random.
    #[error("takes more than {MAX_STEPS} steps to draw")]
    TooManySteps,
    /// The last instant, or as many laps as there are nodes, do not fit into a number.
    #[error("lasts too long; count time in larger instants")]
    TooLong,
}

/// A graph that changes from instant to instant, from instant 0 on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvolvingGraph {
    /// Shared by everything that is cut out of this graph.
    names: Arc<Vec<String>>,
    /// In the order of their first instants. No contact crosses the beginning of the cycle, and no
    /// two of one pair overlap.
    contacts: Vec<Contact>,
    /// The first instant that is not modelled.
    end: u64,
    /// The first instant of the cycle.
    cycle: Option<u64>,
}

impl EvolvingGraph {
    /// Builds a graph that models the instants 0 to `last` and, if there is a `cycle`, repeats the
    /// instants from there to `last` for ever. Contacts may come in any order and overlap.
    pub fn new(
        names: Vec<String>,
        mut contacts: Vec<Contact>,
        last: u64,
        cycle: Option<u64>,
    ) -> Result<Self, GraphError> {
        let nodes = names.len();
        match nodes {
            0 => return Err(GraphError::Empty),
            _ if nodes > MAX_GRAPH_NODES as usize => return Err(GraphError::TooManyNodes),
            _ if contacts.len() > MAX_CONTACTS => return Err(GraphError::TooManyContacts),
            _ => {}
        }
        if last > MAX_INSTANT {
            return Err(GraphError::TooLong);
        }
        let end = last + 1;
        check_cycle(nodes as u64, last, cycle)?;
        for contact in &contacts {
            check(contact, &names, last)?;
        }
        join(&mut contacts, 0);
        if let Some(cycle) = cycle {
            split_at(&mut contacts, cycle);
        }
        contacts.sort_unstable();
        Ok(EvolvingGraph { names: Arc::new(names), contacts, end, cycle })
    }

    /// The same with nodes that are called 0, 1, 2 and so on.
    pub fn numbered(
        nodes: u32,
        contacts: Vec<Contact>,
        last: u64,
        cycle: Option<u64>,
    ) -> Result<Self, GraphError> {
        EvolvingGraph::new((0..nodes).map(|node| node.to_string()).collect(), contacts, last, cycle)
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> u32 {
        self.names.len() as u32
    }

    /// What each node is called.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// What `node` is called.
    pub fn name(&self, node: NodeId) -> &str {
        &self.names[node.index()]
    }

    /// The node that is called `name`.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        let index = self.names.iter().position(|known| known == name)?;
        Some(NodeId(index as u32))
    }

    /// Every contact, in the order of their first instants; those of the cycle once.
    pub fn contacts(&self) -> &[Contact] {
        &self.contacts
    }

    /// The last instant that is modelled; of a graph that goes on for ever, the last of its first
    /// lap.
    pub fn last(&self) -> u64 {
        self.end - 1
    }

    /// The first instant of the cycle, if the graph goes on for ever.
    pub fn cycle(&self) -> Option<u64> {
        self.cycle
    }

    /// How many instants a lap of the cycle takes.
    pub fn period(&self) -> Option<u64> {
        self.cycle.map(|cycle| self.end - cycle)
    }

    /// The contacts before the cycle; all of them where there is none.
    pub fn prefix(&self) -> &[Contact] {
        &self.contacts[..self.prefix_len()]
    }

    /// The contacts of the cycle.
    pub fn lap(&self) -> &[Contact] {
        &self.contacts[self.prefix_len()..]
    }

    fn prefix_len(&self) -> usize {
        match self.cycle {
            Some(cycle) => self.contacts.partition_point(|contact| contact.from < cycle),
            None => self.contacts.len(),
        }
    }

    /// The instant of the first lap that looks like `instant`.
    pub fn local(&self, instant: u64) -> u64 {
        match self.cycle {
            Some(cycle) if instant >= cycle => cycle + (instant - cycle) % (self.end - cycle),
            _ => instant,
        }
    }

    /// The first instant from `instant` on at which the neighbours of `contact` meet.
    pub fn next(&self, contact: &Contact, instant: u64) -> Option<u64> {
        if instant <= contact.to {
            return Some(instant.max(contact.from));
        }
        let cycle = self.cycle.filter(|&cycle| contact.from >= cycle)?;
        let local = self.local(instant);
        let lap = instant - local;
        Some(if local <= contact.to {
            lap + local.max(contact.from)
        } else {
            lap + (self.end - cycle) + contact.from
        })
    }

    /// The same contacts, repeated for ever from the instant `cycle` on.
    pub fn repeated(&self, cycle: u64) -> Result<Self, GraphError> {
        check_cycle(self.nodes().into(), self.last(), Some(cycle))?;
        let mut contacts = self.contacts.clone();
        split_at(&mut contacts, cycle);
        Ok(self.with(contacts, self.end, Some(cycle)))
    }

    /// What remains from `instant` on, at its own instants.
    pub fn since(&self, instant: u64) -> Self {
        let cut = |contact: &Contact, later: u64| {
            let (from, to) = (contact.from + later, contact.to + later);
            (to >= instant).then(|| Contact { from: from.max(instant), to, ..*contact })
        };
        let Some(cycle) = self.cycle.filter(|&cycle| instant > cycle) else {
            let contacts = self.contacts.iter().filter_map(|contact| cut(contact, 0));
            return self.with(contacts.collect(), self.end.max(instant + 1), self.cycle);
        };
        // The rest of a lap comes first; the next lap is the cycle.
        let (period, lap) = (self.end - cycle, instant - self.local(instant));
        let rest = self.lap().iter().filter_map(|contact| cut(contact, lap));
        let next = self.lap().iter().filter_map(|contact| cut(contact, lap + period));
        self.with(rest.chain(next).collect(), self.end + lap + period, Some(self.end + lap))
    }

    /// The instants up to `last`, laps written out, as a finite graph.
    pub fn until(&self, last: u64) -> Result<Self, GraphError> {
        if last > MAX_INSTANT {
            return Err(GraphError::TooLong);
        }
        let mut contacts = Vec::new();
        let (lap, period) = (self.lap(), self.period().unwrap_or(1));
        let laps = if lap.is_empty() {
            0
        } else {
            last.saturating_sub(self.cycle.unwrap_or(0)) / period + 1
        };
        if self.prefix().len() as u64 + laps.saturating_mul(lap.len() as u64) > MAX_CONTACTS as u64
        {
            return Err(GraphError::TooManyContacts);
        }
        let mut add = |contact: &Contact, later: u64| {
            let (from, to) = (contact.from + later, contact.to + later);
            if from <= last {
                contacts.push(Contact { from, to: to.min(last), ..*contact });
            }
        };
        self.prefix().iter().for_each(|contact| add(contact, 0));
        for number in 0..laps {
            lap.iter().for_each(|contact| add(contact, number * period));
        }
        Ok(self.with(contacts, last + 1, None))
    }

    /// The cycle alone, as a node sees it from its first instant on.
    pub(crate) fn cycle_only(&self) -> Option<Self> {
        let cycle = self.cycle?;
        Some(self.with(self.lap().to_vec(), self.end, Some(cycle)))
    }

    /// Other contacts, which keep all that is promised of contacts, of the same nodes.
    pub(super) fn with(&self, mut contacts: Vec<Contact>, end: u64, cycle: Option<u64>) -> Self {
        contacts.sort_unstable();
        EvolvingGraph { names: Arc::clone(&self.names), contacts, end, cycle }
    }
}

fn check_cycle(nodes: u64, last: u64, cycle: Option<u64>) -> Result<(), GraphError> {
    let Some(cycle) = cycle else { return Ok(()) };
    if cycle > last {
        return Err(GraphError::Cycle { last, cycle });
    }
    let laps = (last + 1 - cycle).checked_mul(nodes);
    laps.filter(|&laps| laps <= MAX_LAPS).map(|_| ()).ok_or(GraphError::TooLong)
}

fn check(contact: &Contact, names: &[String], last: u64) -> Result<(), GraphError> {
    let nodes = names.len() as u32;
    if let Some(node) = [contact.a.0, contact.b.0].into_iter().find(|&node| node >= nodes) {
        return Err(GraphError::UnknownNode { node, nodes });
    }
    if contact.a == contact.b {
        return Err(GraphError::Itself(names[contact.a.index()].clone(), contact.from));
    }
    if contact.to < contact.from {
        return Err(GraphError::Backwards(contact.from, contact.to));
    }
    if contact.to > last {
        return Err(GraphError::Beyond { last, at: contact.to });
    }
    Ok(())
}

/// Makes one contact of those of one pair that have an instant in common, or are `apart` by so many.
pub(super) fn join(contacts: &mut Vec<Contact>, apart: u64) {
    contacts.sort_unstable_by_key(|contact| (contact.a, contact.b, contact.from, contact.to));
    contacts.dedup_by(|next, kept| {
        let overlaps =
            (next.a, next.b) == (kept.a, kept.b) && next.from <= kept.to.saturating_add(apart);
        if overlaps {
            kept.to = kept.to.max(next.to);
        }
        overlaps
    });
}

/// Cuts every contact that crosses the beginning of the cycle in two.
fn split_at(contacts: &mut Vec<Contact>, cycle: u64) {
    for index in 0..contacts.len() {
        let contact = contacts[index];
        if contact.from < cycle && cycle <= contact.to {
            contacts[index].to = cycle - 1;
            contacts.push(Contact { from: cycle, ..contact });
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn contacts_are_sorted_and_those_of_a_pair_that_overlap_become_one() {
        let contacts =
            vec![Contact::at(5, 1, 0), Contact::between(2, 4, 0, 1), Contact::between(3, 5, 1, 0)];
        let graph = EvolvingGraph::numbered(2, contacts, 5, None).unwrap();
        assert_eq!(graph.contacts(), [Contact::between(2, 5, 0, 1)]);
    }

    #[test]
    fn a_contact_that_crosses_the_beginning_of_the_cycle_is_cut() {
        let graph =
            EvolvingGraph::numbered(2, vec![Contact::between(1, 4, 0, 1)], 5, Some(3)).unwrap();
        assert_eq!(graph.prefix(), [Contact::between(1, 2, 0, 1)]);
        assert_eq!(graph.lap(), [Contact::between(3, 4, 0, 1)]);
        assert_eq!([2, 3, 5, 6, 8, 9].map(|instant| graph.local(instant)), [2, 3, 5, 3, 5, 3]);
        let next = |instant| graph.next(&graph.lap()[0], instant);
        assert_eq!([0, 4, 5, 6, 8].map(next), [3, 4, 6, 6, 9].map(Some));
        assert_eq!(graph.next(&graph.prefix()[0], 3), None);
    }

    #[test]
    fn what_remains_of_a_cycle_is_the_rest_of_the_lap_and_then_the_cycle() {
        let contacts = vec![Contact::at(1, 0, 1), Contact::at(3, 1, 2)];
        let graph = EvolvingGraph::numbered(3, contacts, 3, Some(1)).unwrap();
        let rest = graph.since(5);
        assert_eq!(rest.prefix(), [Contact::at(6, 1, 2)]);
        assert_eq!(rest.lap(), [Contact::at(7, 0, 1), Contact::at(9, 1, 2)]);
        assert_eq!((rest.cycle(), rest.last()), (Some(7), 9));
        assert_eq!(graph.since(0), graph);
    }

    #[test]
    fn laps_can_be_written_out() {
        let graph =
            EvolvingGraph::numbered(2, vec![Contact::between(1, 2, 0, 1)], 2, Some(1)).unwrap();
        let finite = graph.until(5).unwrap();
        let laps = [(1, 2), (3, 4), (5, 5)].map(|(from, to)| Contact::between(from, to, 0, 1));
        assert_eq!((finite.contacts(), finite.last(), finite.cycle()), (&laps[..], 5, None));
    }

    #[test]
    fn what_is_no_graph_is_refused() {
        let build = |contact, last, cycle| EvolvingGraph::numbered(2, vec![contact], last, cycle);
        assert_eq!(build(Contact::at(1, 1, 1), 5, None), Err(GraphError::Itself("1".into(), 1)));
        let unknown = GraphError::UnknownNode { node: 2, nodes: 2 };
        assert_eq!(build(Contact::at(1, 1, 2), 5, None), Err(unknown));
        assert_eq!(build(Contact::between(3, 2, 0, 1), 5, None), Err(GraphError::Backwards(3, 2)));
        let beyond = GraphError::Beyond { last: 5, at: 6 };
        assert_eq!(build(Contact::at(6, 0, 1), 5, None), Err(beyond));
        let cycle = GraphError::Cycle { last: 5, cycle: 6 };
        assert_eq!(build(Contact::at(1, 0, 1), 5, Some(6)), Err(cycle));
        assert_eq!(EvolvingGraph::numbered(0, vec![], 0, None), Err(GraphError::Empty));
        let empty = |nodes, last, cycle| EvolvingGraph::numbered(nodes, vec![], last, cycle);
        assert_eq!(empty(1, u64::MAX, None), Err(GraphError::TooLong));
        assert!(empty(5, MAX_INSTANT, None).is_ok() && empty(5, MAX_INSTANT + 1, None).is_err());
        assert_eq!(empty(5, MAX_INSTANT, Some(0)), Err(GraphError::TooLong), "a lap for each node");
    }
}
