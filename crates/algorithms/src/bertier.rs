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
//! an outside; `--proxies` names the proxies, by default the first of each cluster; `--max-preempt`
//! is 1 by default.
//!
//! **Departs.** S0's PREEMPT tells the next local node how often the remote one has been overtaken;
//! here `nb_preempt` and the remote node travel with the token, which goes to that node anyway. S0
//! does not say how the rest of a local queue asks again once the token has left: the node that sends it
//! away asks its proxy to ask outside for the first of the rest. A remote request looks for the end
//! of the local queue, which may move away from it as long as local requests come; after `max_hops`
//! hops it turns the local pointers to the proxy, and local requests that come later ask outside.
//! The token carries the fence. Variables: `phase` is S0's requesting, `clusters` its LocalCluster; S0 has one `next` for local
//! and remote nodes, here it is `next` and `remote`; `last` is the owner of a proxy among proxies.

mod config;
mod message;
#[cfg(test)]
mod paper;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;

use catraca_core::{Algorithm, Claim, Effects, Fence, NodeId, Phase, Snapshot, Start, Variables};

use crate::mutants::{self, Mutation};
use crate::registry::{Channels, Entry, Family, Load, Range, Registered, Theory};
use crate::{ASKS_TWICE, Spec, SpecError};

pub(crate) use config::Config;
pub(crate) use message::{Msg, Token};

/// How many hops a remote request looks for the end of a local queue before it turns the pointers.
/// The way is shorter than this unless the end moves, or the cluster is large.
const MAX_HOPS: u32 = 32;

/// What a proxy knows beyond the other nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Proxy {
    /// The proxy of the cluster that probably gets the token last; this node if it is its own.
    pub(crate) last: NodeId,
    /// The remote node that gets the token when this cluster is done.
    pub(crate) remote_owner: Option<NodeId>,
}

/// One node. Small, because there may be a million.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bertier {
    pub(crate) me: NodeId,
    pub(crate) phase: Phase,
    /// The node of this cluster that is probably the last of its queue; this node if it is the
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
    fn follow_owner(&mut self, config: &Config, node: NodeId, out: &mut Effects<Msg>) {
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

    fn ask_outside(&mut self, config: &Config, node: NodeId, out: &mut Effects<Msg>) {
        let proxy = config.clusters.proxy(self.me);
        if proxy == self.me {
            self.on_outside(node, out);
        } else {
            out.send(proxy, Msg::Outside(node));
        }
    }

    /// The cluster asks for the token once more, with `node` as the first of its queue. The proxy's
    /// own `owner` stays: it leads to `node`, or already to a node behind it.
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

    fn on_remote(&mut self, config: &Config, node: NodeId, out: &mut Effects<Msg>) {
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
    fn on_behind(&mut self, config: &Config, node: NodeId, hops: u32, out: &mut Effects<Msg>) {
        let proxy = config.clusters.proxy(self.me);
        if self.is_root() {
            self.gone = self.queue_behind(node, out);
        } else if hops < config.max_hops {
            out.send(self.owner, Msg::Behind { node, hops: hops + 1 });
        } else if proxy == self.me {
            self.on_overtaken(config, node, out);
        } else {
            out.send(proxy, Msg::Overtaken(node));
        }
    }

    /// The remote `node` gets the token after this one. True if it has been sent to it at once.
    fn queue_behind(&mut self, node: NodeId, out: &mut Effects<Msg>) -> bool {
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
    fn on_overtaken(&mut self, config: &Config, node: NodeId, out: &mut Effects<Msg>) {
        if self.proxy.as_ref().is_none_or(|proxy| proxy.remote_owner != Some(node)) {
            return out.anomaly("a request came back that was never let in");
        }
        if self.is_root() {
            return self.on_behind(config, node, 0, out);
        }
        self.gone = true;
        out.send(core::mem::replace(&mut self.owner, self.me), Msg::Turn(node));
    }

    fn on_turn(&mut self, config: &Config, node: NodeId, out: &mut Effects<Msg>) {
        let proxy = config.clusters.proxy(self.me);
        if proxy == self.me {
            return out.anomaly("a turned pointer leads to the proxy that turned it");
        }
        let owner = core::mem::replace(&mut self.owner, proxy);
        if owner != self.me {
            return out.send(owner, Msg::Turn(node));
        }
        // The proxy is the root by now, and knows that the next request has to ask outside.
        self.queue_behind(node, out);
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
    type Config = Config;

    const TOKEN: bool = true;

    fn new(me: NodeId, config: &Config, start: &Start) -> Self {
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

    fn on_request(&mut self, config: &Config, _claim: Claim, out: &mut Effects<Msg>) {
        if self.phase != Phase::Idle {
            return out.anomaly(ASKS_TWICE);
        }
        if let Some(token) = self.token.take() {
            return self.enter(token, out);
        }
        self.phase = Phase::Waiting;
        self.follow_owner(config, self.me, out);
    }

    fn on_release(&mut self, config: &Config, out: &mut Effects<Msg>) {
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

    fn on_message(&mut self, config: &Config, _from: NodeId, message: Msg, out: &mut Effects<Msg>) {
        let is_sound = match message {
            Msg::Request(node) => config.is_local(self.me, node),
            Msg::Outside(node) => node == self.me || config.is_local(self.me, node),
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

    fn variables(&self, out: &mut Variables) {
        out.phase(self.phase);
        out.node("owner", self.owner);
        out.node("next", self.next);
        out.node("remote", self.remote);
        out.flag("gone", self.gone);
        out.flag("token", self.token.is_some());
        out.number("nb_preempt", self.token.as_ref().map_or(0, |token| token.nb_preempt));
        out.number("fence", self.token.as_ref().map_or(0, |token| token.fence.0));
        if let Some(proxy) = &self.proxy {
            out.part("proxy", |out| {
                out.node("owner", proxy.last);
                out.node("remote_owner", proxy.remote_owner);
            });
        }
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
        parameters: &["clusters", "proxies", "max-preempt"],
        claims: None,
        file: include_str!("bertier.rs"),
    };

    fn config(spec: &Spec) -> Result<Config, SpecError> {
        let clusters = spec.build_clusters()?;
        Ok(Config { clusters, max_preempt: spec.max_preempt.unwrap_or(1), max_hops: MAX_HOPS })
    }

    fn theory(config: &Config, _load: Load) -> Theory {
        let nodes = f64::from(config.clusters.nodes());
        Theory { messages: Range::between(0.0, nodes), delay: Range::exactly(1.0) }
    }

    fn mutations() -> &'static [&'static dyn Mutation<Self>] {
        mutants::bertier::ALL
    }
}
