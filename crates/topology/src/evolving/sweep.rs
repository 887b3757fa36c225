//! A sweep through the contacts in the order of time that spreads sets of nodes.
//!
//! Every node has a set, one bit for each source. At an instant the nodes of a connected component
//! get the union of their sets. Nodes with equal sets share one: where nothing is new a contact costs
//! the comparison of two pointers.

use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;

use catraca_core::NodeId;

use super::Contact;

const BITS: usize = u64::BITS as usize;

/// The sets, and what is needed to spread them.
pub(super) struct Sweep {
    sets: Vec<Rc<[u64]>>,
    /// By node, its neighbours and until when. Those whose time is over are dropped when they are seen.
    neighbours: Vec<Vec<(NodeId, u64)>>,
    /// By node, the number of the search that has found it.
    found: Vec<u64>,
    searches: u64,
    component: Vec<NodeId>,
    sources: usize,
}

impl Sweep {
    /// The source at place i has the set {i}, everybody else the empty one.
    pub(super) fn from_sources(nodes: u32, sources: &[NodeId]) -> Self {
        let empty: Rc<[u64]> = vec![0; sources.len().div_ceil(BITS)].into();
        let mut sweep = Sweep {
            sets: vec![empty; nodes as usize],
            neighbours: vec![Vec::new(); nodes as usize],
            found: vec![0; nodes as usize],
            searches: 0,
            component: Vec::new(),
            sources: sources.len(),
        };
        for (place, source) in sources.iter().enumerate() {
            let mut set = sweep.sets[source.index()].to_vec();
            set[place / BITS] |= 1 << (place % BITS);
            sweep.sets[source.index()] = set.into();
        }
        sweep
    }

    /// Adds every source to every set of which `belongs` says that it does.
    pub(super) fn add(&mut self, belongs: impl Fn(NodeId, usize) -> bool) {
        for node in NodeId::all(self.sets.len() as u32) {
            let mut set = self.sets[node.index()].to_vec();
            for place in (0..self.sources).filter(|&place| belongs(node, place)) {
                set[place / BITS] |= 1 << (place % BITS);
            }
            let before = node.index().checked_sub(1).map(|before| &self.sets[before]);
            self.sets[node.index()] = match before {
                Some(same) if **same == *set => Rc::clone(same),
                _ => set.into(),
            };
        }
    }

    /// Whether the set of `node` has the source at `place`.
    pub(super) fn has(&self, node: NodeId, place: usize) -> bool {
        self.sets[node.index()][place / BITS] & (1 << (place % BITS)) != 0
    }

    /// How many sources the set of `node` has.
    pub(super) fn count(&self, node: NodeId) -> usize {
        self.sets[node.index()].iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Every source in the set of `node`.
    pub(super) fn each(&self, node: NodeId, mut take: impl FnMut(usize)) {
        for (index, &word) in self.sets[node.index()].iter().enumerate() {
            each_bit(index, word, &mut take);
        }
    }

    /// Spreads the sets through `contacts`, which are in the order of their first instants. Calls
    /// `newly` with the node whose set gets a source, the source and the instant. Returns whether any
    /// set did.
    pub(super) fn run(
        &mut self,
        contacts: &[Contact],
        newly: &mut impl FnMut(NodeId, usize, u64),
    ) -> bool {
        self.neighbours.iter_mut().for_each(Vec::clear);
        let mut is_changed = false;
        for instant in contacts.chunk_by(|one, next| one.from == next.from) {
            for contact in instant {
                self.neighbours[contact.a.index()].push((contact.b, contact.to));
                self.neighbours[contact.b.index()].push((contact.a, contact.to));
            }
            let now = instant[0].from;
            self.searches += 1;
            for contact in instant {
                let (a, b) = (contact.a.index(), contact.b.index());
                if !Rc::ptr_eq(&self.sets[a], &self.sets[b]) && self.found[a] != self.searches {
                    self.find_component(contact.a, now);
                    is_changed |= self.unite(now, newly);
                }
            }
        }
        is_changed
    }

    /// Frees what only [`run`](Self::run) needs: as much as the contacts themselves.
    pub(super) fn forget_neighbours(&mut self) {
        self.neighbours.iter_mut().for_each(|neighbours| *neighbours = Vec::new());
    }

    fn find_component(&mut self, node: NodeId, now: u64) {
        self.component.clear();
        self.component.push(node);
        self.found[node.index()] = self.searches;
        let mut next = 0;
        while let Some(&node) = self.component.get(next) {
            next += 1;
            self.neighbours[node.index()].retain(|&(_, until)| until >= now);
            for &(other, _) in &self.neighbours[node.index()] {
                if self.found[other.index()] != self.searches {
                    self.found[other.index()] = self.searches;
                    self.component.push(other);
                }
            }
        }
    }

    /// Gives the union to everybody of the component. Returns whether that was new to anybody.
    fn unite(&mut self, now: u64, newly: &mut impl FnMut(NodeId, usize, u64)) -> bool {
        let mut union = self.sets[self.component[0].index()].to_vec();
        let mut last = &self.sets[self.component[0].index()];
        for node in &self.component[1..] {
            let set = &self.sets[node.index()];
            if !Rc::ptr_eq(set, last) {
                union.iter_mut().zip(set.iter()).for_each(|(word, more)| *word |= more);
                last = set;
            }
        }
        let union: Rc<[u64]> = union.into();
        let mut is_changed = false;
        for &node in &self.component {
            let set = core::mem::replace(&mut self.sets[node.index()], Rc::clone(&union));
            for (index, (&all, &had)) in union.iter().zip(set.iter()).enumerate() {
                if all != had {
                    is_changed = true;
                    each_bit(index, all & !had, &mut |source| newly(node, source, now));
                }
            }
        }
        is_changed
    }
}

fn each_bit(index: usize, mut word: u64, take: &mut impl FnMut(usize)) {
    while word != 0 {
        take(index * BITS + word.trailing_zeros() as usize);
        word &= word - 1;
    }
}
