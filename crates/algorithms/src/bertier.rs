//! **Idea.** Naimi-Trehel on two levels: nodes form clusters, each with a proxy, and only proxies
//! point outside. The requests of one cluster queue up inside it, and its proxy asks outside for the
//! first of them alone; the token then serves the cluster until it goes straight to the node that
//! waits outside. A local request may overtake that one, at most `max_preempt` times in a row.
//!
//! **Source.** S0, section 2.2; M. Bertier, L. Arantes and P. Sens, 2006, the first algorithm.
//!
//! **Assumes.** Reliable channels in any order; no crashes.
//!
//! **Cost.** 0 to N messages per entry, O(log N) on average, few of them between clusters; delay T.
//! Without `--clusters` the nodes are two clusters, the first half and the second, so that there is
//! an outside; `--max-preempt` is 1 by default.
//!
//! **Departs.** S0's PREEMPT tells the next local node how often the remote one has been overtaken;
//! here `nb_preempt` and the remote node travel with the token, which goes to that node anyway. S0
//! does not say how the rest of a local queue asks again once the token has left: whoever sends it
//! away asks its proxy to ask outside for the first of the rest. A remote request looks for the end
//! of the local queue, which may move away from it as long as local requests come; after `patience`
//! hops it turns the local pointers to the proxy, and local requests that come later ask outside.
//! Variables: `phase` is S0's requesting, `clusters` its LocalCluster; S0 has one `next` for local
//! and remote nodes, here it is `next` and `remote`; `last` is the owner of a proxy among proxies.

use alloc::boxed::Box;
use alloc::vec;

use catraca_core::{Algorithm, Claim, Effects, Fence, Message, NodeId, Phase, Snapshot, Start};
use catraca_topology::{ClusterShape, Clusters};
use serde::{Deserialize, Serialize};

use crate::mutants::{self, Mutation};
use crate::registry::{Channels, Entry, Family, Load, Range, Registered, Theory};
use crate::{Spec, SpecError};

/// How many hops a remote request looks for the end of a local queue before it turns the pointers.
/// The way is shorter than this unless the end moves, or the cluster is large.
const PATIENCE: u32 = 32;

/// What the nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Msg {
    /// Within a cluster, along `owner`: 'This node of ours wants to enter.'
    Request(NodeId),
    /// To one's proxy: 'The token has left us; ask outside for this node of ours.'
    Outside(NodeId),
    /// From proxy to proxy, along `last`: 'This node of another cluster wants to enter.'
    Remote(NodeId),
    /// Within a cluster, along `owner`: 'This node of another cluster comes after our last one.'
    Behind {
        /// The node of the other cluster.
        node: NodeId,
        /// How often this has been passed on.
        hops: u32,
    },
    /// To one's proxy: 'Local requests have kept this one of another cluster from our last node.'
    Overtaken(NodeId),
    /// As `Behind`, but later local requests go to the proxy instead of overtaking it.
    Turn(NodeId),
    /// 'You may enter.'
    Token {
        /// The token itself.
        token: Token,
        /// The node of another cluster that comes after this cluster, where it is known.
        remote: Option<NodeId>,
    },
}

impl Message for Msg {
    const KINDS: &'static [&'static str] =
        &["request", "outside", "remote", "behind", "overtaken", "turn", "token"];

    fn kind(&self) -> usize {
        match self {
            Msg::Request(_) => 0,
            Msg::Outside(_) => 1,
            Msg::Remote(_) => 2,
            Msg::Behind { .. } => 3,
            Msg::Overtaken(_) => 4,
            Msg::Turn(_) => 5,
            Msg::Token { .. } => 6,
        }
    }

    fn carries_token(&self) -> bool {
        matches!(self, Msg::Token { .. })
    }
}

/// The token. There is one, and it is moved from node to node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Token {
    /// The fence of the last entry.
    pub(crate) fence: Fence,
    /// How many local requests have overtaken the remote one that waits.
    pub(crate) nb_preempt: u32,
}

