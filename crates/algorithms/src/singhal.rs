//! **Idea.** Every node keeps a guess of what each other node does, and asks for the token only
//! those that it takes for requesting: one of them has the token or will have it. The guesses start
//! as a staircase, in which of any two nodes one will ask the other, and every step keeps that
//! true. The token carries guesses too, and spreads the news of who has been served.
//!
//! **Source.** S2, section 8.4.2; M. Singhal, 1989.
//!
//! **Assumes.** Reliable channels in any order; no crashes.
//!
//! **Cost.** 0 to N messages per entry: (N-1)(N+2)/(2N) on average at low load, N at high load; delay
//! T.
//!
//! **Departs.** Twice from the rules as they are usually given, which lose a request among three
//! nodes that ask twice each, FIFO or not. The token can bring the news of a request before the
//! request itself comes. The usual rules then drop the request as outdated, although its sender has
//! stopped asking because it relies on being asked; here an outdated request is not served but
//! noted, and a node that waits or has the token asks back. And they have a node learn from the
//! token on leaving, which forgets who asked while it was inside; here it learns on the token's
//! arrival, when it has asked everybody that it may forget. Further: the staircase is turned so
//! that the node where the token starts is its first step. Of the waiting nodes that it knows of, a
//! leaving node takes the next after itself in the ring; a request that the token knows of is
//! passed by at most N-2 others, so nobody starves. S2 gives a delay of 2T; the token goes straight
//! to the next node, in T. The token carries the fence. Variables are those of S2; `Site` is its R, E, H and N.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use catraca_core::{
    Algorithm, Bounds, Claim, Effects, Envelope, Fence, Message, NodeId, Snapshot, Start, Variables,
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
                let Token { tsv, tsn, fence } = &**token;
                let nodes = bounds.nodes() as usize;
                (tsv.len(), tsn.len()) == (nodes, nodes)
                    && tsn.iter().all(|&number| bounds.has_count(number))
                    && bounds.has_fence(*fence)
            }
        }
    }

    fn carries_token(&self) -> bool {
        matches!(self, Msg::Token(_))
    }
}

/// What a node does, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Site {
    /// R: it waits for the token.
    Requesting,
    /// E: it is inside.
    Executing,
    /// H: it has the token and is not inside.
    Holding,
    /// N: none of these.
    Neither,
}

impl Site {
    /// As S2 writes it.
    fn letter(self) -> char {
        match self {
            Site::Requesting => 'R',
            Site::Executing => 'E',
            Site::Holding => 'H',
            Site::Neither => 'N',
        }
    }
}

/// The token. There is one, and it is moved from node to node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Token {
    /// What each node does, as far as the token knows.
    pub(crate) tsv: Vec<Site>,
    /// The largest request number of each node that the token knows of.
    pub(crate) tsn: Vec<u64>,
    /// The fence of the last entry.
    pub(crate) fence: Fence,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Singhal {
    pub(crate) me: NodeId,
    /// What each node does, as far as this one knows; of itself it knows for certain.
    pub(crate) sv: Vec<Site>,
    /// The largest request number known of each node.
    pub(crate) sn: Vec<u64>,
    pub(crate) token: Option<Box<Token>>,
}

impl Singhal {
    pub(crate) fn enter(&mut self, mut token: Box<Token>, out: &mut Effects<Msg>) {
        self.sv[self.me.index()] = Site::Executing;
        token.fence = token.fence.next();
        out.granted(token.fence);
        self.token = Some(token);
    }

