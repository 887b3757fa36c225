//! The connectivity conditions of S1, and what follows from them for an algorithm.

use alloc::vec::Vec;

use catraca_core::NodeId;

use super::reach::RoundTrips;
use super::{EvolvingGraph, Journey, Journeys, Reachability};

/// Who will ask for the lock, and when; who has the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The nodes that ask, in ascending order.
    pub requesters: Vec<NodeId>,
    /// Where the token is at first.
    pub token: NodeId,
    /// The first instant at which anybody asks.
    pub from: u64,
}

/// What shows that a condition holds, or that it does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Witness {
    /// There is no pair to check.
    Nothing,
    /// It holds: a journey that shows it. For C1 and C2 of all pairs the one that arrives last.
    Journey(Journey),
    /// It holds: the way to the node that takes longest to ask, and back.
    RoundTrip(Journey, Journey),
    /// It does not hold: there is no journey from the first to the second; perhaps one back.
    NoJourney(NodeId, NodeId, Option<Journey>),
    /// It does not hold: there is no round trip.
    NoRoundTrip(BrokenTrip),
}

/// A round trip that stops halfway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenTrip {
    /// Who asks.
    pub requester: NodeId,
    /// Who cannot be asked, or cannot answer.
    pub node: NodeId,
    /// The way out, if there is one; the way back is missing then.
    pub out: Option<Journey>,
}

/// Whether a condition holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It does.
    Holds(Witness),
    /// It does not.
    Fails(Witness),
    /// It is about 'for ever', and the graph is finite.
    Unknown,
}

impl Truth {
    /// Whether it is known to hold.
    pub fn holds(&self) -> bool {
        matches!(self, Truth::Holds(_))
    }

    /// Whether it is known not to hold.
    pub fn fails(&self) -> bool {
        matches!(self, Truth::Fails(_))
    }
}

/// Every condition, decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// Journeys both ways between every pair of nodes.
    pub c1: Truth,
    /// Every pair of nodes is connected over time: there is a journey however late it starts.
    pub c2: Truth,
    /// A journey at least one way between any two who ask or have the token.
    pub c3: Truth,
    /// Any two who ask or have the token are connected over time.
    pub c4: Truth,
    /// The correction of C1: from every requester a journey to every node, and one back after it.
    pub round_trip: Truth,
    /// The token can get to everybody who asks: necessary for the token algorithm, as C3 is.
    pub token: Truth,
    /// If one node asks, once: whether its request gets to the token and the token gets back.
    pub token_trip: Option<Truth>,
}

/// What a graph means for an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A node waits for ever, whatever else happens.
    MustFail,
    /// Everybody who asks gets in.
    WillWork,
    /// It can go either way.
    Depends,
}

/// A verdict and the condition from which it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conclusion {
    /// What follows.
    pub verdict: Verdict,
    /// From what.
    pub because: Reason,
}

/// The condition that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The sufficient condition holds (C2, C4).
    Sufficient,
    /// The necessary condition fails (the round trip, C3).
    Necessary,
    /// The token cannot get to a node that asks.
    TokenStays,
    /// One asks, once, and its round trip is there.
    Alone,
    /// The necessary condition holds and the sufficient one does not.
    Between,
    /// The necessary condition holds; the sufficient one cannot be decided on a finite graph.
    Undecided,
}

impl Conditions {
    /// Decides all conditions with four sweeps through the contacts.
    pub fn decide(graph: &EvolvingGraph, question: &Question) -> Self {
        let all: Vec<NodeId> = NodeId::all(graph.nodes()).collect();
        let mut parties = question.requesters.clone();
        parties.push(question.token);
        parties.sort_unstable();
        parties.dedup();
        let decision = Decision { graph, journeys: Journeys::new(graph), from: question.from };

        let reach = Reachability::new(graph, all.clone(), question.from);
        let (c1, c3) = (decision.both_ways(&reach), decision.one_way(&reach, &parties));
        drop(reach);
        let for_ever = Reachability::for_ever(graph, all);
        let (c2, c4) = match &for_ever {
            None => (Truth::Unknown, Truth::Unknown),
            Some(reach) => (decision.for_ever(reach), decision.for_ever_among(reach, &parties)),
        };
        let requesters = question.requesters.clone();
        let trips = RoundTrips::new(graph, requesters, question.from, for_ever.as_ref());
        let round_trip = match trips.missing.first() {
            Some(&(requester, node)) => decision.no_round_trip(requester, node),
            None => decision.longest_round_trip(question),
        };
        let token = decision.token(question);
        let token_trip = match question.requesters[..] {
            [requester] => Some(decision.round_trip(requester, question.token)),
            _ => None,
        };
        Conditions { c1, c2, c3, c4, round_trip, token, token_trip }
    }