/// The clusters, and how patient a remote request has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Teams {
    /// Who is in which cluster, and the proxies.
    pub(crate) clusters: Clusters,
    /// How often in a row a local request may overtake a remote one.
    pub(crate) max_preempt: u32,
    /// How many hops a remote request looks for the end of the local queue.
    pub(crate) patience: u32,
}

impl Teams {
    fn knows(&self, node: NodeId) -> bool {
        node.0 < self.clusters.nodes()
    }

    /// Whether `node` exists and is in another cluster than `me`.
    fn is_remote(&self, me: NodeId, node: NodeId) -> bool {
        self.knows(node) && !self.clusters.are_together(me, node)
    }

    /// Whether `node` exists and is another one of the cluster of `me`.
    fn is_colleague(&self, me: NodeId, node: NodeId) -> bool {
        self.knows(node) && node != me && self.clusters.are_together(me, node)
    }
}

/// What a proxy knows beyond the other nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Proxy {
    /// The proxy of the cluster that probably gets the token last; oneself if it is this one.
    pub(crate) last: NodeId,
    /// The remote node that gets the token when this cluster is done.
    pub(crate) remote_owner: Option<NodeId>,
}

/// One node. Small, because there may be a million.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bertier {
    pub(crate) me: NodeId,
    pub(crate) phase: Phase,
    /// The node of this cluster that is probably the last of its queue; oneself if this is the
    /// root, where local requests arrive.
    pub(crate) owner: NodeId,
    /// Who gets the token after this node, in this cluster.
    pub(crate) next: Option<NodeId>,
    /// Who gets it in another cluster.
    pub(crate) remote: Option<NodeId>,
    /// Whether this is a root behind which nobody waits for the token to come: the next local
    /// request has to ask outside.
    pub(crate) gone: bool,
    pub(crate) token: Option<Token>,
    pub(crate) proxy: Option<Box<Proxy>>,
}

impl Bertier {
    fn is_root(&self) -> bool {
        self.owner == self.me
    }

    fn enter(&mut self, mut token: Token, out: &mut Effects<Msg>) {
        self.phase = Phase::Inside;
        token.fence = token.fence.next();
        out.granted(token.fence);
        self.token = Some(token);
    }

    /// The token, if it is here and not in use.
    fn idle_token(&mut self) -> Option<Token> {
        self.token.take_if(|_| self.phase == Phase::Idle)
    }

    /// A request of `node`, this one or another of the cluster, goes on along `owner`.
    fn follow_owner(&mut self, config: &Teams, node: NodeId, out: &mut Effects<Msg>) {
        let owner = core::mem::replace(&mut self.owner, node);
        if owner != self.me {
            return out.send(owner, Msg::Request(node));
        }
        if core::mem::take(&mut self.gone) {
            return self.ask_outside(config, node, out);
        }
        if node == self.me || self.next.is_some() {
            return out.anomaly("a request came to a root that cannot take it");
        }
        match self.idle_token() {
            Some(token) => self.pass(node, token, None, out),
            None => self.next = Some(node),
        }
    }

    fn pass(
        &mut self,
        to: NodeId,
        mut token: Token,
        remote: Option<NodeId>,
        out: &mut Effects<Msg>,
    ) {
        token.nb_preempt = if remote.is_some() { token.nb_preempt + 1 } else { 0 };
        out.send(to, Msg::Token { token, remote });
    }

    fn ask_outside(&mut self, config: &Teams, node: NodeId, out: &mut Effects<Msg>) {
        let proxy = config.clusters.proxy(self.me);
        if proxy == self.me {
            self.on_outside(node, out);
        } else {
            out.send(proxy, Msg::Outside(node));
        }
    }

