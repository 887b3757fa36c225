//! **Idea.** Requests spread from contact to contact, and so does the token: as a message to one
//! node, of which everybody keeps the newest. The node that has the token and does not use it sends it to
//! the oldest request it knows of. Everybody keeps for each node when it was last served, so the
//! token's owner knows which requests are still open.
//!
//! **Source.** S1, section 3.2; after J.-M. Hélary, N. Plouzeau and M. Raynal, 1988.
//!
//! **Assumes.** An evolving graph; all nodes known to all; no crashes; strong progression. Served if
//! every pair of those who ask or have the token at first is connected over time (C4). Between any
//! two of them there must be a journey at least one way (C3), and one from the token to everybody who
//! asks.
//!
//! **Cost.** A label holds one request and one time of service of each node, and one token message.
//!
//! **Departs.** Clocks are part of what spreads, or a newer token message could carry an older time
//! and be dropped. Of each node only the last request is kept, until it is served: so labels are
//! bounded. Variables: `requested` is the paper's P, `served` its S, by node; `token` is its Q.

use alloc::vec::Vec;

use catraca_core::{Fence, NodeId, Phase, Stamp};

use super::by_node::ByNode;
use super::mutants::{self, Mutation};
use super::{Applied, Entry, Gathered, Group, Pending, Registered, Relabelling};
use crate::registry::Family;

/// The last request of a node and the last that was served, as far as is known. Zero is never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Times {
    requested: u64,
    served: u64,
}

impl Times {
    fn join(&mut self, other: &Self) {
        self.requested = self.requested.max(other.requested);
        self.served = self.served.max(other.served);
    }

    fn is_pending(&self) -> bool {
        self.requested > self.served
    }
}

/// The token on its way: when it was sent, to whom, and for which of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Token {
    sent: u64,
    to: NodeId,
    request: u64,
}

/// What a node has gathered: P, Q and S, and how far clocks have come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Knowledge {
    pub(super) clock: u64,
    times: ByNode<Times>,
    token: Option<Token>,
}

impl Knowledge {
    fn add(&mut self, node: NodeId, times: Times) {
        self.clock = self.clock.max(times.requested).max(times.served);
        self.times.add(node, times, Times::join);
    }

    fn send(&mut self, token: Token) {
        self.clock = self.clock.max(token.sent);
        self.token = self.token.max(Some(token));
    }

    /// The paper's X: requests that are not served.
    fn open(&self) -> impl Iterator<Item = Stamp> {
        let pending = self.times.iter().filter(|(_, times)| times.is_pending());
        pending.map(|(node, times)| Stamp { time: times.requested, node })
    }
}

impl Gathered for Knowledge {
    fn join(&mut self, other: &Self) {
        self.clock = self.clock.max(other.clock);
        self.times.join(&other.times, Times::join);
        self.token = self.token.max(other.token);
    }

    fn bytes(&self) -> u64 {
        let node = |(_, times): (NodeId, &Times)| {
            let numbers = u64::from(times.is_pending()) + u64::from(times.served > 0);
            4 + 8 * numbers
        };
        let token = if self.token.is_some() { 4 + 8 + 8 } else { 0 };
        8 + token + self.times.iter().map(node).sum::<u64>()
    }

    fn pending(&self) -> Vec<Pending> {
        let is_sent = |stamp: Stamp| {
            self.token.is_some_and(|token| (token.request, token.to) == (stamp.time, stamp.node))
        };
        let pending =
            |stamp: Stamp| Pending { requester: stamp.node, answers: is_sent(stamp).into() };
        self.open().map(pending).collect()
    }
}

/// The state of one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EvolvingHelary {
    pub(super) me: NodeId,
    pub(super) phase: Phase,
    /// The paper's T, or N.
    pub(super) has_token: bool,
    /// The time of the request that is being served.
    pub(super) requested: u64,
}

impl EvolvingHelary {
    /// The monadic rule: the owner sends the token to the request of the highest priority.
    pub(super) fn send(&self, now: u64, known: &Knowledge, news: &mut Knowledge) -> bool {
        // Most nodes have no token, and there may be many requests to look through.
        if !self.has_token || self.phase == Phase::Inside {
            return false;
        }
        let Some(first) = known.open().min() else { return false };
        news.send(Token { sent: now, to: first.node, request: first.time });
        true
    }

    /// The second rule of the entry protocol.
    pub(super) fn receive(&mut self, known: &Knowledge) -> Option<Fence> {
        let token = known.token?;
        let is_mine = (token.to, token.request) == (self.me, self.requested);
        if self.phase != Phase::Waiting || !is_mine {
            return None;
        }
        self.phase = Phase::Inside;
        self.has_token = true;
        Some(Fence(token.sent))
    }
}

impl Relabelling for EvolvingHelary {
    type Gathered = Knowledge;

    fn phase(&self) -> Phase {
        self.phase
    }

    fn has_token(&self) -> bool {
        self.has_token
    }

