//! The propositions of S1, put to every small graph and to random larger ones.
//!
//! A graph is a choice of edges at each of a few instants. For necessity it ends after them and
//! nobody meets anybody ever again; for sufficiency it repeats for ever, from each of its instants
//! in turn. On each graph each schedule of requests is run.

mod facts;
mod tally;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use catraca_core::NodeId;
use catraca_topology::evolving::{Contact, EvolvingGraph};

use crate::Random;
use facts::Facts;
use tally::Tally;
pub use tally::{Counterexample, Finding};

/// The name of the algorithm of propositions 1 and 2.
pub const PERMISSION: &str = "evolving-ricart-agrawala";
/// The name of the algorithm of propositions 3 and 4.
pub const TOKEN: &str = "evolving-helary";

/// What is put to the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Proposition {
    /// C1 is necessary for Ricart-Agrawala once a node asks.
    One,
    /// The correction: a node without a round trip to every node is not served.
    RoundTrip,
    /// A node that asks alone and has its round trips is served.
    LoneRoundTrip,
    /// C2 is sufficient for Ricart-Agrawala.
    Two,
    /// C3 is necessary for Hélary's algorithm.
    Three,
    /// A node to which the token has no journey is not served.
    TokenJourney,
    /// C4 is sufficient for Hélary's algorithm.
    Four,
    /// In no run two are inside, or do fences go back.
    Safety,
}

impl Proposition {
    /// All of them, in the order of the paper.
    pub const ALL: [Proposition; 8] = [
        Proposition::One,
        Proposition::RoundTrip,
        Proposition::LoneRoundTrip,
        Proposition::Two,
        Proposition::Three,
        Proposition::TokenJourney,
        Proposition::Four,
        Proposition::Safety,
    ];

    /// What is claimed, as an implication.
    pub fn claim(self) -> &'static str {
        match self {
            Proposition::One => "without C1 a node that asks waits for ever",
            Proposition::RoundTrip => {
                "without a round trip to every node a requester waits for ever"
            }
            Proposition::LoneRoundTrip => "with its round trips a lone requester is served",
            Proposition::Two => "with C2 everybody who asks is served",
            Proposition::Three => "without C3 a node that asks waits for ever",
            Proposition::TokenJourney => {
                "without a journey from the token a requester waits for ever"
            }
            Proposition::Four => "with C4 everybody who asks is served",
            Proposition::Safety => "at most one is inside, and fences grow",
        }
    }
}

impl fmt::Display for Proposition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Proposition::One => "proposition 1",
            Proposition::RoundTrip => "corrected 1",
            Proposition::LoneRoundTrip => "round trip, alone",
            Proposition::Two => "proposition 2",
            Proposition::Three => "proposition 3",
            Proposition::TokenJourney => "token's journey",
            Proposition::Four => "proposition 4",
            Proposition::Safety => "safety",
        })
    }
}

/// Which graphs and schedules are tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// How many nodes there are, 2 to 4.
    pub nodes: u32,
    /// How many instants there are, at least one.
    pub instants: u64,
    /// The last instant at which anybody asks.
    pub asks_until: u64,
    /// A mutant in place of the algorithms that have one of this name.
    pub mutant: Option<(String, String)>,
}

impl Space {
    /// Nobody asks after the second instant: later requests see what earlier ones of shorter graphs
    /// see.
    pub fn new(nodes: u32, instants: u64) -> Self {
        Space { nodes, instants, asks_until: 1.min(instants - 1), mutant: None }
    }

    fn pairs(&self) -> Vec<(u32, u32)> {
        (0..self.nodes).flat_map(|a| (a + 1..self.nodes).map(move |b| (a, b))).collect()
    }

    /// How many graphs there are; none if that is no number.
    pub fn graphs(&self) -> Option<u64> {
        let nodes = u64::from(self.nodes);
        let bits = (nodes * nodes.saturating_sub(1) / 2).checked_mul(self.instants)?;
        (bits < 63).then(|| 1 << bits)
    }