    /// The cluster asks for the token once more, with `node` as the first of its queue. The proxy's
    /// own `owner` stays: it leads to `node`, or already to somebody behind it.
    fn on_outside(&mut self, node: NodeId, out: &mut Effects<Msg>) {
        match self.proxy.as_deref_mut() {
            Some(proxy) if proxy.last != self.me => {
                proxy.remote_owner = None;
                out.send(core::mem::replace(&mut proxy.last, self.me), Msg::Remote(node));
            }
            Some(_) => out.anomaly("a cluster asks outside, but it is the last to get the token"),
            None => out.anomaly("a node that is no proxy is to ask outside"),
        }
    }

    fn on_remote(&mut self, config: &Teams, node: NodeId, out: &mut Effects<Msg>) {
        let Some(proxy) = self.proxy.as_deref_mut() else {
            return out.anomaly("a request from outside came to a node that is no proxy");
        };
        let last = core::mem::replace(&mut proxy.last, config.clusters.proxy(node));
        if last != self.me {
            return out.send(last, Msg::Remote(node));
        }
        proxy.remote_owner = Some(node);
        self.on_behind(config, node, 0, out);
    }

    /// The remote `node` looks for the end of the local queue. It leaves the pointers as they are,
    /// so that local requests may still overtake it.
    fn on_behind(&mut self, config: &Teams, node: NodeId, hops: u32, out: &mut Effects<Msg>) {
        let proxy = config.clusters.proxy(self.me);
        if self.is_root() {
            self.gone = self.stand_behind(node, out);
        } else if hops < config.patience {
            out.send(self.owner, Msg::Behind { node, hops: hops + 1 });
        } else if proxy == self.me {
            self.on_overtaken(config, node, out);
        } else {
            out.send(proxy, Msg::Overtaken(node));
        }
    }

    /// The remote `node` gets the token after this one. True if it has been sent to it at once.
    fn stand_behind(&mut self, node: NodeId, out: &mut Effects<Msg>) -> bool {
        if self.gone || self.remote.is_some() {
            out.anomaly("a cluster has two to come after it");
            return self.gone;
        }
        match self.idle_token() {
            Some(token) => {
                self.pass(node, token, None, out);
                true
            }
            None => {
                self.remote = Some(node);
                false
            }
        }
    }

    /// The proxy becomes the root, so that nobody overtakes the remote `node` any more.
    fn on_overtaken(&mut self, config: &Teams, node: NodeId, out: &mut Effects<Msg>) {
        if self.proxy.as_ref().is_none_or(|proxy| proxy.remote_owner != Some(node)) {
            return out.anomaly("a request came back that was never let in");
        }
        if self.is_root() {
            return self.on_behind(config, node, 0, out);
        }
        self.gone = true;
        out.send(core::mem::replace(&mut self.owner, self.me), Msg::Turn(node));
    }

    fn on_turn(&mut self, config: &Teams, node: NodeId, out: &mut Effects<Msg>) {
        let proxy = config.clusters.proxy(self.me);
        if proxy == self.me {
            return out.anomaly("a turned pointer leads to the proxy that turned it");
        }
        let owner = core::mem::replace(&mut self.owner, proxy);
        if owner != self.me {
            return out.send(owner, Msg::Turn(node));
        }
        // The proxy is the root by now, and knows that the next request has to ask outside.
        self.stand_behind(node, out);
    }

    fn on_token(&mut self, token: Token, remote: Option<NodeId>, out: &mut Effects<Msg>) {
        if self.phase != Phase::Waiting || self.token.is_some() {
            return out.anomaly("a token came that nobody waits for");
        }
        if self.remote.is_some() && remote.is_some() {
            return out.anomaly("a cluster has two to come after it");
        }
        self.remote = self.remote.or(remote);
        self.enter(token, out);
    }
}

impl Algorithm for Bertier {
    type Message = Msg;
    type Config = Teams;

    const TOKEN: bool = true;

