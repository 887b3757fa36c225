//! **Idea.** The nodes form a tree, and each knows through which neighbour the token is to be
//! reached. A request goes from neighbour to neighbour towards the token; each node on the way
//! keeps a queue of those who asked it and asks only once itself. The token comes back the same way
//! and turns the pointers round as it passes.
//!
//! **Source.** S2, section 8.4.3; K. Raymond, 1989.
//!
//! **Assumes.** Reliable channels in any order; no crashes.
//!
//! **Cost.** 2 messages per edge between the token and the requester at low load, 4(N-1)/N per
//! entry at high load; delay T per edge. The tree (`--tree`) is a balanced binary one by default, or
//! a star, a chain, or given.
//!
//! **Departs.** The token carries the fence. The request that follows a token may overtake it: it
//! waits in the queue until the token comes, so FIFO is not needed (S2 8.1 assumes it). Variables:
//! `holder`, `using`, `asked` and `request_q` are the original's; `request_q` is S2's RQ.

use catraca_core::{
    Algorithm, Bounds, Claim, Effects, Fence, Message, NodeId, Snapshot, Start, Variables,
};
use catraca_topology::Tree;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::mutants::{self, Mutation};
use crate::registry::{Channels, Entry, Family, Load, Range, Registered, Tabled, Theory};
use crate::{ASKS_TWICE, Spec, SpecError, TOO_MANY_WAIT};

/// What the nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Msg {
    /// 'Somebody on my side wants to enter.'
    Request,
    /// The original's PRIVILEGE: 'The token is yours; this is the fence of the last entry.'
    Token(Fence),
}

impl Message for Msg {
    const KINDS: &'static [&'static str] = &["request", "token"];

    fn kind(&self) -> usize {
        match self {
            Msg::Request => 0,
            Msg::Token(_) => 1,
        }
    }

    fn is_possible(&self, bounds: Bounds) -> bool {
        match *self {
            Msg::Request => true,
            Msg::Token(fence) => bounds.has_fence(fence),
        }
    }

    fn carries_token(&self) -> bool {
        matches!(self, Msg::Token(_))
    }
}

/// One node. Small, because there may be millions: up to three neighbours need no heap.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Raymond {
    pub(crate) me: NodeId,
    /// The neighbour on the way to the token; oneself where the token is.
    pub(crate) holder: NodeId,
    /// Neighbours, and perhaps oneself, that have asked and not been served. Each is in it once.
    pub(crate) request_q: SmallVec<[NodeId; 4]>,
    /// The fence of the last entry where the token is; elsewhere none, so that equal states are
    /// equal.
    pub(crate) fence: Fence,
    /// Whether this node is inside.
    pub(crate) using: bool,
    /// Whether `holder` has been asked.
    pub(crate) asked: bool,
}

impl Raymond {
    fn enter(&mut self, out: &mut Effects<Msg>) {
        self.using = true;
        self.fence = self.fence.next();
        out.granted(self.fence);
    }

    pub(crate) fn assign_privilege(&mut self, out: &mut Effects<Msg>) {
        if self.holder != self.me || self.using || self.request_q.is_empty() {
            return;
        }
        self.holder = self.request_q.remove(0);
        self.asked = false;
        if self.holder == self.me {
            self.enter(out);
        } else {
            out.send(self.holder, Msg::Token(self.fence));
            self.fence = Fence::NONE;
        }
    }

    fn make_request(&mut self, out: &mut Effects<Msg>) {
        if self.holder != self.me && !self.request_q.is_empty() && !self.asked {
            out.send(self.holder, Msg::Request);
            self.asked = true;
        }
    }

    fn assign_and_request(&mut self, out: &mut Effects<Msg>) {
        self.assign_privilege(out);
        self.make_request(out);
    }

    fn on_token(&mut self, from: NodeId, fence: Fence, out: &mut Effects<Msg>) {
        if self.holder != from {
            return out.anomaly("a token came from where it was not");
        }
        self.holder = self.me;
        self.fence = fence;
        self.assign_and_request(out);
    }
}

impl Algorithm for Raymond {
    type Message = Msg;
    type Config = Tree;

    const TOKEN: bool = true;

    fn new(me: NodeId, config: &Tree, start: &Start) -> Self {
        debug_assert_eq!(config.root(), start.token(), "the pointers lead to the root");
        Raymond {
            me,
            holder: config.parent(me),
            request_q: SmallVec::new(),
            fence: Fence::NONE,
            using: start.is_inside(me),
            asked: false,
        }
    }

    fn on_request(&mut self, _config: &Tree, _claim: Claim, out: &mut Effects<Msg>) {
        if self.using || self.request_q.contains(&self.me) {
            return out.anomaly(ASKS_TWICE);
        }
        self.request_q.push(self.me);
        self.assign_and_request(out);
    }

