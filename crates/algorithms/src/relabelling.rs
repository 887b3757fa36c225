//! Algorithms for evolving graphs, as relabelling systems.
//!
//! Nodes that meet by chance do not send each other messages; they compare what they have gathered.
//! A node's label is its own state (idle, requesting, using) and what it has gathered. The nodes of a
//! connected component join what they have gathered, and each applies rules to its label. Rules only
//! ever add to what is gathered, so the order in which nodes meet does not matter: gathering is a
//! join, commutative, associative and idempotent.
//!
//! One instant of S1's strong progression: everybody of a component joins, everybody applies its
//! rules, everybody joins again. Figures 2 and 3 of S1 show nodes that enter with what the second
//! join brings, so drivers let the rules look once more; there is nothing to spread after that.
//!
//! The two algorithms have a trait of their own, and a list of their own in the catalogue.

mod answers;
mod by_node;
mod helary;
pub mod mutants;
mod ricart_agrawala;
#[cfg(test)]
mod testing;

use alloc::vec::Vec;
use core::fmt::Debug;
use core::hash::Hash;

use catraca_core::{Fence, NodeId, Phase};

use crate::registry::{Family, header};
use mutants::{Listed, Mutation};

pub use helary::{EvolvingHelary, Knowledge as HelaryKnowledge};
pub use ricart_agrawala::{EvolvingRicartAgrawala, Knowledge as RicartAgrawalaKnowledge};

/// The group: how many nodes, all known to all, and where the token is at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// How many nodes there are.
    pub nodes: u32,
    /// Who has the token at first, where there is one.
    pub token: NodeId,
}

/// A request that a node knows of and takes for unserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Who asks.
    pub requester: NodeId,
    /// How many answers to it are known; with a token, one if the token is on its way to it.
    pub answers: u32,
}

/// The part of a label that spreads. It only ever grows, by [`join`](Gathered::join).
pub trait Gathered: Clone + Debug + Default + Eq + Hash {
    /// Adds everything that another node has gathered. A semilattice join.
    fn join(&mut self, other: &Self);

    /// How many bytes it takes to send it: 4 for a node, 8 for a time.
    fn bytes(&self) -> u64;

    /// The requests that are unserved as far as is known here.
    fn pending(&self) -> Vec<Pending>;
}

/// What a node does when it looks at its rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// It enters, with this fence.
    pub entered: Option<Fence>,
    /// It has added something that may be new to others.
    pub has_news: bool,
    /// How many requests it had to read. Drivers count this work.
    pub read: u64,
}

/// An algorithm as a relabelling system: the state of one node, and its monadic rules.
///
/// Every rule reads what the node has gathered and adds its part to `news`, which the driver joins
/// to what the node has gathered.
pub trait Relabelling: Clone + Debug + Eq + Hash + 'static {
    /// What spreads.
    type Gathered: Gathered;

    /// Idle, requesting or using: the paper's I, R and U.
    fn phase(&self) -> Phase;

    /// Whether the node has the token: the paper's T.
    fn has_token(&self) -> bool;

    /// The first rule of the entry protocol. Only while it is idle.
    fn on_request(&mut self, known: &Self::Gathered, news: &mut Self::Gathered);

    /// The rule of the exit protocol. Only while it is using.
    fn on_release(&mut self, known: &Self::Gathered, news: &mut Self::Gathered);

    /// Applies every other rule that can be applied.
    fn on_rules(
        &mut self,
        group: &Group,
        known: &Self::Gathered,
        news: &mut Self::Gathered,
    ) -> Applied;
}

/// One line of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name on the command line.
    pub name: &'static str,
    /// The authors and the year.
    pub title: &'static str,
    /// How it decides.
    pub family: Family,
    /// The condition that is necessary, and the one that is sufficient.
    pub needs: &'static str,
    /// What a label holds at most.
    pub label: &'static str,
    /// What its fences are made of.
    pub fence: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// The bytes of a label from which nothing is collected, after so many requests by so many nodes.
    pub uncollected: fn(requests: u64, nodes: u64) -> u64,
    /// The source file; its header is the description.
    pub file: &'static str,
}

impl Entry {
    /// The five paragraphs of the header: idea, source, assumptions, cost, departures.
    pub fn header(&self) -> impl Iterator<Item = &'static str> {
        header(self.file)
    }
}

/// A relabelling system that can be found by name.
pub trait Registered: Relabelling {
    /// What the catalogue says.
    const ENTRY: Entry;

    /// Creates the label of a node: idle, nothing gathered.
    fn new(me: NodeId, group: &Group) -> Self;

    /// Its deliberately broken variants.
    fn mutations() -> &'static [&'static dyn Mutation<Self>];
}

/// Something that can be done with any relabelling system, once its type is known.
pub trait Visitor {
    /// What doing it gives.
    type Output;

    /// Does it with nodes that `create` makes.
    fn visit<R: Relabelling>(self, create: impl Fn(NodeId, &Group) -> R) -> Self::Output;
}

/// The catalogue of relabelling systems.
pub const ENTRIES: &[Entry] = &[EvolvingRicartAgrawala::ENTRY, EvolvingHelary::ENTRY];

/// The catalogue's line for `name`.
pub fn entry(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name)
}

/// The mutants of the system called `name`.
pub fn mutants_of(name: &str) -> Vec<Listed> {
    fn list<R: Registered>() -> Vec<Listed> {
        R::mutations().iter().map(|mutation| mutation.listed()).collect()
    }
    match name {
        _ if name == EvolvingRicartAgrawala::ENTRY.name => list::<EvolvingRicartAgrawala>(),
        _ if name == EvolvingHelary::ENTRY.name => list::<EvolvingHelary>(),
        _ => Vec::new(),
    }
}

/// Calls `visitor` with the system called `name`, broken as `mutant` says. None if there is no such
/// system or mutant.
pub fn visit<V: Visitor>(name: &str, mutant: Option<&str>, visitor: V) -> Option<V::Output> {
    fn with<R: Registered, V: Visitor>(mutant: Option<&str>, visitor: V) -> Option<V::Output> {
        let Some(mutant) = mutant else { return Some(visitor.visit(R::new)) };
        let mut all = R::mutations().iter();
        let mutation = *all.find(|mutation| mutation.listed().name == mutant)?;
        Some(
            visitor
                .visit(move |me, group: &Group| mutants::Mutant::new(R::new(me, group), mutation)),
        )
    }
    match name {
        _ if name == EvolvingRicartAgrawala::ENTRY.name => {
            with::<EvolvingRicartAgrawala, V>(mutant, visitor)
        }
        _ if name == EvolvingHelary::ENTRY.name => with::<EvolvingHelary, V>(mutant, visitor),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_header_has_its_five_parts_in_order() {
        for entry in ENTRIES {
            let parts = ["**Idea.**", "**Source.**", "**Assumes.**", "**Cost.**", "**Departs.**"];
            let mut expected = parts.iter().peekable();
            for line in entry.header() {
                if expected.peek().is_some_and(|part| line.starts_with(**part)) {
                    expected.next();
                }
            }
            assert_eq!(expected.next(), None, "the header of {}", entry.name);
            assert!(mutants_of(entry.name).len() >= 2, "{}", entry.name);
        }
    }
}