    fn on_ask(&mut self, from: NodeId, number: u64, out: &mut Effects<Msg>) {
        let is_new = number > self.sn[from.index()];
        self.sn[from.index()] = self.sn[from.index()].max(number);
        // An outdated request counts here too: its sender relies on being asked from now on.
        let believed = core::mem::replace(&mut self.sv[from.index()], Site::Requesting);
        match self.sv[self.me.index()] {
            Site::Holding if is_new => self.give_up_token(from, out),
            // The token is updated on leaving.
            Site::Executing if is_new => {}
            Site::Neither => {}
            _ if believed == Site::Requesting => {}
            // A waiting node has not asked it yet. A node with the token asks too: it has just
            // learnt that neither had to ask the other, and the sender may wait again by now.
            Site::Requesting | Site::Executing | Site::Holding => {
                out.send(from, Msg::Request(self.sn[self.me.index()]));
            }
        }
    }

    fn give_up_token(&mut self, to: NodeId, out: &mut Effects<Msg>) {
        let Some(mut token) = self.token.take() else {
            return out.anomaly("a node holds a token that it does not have");
        };
        self.sv[self.me.index()] = Site::Neither;
        self.update_token(&mut token);
        out.send(to, Msg::Token(token));
    }

    fn on_token(&mut self, mut token: Box<Token>, out: &mut Effects<Msg>) {
        if self.sv[self.me.index()] != Site::Requesting {
            return out.anomaly("a token came that nobody waits for");
        }
        if (token.tsv.len(), token.tsn.len()) != (self.sv.len(), self.sn.len()) {
            return out.anomaly("a token came whose lists are not those of the group");
        }
        self.update_token(&mut token);
        self.learn(&token);
        self.enter(token, out);
    }

    /// The token takes over what this node knows better.
    pub(crate) fn update_token(&self, token: &mut Token) {
        let mine = self.sv.iter().zip(&self.sn);
        let its = token.tsv.iter_mut().zip(&mut token.tsn);
        for ((sv, sn), (tsv, tsn)) in mine.zip(its).filter(|((_, sn), (_, tsn))| *sn > tsn) {
            (*tsv, *tsn) = (*sv, *sn);
        }
    }

    /// This node takes over what the token knows, which after [`update_token`](Self::update_token) is never older.
    pub(crate) fn learn(&mut self, token: &Token) {
        self.sv.copy_from_slice(&token.tsv);
        self.sn.copy_from_slice(&token.tsn);
    }

    /// Whether this node would ask `other`.
    fn would_ask(&self, other: NodeId) -> bool {
        self.sv[other.index()] == Site::Requesting
    }
}

impl Algorithm for Singhal {
    type Message = Msg;
    type Config = Members;

    const TOKEN: bool = true;

    fn new(me: NodeId, config: &Members, start: &Start) -> Self {
        let order = |node: NodeId| (node.0 + config.nodes - start.token().0) % config.nodes;
        let believed = |node| match order(node) < order(me) {
            true => Site::Requesting,
            false => Site::Neither,
        };
        let mut sv: Vec<Site> = NodeId::all(config.nodes).map(believed).collect();
        let sn = vec![0; config.nodes as usize];
        let mut token = None;
        if start.token() == me {
            sv[me.index()] = if start.is_inside(me) { Site::Executing } else { Site::Holding };
            let tsv = vec![Site::Neither; config.nodes as usize];
            token = Some(Box::new(Token { tsv, tsn: sn.clone(), fence: Fence::NONE }));
        }
        Singhal { me, sv, sn, token }
    }

    fn on_request(&mut self, config: &Members, _claim: Claim, out: &mut Effects<Msg>) {
        if matches!(self.sv[self.me.index()], Site::Requesting | Site::Executing) {
            return out.anomaly(ASKS_TWICE);
        }
        if let Some(token) = self.token.take() {
            return self.enter(token, out);
        }
        self.sv[self.me.index()] = Site::Requesting;
        let number = self.sn[self.me.index()].saturating_add(1);
        self.sn[self.me.index()] = number;
        for node in NodeId::all(config.nodes) {
            if node != self.me && self.would_ask(node) {
                out.send(node, Msg::Request(number));
            }
        }
    }