    fn on_release(&mut self, _config: &Tree, out: &mut Effects<Msg>) {
        self.using = false;
        self.assign_and_request(out);
    }

    fn on_message(&mut self, config: &Tree, from: NodeId, message: Msg, out: &mut Effects<Msg>) {
        match message {
            Msg::Request if self.request_q.len() >= config.nodes() as usize => {
                out.anomaly(TOO_MANY_WAIT);
            }
            Msg::Request => {
                self.request_q.push(from);
                self.assign_and_request(out);
            }
            Msg::Token(fence) => self.on_token(from, fence, out),
        }
    }

    fn points_to(&self) -> Option<NodeId> {
        Some(self.holder)
    }

    fn holds_token(&self) -> bool {
        self.holder == self.me
    }

    /// Following `holder` from any node leads along edges of the tree to the token, or to the node
    /// that it is on its way to. On the edge where it travels the pointers of both ends may face
    /// each other.
    fn invariant(group: &Snapshot<'_, Self>) -> Result<(), &'static str> {
        let resting = || group.nodes.iter().find(|node| node.holds_token()).map(|node| node.me);
        let travelling = group.in_flight.iter().find(|envelope| envelope.message.carries_token());
        let Some(goal) = travelling.map(|envelope| envelope.to).or_else(resting) else {
            return Err("there is no token to point at");
        };
        for node in group.nodes {
            let mut at = node.me;
            for _ in 0..group.nodes.len() {
                if at == goal {
                    break;
                }
                let next = group.nodes[at.index()].holder;
                if !group.config.are_neighbours(at, next) {
                    return Err("a holder is not a neighbour");
                }
                at = next;
            }
            if at != goal {
                return Err("the holders do not lead to the token");
            }
        }
        Ok(())
    }

    fn variables(&self, out: &mut Variables) {
        out.node("HOLDER", self.holder);
        out.flag("USING", self.using);
        out.queue("REQUEST_Q", self.request_q.iter().copied());
        out.flag("ASKED", self.asked);
        out.number("fence", self.fence.0);
    }
}

impl Registered for Raymond {
    const ENTRY: Entry = Entry {
        name: "raymond",
        title: "Raymond, 1989",
        family: Family::Token,
        channels: Channels::Any,
        messages: "2 x distance; 4(N-1)/N at high load",
        delay: "T x distance",
        fence: "counter in the token",
        source: "S2 8.4.3",
        max_nodes: 10_000_000,
        parameters: &["tree"],
        claims: Some(Tabled {
            messages: |nodes, _| 4.0 * libm::log2(nodes),
            delay: |nodes| Range::exactly(libm::log2(nodes) / 2.0),
        }),
        file: include_str!("raymond.rs"),
    };

    fn config(spec: &Spec) -> Result<Tree, SpecError> {
        spec.build_tree()
    }

    fn theory(config: &Tree, load: Load) -> Theory {
        let nodes = f64::from(config.nodes());
        // While all wait, every queue goes round and the token walks round the whole tree: N
        // entries in 2(N-1) edges. It is fewer where a stay inside is shorter than the way of the
        // request behind the token: then the node enters again before it knows that others wait.
        let hops = 2.0 * (nodes - 1.0) / nodes;
        let (messages, delay) = match load {
            Load::Low => {
                let distance = config.mean_distance();
                // A node that waits while another is inside is not at distance 0; a node that asks may be.
                (2.0 * distance, distance * nodes / (nodes - 1.0).max(1.0))
            }
            Load::High => (2.0 * hops, hops),
        };
        Theory { messages: Range::exactly(messages), delay: Range::exactly(delay) }
    }

