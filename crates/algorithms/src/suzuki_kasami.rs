//! **Idea.** The node with the token enters. A node without it asks everybody, because it does not
//! know where the token is; requests are numbered, and the token carries the number of the last
//! request served of each node, so that new requests can be told from old ones. A leaving node adds the new
//! requesters to the queue in the token and sends it to the first.
//!
//! **Source.** S2, section 8.4.1; I. Suzuki and T. Kasami, 1985.
//!
//! **Assumes.** Reliable channels in any order; no crashes.
//!
//! **Cost.** N messages per entry, or none where the token is; delay T.
//!
//! **Departs.** S2 counts N-1 messages and so leaves the token out. S2 also updates L on the
//! arrival of the token; as in the original it happens on leaving. New requesters are queued going
//! round from the leaving node, so that low ids are not favoured. The token carries the fence. Variables: `rn` is S2's R, `ln`
//! its L, `queue` its Q.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use catraca_core::{
    Algorithm, Bounds, Claim, Effects, Fence, Message, NodeId, NodeSet, Phase, Start, Variables,
};
use catraca_topology::Members;
use serde::{Deserialize, Serialize};

use crate::mutants::{self, Mutation};
use crate::registry::{Channels, Entry, Family, Load, Range, Registered, Tabled, Theory};
use crate::{ASKS_TWICE, Spec, SpecError};

/// What the nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Msg {
    /// 'I want to enter; this is my request number so much.'
    Request(u64),
    /// 'You may enter.'
    Token(Box<Token>),
}

impl Message for Msg {
    const KINDS: &'static [&'static str] = &["request", "token"];

    fn kind(&self) -> usize {
        match self {
            Msg::Request(_) => 0,
            Msg::Token(_) => 1,
        }
    }

    fn is_possible(&self, bounds: Bounds) -> bool {
        match self {
            Msg::Request(number) => bounds.has_count(*number),
            Msg::Token(token) => {
                let Token { ln, queue, fence } = &**token;
                let nodes = bounds.nodes() as usize;
                ln.len() == nodes
                    && ln.iter().all(|&number| bounds.has_count(number))
                    && queue.len() <= nodes
                    && queue.iter().all(|&node| bounds.has_node(node))
                    && bounds.has_fence(*fence)
            }
        }
    }

    fn carries_token(&self) -> bool {
        matches!(self, Msg::Token(_))
    }
}

/// The token. There is one, and it is moved from node to node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Token {
    /// The number of the last request served of each node.
    pub(crate) ln: Vec<u64>,
    /// Who gets the token next.
    pub(crate) queue: VecDeque<NodeId>,
    /// The fence of the last entry.
    pub(crate) fence: Fence,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SuzukiKasami {
    pub(crate) me: NodeId,
    pub(crate) phase: Phase,
    /// The largest request number received of each node.
    pub(crate) rn: Vec<u64>,
    pub(crate) token: Option<Box<Token>>,
}

/// Whether request `number` of a node comes right after the last one that was `served`.
fn is_next(number: u64, served: u64) -> bool {
    number.checked_sub(1) == Some(served)
}

impl SuzukiKasami {
    fn enter(&mut self, mut token: Box<Token>, out: &mut Effects<Msg>) {
        self.phase = Phase::Inside;
        token.fence = token.fence.next();
        out.granted(token.fence);
        self.token = Some(token);
    }

    fn on_ask(&mut self, from: NodeId, number: u64, out: &mut Effects<Msg>) {
        if number <= self.rn[from.index()] {
            return; // A later request of the same node has overtaken this one.
        }
        self.rn[from.index()] = number;
        if self.phase != Phase::Idle {
            return; // The release looks through all requests.
        }
        if let Some(token) = self.token.take_if(|token| is_next(number, token.ln[from.index()])) {
            out.send(from, Msg::Token(token));
        }
    }

    fn on_token(&mut self, token: Box<Token>, out: &mut Effects<Msg>) {
        if self.phase != Phase::Waiting || self.token.is_some() {
            return out.anomaly("a token came that nobody waits for");
        }
        let can_be_next = |&node: &NodeId| node != self.me && node.index() < self.rn.len();
        if token.ln.len() != self.rn.len() || !token.queue.iter().all(can_be_next) {
            return out.anomaly("a token came whose lists are not those of the group");
        }
        self.enter(token, out);
    }
}