    fn on_release(&mut self, config: &Members, out: &mut Effects<Msg>) {
        let Some(mut token) = self.token.take() else {
            return out.anomaly("a node leaves without the token");
        };
        self.sv[self.me.index()] = Site::Neither;
        token.tsv[self.me.index()] = Site::Neither;
        self.update_token(&mut token);
        let waits = |node: &NodeId| token.tsv[node.index()] == Site::Requesting;
        match self.me.others_after(config.nodes).find(waits) {
            Some(next) => out.send(next, Msg::Token(token)),
            None => {
                self.sv[self.me.index()] = Site::Holding;
                self.token = Some(token);
            }
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

    /// Of any two nodes, one takes the other for requesting and so would ask it, or a request is on
    /// its way from one to the other. Without that a request could miss the token for ever.
    fn invariant(group: &Snapshot<'_, Self>) -> Result<(), &'static str> {
        let asks = |from: NodeId, to: NodeId| {
            let is_it = |envelope: &Envelope<Msg>| {
                (envelope.from, envelope.to) == (from, to) && !envelope.message.carries_token()
            };
            group.nodes[from.index()].would_ask(to) || group.in_flight.iter().any(is_it)
        };
        for a in NodeId::all(group.config.nodes) {
            for b in NodeId::all(a.0) {
                if !asks(a, b) && !asks(b, a) {
                    return Err("neither of two nodes would ask the other");
                }
            }
        }
        Ok(())
    }

    fn variables(&self, out: &mut Variables) {
        let letters = |sites: &[Site]| sites.iter().map(|site| site.letter()).collect::<String>();
        out.text("SV", letters(&self.sv));
        out.per_node("SN", self.sn.iter().copied());
        out.flag("token", self.token.is_some());
        let token = self.token.as_deref();
        out.text("TSV", token.map_or(String::new(), |token| letters(&token.tsv)));
        out.per_node("TSN", token.into_iter().flat_map(|token| token.tsn.iter().copied()));
        out.number("fence", token.map_or(0, |token| token.fence.0));
    }
}

impl Registered for Singhal {
    const ENTRY: Entry = Entry {
        name: "singhal",
        title: "Singhal, 1989",
        family: Family::Token,
        channels: Channels::Any,
        messages: "about N/2 at low load, N at high load",
        delay: "T",
        fence: "counter in the token",
        source: "S2 8.4.2",
        max_nodes: 4096,
        parameters: &[],
        claims: Some(Tabled { messages: |nodes, _| nodes / 2.0, delay: |_| Range::exactly(2.0) }),
        file: include_str!("singhal.rs"),
    };

    fn config(spec: &Spec) -> Result<Members, SpecError> {
        Ok(Members { nodes: spec.nodes })
    }

    fn theory(config: &Members, load: Load) -> Theory {
        let nodes = f64::from(config.nodes);
        let messages = match load {
            _ if config.nodes == 1 => Range::exactly(0.0),
            // One request at a time moves the requester to the first step of the staircase and
            // leaves the order of the others. On step p it has sent p requests and cost a token;
            // p is uniform from 0, where the token is, to N - 1.
            Load::Low => Range::exactly((nodes - 1.0) * (nodes + 2.0) / (2.0 * nodes)),
            // All wait and know it, so everybody asks everybody.
            Load::High => Range::exactly(nodes),
        };
        Theory { messages, delay: Range::exactly(1.0) }
    }

    fn mutations() -> &'static [&'static dyn Mutation<Self>] {
        mutants::singhal::ALL
    }
}

#[cfg(test)]
mod tests {
    use catraca_core::{Effect, Input};

    use super::Site::{Executing, Holding, Neither, Requesting};
    use super::*;
    use crate::testing::{from, request, send, step};

    const GROUP: Members = Members { nodes: 3 };

    fn node(id: u32, start: &Start) -> Singhal {
        Singhal::new(NodeId(id), &GROUP, start)
    }

    fn token(tsv: [Site; 3], tsn: [u64; 3], fence: u64) -> Msg {
        let (tsv, tsn) = (tsv.to_vec(), tsn.to_vec());
        Msg::Token(Box::new(Token { tsv, tsn, fence: Fence(fence) }))
    }

    #[test]
    fn the_staircase_begins_at_the_token() {
        let guesses = |start: &Start| [0, 1, 2].map(|id| node(id, start).sv);
        let at_0 = [
            [Holding, Neither, Neither],
            [Requesting, Neither, Neither],
            [Requesting, Requesting, Neither],
        ];
        assert_eq!(guesses(&Start::idle()), at_0);
        let inside_1 = [
            [Neither, Requesting, Requesting],
            [Neither, Executing, Neither],
            [Neither, Requesting, Neither],
        ];
        assert_eq!(guesses(&Start::inside(NodeId(1))), inside_1);
    }

    /// 'It sets SV[S] = R, increments SN[S] and sends REQUEST to the sites that are in state R.'
    /// Reference: S2 8.4.2.
    #[test]
    fn paper_a_requester_asks_those_it_takes_for_requesting() {
        let mut n2 = node(2, &Start::idle());
        let asked = [send(0, Msg::Request(1)), send(1, Msg::Request(1))];
        assert_eq!(step(&mut n2, &GROUP, request()), asked);
        let mut n1 = node(1, &Start::idle());
        assert_eq!(step(&mut n1, &GROUP, request()), [send(0, Msg::Request(1))]);
    }

    /// 'When S receives the token it enters the CS.' Reference: S2 8.4.2.
    #[test]
    fn paper_the_token_lets_a_requester_in() {
        let mut n1 = node(1, &Start::idle());
        step(&mut n1, &GROUP, request());
        let came = token([Neither, Requesting, Neither], [0, 1, 0], 4);
        assert_eq!(step(&mut n1, &GROUP, from(0, came)), [Effect::Granted(Fence(5))]);
        assert_eq!(step(&mut n1, &GROUP, Input::Release), []);
        assert_eq!(n1.sv, [Neither, Holding, Neither]);
        assert_eq!(step(&mut n1, &GROUP, request()), [Effect::Granted(Fence(6))]);
    }

    /// 'After leaving, S looks for pending requests and sends the token to the next site.'
    /// Reference: S2 8.4.2.
    #[test]
    fn paper_a_leaving_node_sends_the_token_to_the_next_requester_in_the_ring() {
        let mut n1 = node(1, &Start::inside(NodeId(1)));
        assert_eq!(step(&mut n1, &GROUP, from(0, Msg::Request(1))), []);
        assert_eq!(step(&mut n1, &GROUP, from(2, Msg::Request(1))), []);
        let known = token([Requesting, Neither, Requesting], [1, 0, 1], 0);
        assert_eq!(step(&mut n1, &GROUP, Input::Release), [send(2, known)]);
        assert!(!n1.holds_token());
    }

    #[test]
    fn an_idle_holder_gives_the_token_away_and_remembers_to_whom() {
        let mut n0 = node(0, &Start::idle());
        let given = step(&mut n0, &GROUP, from(2, Msg::Request(1)));
        assert_eq!(given, [send(2, token([Neither, Neither, Requesting], [0, 0, 1], 0))]);
        assert_eq!(n0.sv, [Neither, Neither, Requesting]);
        assert_eq!(step(&mut n0, &GROUP, request()), [send(2, Msg::Request(1))]);
    }

    #[test]
    fn a_requester_asks_back_whom_it_did_not_know_to_be_requesting() {
        let mut n1 = node(1, &Start::idle());
        step(&mut n1, &GROUP, request());
        let asked_back = step(&mut n1, &GROUP, from(2, Msg::Request(1)));
        assert_eq!(asked_back, [send(2, Msg::Request(1))]);
        assert_eq!(step(&mut n1, &GROUP, from(0, Msg::Request(1))), [], "asked before");
    }

    #[test]
    fn a_node_learns_on_the_tokens_arrival_who_no_longer_waits() {
        let mut n2 = node(2, &Start::idle());
        step(&mut n2, &GROUP, request());
        step(&mut n2, &GROUP, from(1, token([Neither, Neither, Requesting], [3, 0, 1], 4)));
        assert_eq!((&n2.sv[..], &n2.sn[..]), (&[Neither, Neither, Executing][..], &[3, 0, 1][..]));
        assert_eq!(step(&mut n2, &GROUP, Input::Release), []);
    }

    #[test]
    fn the_token_learns_from_a_node_who_waits() {
        let mut n1 = node(1, &Start::idle());
        step(&mut n1, &GROUP, request());
        step(&mut n1, &GROUP, from(2, Msg::Request(1)));
        step(&mut n1, &GROUP, from(0, token([Neither, Requesting, Neither], [0, 1, 0], 0)));
        let known = token([Neither, Neither, Requesting], [0, 1, 1], 1);
        assert_eq!(step(&mut n1, &GROUP, Input::Release), [send(2, known)]);
    }

    /// Node 1 after it has learned from the token that request 1 of node 2 is served, before that request
    /// itself has come.
    fn outrun_by_the_token() -> Singhal {
        let mut n1 = node(1, &Start::idle());
        step(&mut n1, &GROUP, request());
        step(&mut n1, &GROUP, from(0, token([Neither, Requesting, Neither], [0, 1, 1], 1)));
        assert_eq!(n1.sv, [Neither, Executing, Neither]);
        n1
    }

    #[test]
    fn a_node_with_the_token_asks_back_on_an_outdated_request_and_keeps_the_token() {
        let mut inside = outrun_by_the_token();
        let late = || from(2, Msg::Request(1));
        assert_eq!(step(&mut inside, &GROUP, late()), [send(2, Msg::Request(1))]);
        assert_eq!(step(&mut inside, &GROUP, late()), [], "asked before");
        assert_eq!(step(&mut inside, &GROUP, Input::Release), []);

        let mut holding = outrun_by_the_token();
        step(&mut holding, &GROUP, Input::Release);
        assert_eq!(step(&mut holding, &GROUP, late()), [send(2, Msg::Request(1))]);
        assert_eq!(holding.sv, [Neither, Holding, Requesting]);
    }

    #[test]
    fn an_idle_node_remembers_to_ask_the_sender_of_an_outdated_request() {
        let mut n1 = outrun_by_the_token();
        step(&mut n1, &GROUP, Input::Release);
        step(&mut n1, &GROUP, from(0, Msg::Request(1)));
        assert_eq!(step(&mut n1, &GROUP, from(2, Msg::Request(1))), []);
        let asked = [send(0, Msg::Request(2)), send(2, Msg::Request(2))];
        assert_eq!(step(&mut n1, &GROUP, request()), asked);
    }

    #[test]
    fn a_group_of_one_enters_at_once() {
        let alone = Members { nodes: 1 };
        let mut node = Singhal::new(NodeId(0), &alone, &Start::idle());
        assert_eq!(step(&mut node, &alone, request()), [Effect::Granted(Fence(1))]);
    }

    #[test]
    fn a_token_for_nobody_is_an_anomaly() {
        let came = token([Neither; 3], [0; 3], 0);
        let effects = step(&mut node(1, &Start::idle()), &GROUP, from(0, came));
        assert!(matches!(effects[..], [Effect::Anomaly(_)]));
    }

    #[test]
    fn the_invariant_sees_two_nodes_that_would_not_ask_each_other() {
        let mut nodes = [0, 1, 2].map(|id| node(id, &Start::idle()));
        let check = |nodes: &[Singhal]| {
            Singhal::invariant(&Snapshot { config: &GROUP, nodes, in_flight: &[] })
        };
        assert_eq!(check(&nodes), Ok(()));
        nodes[2].sv[1] = Neither;
        assert!(check(&nodes).is_err());
    }
}