    fn on_request(&mut self, known: &Knowledge, news: &mut Knowledge) {
        self.phase = Phase::Waiting;
        self.requested = known.clock + 1;
        news.add(self.me, Times { requested: self.requested, served: 0 });
    }

    fn on_release(&mut self, _known: &Knowledge, news: &mut Knowledge) {
        self.phase = Phase::Idle;
        news.add(self.me, Times { requested: 0, served: self.requested });
    }

    fn on_rules(&mut self, _group: &Group, known: &Knowledge, news: &mut Knowledge) -> Applied {
        let has_news = self.send(known.clock + 1, known, news);
        self.has_token &= !has_news;
        Applied { entered: self.receive(known), has_news, ..Applied::default() }
    }
}

impl Registered for EvolvingHelary {
    const ENTRY: Entry = Entry {
        name: "evolving-helary",
        title: "Floriano, Arantes and Goldman, 2012, after Hélary, Plouzeau and Raynal, 1988",
        family: Family::Token,
        needs: "C3 and a way for the token; C4 suffices",
        label: "2N times, one token message",
        fence: "time at which the token was sent",
        source: "S1 3.2",
        uncollected: |requests, nodes| 8 + 20 + 8 * nodes + 12 * requests,
        file: include_str!("helary.rs"),
    };

    fn new(me: NodeId, group: &Group) -> Self {
        EvolvingHelary { me, phase: Phase::Idle, has_token: me == group.token, requested: 0 }
    }

    fn mutations() -> &'static [&'static dyn Mutation<Self>] {
        mutants::HELARY
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GROUP: Group = Group { nodes: 3, token: NodeId(0) };

    fn node(id: u32) -> EvolvingHelary {
        EvolvingHelary::new(NodeId(id), &GROUP)
    }

    fn asked(id: u32, time: u64) -> Knowledge {
        let mut knowledge = Knowledge::default();
        knowledge.add(NodeId(id), Times { requested: time, served: 0 });
        knowledge
    }

    fn rules(node: &mut EvolvingHelary, known: &mut Knowledge) -> Applied {
        let mut news = Knowledge::default();
        let applied = node.on_rules(&GROUP, known, &mut news);
        known.join(&news);
        applied
    }

    /// maxPri: 'the smallest logical time, then the smallest id'. Reference: S1, section 3.2.
    #[test]
    fn paper_the_owner_sends_the_token_to_the_oldest_open_request() {
        let (mut n0, mut known) = (node(0), asked(2, 3));
        known.join(&asked(1, 3));
        assert!(rules(&mut n0, &mut known).has_news && !n0.has_token());
        assert_eq!(known.token, Some(Token { sent: 4, to: NodeId(1), request: 3 }));
        assert!(!rules(&mut n0, &mut known).has_news, "it has the token no more");
    }

    /// The entry protocol, rule 2, and the exit protocol. Reference: S1, section 3.2.
    #[test]
    fn paper_the_token_lets_in_the_request_that_it_was_sent_for() {
        let (mut n0, mut n1, mut known) = (node(0), node(1), Knowledge::default());
        let mut news = Knowledge::default();
        n1.on_request(&known, &mut news);
        known.join(&news);
        rules(&mut n0, &mut known);
        assert_eq!(rules(&mut n1, &mut known).entered, Some(Fence(2)));
        assert!(n1.has_token());
        let mut news = Knowledge::default();
        n1.on_release(&known, &mut news);
        known.join(&news);
        assert_eq!((known.pending(), n1.has_token()), (Vec::new(), true));
        let mut news = Knowledge::default();
        n1.on_request(&known, &mut news);
        known.join(&news);
        assert_eq!(n1.receive(&known), None, "the old message is for the old request");
    }

    #[test]
    fn the_owner_serves_itself_with_nobody_in_sight() {
        let (mut n0, mut known) = (node(0), Knowledge::default());
        let mut news = Knowledge::default();
        n0.on_request(&known, &mut news);
        known.join(&news);
        assert!(rules(&mut n0, &mut known).has_news);
        assert_eq!(rules(&mut n0, &mut known).entered, Some(Fence(2)));
    }

    #[test]
    fn a_newer_token_message_displaces_an_older_one() {
        let (mut older, mut newer) = (Knowledge::default(), Knowledge::default());
        older.send(Token { sent: 3, to: NodeId(1), request: 9 });
        newer.send(Token { sent: 4, to: NodeId(0), request: 1 });
        let expected = newer.token;
        older.join(&newer);
        assert_eq!(older.token, expected);
    }

    prop_compose! {
        fn knowledge()(
            facts in prop::collection::vec((0u32..5, 0u64..5, 0u64..5), 0..8),
            token in prop::option::of((1u64..6, 0u32..5, 1u64..5)),
        ) -> Knowledge {
            let mut knowledge = Knowledge::default();
            for (node, requested, served) in facts {
                knowledge.add(NodeId(node), Times { requested, served });
            }
            if let Some((sent, to, request)) = token {
                knowledge.send(Token { sent, to: NodeId(to), request });
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
