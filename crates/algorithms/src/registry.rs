//! Every algorithm by name, with what the catalogue says of it.

use alloc::vec::Vec;
use core::fmt;

use catraca_core::Algorithm;

use crate::mutants::{Listed, Mutation, Setting};
use crate::{
    Bertier, BouabdallahLaforest, CarvalhoRoucairol, Coordinator, Lamport, Maekawa, NaimiTrehel,
    Raymond, RaymondK, RicartAgrawala, RobustK, Singhal, Spec, SpecError, SuzukiKasami,
};

/// How an algorithm decides who enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// One node decides.
    Central,
    /// Every other node has to agree.
    Permission,
    /// The members of one's quorum have to agree.
    Quorum,
    /// The node with the token enters.
    Token,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Family::Central => "central",
            Family::Permission => "permission",
            Family::Quorum => "quorum",
            Family::Token => "token",
        })
    }
}

/// What an algorithm needs of its channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// Messages from one node to another arrive in the order in which they were sent.
    Fifo,
    /// Messages may overtake each other.
    Any,
}

impl fmt::Display for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Channels::Fifo => "fifo",
            Channels::Any => "any",
        })
    }
}

/// The two loads that the literature compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Load {
    /// At most one request is outstanding at a time; requesters are drawn uniformly.
    Low,
    /// Every node asks again as soon as it leaves.
    High,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Load::Low => "low",
            Load::High => "high",
        })
    }
}

/// A value that theory gives exactly, or only between two bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The least it can be.
    pub min: f64,
    /// The most it can be.
    pub max: f64,
}

impl Range {
    /// Exactly `value`.
    pub const fn exactly(value: f64) -> Self {
        Range { min: value, max: value }
    }

    /// From `min` to `max`, both included.
    pub const fn between(min: f64, max: f64) -> Self {
        Range { min, max }
    }
}

/// What theory expects of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Theory {
    /// Messages per entry.
    pub messages: Range,
    /// Synchronisation delay in units of T, where a node waits.
    pub delay: Range,
}

/// What the summary table of S2 (section 8.5) claims for an algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Tabled {
    /// Messages per entry among so many nodes.
    pub messages: fn(nodes: f64, load: Load) -> f64,
    /// Synchronisation delay in units of T.
    pub delay: fn(nodes: f64) -> Range,
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
    /// What it needs of the channels.
    pub channels: Channels,
    /// Messages per entry, as a formula.
    pub messages: &'static str,
    /// Synchronisation delay, as a formula.
    pub delay: &'static str,
    /// What its fences are made of.
    pub fence: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// The most nodes that fit into memory: algorithms with a vector per node need N x N words.
    pub max_nodes: u32,
    /// The names of the parameters that it takes, such as `tree`.
    pub parameters: &'static [&'static str],
    /// What S2's summary table says, where it has a line for this algorithm.
    pub claims: Option<Tabled>,
    /// The source file; its header is the description.
    pub file: &'static str,
}

impl Entry {
    /// The five paragraphs of the header: idea, source, assumptions, cost, departures.
    pub fn header(&self) -> impl Iterator<Item = &'static str> {
        header(self.file)
    }
}

/// The comment that a source file begins with, line by line.
pub(crate) fn header(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
}

/// An algorithm that can be found by name.
pub trait Registered: Algorithm {
    /// What the catalogue says.
    const ENTRY: Entry;

    /// Builds the configuration that `spec` describes.
    fn config(spec: &Spec) -> Result<Self::Config, SpecError>;

    /// What theory expects under `load`.
    fn theory(config: &Self::Config, load: Load) -> Theory;

    /// Its deliberately broken variants.
    fn mutations() -> &'static [&'static dyn Mutation<Self>];
}

/// Something that can be done with any algorithm, once its type is known.
pub trait Visitor {
    /// What doing it gives.
    type Output;

    /// Does it.
    fn visit<A: Algorithm>(self, config: A::Config) -> Self::Output;
}

/// Something that can be done with any registered algorithm that is not a mutant.
pub(crate) trait RegisteredVisitor {
    type Output;
    fn visit<A: Registered>(self) -> Self::Output;
}

/// Lists the algorithms once; everything that goes through all of them is made from this list.
macro_rules! algorithms {
    ($($algorithm:ty),+ $(,)?) => {
        /// The catalogue, in the order of the papers.
        pub const ENTRIES: &[Entry] = &[$(<$algorithm as Registered>::ENTRY),+];

        /// Calls `visitor` with the type of the algorithm called `name`, if there is one.
        pub(crate) fn visit<V: RegisteredVisitor>(name: &str, visitor: V) -> Option<V::Output> {
            $(if name == <$algorithm as Registered>::ENTRY.name {
                return Some(visitor.visit::<$algorithm>());
            })+
            None
        }
    };
}

algorithms![
    Coordinator,
    Lamport,
    RicartAgrawala,
    CarvalhoRoucairol,
    Maekawa,
    SuzukiKasami,
    Singhal,
    Raymond,
    NaimiTrehel,
    Bertier,
    BouabdallahLaforest,
    RaymondK,
    RobustK
];

/// The catalogue's line for `name`.
pub fn entry(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name)
}

/// The mutants of the algorithm called `name`.
pub fn mutants(name: &str) -> Vec<Listed> {
    struct List;
    impl RegisteredVisitor for List {
        type Output = Vec<Listed>;
        fn visit<A: Registered>(self) -> Vec<Listed> {
            A::mutations().iter().map(|mutation| mutation.listed()).collect()
        }
    }
    visit(name, List).unwrap_or_default()
}

/// What it takes to catch `mutant` of the algorithm called `name`, besides nodes and requests.
pub fn setting(name: &str, mutant: &str) -> Setting {
    struct Find<'a>(&'a str);
    impl RegisteredVisitor for Find<'_> {
        type Output = Setting;
        fn visit<A: Registered>(self) -> Setting {
            let found = A::mutations().iter().find(|mutation| mutation.listed().name == self.0);
            found.map_or(Setting::default(), |mutation| mutation.setting())
        }
    }
    visit(name, Find(mutant)).unwrap_or_default()
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
        }
    }

    #[test]
    fn every_algorithm_has_at_least_two_mutants_with_different_names() {
        for entry in ENTRIES {
            let mut names: Vec<_> =
                mutants(entry.name).into_iter().map(|mutant| mutant.name).collect();
            names.sort_unstable();
            names.dedup();
            assert!(names.len() >= 2, "{}", entry.name);
        }
    }
}
