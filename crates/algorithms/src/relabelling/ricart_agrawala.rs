//! **Idea.** A node that wants to enter adds its request to what it has gathered, and requests spread
//! from contact to contact. A node that learns of one adds its answer, at once unless it is inside or has
//! asked earlier itself; answers spread back the same way. A node that has all answers enters.
//!
//! **Source.** S1, section 3.1; after G. Ricart and A. Agrawala, 1981.
//!
//! **Assumes.** An evolving graph; all nodes known to all; no crashes; strong progression. Served if
//! every pair of nodes is connected over time (C2). A requester needs a round trip to every node.
//!
//! **Cost.** A label holds one request of each node, and up to N-1 answers to each that is pending.
//!
//! **Departs.** Clocks are part of what spreads, or an answer could be given to a request that is
//! later than the answerer's next. Of each node only the last request is kept, and none of the
//! answers to a request that is served, which its owner notes when it leaves: so labels are bounded,
//! as S1 says they can be. The set A of those who answered is what Q says of the node's own request, and n
//! its size. Variables: `requests` is the paper's P, `answers` its Q, by request.

use alloc::vec::Vec;

use catraca_core::{NodeId, Phase, Stamp};

use super::answers::Answers;
use super::by_node::ByNode;
use super::mutants::{self, Mutation};
use super::{Applied, Entry, Gathered, Group, Pending, Registered, Relabelling};
use crate::registry::Family;

/// The last request of a node, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Request {
    time: u64,
    /// Its owner has left.
    is_served: bool,
    /// Who has answered it; nobody is remembered once it is served.
    answers: Answers,
}

impl Request {
    fn new(time: u64) -> Self {
        Request { time, is_served: false, answers: Answers::default() }
    }

    fn served(time: u64) -> Self {
        Request { is_served: true, ..Request::new(time) }
    }

    fn answered(time: u64, by: NodeId) -> Self {
        Request { answers: Answers::of(by), ..Request::new(time) }
    }

    /// The later one; of one and the same request all answers.
    fn join(&mut self, other: &Self) {
        let age = |request: &Self| (request.time, request.is_served);
        if age(other) > age(self) {
            self.clone_from(other);
        } else if age(other) == age(self) {
            self.answers.join(&other.answers);
        }
    }
}

/// What a node has gathered: P and Q, and how far clocks have come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Knowledge {
    clock: u64,
    requests: ByNode<Request>,
    /// The sum of the times of all requests. What a node knows only grows, so as long as the sum is
    /// the same, the node knows of no new request.
    times: u64,
}

impl Knowledge {
    fn add(&mut self, node: NodeId, request: Request) {
        self.clock = self.clock.max(request.time);
        self.times += self.new_time(node, &request);
        self.requests.add(node, request, Request::join);
    }

    /// What a request adds to the sum of the times.
    fn new_time(&self, node: NodeId, request: &Request) -> u64 {
        let known = self.requests.get(node).map_or(0, |known| known.time);
        request.time.saturating_sub(known)
    }

    fn unserved(&self) -> impl Iterator<Item = (NodeId, &Request)> {
        self.requests.iter().filter(|(_, request)| !request.is_served)
    }
}

impl Gathered for Knowledge {
    fn join(&mut self, other: &Self) {
        self.clock = self.clock.max(other.clock);
        let new_times = other.requests.iter().map(|(node, request)| self.new_time(node, request));
        self.times += new_times.sum::<u64>();
        self.requests.join(&other.requests, Request::join);
    }

    fn bytes(&self) -> u64 {
        let request =
            |(_, request): (NodeId, &Request)| 4 + 8 + 1 + 4 * u64::from(request.answers.len());
        8 + self.requests.iter().map(request).sum::<u64>()
    }

    fn pending(&self) -> Vec<Pending> {
        let pending = |(requester, request): (NodeId, &Request)| Pending {
            requester,
            answers: request.answers.len(),
        };
        self.unserved().map(pending).collect()
    }
}

/// The state of one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EvolvingRicartAgrawala {
    pub(super) me: NodeId,
    pub(super) phase: Phase,
    /// The time of the request that is being served.
    pub(super) requested: u64,
    /// [`Knowledge::times`] when it last looked for requests to answer, in the phase that it is in;
    /// zero if it has not.
    looked: u64,
}