    /// The contacts of the graph with this number: one bit for each pair at each instant.
    fn contacts(&self, number: u64) -> Vec<Contact> {
        let pairs = self.pairs();
        let places = (0..self.instants).flat_map(|at| pairs.iter().map(move |&pair| (at, pair)));
        let is_there = |place: usize| number & (1 << place) != 0;
        let present = places.enumerate().filter(|&(place, _)| is_there(place));
        present.map(|(_, (at, (a, b)))| Contact::at(at, a, b)).collect()
    }

    /// Every schedule of at least one request: each node asks at some instant, or not at all.
    fn schedules(&self) -> Vec<Vec<(u64, NodeId)>> {
        let choices = self.asks_until + 2;
        (1..choices.pow(self.nodes))
            .map(|number| {
                let choice = |node: NodeId| (number / choices.pow(node.0)) % choices;
                let asks = NodeId::all(self.nodes).filter(|&node| choice(node) > 0);
                asks.map(|node| (choice(node) - 1, node)).collect()
            })
            .collect()
    }
}

/// Goes through all graphs of a space. None if `stop` was set.
pub fn exhaustive(space: &Space, stop: &AtomicBool) -> Option<Vec<Finding>> {
    let mut tally = Tally::new(space.mutant.clone());
    let schedules = space.schedules();
    let tokens: Vec<NodeId> = NodeId::all(space.nodes).collect();
    for number in 0..space.graphs()? {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        let contacts = space.contacts(number);
        let last = space.instants - 1;
        // Contacts of small numbers are within the space's instants and nodes.
        let graph = EvolvingGraph::numbered(space.nodes, contacts, last, None).ok()?;
        let facts = Facts::new(&graph);
        for schedule in &schedules {
            tally.finite(&graph, &facts, schedule, &tokens);
        }
        for cycle in 0..space.instants {
            let endless = graph.repeated(cycle).ok()?;
            let facts = Facts::new(&endless);
            for schedule in &schedules {
                tally.endless(&endless, &facts, schedule, &tokens);
            }
        }
    }
    Some(tally.findings())
}

/// Puts the propositions to `count` random graphs of up to `nodes` nodes and `instants` instants.
/// None if `stop` was set.
pub fn random(
    count: u64,
    nodes: u32,
    instants: u64,
    seed: u64,
    stop: &AtomicBool,
) -> Option<Vec<Finding>> {
    let mut tally = Tally::new(None);
    let mut random = Random::new(seed);
    for _ in 0..count {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        let nodes = 2 + random.below(u64::from(nodes.max(2)) - 1) as u32;
        let instants = 1 + random.below(instants.max(1));
        let density = random.fraction() * 2.0 / f64::from(nodes);
        let mut contacts = Vec::new();
        for at in 0..instants {
            for (a, b) in (0..nodes).flat_map(|a| (a + 1..nodes).map(move |b| (a, b))) {
                if random.fraction() <= density {
                    contacts.push(Contact::at(at, a, b));
                }
            }
        }
        let graph = EvolvingGraph::numbered(nodes, contacts, instants - 1, None).ok()?;
        let asks: Vec<NodeId> = NodeId::all(nodes).filter(|_| random.below(3) > 0).collect();
        let mut schedule: Vec<(u64, NodeId)> =
            asks.into_iter().map(|node| (random.below(instants.div_ceil(2)), node)).collect();
        if schedule.is_empty() {
            schedule.push((0, NodeId(0)));
        }
        let token = [NodeId(random.below(nodes.into()) as u32)];
        tally.finite(&graph, &Facts::new(&graph), &schedule, &token);
        let endless = graph.repeated(random.below(instants)).ok()?;
        tally.endless(&endless, &Facts::new(&endless), &schedule, &token);
    }
    Some(tally.findings())
}
