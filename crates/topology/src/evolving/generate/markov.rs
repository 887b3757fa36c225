//! Edge-Markovian graphs: every edge appears and disappears independently.

use alloc::vec::Vec;

use super::super::{Contact, EvolvingGraph, GraphError, MAX_CONTACTS};
use super::{Draw, MAX_STEPS, check_size, pairs};

/// The chances of every edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EdgeMarkovian {
    /// How many nodes there are.
    pub nodes: u32,
    /// How many instants there are.
    pub instants: u64,
    /// The chance that an absent edge is there at the next instant, above 0.
    pub birth: f64,
    /// The chance that a present edge disappears at the next instant, above 0.
    pub death: f64,
}

/// Draws how long each edge is absent and present in turn, from its long-run share on.
pub fn edge_markovian(
    chances: EdgeMarkovian,
    draw: &mut impl Draw,
) -> Result<EvolvingGraph, GraphError> {
    let EdgeMarkovian { nodes, instants, birth, death } = chances;
    check_size(nodes.into(), 0)?;
    if pairs(nodes) > MAX_STEPS {
        return Err(GraphError::TooManySteps);
    }
    // How many are to be expected. With twice as many there is no chance that they fit.
    let changes = birth * death / (birth + death);
    if pairs(nodes) as f64 * instants as f64 * changes > 2.0 * MAX_CONTACTS as f64 {
        return Err(GraphError::TooManyContacts);
    }
    let mut contacts = Vec::new();
    for a in 0..nodes {
        for b in a + 1..nodes {
            let mut now = 0;
            let mut is_there = draw.fraction() <= birth / (birth + death);
            while now < instants {
                let end = now.saturating_add(geometric(if is_there { death } else { birth }, draw));
                if is_there {
                    if contacts.len() == MAX_CONTACTS {
                        return Err(GraphError::TooManyContacts);
                    }
                    contacts.push(Contact::between(now, end.min(instants) - 1, a, b));
                }
                (now, is_there) = (end, !is_there);
            }
        }
    }
    EvolvingGraph::numbered(nodes, contacts, instants.max(1) - 1, None)
}

/// How many instants pass until something with this chance at each instant happens, at least one.
fn geometric(chance: f64, draw: &mut impl Draw) -> u64 {
    if chance >= 1.0 {
        return 1;
    }
    // A chance of nearly nothing gives infinity, which becomes the largest number.
    let instants = libm::ceil(libm::log(draw.fraction()) / libm::log1p(-chance));
    (instants as u64).max(1)
}