impl EvolvingRicartAgrawala {
    pub(super) fn my_request(&self) -> Stamp {
        Stamp { time: self.requested, node: self.me }
    }

    /// Rules 1 and 2 of updating: answers the requests that `may_answer` names.
    pub(super) fn answer(
        &self,
        known: &Knowledge,
        news: &mut Knowledge,
        may_answer: impl Fn(Stamp) -> bool,
    ) -> bool {
        let mut has_news = false;
        for (node, request) in known.unserved() {
            let stamp = Stamp { time: request.time, node };
            if node != self.me && !request.answers.contains(self.me) && may_answer(stamp) {
                news.add(node, Request::answered(request.time, self.me));
                has_news = true;
            }
        }
        has_news
    }

    /// Rule 3 of updating and rule 2 of the entry protocol.
    pub(super) fn enter(&mut self, group: &Group, known: &Knowledge) -> Applied {
        let mine = known.requests.get(self.me).filter(|mine| mine.time == self.requested);
        let answers = mine.map_or(0, |mine| mine.answers.len());
        if self.phase != Phase::Waiting || answers + 1 < group.nodes {
            return Applied::default();
        }
        self.phase = Phase::Inside;
        Applied { entered: Some(self.my_request().fence(group.nodes)), ..Applied::default() }
    }

    /// The first rule of the entry protocol, at a given logical time.
    pub(super) fn ask(&mut self, time: u64, news: &mut Knowledge) {
        self.phase = Phase::Waiting;
        self.requested = time;
        self.looked = 0;
        news.add(self.me, Request::new(time));
    }
}

impl Relabelling for EvolvingRicartAgrawala {
    type Gathered = Knowledge;

    fn phase(&self) -> Phase {
        self.phase
    }

    fn has_token(&self) -> bool {
        false
    }

    fn on_request(&mut self, known: &Knowledge, news: &mut Knowledge) {
        self.ask(known.clock + 1, news);
    }

    fn on_release(&mut self, known: &Knowledge, news: &mut Knowledge) {
        self.phase = Phase::Idle;
        self.looked = 0;
        news.add(self.me, Request::served(self.requested));
        self.answer(known, news, |_| true);
    }

    fn on_rules(&mut self, group: &Group, known: &Knowledge, news: &mut Knowledge) -> Applied {
        // Which requests a node may answer depends on its phase and on nothing else, so it has
        // answered all that it knew when it last looked.
        if self.looked == known.times {
            return self.enter(group, known);
        }
        self.looked = known.times;
        let has_news = match self.phase {
            Phase::Idle => self.answer(known, news, |_| true),
            Phase::Waiting => self.answer(known, news, |theirs| theirs < self.my_request()),
            Phase::Inside => false,
        };
        let read = known.requests.len() as u64;
        Applied { has_news, read, ..self.enter(group, known) }
    }
}

impl Registered for EvolvingRicartAgrawala {
    const ENTRY: Entry = Entry {
        name: "evolving-ricart-agrawala",
        title: "Floriano, Arantes and Goldman, 2012, after Ricart and Agrawala, 1981",
        family: Family::Permission,
        needs: "a round trip for each request; C2 suffices",
        label: "N requests, N-1 answers to each",
        fence: "(time, id) of the request",
        source: "S1 3.1",
        uncollected: |requests, nodes| 8 + requests * (12 + 16 * (nodes - 1)),
        file: include_str!("ricart_agrawala.rs"),
    };

    fn new(me: NodeId, _group: &Group) -> Self {
        EvolvingRicartAgrawala { me, phase: Phase::Idle, requested: 0, looked: 0 }
    }

    fn mutations() -> &'static [&'static dyn Mutation<Self>] {
        mutants::RICART_AGRAWALA
    }
}

#[cfg(test)]
mod tests {
    use catraca_core::Fence;
    use proptest::prelude::*;

    use super::*;

    const GROUP: Group = Group { nodes: 3, token: NodeId(0) };