    fn mutations() -> &'static [&'static dyn Mutation<Self>] {
        mutants::raymond::ALL
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use catraca_core::{Effect, Envelope, Input};
    use catraca_topology::TreeShape;

    use super::*;
    use crate::testing::{from, request, send, step};

    /// Node 0 with the neighbours 1 and 2; node 1 with the neighbours 0, 3 and 4.
    fn tree(root: u32) -> Tree {
        Tree::build(&TreeShape::Binary, 5).unwrap().rooted_at(NodeId(root))
    }

    fn node(id: u32, start: &Start) -> Raymond {
        Raymond::new(NodeId(id), &tree(start.token().0), start)
    }

    /// 'It puts its request into its local queue RQ and sends REQUEST to the site HOLDER.'
    /// Reference: S2 8.4.3.
    #[test]
    fn paper_a_requester_asks_its_holder() {
        let mut n3 = node(3, &Start::idle());
        assert_eq!(step(&mut n3, &tree(0), request()), [send(1, Msg::Request)]);
        let entered = step(&mut n3, &tree(0), from(1, Msg::Token(Fence(6))));
        assert_eq!(entered, [Effect::Granted(Fence(7))]);
        assert!(n3.holds_token());
    }

    /// 'Each node has a pointer HOLDER to the node that is nearer to the token.'
    /// Reference: S2 8.4.3.
    #[test]
    fn paper_a_node_on_the_way_passes_the_first_request_on_and_remembers_the_others() {
        let mut n1 = node(1, &Start::idle());
        assert_eq!(step(&mut n1, &tree(0), from(3, Msg::Request)), [send(0, Msg::Request)]);
        assert_eq!(step(&mut n1, &tree(0), from(4, Msg::Request)), []);
        assert_eq!(step(&mut n1, &tree(0), request()), []);
        assert_eq!(n1.request_q[..], [NodeId(3), NodeId(4), NodeId(1)]);
    }

    /// 'The site with the token looks at its local queue and sends the token to the next in it.'
    /// Reference: S2 8.4.3.
    #[test]
    fn paper_the_token_goes_to_the_first_in_the_queue_and_a_request_follows_for_the_rest() {
        let mut n1 = node(1, &Start::idle());
        step(&mut n1, &tree(0), from(3, Msg::Request));
        step(&mut n1, &tree(0), from(4, Msg::Request));
        let passed = step(&mut n1, &tree(0), from(0, Msg::Token(Fence(2))));
        assert_eq!(passed, [send(3, Msg::Token(Fence(2))), send(3, Msg::Request)]);
        assert_eq!((n1.holder, n1.fence), (NodeId(3), Fence::NONE));
    }

    /// 'After the CS, if there are pending requests the token goes to the next in the queue;
    /// otherwise the site keeps it.' Reference: S2 8.4.3.
    #[test]
    fn paper_a_leaving_node_sends_the_token_on_or_keeps_it() {
        let mut n1 = node(1, &Start::inside(NodeId(1)));
        assert_eq!(step(&mut n1, &tree(1), from(0, Msg::Request)), []);
        assert_eq!(step(&mut n1, &tree(1), Input::Release), [send(0, Msg::Token(Fence(0)))]);

        let mut n2 = node(2, &Start::inside(NodeId(2)));
        assert_eq!(step(&mut n2, &tree(2), Input::Release), []);
        assert_eq!(step(&mut n2, &tree(2), request()), [Effect::Granted(Fence(1))]);
    }

    #[test]
    fn a_request_that_overtakes_the_token_waits_for_it() {
        let mut n3 = node(3, &Start::idle());
        step(&mut n3, &tree(0), request());
        assert_eq!(step(&mut n3, &tree(0), from(1, Msg::Request)), []);
        let entered = step(&mut n3, &tree(0), from(1, Msg::Token(Fence(0))));
        assert_eq!(entered, [Effect::Granted(Fence(1))]);
        let left = step(&mut n3, &tree(0), Input::Release);
        assert_eq!(left, [send(1, Msg::Token(Fence(1)))]);
    }

    #[test]
    fn a_group_of_one_enters_at_once() {
        let alone = Tree::build(&TreeShape::Binary, 1).unwrap();
        let mut node = Raymond::new(NodeId(0), &alone, &Start::idle());
        assert_eq!(step(&mut node, &alone, request()), [Effect::Granted(Fence(1))]);
    }

    #[test]
    fn a_token_from_the_wrong_side_is_an_anomaly() {
        let effects = step(&mut node(1, &Start::idle()), &tree(0), from(3, Msg::Token(Fence(0))));
        assert!(matches!(effects[..], [Effect::Anomaly(_)]));
    }

    #[test]
    fn a_node_is_small_and_a_full_queue_of_a_binary_tree_needs_no_heap() {
        assert!(size_of::<Raymond>() <= 48);
        let mut n1 = node(1, &Start::inside(NodeId(1)));
        for neighbour in [0, 3, 4] {
            step(&mut n1, &tree(1), from(neighbour, Msg::Request));
        }
        n1.request_q.push(NodeId(1));
        assert!(!n1.request_q.spilled());
    }

    #[test]
    fn the_invariant_follows_the_token_over_an_edge() {
        let group = tree(0);
        let mut nodes: Vec<Raymond> =
            NodeId::all(5).map(|id| Raymond::new(id, &group, &Start::idle())).collect();
        let check = |nodes: &[Raymond], in_flight: &[Envelope<Msg>]| {
            Raymond::invariant(&Snapshot { config: &group, nodes, in_flight })
        };
        assert_eq!(check(&nodes, &[]), Ok(()));
        nodes[0].holder = NodeId(1);
        let on_its_way =
            Envelope { from: NodeId(0), to: NodeId(1), message: Msg::Token(Fence::NONE) };
        assert_eq!(check(&nodes, &[on_its_way]), Ok(()));
        assert!(check(&nodes, &[]).is_err(), "the token is lost");
        nodes[1].holder = NodeId(1);
        nodes[2].holder = NodeId(1);
        assert!(check(&nodes, &[]).is_err(), "2 is no neighbour of 1");
    }
}