    /// What follows for Ricart and Agrawala's algorithm.
    pub fn for_permission(&self) -> Conclusion {
        let fails = self.round_trip.fails().then_some(Reason::Necessary);
        // A node that asks alone needs its round trip and no more.
        let alone = self.token_trip.is_some();
        conclude(fails, &self.c2, alone)
    }

    /// What follows for the algorithm of Hélary and others.
    pub fn for_token(&self) -> Conclusion {
        let trip = self.token_trip.as_ref();
        let fails = match () {
            () if self.c3.fails() => Some(Reason::Necessary),
            () if self.token.fails() || trip.is_some_and(Truth::fails) => Some(Reason::TokenStays),
            () => None,
        };
        conclude(fails, &self.c4, trip.is_some())
    }
}

fn conclude(fails: Option<Reason>, sufficient: &Truth, alone: bool) -> Conclusion {
    let (verdict, because) = match (fails, sufficient) {
        (Some(why), _) => (Verdict::MustFail, why),
        (None, Truth::Holds(_)) => (Verdict::WillWork, Reason::Sufficient),
        (None, _) if alone => (Verdict::WillWork, Reason::Alone),
        (None, Truth::Unknown) => (Verdict::Depends, Reason::Undecided),
        (None, Truth::Fails(_)) => (Verdict::Depends, Reason::Between),
    };
    Conclusion { verdict, because }
}

struct Decision<'g> {
    graph: &'g EvolvingGraph,
    journeys: Journeys<'g>,
    from: u64,
}