    fn node(id: u32) -> EvolvingRicartAgrawala {
        EvolvingRicartAgrawala::new(NodeId(id), &GROUP)
    }

    fn asked(id: u32, time: u64) -> Knowledge {
        let mut knowledge = Knowledge::default();
        knowledge.add(NodeId(id), Request::new(time));
        knowledge
    }

    fn rules(node: &mut EvolvingRicartAgrawala, known: &mut Knowledge) -> Applied {
        let mut news = Knowledge::default();
        let applied = node.on_rules(&GROUP, known, &mut news);
        known.join(&news);
        applied
    }

    /// Rule 1 of updating. Reference: S1, section 3.1.
    #[test]
    fn paper_an_idle_node_answers_every_request_once() {
        let mut known = asked(0, 4);
        assert!(rules(&mut node(1), &mut known).has_news);
        assert_eq!(known.pending(), [Pending { requester: NodeId(0), answers: 1 }]);
        assert!(!rules(&mut node(1), &mut known).has_news);
    }

    /// Rule 2 of updating: 't1 > t2, or t1 = t2 and id(p) < id(v)'. Reference: S1, section 3.1.
    #[test]
    fn paper_a_requester_answers_only_requests_that_go_first() {
        for (theirs, expected) in [(asked(0, 1), true), (asked(2, 1), false), (asked(2, 0), true)] {
            let (mut n1, mut known) = (node(1), Knowledge::default());
            n1.ask(1, &mut known);
            known.join(&theirs);
            assert_eq!(rules(&mut n1, &mut known).has_news, expected, "{theirs:?}");
        }
    }

    /// The entry protocol, rule 2, and the exit protocol. Reference: S1, section 3.1.
    #[test]
    fn paper_with_all_answers_it_enters_and_when_it_leaves_it_answers_who_waits() {
        let (mut n1, mut known) = (node(1), Knowledge::default());
        n1.ask(1, &mut known);
        assert_eq!(rules(&mut node(0), &mut known).entered, None);
        assert_eq!(rules(&mut n1, &mut known).entered, None);
        rules(&mut node(2), &mut known);
        assert_eq!(rules(&mut n1, &mut known).entered, Some(Fence(4)));
        known.join(&asked(2, 2));
        assert!(!rules(&mut n1, &mut known).has_news, "not while it is inside");
        let mut news = Knowledge::default();
        n1.on_release(&known, &mut news);
        known.join(&news);
        assert_eq!(known.pending(), [Pending { requester: NodeId(2), answers: 1 }]);
    }

    #[test]
    fn answers_to_a_served_request_are_collected() {
        let (mut n1, mut known) = (node(1), Knowledge::default());
        n1.ask(1, &mut known);
        let before = known.clone();
        rules(&mut node(0), &mut known);
        rules(&mut node(2), &mut known);
        rules(&mut n1, &mut known);
        let mut news = Knowledge::default();
        n1.on_release(&known, &mut news);
        known.join(&news);
        assert_eq!((known.bytes(), known.pending()), (8 + 13, Vec::new()));
        let after = known.clone();
        known.join(&before);
        assert_eq!(known, after, "who is behind brings nothing back");
    }

    #[test]
    fn a_clock_passes_every_time_that_is_known() {
        let (mut n1, mut news) = (node(1), Knowledge::default());
        n1.on_request(&asked(0, 7), &mut news);
        assert_eq!(n1.requested, 8);
    }

    prop_compose! {
        fn knowledge()(
            facts in prop::collection::vec((0u32..5, 1u64..4, 0u32..6, any::<bool>()), 0..12),
        ) -> Knowledge {
            let mut knowledge = Knowledge::default();
            for (node, time, by, is_served) in facts {
                knowledge.add(NodeId(node), match (is_served, by) {
                    (true, _) => Request::served(time),
                    (false, 5) => Request::new(time),
                    (false, by) => Request::answered(time, NodeId(by)),
                });
            }
            knowledge
        }
    }

    proptest! {
        #[test]
        fn gathering_is_a_semilattice_join(a in knowledge(), b in knowledge(), c in knowledge()) {
            super::super::testing::is_a_join(&a, &b, &c)?;
        }
    }
}