    fn new(me: NodeId, config: &Teams, start: &Start) -> Self {
        let elected = start.token();
        let proxy = config.clusters.proxy(me);
        let is_with_token = config.clusters.are_together(me, elected);
        let speaks =
            || Box::new(Proxy { last: config.clusters.proxy(elected), remote_owner: None });
        Bertier {
            me,
            phase: start.phase_of(me),
            owner: if is_with_token { elected } else { proxy },
            next: None,
            remote: None,
            gone: me == proxy && !is_with_token,
            token: (me == elected).then_some(Token { fence: Fence::NONE, nb_preempt: 0 }),
            proxy: (me == proxy).then(speaks),
        }
    }

    fn on_request(&mut self, config: &Teams, _claim: Claim, out: &mut Effects<Msg>) {
        if let Some(token) = self.token.take() {
            return self.enter(token, out);
        }
        self.phase = Phase::Waiting;
        self.follow_owner(config, self.me, out);
    }

    fn on_release(&mut self, config: &Teams, out: &mut Effects<Msg>) {
        self.phase = Phase::Idle;
        let Some(token) = self.token.take() else {
            return out.anomaly("a node leaves without the token");
        };
        match (self.next.take(), self.remote.take()) {
            (None, None) => self.token = Some(token),
            (Some(next), None) => self.pass(next, token, None, out),
            (Some(next), remote) if token.nb_preempt < config.max_preempt => {
                self.pass(next, token, remote, out);
            }
            (rest, Some(remote)) => {
                self.pass(remote, token, None, out);
                match rest {
                    Some(first) => self.ask_outside(config, first, out),
                    None => self.gone |= self.is_root(),
                }
            }
        }
    }

    fn on_message(&mut self, config: &Teams, _from: NodeId, message: Msg, out: &mut Effects<Msg>) {
        let is_sound = match message {
            Msg::Request(node) => config.is_colleague(self.me, node),
            Msg::Outside(node) => node == self.me || config.is_colleague(self.me, node),
            Msg::Remote(node)
            | Msg::Behind { node, .. }
            | Msg::Overtaken(node)
            | Msg::Turn(node) => config.is_remote(self.me, node),
            Msg::Token { remote, .. } => remote.is_none_or(|node| config.is_remote(self.me, node)),
        };
        if !is_sound {
            return out.anomaly("a message names a node that it cannot be about");
        }
        match message {
            Msg::Request(node) => self.follow_owner(config, node, out),
            Msg::Outside(node) => self.on_outside(node, out),
            Msg::Remote(node) => self.on_remote(config, node, out),
            Msg::Behind { node, hops } => self.on_behind(config, node, hops, out),
            Msg::Overtaken(node) => self.on_overtaken(config, node, out),
            Msg::Turn(node) => self.on_turn(config, node, out),
            Msg::Token { token, remote } => self.on_token(token, remote, out),
        }
    }

    fn points_to(&self) -> Option<NodeId> {
        Some(self.owner)
    }

    fn holds_token(&self) -> bool {
        self.token.is_some()
    }

    /// Following `owner` from any node leads within its cluster to a root, and following `last`
    /// from any proxy leads over proxies to one that takes its own cluster for the last.
    fn invariant(group: &Snapshot<'_, Self>) -> Result<(), &'static str> {
        let ends = |from: NodeId, step: &dyn Fn(NodeId) -> NodeId| {
            let mut at = from;
            for _ in group.nodes {
                at = step(at);
            }
            step(at) == at
        };
        let owner = |node: NodeId| group.nodes[node.index()].owner;
        let last = |node: NodeId| {
            group.nodes[node.index()].proxy.as_ref().map_or(node, |proxy| proxy.last)
        };
        for node in group.nodes {
            if !group.config.clusters.are_together(node.me, node.owner) {
                return Err("an owner is in another cluster");
            }
            if !ends(node.me, &owner) {
                return Err("the owners of a cluster lead in a circle");
            }
            if !ends(node.me, &last) {
                return Err("the proxies lead in a circle");
            }
        }
        Ok(())
    }
}

impl Registered for Bertier {
    const ENTRY: Entry = Entry {
        name: "bertier",
        title: "Bertier, Arantes and Sens, 2006",
        family: Family::Token,
        channels: Channels::Any,
        messages: "as naimi-trehel, few between clusters",
        delay: "T",
        fence: "counter in the token",
        source: "S0 2.2",
        max_nodes: 1_000_000,
        parameters: &["clusters", "max-preempt"],
        claims: None,
        file: include_str!("bertier.rs"),
    };

