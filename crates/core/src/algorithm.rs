//! The trait that every algorithm implements and every driver drives.

use core::fmt::Debug;
use core::hash::Hash;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Bounds, Claim, Effects, Input, NodeId, NodeSet, Start, TimerTag, Variables};

/// What the nodes of one algorithm say to each other.
pub trait Message:
    Clone + Debug + Eq + Ord + Hash + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// The names of the kinds of message, as the metrics print them.
    const KINDS: &'static [&'static str];

    /// The kind of this message, as an index into [`Self::KINDS`].
    fn kind(&self) -> usize;

    /// Whether a node of a group of this size can have sent this message at all: every node,
    /// resource and list in it is one of the group, and every counter is far from its end.
    ///
    /// Whoever decodes messages that others have written calls it before a node sees the message; one
    /// that is not possible is an anomaly and changes nothing. What is possible may still be wrong at
    /// this moment: that is for the handlers, which panic at no possible message in any state and
    /// do work in proportion to the group and the message.
    ///
    /// There is no default, and an implementation names every field of every kind, so that a new
    /// field does not compile before somebody has thought of it.
    fn is_possible(&self, bounds: Bounds) -> bool;

    /// Whether it is a periodic test of a failure detector, or the answer to one. Such messages never
    /// end, and without a new suspicion they change nothing.
    fn is_upkeep(&self) -> bool {
        false
    }

    /// Whether the token travels in this message.
    fn carries_token(&self) -> bool {
        false
    }
}

/// One node of a distributed mutual exclusion algorithm.
///
/// The rules between an algorithm and its driver:
///
/// - One call of [`step`](Self::step) is one atomic step. Handlers cannot fail: what cannot happen
///   in a correct run is reported with [`Effects::anomaly`].
/// - A driver gives `Request` only to a node that is neither waiting nor inside, and `Release` only
///   to one that is inside. Queues of several applications at one node are the driver's business.
/// - An algorithm sends nothing to itself.
/// - The configuration is immutable, the same at every node, and not part of the state: the driver
///   keeps one copy and lends it to each step. States stay small, cheap to clone and to compare.
pub trait Algorithm: Clone + Debug + Eq + Hash + Send + Sync + 'static {
    /// What its nodes say to each other.
    type Message: Message;
    /// Members, tree, quorums: whatever is fixed for the life of the group.
    type Config: Send + Sync + 'static;

    /// Whether exactly one token exists at any time, at a node or in a message.
    const TOKEN: bool = false;

    /// Whether messages or timers go on for ever although nobody asks, as where a token goes round a
    /// ring. A run of such an algorithm ends when everybody has been served.
    const RESTLESS: bool = false;

    /// Node `me` of a group that begins in `start`.
    fn new(me: NodeId, config: &Self::Config, start: &Start) -> Self;

    /// The driver is ready to carry out effects.
    fn on_start(&mut self, _config: &Self::Config, _out: &mut Effects<Self::Message>) {}

    /// The application wants to enter with `claim`.
    fn on_request(&mut self, config: &Self::Config, claim: Claim, out: &mut Effects<Self::Message>);

    /// The application leaves.
    fn on_release(&mut self, config: &Self::Config, out: &mut Effects<Self::Message>);

    /// `message` has arrived from another node.
    fn on_message(
        &mut self,
        config: &Self::Config,
        from: NodeId,
        message: Self::Message,
        out: &mut Effects<Self::Message>,
    );

    /// A timer has run out. The default is for algorithms that set none.
    fn on_timer(
        &mut self,
        _config: &Self::Config,
        _tag: TimerTag,
        out: &mut Effects<Self::Message>,
    ) {
        out.anomaly("a timer ran out that was never set");
    }

    /// The failure detector suspects `node`. The default is for algorithms that do not tolerate
    /// crashes: they take no notice, and wait.
    fn on_suspect(
        &mut self,
        _config: &Self::Config,
        _node: NodeId,
        _out: &mut Effects<Self::Message>,
    ) {
    }

    /// The failure detector no longer suspects `node`.
    fn on_trust(
        &mut self,
        _config: &Self::Config,
        _node: NodeId,
        _out: &mut Effects<Self::Message>,
    ) {
    }

    /// Whether this timer is for the periodic tests of a failure detector: as
    /// [`Message::is_upkeep`].
    fn is_upkeep(_tag: TimerTag) -> bool {
        false
    }

    /// Whether the token is at this node. Only asked where [`Self::TOKEN`] is true.
    fn holds_token(&self) -> bool {
        false
    }

    /// The nodes that this one takes for crashed, if it cares. A driver that knows better can say
    /// who was wrong when something breaks.
    fn suspects(&self) -> Option<&NodeSet> {
        None
    }

    /// The node that this one would turn to for the token, itself if it would turn to nobody, in
    /// algorithms whose nodes point to each other. For pictures of the tree.
    fn points_to(&self) -> Option<NodeId> {
        None
    }

    /// What this node knows, by the names of the paper. For whoever shows states to people.
    fn variables(&self, _out: &mut Variables) {}

    /// An invariant over the whole group that holds between any two steps, beyond those that every
    /// algorithm shares. The checker evaluates it in every state. The error names what is broken.
    fn invariant(_group: &Snapshot<'_, Self>) -> Result<(), &'static str> {
        Ok(())
    }

    /// Takes one atomic step.
    #[inline]
    fn step(
        &mut self,
        config: &Self::Config,
        input: Input<Self::Message>,
        out: &mut Effects<Self::Message>,
    ) {
        match input {
            Input::Message { from, message } => self.on_message(config, from, message, out),
            Input::Request(claim) => self.on_request(config, claim, out),
            Input::Release => self.on_release(config, out),
            Input::Start => self.on_start(config, out),
            Input::Timer(tag) => self.on_timer(config, tag, out),
            Input::Suspect(node) => self.on_suspect(config, node, out),
            Input::Trust(node) => self.on_trust(config, node, out),
        }
    }
}

/// A message on its way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Envelope<M> {
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// What it says.
    pub message: M,
}

/// A whole group between two steps, for invariants that no single node can see.
#[derive(Debug)]
pub struct Snapshot<'a, A: Algorithm> {
    /// The configuration that all nodes share.
    pub config: &'a A::Config,
    /// Every node, by id.
    pub nodes: &'a [A],
    /// Every message on its way; those of one FIFO channel in the order of sending.
    pub in_flight: &'a [Envelope<A::Message>],
}