impl Algorithm for SuzukiKasami {
    type Message = Msg;
    type Config = Members;

    const TOKEN: bool = true;

    fn new(me: NodeId, config: &Members, start: &Start) -> Self {
        let none = vec![0; config.nodes as usize];
        let token = || Token { ln: none.clone(), queue: VecDeque::new(), fence: Fence::NONE };
        SuzukiKasami {
            me,
            phase: start.phase_of(me),
            token: (start.token() == me).then(|| Box::new(token())),
            rn: none,
        }
    }

    fn on_request(&mut self, config: &Members, _claim: Claim, out: &mut Effects<Msg>) {
        if self.phase != Phase::Idle {
            return out.anomaly(ASKS_TWICE);
        }
        if let Some(token) = self.token.take() {
            return self.enter(token, out);
        }
        self.phase = Phase::Waiting;
        let number = self.rn[self.me.index()].saturating_add(1);
        self.rn[self.me.index()] = number;
        out.send_to_others(self.me, config.nodes, &Msg::Request(number));
    }

    fn on_release(&mut self, config: &Members, out: &mut Effects<Msg>) {
        self.phase = Phase::Idle;
        let Some(mut token) = self.token.take() else {
            return out.anomaly("a node leaves without the token");
        };
        let Token { ln, queue, .. } = &mut *token;
        ln[self.me.index()] = self.rn[self.me.index()];
        // Looking each node up in the queue itself would take N x N steps.
        let queued: NodeSet = queue.iter().copied().collect();
        let is_new = |node: &NodeId| {
            is_next(self.rn[node.index()], ln[node.index()]) && !queued.contains(*node)
        };
        queue.extend(self.me.others_after(config.nodes).filter(is_new));
        match queue.pop_front() {
            Some(next) => out.send(next, Msg::Token(token)),
            None => self.token = Some(token),
        }
    }

    fn on_message(
        &mut self,
        _config: &Members,
        from: NodeId,
        message: Msg,
        out: &mut Effects<Msg>,
    ) {
        match message {
            Msg::Request(number) => self.on_ask(from, number, out),
            Msg::Token(token) => self.on_token(token, out),
        }
    }

    fn holds_token(&self) -> bool {
        self.token.is_some()
    }

    fn variables(&self, out: &mut Variables) {
        out.phase(self.phase);
        out.per_node("R", self.rn.iter().copied());
        out.flag("token", self.token.is_some());
        let token = self.token.as_deref();
        out.per_node("L", token.into_iter().flat_map(|token| token.ln.iter().copied()));
        out.queue("Q", token.into_iter().flat_map(|token| token.queue.iter().copied()));
        out.number("fence", token.map_or(0, |token| token.fence.0));
    }
}

impl Registered for SuzukiKasami {
    const ENTRY: Entry = Entry {
        name: "suzuki-kasami",
        title: "Suzuki and Kasami, 1985",
        family: Family::Token,
        channels: Channels::Any,
        messages: "0 or N",
        delay: "T",
        fence: "counter in the token",
        source: "S2 8.4.1",
        max_nodes: 4096,
        parameters: &[],
        claims: Some(Tabled {
            messages: |nodes, load| match load {
                Load::Low => 0.0,
                Load::High => nodes - 1.0,
            },
            delay: |_| Range::between(0.0, 1.0),
        }),
        file: include_str!("suzuki_kasami.rs"),
    };

    fn config(spec: &Spec) -> Result<Members, SpecError> {
        Ok(Members { nodes: spec.nodes })
    }

    fn theory(config: &Members, load: Load) -> Theory {
        let nodes = f64::from(config.nodes);
        let messages = match load {
            _ if config.nodes == 1 => 0.0,
            // One requester in N has the token already; the others need N - 1 requests and it.
            Load::Low => nodes - 1.0,
            // Others wait at every release, and nobody enters twice in a row unless the others'
            // requests take longer than a stay inside.
            Load::High => nodes,
        };
        Theory { messages: Range::exactly(messages), delay: Range::exactly(1.0) }
    }

    fn mutations() -> &'static [&'static dyn Mutation<Self>] {
        mutants::suzuki_kasami::ALL
    }
}

#[cfg(test)]
mod tests {
    use catraca_core::{Effect, Input};

    use super::*;
    use crate::testing::{from, request, send, step};

    const GROUP: Members = Members { nodes: 4 };