    fn config(spec: &Spec) -> Result<Teams, SpecError> {
        let clusters = if spec.clusters.is_none() && spec.nodes >= 2 {
            let second = spec.nodes / 2;
            Clusters::build(&ClusterShape::Sizes(vec![spec.nodes - second, second]), spec.nodes)?
        } else {
            spec.build_clusters()?
        };
        Ok(Teams { clusters, max_preempt: spec.max_preempt.unwrap_or(1), patience: PATIENCE })
    }

    fn theory(config: &Teams, _load: Load) -> Theory {
        let nodes = f64::from(config.clusters.nodes());
        Theory { messages: Range::between(0.0, nodes), delay: Range::exactly(1.0) }
    }

    fn mutations() -> &'static [&'static dyn Mutation<Self>] {
        mutants::bertier::ALL
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use catraca_core::{Effect, Input};

    use super::*;
    use crate::testing::{from, request, send, step};

    fn teams(shape: &str, nodes: u32) -> Teams {
        let clusters = Clusters::build(&shape.parse().unwrap(), nodes).unwrap();
        Teams { clusters, max_preempt: 1, patience: PATIENCE }
    }

    fn token(fence: u64, nb_preempt: u32, remote: Option<u32>) -> Msg {
        let token = Token { fence: Fence(fence), nb_preempt };
        Msg::Token { token, remote: remote.map(NodeId) }
    }

    /// The clusters {A, B, C} and {D, E, F} of S0's Figure 1, with the proxies A and F.
    const FIGURE: &str = "0,1,2|5,3,4";
    const A: u32 = 0;
    const B: u32 = 1;
    const C: u32 = 2;
    const D: u32 = 3;
    const E: u32 = 4;
    const F: u32 = 5;

    fn node(id: u32, start: &Start) -> Bertier {
        Bertier::new(NodeId(id), &teams(FIGURE, 6), start)
    }

    /// 'The nodes that do not belong to the cluster of Elected_node set their owner to the proxy of
    /// their cluster.' Reference: S0 2.2, Figure 1a.
    #[test]
    fn paper_the_owners_lead_to_the_elected_node_or_to_the_proxy() {
        let start = Start::inside(NodeId(A));
        let owners: Vec<u32> = (A..=F).map(|id| node(id, &start).owner.0).collect();
        assert_eq!(owners, [A, A, A, F, F, F]);
        assert_eq!(node(F, &start).proxy.map(|proxy| proxy.last), Some(NodeId(A)));
        assert_eq!([B, C, D, E].map(|id| node(id, &start).proxy), [None, None, None, None]);
    }

    /// 'D asks F, the proxy of its cluster. F redirects the message to A and sets its owner to D;
    /// A sets its next and its remote_owner to D.' Reference: S0 2.2, Figure 1b.
    /// 'E asks F. F redirects the message to D, which sets its next and owner to E. F, too, sets
    /// its owner to E. The request is not sent out of the cluster.' Reference: S0 2.2, Figure 1c.
    #[test]
    fn paper_d_asks_and_then_e() {
        let (group, start) = (teams(FIGURE, 6), Start::inside(NodeId(A)));
        let [mut a, mut d, mut e, mut f] = [A, D, E, F].map(|id| node(id, &start));

        let asked = |id| Msg::Request(NodeId(id));
        assert_eq!(step(&mut d, &group, request()), [send(F, asked(D))]);
        let outside = step(&mut f, &group, from(D, asked(D)));
        assert_eq!(outside, [send(A, Msg::Remote(NodeId(D)))]);
        assert_eq!(f.owner, NodeId(D));
        assert_eq!(step(&mut a, &group, from(F, Msg::Remote(NodeId(D)))), []);
        let proxy = a.proxy.as_deref().unwrap();
        assert_eq!((a.remote, proxy.remote_owner), (Some(NodeId(D)), Some(NodeId(D))));
        assert_eq!((a.owner, a.next, proxy.last), (NodeId(A), None, NodeId(F)));

        assert_eq!(step(&mut e, &group, request()), [send(F, asked(E))]);
        assert_eq!(step(&mut f, &group, from(E, asked(E))), [send(D, asked(E))]);
        assert_eq!(f.owner, NodeId(E));
        assert_eq!(step(&mut d, &group, from(F, asked(E))), []);
        assert_eq!((d.next, d.owner), (Some(NodeId(E)), NodeId(E)));

        assert_eq!(step(&mut a, &group, Input::Release), [send(D, token(0, 0, None))]);
        let entered = step(&mut d, &group, from(A, token(0, 0, None)));
        assert_eq!(entered, [Effect::Granted(Fence(1))]);
        assert_eq!(step(&mut d, &group, Input::Release), [send(E, token(1, 0, None))]);
        let entered = step(&mut e, &group, from(D, token(1, 0, None)));
        assert_eq!(entered, [Effect::Granted(Fence(2))]);
        assert_eq!(step(&mut e, &group, Input::Release), []);
        assert!(e.holds_token() && !e.gone);
    }

    /// 'nb_preempt: the number of successive local requests (used so as not to cause starvation)'
    /// Reference: S0 2.2.
    #[test]
    fn paper_a_local_request_overtakes_a_remote_one_max_preempt_times() {
        let (group, start) = (teams(FIGURE, 6), Start::inside(NodeId(A)));
        let [mut a, mut b] = [A, B].map(|id| node(id, &start));
        step(&mut a, &group, from(F, Msg::Remote(NodeId(D))));
        step(&mut b, &group, request());
        assert_eq!(step(&mut a, &group, from(B, Msg::Request(NodeId(B)))), []);
        let left = step(&mut a, &group, Input::Release);
        assert_eq!(left, [send(B, token(0, 1, Some(D)))]);

        assert_eq!(step(&mut b, &group, from(A, Msg::Request(NodeId(C)))), []);
        step(&mut b, &group, from(A, token(0, 1, Some(D))));
        let left = step(&mut b, &group, Input::Release);
        let rest = send(A, Msg::Outside(NodeId(C)));
        assert_eq!(left, [send(D, token(1, 0, None)), rest]);
        assert_eq!((b.next, b.remote, b.gone, b.holds_token()), (None, None, false, false));

        let outside = step(&mut a, &group, from(B, Msg::Outside(NodeId(C))));
        assert_eq!(outside, [send(F, Msg::Remote(NodeId(C)))]);
        let proxy = a.proxy.as_deref().unwrap();
        assert_eq!((proxy.last, proxy.remote_owner), (NodeId(A), None));
        assert_eq!(a.owner, NodeId(B), "the local queue stays as it is");
    }

    #[test]
    fn a_proxy_that_leaves_a_queue_behind_asks_outside_for_it_in_the_same_step() {
        let mut group = teams(FIGURE, 6);
        group.max_preempt = 0;
        let mut a = node(A, &Start::inside(NodeId(A)));
        step(&mut a, &group, from(F, Msg::Remote(NodeId(D))));
        step(&mut a, &group, from(B, Msg::Request(NodeId(B))));
        let left = step(&mut a, &group, Input::Release);
        assert_eq!(left, [send(D, token(0, 0, None)), send(F, Msg::Remote(NodeId(B)))]);
    }

    #[test]
    fn an_idle_holder_sends_the_token_to_whoever_asks() {
        let (group, start) = (teams(FIGURE, 6), Start::token_at(NodeId(B)));
        let mut a = node(A, &start);
        let let_in = step(&mut a, &group, from(F, Msg::Remote(NodeId(D))));
        assert_eq!(let_in, [send(B, Msg::Behind { node: NodeId(D), hops: 1 })]);
        assert_eq!(a.owner, NodeId(B), "a remote request turns no local pointer");

        let mut b = node(B, &start);
        let local = step(&mut b.clone(), &group, from(C, Msg::Request(NodeId(C))));
        assert_eq!(local, [send(C, token(0, 0, None))]);
        let remote = step(&mut b, &group, from(A, Msg::Behind { node: NodeId(D), hops: 1 }));
        assert_eq!(remote, [send(D, token(0, 0, None))]);
        assert!(b.gone);

        let asked = step(&mut b, &group, from(C, Msg::Request(NodeId(C))));
        assert_eq!(asked, [send(A, Msg::Outside(NodeId(C)))]);
        assert_eq!((b.owner, b.gone), (NodeId(C), false));
        assert_eq!(step(&mut b, &group, request()), [send(C, Msg::Request(NodeId(B)))]);
    }

    #[test]
    fn the_last_of_a_cluster_that_sent_the_token_away_asks_outside_for_itself() {
        let (group, start) = (teams(FIGURE, 6), Start::inside(NodeId(B)));
        let mut b = node(B, &start);
        step(&mut b, &group, from(A, Msg::Behind { node: NodeId(D), hops: 1 }));
        assert_eq!(step(&mut b, &group, Input::Release), [send(D, token(0, 0, None))]);
        assert_eq!(step(&mut b, &group, request()), [send(A, Msg::Outside(NodeId(B)))]);
        assert_eq!((b.owner, b.gone), (NodeId(B), false));
    }

    #[test]
    fn a_proxy_whose_cluster_is_not_the_last_passes_a_remote_request_on() {
        let group = teams("1,1,1", 3);
        let mut n1 = Bertier::new(NodeId(1), &group, &Start::idle());
        let passed = step(&mut n1, &group, from(2, Msg::Remote(NodeId(2))));
        assert_eq!(passed, [send(0, Msg::Remote(NodeId(2)))]);
        let proxy = n1.proxy.as_deref().unwrap();
        assert_eq!((proxy.last, proxy.remote_owner), (NodeId(2), None));
        assert_eq!(step(&mut n1, &group, request()), [send(2, Msg::Remote(NodeId(1)))]);
    }

    #[test]
    fn a_remote_request_that_runs_out_of_patience_turns_the_pointers_to_the_proxy() {
        let mut group = teams(FIGURE, 6);
        group.patience = 1;
        let start = Start::inside(NodeId(B));
        let [mut a, mut b, mut c] = [A, B, C].map(|id| node(id, &start));
        step(&mut a, &group, from(F, Msg::Remote(NodeId(D))));
        step(&mut c, &group, request());
        step(&mut b, &group, from(C, Msg::Request(NodeId(C))));
        let behind = Msg::Behind { node: NodeId(D), hops: 1 };
        let back = step(&mut b, &group, from(A, behind));
        assert_eq!(back, [send(A, Msg::Overtaken(NodeId(D)))]);

        let turned = step(&mut a, &group, from(B, Msg::Overtaken(NodeId(D))));
        assert_eq!(turned, [send(B, Msg::Turn(NodeId(D)))]);
        let turned = step(&mut b, &group, from(A, Msg::Turn(NodeId(D))));
        assert_eq!(turned, [send(C, Msg::Turn(NodeId(D)))]);
        assert_eq!(step(&mut c, &group, from(B, Msg::Turn(NodeId(D)))), []);
        assert_eq!([a.owner, b.owner, c.owner], [NodeId(A); 3]);
        assert_eq!((c.remote, c.gone, a.gone), (Some(NodeId(D)), false, true));

        // Whoever asks now is behind D.
        assert_eq!(step(&mut a, &group, request()), [send(F, Msg::Remote(NodeId(A)))]);
        step(&mut c, &group, from(B, token(0, 0, None)));
        assert_eq!(step(&mut c, &group, Input::Release), [send(D, token(1, 0, None))]);
        assert!(!c.gone, "the proxy is the root, not this node");
    }

    #[test]
    fn a_group_of_one_enters_at_once() {
        let alone = Bertier::config(&Spec::new("bertier", 1)).unwrap();
        let mut node = Bertier::new(NodeId(0), &alone, &Start::idle());
        assert_eq!(step(&mut node, &alone, request()), [Effect::Granted(Fence(1))]);
    }

    #[test]
    fn without_clusters_there_are_two_halves() {
        let halves = |nodes| Bertier::config(&Spec::new("bertier", nodes)).unwrap().clusters;
        assert_eq!(halves(2).by_node(), [0, 1]);
        assert_eq!(halves(5).by_node(), [0, 0, 0, 1, 1]);
        let mut spec = Spec::new("bertier", 3);
        spec.clusters = Some(ClusterShape::Sizes(vec![3]));
        spec.max_preempt = Some(4);
        let given = Bertier::config(&spec).unwrap();
        assert_eq!((given.clusters.count(), given.max_preempt), (1, 4));
    }

    #[test]
    fn what_cannot_be_meant_for_a_node_is_an_anomaly_and_changes_nothing() {
        let group = teams(FIGURE, 6);
        let behind = |id| Msg::Behind { node: NodeId(id), hops: u32::MAX };
        let unsound = [
            (A, Msg::Request(NodeId(A))),
            (A, Msg::Request(NodeId(D))),
            (B, Msg::Request(NodeId(6))),
            (F, Msg::Outside(NodeId(A))),
            (A, Msg::Outside(NodeId(B))),
            (B, Msg::Outside(NodeId(C))),
            (A, Msg::Remote(NodeId(B))),
            (A, Msg::Remote(NodeId(6))),
            (B, Msg::Remote(NodeId(D))),
            (B, behind(C)),
            (B, behind(6)),
            (F, behind(A)),
            (A, Msg::Overtaken(NodeId(D))),
            (B, Msg::Overtaken(NodeId(D))),
            (A, Msg::Turn(NodeId(D))),
            (B, Msg::Turn(NodeId(u32::MAX))),
            (A, token(0, 0, None)),
            (D, token(0, 0, None)),
            (D, token(0, u32::MAX, Some(6))),
            (D, token(0, 0, Some(E))),
        ];
        for (me, message) in unsound {
            let mut n = node(me, &Start::inside(NodeId(A)));
            let before = n.clone();
            let effects = step(&mut n, &group, from(B, message.clone()));
            assert!(matches!(effects[..], [Effect::Anomaly(_)]), "{message:?} at {me}");
            assert_eq!(n, before, "{message:?} at {me}");
        }
    }

    #[test]
    fn a_node_is_small() {
        assert!(size_of::<Bertier>() <= 64);
    }

    #[test]
    fn the_invariant_sees_circles_and_owners_outside() {
        let group = teams(FIGURE, 6);
        let nodes: Vec<Bertier> = (A..=F).map(|id| node(id, &Start::idle())).collect();
        let check = |change: &dyn Fn(&mut [Bertier])| {
            let mut nodes = nodes.clone();
            change(&mut nodes);
            Bertier::invariant(&Snapshot { config: &group, nodes: &nodes, in_flight: &[] })
        };
        assert_eq!(check(&|_| ()), Ok(()));
        assert!(check(&|nodes| nodes[0].owner = NodeId(B)).is_err(), "A and B face each other");
        assert!(check(&|nodes| nodes[1].owner = NodeId(F)).is_err(), "F is not a colleague of B");
        let circle = |nodes: &mut [Bertier]| {
            if let Some(proxy) = nodes[0].proxy.as_deref_mut() {
                proxy.last = NodeId(F);
            }
        };
        assert!(check(&circle).is_err(), "A and F face each other");
    }
}