impl Decision<'_> {
    fn both_ways(&self, reach: &Reachability) -> Truth {
        match reach.missing(NodeId::all(self.graph.nodes())) {
            Some((from, to)) => self.no_journey(from, to, self.from),
            None => self.farthest(reach, self.from),
        }
    }

    fn farthest(&self, reach: &Reachability, from: u64) -> Truth {
        let pair = reach.farthest();
        self.shown(pair.map(|pair| (pair.from, pair.to)), from)
    }

    fn shown(&self, pair: Option<(NodeId, NodeId)>, from: u64) -> Truth {
        let journey = pair.and_then(|(one, other)| self.journeys.foremost_to(one, other, from));
        Truth::Holds(journey.map_or(Witness::Nothing, Witness::Journey))
    }

    fn no_journey(&self, from: NodeId, to: NodeId, since: u64) -> Truth {
        let back = self.journeys.foremost_to(to, from, since);
        Truth::Fails(Witness::NoJourney(from, to, back))
    }

    fn one_way(&self, reach: &Reachability, parties: &[NodeId]) -> Truth {
        let goes = |from: NodeId, to: NodeId| reach.reaches(from.index(), to);
        for (index, &one) in parties.iter().enumerate() {
            let apart = |&&other: &&NodeId| !goes(one, other) && !goes(other, one);
            if let Some(&other) = parties[index + 1..].iter().find(apart) {
                return Truth::Fails(Witness::NoJourney(one, other, None));
            }
        }
        let first = match *parties {
            [one, other, ..] if goes(one, other) => Some((one, other)),
            [one, other, ..] => Some((other, one)),
            _ => None,
        };
        self.shown(first, self.from)
    }

    /// Of all nodes.
    fn for_ever(&self, reach: &Reachability) -> Truth {
        let cycle = self.graph.cycle().unwrap_or(0);
        match reach.missing(NodeId::all(self.graph.nodes())) {
            Some((from, to)) => self.no_journey(from, to, cycle),
            None => self.farthest(reach, cycle),
        }
    }

    fn for_ever_among(&self, reach: &Reachability, parties: &[NodeId]) -> Truth {
        let cycle = self.graph.cycle().unwrap_or(0);
        for &from in parties {
            let lacks = |&&to: &&NodeId| !reach.reaches(from.index(), to);
            if let Some(&to) = parties.iter().find(lacks) {
                return self.no_journey(from, to, cycle);
            }
        }
        let first = if let [one, other, ..] = *parties { Some((one, other)) } else { None };
        self.shown(first, cycle)
    }

    /// Of the first requester the trip to the node that it reaches last.
    fn longest_round_trip(&self, question: &Question) -> Truth {
        let Some(&requester) = question.requesters.first() else {
            return Truth::Holds(Witness::Nothing);
        };
        let arrivals = self.journeys.foremost(requester, self.from);
        let others = NodeId::all(self.graph.nodes()).filter(|&node| node != requester);
        match others.max_by_key(|&node| arrivals.at(node)) {
            Some(node) => self.round_trip(requester, node),
            None => Truth::Holds(Witness::Nothing),
        }
    }

    fn round_trip(&self, requester: NodeId, node: NodeId) -> Truth {
        if requester == node {
            return Truth::Holds(Witness::Nothing);
        }
        let out = self.journeys.foremost_to(requester, node, self.from);
        let back = |out: &Journey| self.journeys.foremost_to(node, requester, out.arrival());
        match (out.as_ref().and_then(back), out) {
            (Some(back), Some(out)) => Truth::Holds(Witness::RoundTrip(out, back)),
            (_, out) => Truth::Fails(Witness::NoRoundTrip(BrokenTrip { requester, node, out })),
        }
    }

    fn no_round_trip(&self, requester: NodeId, node: NodeId) -> Truth {
        let out = self.journeys.foremost_to(requester, node, self.from);
        Truth::Fails(Witness::NoRoundTrip(BrokenTrip { requester, node, out }))
    }

    fn token(&self, question: &Question) -> Truth {
        let arrivals = self.journeys.foremost(question.token, 0);
        match question.requesters.iter().find(|&&node| arrivals.at(node).is_none()) {
            Some(&node) => self.no_journey(question.token, node, 0),
            None => Truth::Holds(Witness::Nothing),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::super::Contact;
    use super::*;

    fn decide(contacts: &[(u64, u32, u32)], cycle: Option<u64>, requesters: &[u32]) -> Conditions {
        let contacts = contacts.iter().map(|&(at, a, b)| Contact::at(at, a, b)).collect();
        let graph = EvolvingGraph::numbered(3, contacts, 5, cycle).unwrap();
        let requesters = requesters.iter().map(|&node| NodeId(node)).collect();
        Conditions::decide(&graph, &Question { requesters, token: NodeId(0), from: 0 })
    }

    const ERRATUM: [(u64, u32, u32); 2] = [(1, 0, 2), (5, 0, 1)];

    #[test]
    fn the_graph_of_the_erratum_breaks_c1_and_has_the_round_trip() {
        let found = decide(&ERRATUM, None, &[0]);
        let hop = |from, to, at| super::super::Hop { from: NodeId(from), to: NodeId(to), at };
        let back = Journey { hops: vec![hop(2, 0, 1), hop(0, 1, 5)] };
        let missing = Witness::NoJourney(NodeId(1), NodeId(2), Some(back));
        assert_eq!(found.c1, Truth::Fails(missing));
        let out = Journey { hops: vec![hop(0, 1, 5)] };
        let back = Journey { hops: vec![hop(1, 0, 5)] };
        assert_eq!(found.round_trip, Truth::Holds(Witness::RoundTrip(out, back)));
        assert_eq!((found.c2.clone(), found.c4.clone()), (Truth::Unknown, Truth::Unknown));
        let works = Conclusion { verdict: Verdict::WillWork, because: Reason::Alone };
        assert_eq!((found.for_permission(), found.for_token()), (works, works));
    }

    #[test]
    fn a_request_that_cannot_come_back_must_fail() {
        let found = decide(&ERRATUM, None, &[2]);
        let out = |witness: &Truth| match witness {
            Truth::Fails(Witness::NoRoundTrip(tour)) => (tour.node, tour.out.is_some()),
            other => panic!("{other:?}"),
        };
        assert_eq!(out(&found.round_trip), (NodeId(1), true), "there and not back");
        let fails = Conclusion { verdict: Verdict::MustFail, because: Reason::Necessary };
        assert_eq!(found.for_permission(), fails);
        assert_eq!(found.for_token().verdict, Verdict::WillWork, "the token is next door");
    }

    #[test]
    fn a_graph_that_repeats_decides_what_holds_for_ever() {
        let found = decide(&ERRATUM, Some(0), &[0, 1, 2]);
        assert!(found.c1.holds() && found.c2.holds() && found.c4.holds());
        let works = Conclusion { verdict: Verdict::WillWork, because: Reason::Sufficient };
        assert_eq!((found.for_permission(), found.for_token()), (works, works));
        let found = decide(&ERRATUM, Some(3), &[0, 1]);
        assert!(found.c2.fails() && found.c4.holds(), "node 2 is met only once");
        assert_eq!(found.for_token().verdict, Verdict::WillWork);
        assert_eq!(found.for_permission().verdict, Verdict::MustFail, "1 cannot ask 2");
    }

    #[test]
    fn several_requests_on_a_finite_graph_depend_on_the_schedule() {
        let found = decide(&[(0, 0, 1), (1, 1, 2), (2, 0, 1), (3, 1, 2)], None, &[0, 1]);
        assert!(found.round_trip.holds());
        let depends = Conclusion { verdict: Verdict::Depends, because: Reason::Undecided };
        assert_eq!((found.for_permission(), found.for_token()), (depends, depends));
    }

    #[test]
    fn a_token_that_cannot_come_makes_the_token_algorithm_fail_though_c3_holds() {
        let found = decide(&[(1, 1, 2), (2, 0, 1)], None, &[1, 2]);
        assert!(found.c3.holds() && found.token.fails());
        let fails = Conclusion { verdict: Verdict::MustFail, because: Reason::TokenStays };
        assert_eq!(found.for_token(), fails);
    }
}