    fn node(id: u32, start: &Start) -> SuzukiKasami {
        SuzukiKasami::new(NodeId(id), &GROUP, start)
    }

    fn token(ln: [u64; 4], queue: &[u32], fence: u64) -> Msg {
        let queue = queue.iter().copied().map(NodeId).collect();
        Msg::Token(Box::new(Token { ln: ln.to_vec(), queue, fence: Fence(fence) }))
    }

    /// 'It increments its sequence number R[S] and sends REQUEST (R[S], S) to all other sites.'
    /// Reference: S2 8.4.1.
    #[test]
    fn paper_a_requester_asks_all_others_and_enters_with_the_token() {
        let mut n1 = node(1, &Start::idle());
        let asked = [0, 2, 3].map(|to| send(to, Msg::Request(1)));
        assert_eq!(step(&mut n1, &GROUP, request()), asked);
        let entered = step(&mut n1, &GROUP, from(0, token([0; 4], &[], 6)));
        assert_eq!(entered, [Effect::Granted(Fence(7))]);
    }

    /// 'The delay can be 0 if the site already has the token.' Reference: S2 8.4.1.
    #[test]
    fn paper_the_node_with_the_token_enters_without_asking() {
        let mut n0 = node(0, &Start::idle());
        assert_eq!(step(&mut n0, &GROUP, request()), [Effect::Granted(Fence(1))]);
        assert_eq!(step(&mut n0, &GROUP, Input::Release), []);
        assert_eq!(step(&mut n0, &GROUP, request()), [Effect::Granted(Fence(2))]);
    }

    /// 'After the CS, S updates L[S] and looks for pending requests (R[i] = L[i] + 1) to send the
    /// token to.' Reference: S2 8.4.1.
    #[test]
    fn paper_a_leaving_node_queues_the_new_requesters_going_round_from_itself() {
        let mut n1 = node(1, &Start::inside(NodeId(1)));
        for asking in [0, 3, 2] {
            assert_eq!(step(&mut n1, &GROUP, from(asking, Msg::Request(1))), []);
        }
        let left = step(&mut n1, &GROUP, Input::Release);
        assert_eq!(left, [send(2, token([0; 4], &[3, 0], 0))]);
        assert!(!n1.holds_token());
    }

    #[test]
    fn those_who_are_queued_already_keep_their_place_and_come_once() {
        let mut n1 = node(1, &Start::idle());
        step(&mut n1, &GROUP, request());
        step(&mut n1, &GROUP, from(0, Msg::Request(1)));
        step(&mut n1, &GROUP, from(2, Msg::Request(1)));
        step(&mut n1, &GROUP, from(3, token([0; 4], &[0], 0)));
        let left = step(&mut n1, &GROUP, Input::Release);
        assert_eq!(left, [send(0, token([0, 1, 0, 0], &[2], 1))]);
    }

    #[test]
    fn an_idle_holder_gives_the_token_to_a_new_request_and_drops_an_old_one() {
        let mut n0 = node(0, &Start::idle());
        let given = step(&mut n0, &GROUP, from(2, Msg::Request(1)));
        assert_eq!(given, [send(2, token([0; 4], &[], 0))]);

        step(&mut n0, &GROUP, request());
        step(&mut n0, &GROUP, from(2, token([0, 0, 1, 1], &[], 2)));
        assert_eq!(step(&mut n0, &GROUP, Input::Release), []);
        assert_eq!(step(&mut n0, &GROUP, from(2, Msg::Request(1))), [], "seen before");
        assert_eq!(step(&mut n0, &GROUP, from(3, Msg::Request(1))), [], "served elsewhere");
        let given = step(&mut n0, &GROUP, from(3, Msg::Request(2)));
        assert_eq!(given, [send(3, token([1, 0, 1, 1], &[], 3))]);
    }

    #[test]
    fn a_group_of_one_enters_at_once() {
        let alone = Members { nodes: 1 };
        let mut node = SuzukiKasami::new(NodeId(0), &alone, &Start::idle());
        assert_eq!(step(&mut node, &alone, request()), [Effect::Granted(Fence(1))]);
    }

    #[test]
    fn a_token_for_nobody_is_an_anomaly() {
        let effects = step(&mut node(1, &Start::idle()), &GROUP, from(0, token([0; 4], &[], 0)));
        assert!(matches!(effects[..], [Effect::Anomaly(_)]));
    }
}
