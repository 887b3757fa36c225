//! STA, the tree broadcast of S4 (section 3.2, algorithm 1), as a component of its own: it knows no
//! driver and no lock, only whom a failure detector suspects.
//!
//! The origin sends the message to the first node of each of its clusters that it does not suspect;
//! a node that gets it passes it on to the inner clusters, so without crashes N-1 messages reach
//! everybody over at most log N hops. Every node acknowledges to the origin, which spreads its next
//! message when every node that it does not suspect has done so.
//!
//! A message that goes to a crashed node is lost, with all that this node should have passed on.
//! There are two remedies ([`Resend`]): the paper's, by which the origin begins from the top when
//! acknowledgements are late; and one without time-outs, by which a node that begins to suspect the
//! one it has passed a message on to passes it on to the next of that cluster instead.
//!
//! Where it departs from the paper: line 12 remembers the last message per sender j, which delivers a
//! message twice when it comes over another path; it is remembered per origin. A message counts as
//! new there if its time stamp is *different*; then a late message of an earlier broadcast is
//! delivered a second time, so here it has to be *larger*, and late messages are dropped. The field `cluster` is
//! left out: nobody reads it.

use alloc::collections::VecDeque;
use core::time::Duration;

use catraca_core::{Bounds, Effects, NodeId, NodeSet, TimerTag, Variables};
use catraca_topology::Hypercube;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// The timer of the acknowledgements. The detector's are numbered by its clusters.
pub(crate) const ACKS: TimerTag = TimerTag(64);

/// What makes a message be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resend {
    /// A suspicion, wherever the message went to the suspect.
    OnSuspicion,
    /// Acknowledgements that the origin still misses after so long.
    After(Duration),
}

/// What nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Msg {
    /// A message on its way through the tree.
    Tree {
        /// Who broadcasts.
        origin: NodeId,
        /// The receiver passes it on to its clusters below this one.
        hops: u32,
        /// The number of the message; it grows from one broadcast of an origin to the next.
        time: u64,
    },
    /// 'I have the message with this number.'
    Ack(u64),
}

/// Whether a message of the tree with these fields can be on its way in a group of this size.
pub(crate) fn is_possible(origin: NodeId, hops: u32, time: u64, bounds: Bounds) -> bool {
    let dimension = u32::BITS - bounds.nodes().saturating_sub(1).leading_zeros();
    bounds.has_node(origin) && hops <= dimension && bounds.has_time(time)
}

/// What a node goes by: the tree and whom it suspects.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Who is in whose clusters.
    pub cube: &'a Hypercube,
    /// What makes a message be sent again.
    pub resend: Resend,
    /// Whom the detector takes for crashed.
    pub suspects: &'a NodeSet,
}

impl View<'_> {
    /// The first of C(`of`, `s`) who is not suspected.
    fn first(&self, of: NodeId, s: u32) -> Option<NodeId> {
        self.cube.cluster(of, s).find(|&node| !self.suspects.contains(node))
    }
}

/// The newest message of an origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct LastReceived {
    /// Its number; 0 before the first.
    pub(crate) time: u64,
    /// It was passed on to the clusters below this one.
    pub(crate) hops: u32,
}

/// The broadcasts of one node, its own and those it passes on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sta {
    me: NodeId,
    /// `last_msg` of the paper, by origin.
    pub(crate) last: SmallVec<[LastReceived; 4]>,
    /// Its own message that is not yet acknowledged by all.
    active: Option<u64>,
    /// Who has acknowledged it.
    acked: NodeSet,
    /// `req_queue` of the paper: what comes after it.
    queue: VecDeque<u64>,
}

impl Sta {
    /// A node of a group of `nodes` that has received nothing yet.
    pub fn new(me: NodeId, nodes: u32) -> Self {
        Sta {
            me,
            last: SmallVec::from_elem(LastReceived::default(), nodes as usize),
            active: None,
            acked: NodeSet::new(),
            queue: VecDeque::new(),
        }
    }

    /// Whether a message of its own is still on its way.
    pub fn is_busy(&self) -> bool {
        self.active.is_some()
    }

    /// Broadcasts the message with this number, after those that were to be broadcast before.
    pub fn broadcast<M: From<Msg>>(&mut self, view: View<'_>, time: u64, out: &mut Effects<M>) {
        self.queue.push_back(time);
        self.begin_next(view, out);
    }

    /// A message of the tree has come; returns whether it is delivered.
    pub fn on_tree<M: From<Msg>>(
        &mut self,
        view: View<'_>,
        (origin, hops, time): (NodeId, u32, u64),
        out: &mut Effects<M>,
    ) -> bool {
        if origin == self.me || origin.0 >= view.cube.nodes() || hops > view.cube.dimension() {
            out.anomaly("a message of the tree came on a way that the tree does not have");
            return false;
        }
        let last = &mut self.last[origin.index()];
        if time < last.time {
            return false;
        }
        let is_new = time > last.time;
        if is_new {
            *last = LastReceived { time, hops };
            out.send(origin, Msg::Ack(time).into());
        } else {
            last.hops = last.hops.max(hops);
        }
        for s in (1..hops).rev() {
            self.pass_on(view, s, origin, time, out);
        }
        is_new
    }

    /// A node has acknowledged a message of this one.
    pub fn on_ack<M: From<Msg>>(
        &mut self,
        view: View<'_>,
        from: NodeId,
        time: u64,
        out: &mut Effects<M>,
    ) {
        if self.active == Some(time) {
            self.acked.insert(from);
            self.end_if_acknowledged(view, out);
            self.begin_next(view, out);
        }
    }

    /// The acknowledgements are late: everything once more.
    pub fn on_timer<M: From<Msg>>(&mut self, view: View<'_>, out: &mut Effects<M>) {
        match self.active {
            Some(time) => self.spread(view, time, out),
            None => out.anomaly("acknowledgements are late that nobody waits for"),
        }
    }

    /// The detector has begun to suspect `node`; the view knows it already.
    pub fn on_suspect<M: From<Msg>>(&mut self, view: View<'_>, node: NodeId, out: &mut Effects<M>) {
        if view.resend == Resend::OnSuspicion {
            self.pass_on_instead_of(view, node, out);
        }
        if self.active.is_some() {
            self.end_if_acknowledged(view, out);
            self.begin_next(view, out);
        }
    }

    /// What went to `node` goes to the next of its cluster.
    fn pass_on_instead_of<M: From<Msg>>(
        &mut self,
        view: View<'_>,
        node: NodeId,
        out: &mut Effects<M>,
    ) {
        let s = view.cube.cluster_with(self.me, node);
        let mut before = view.cube.cluster(self.me, s).take_while(|&other| other != node);
        if !before.all(|other| view.suspects.contains(other)) {
            return; // It was not the first, so nothing went to it.
        }
        for origin in NodeId::all(view.cube.nodes()) {
            let LastReceived { time, hops } = self.last[origin.index()];
            let is_over = origin == self.me && self.active.is_none();
            if hops > s && !is_over && !view.suspects.contains(origin) {
                self.pass_on(view, s, origin, time, out);
            }
        }
    }

    /// Spreads the next message, and those after it as long as nobody is left to acknowledge.
    fn begin_next<M: From<Msg>>(&mut self, view: View<'_>, out: &mut Effects<M>) {
        while self.active.is_none()
            && let Some(time) = self.queue.pop_front()
        {
            self.active = Some(time);
            self.last[self.me.index()] = LastReceived { time, hops: view.cube.dimension() + 1 };
            self.spread(view, time, out);
            self.end_if_acknowledged(view, out);
        }
    }

    fn spread<M: From<Msg>>(&self, view: View<'_>, time: u64, out: &mut Effects<M>) {
        for s in 1..=view.cube.dimension() {
            self.pass_on(view, s, self.me, time, out);
        }
        if let Resend::After(timeout) = view.resend {
            out.set_timer(ACKS, timeout);
        }
    }

    fn pass_on<M: From<Msg>>(
        &self,
        view: View<'_>,
        s: u32,
        origin: NodeId,
        time: u64,
        out: &mut Effects<M>,
    ) {
        if let Some(node) = view.first(self.me, s) {
            out.send(node, Msg::Tree { origin, hops: s, time }.into());
        }
    }

    fn end_if_acknowledged<M: From<Msg>>(&mut self, view: View<'_>, out: &mut Effects<M>) {
        // The counts settle most questions without a look at each node.
        if self.acked.len() + view.suspects.len() + 1 < view.cube.nodes() as usize {
            return;
        }
        let others = NodeId::all(view.cube.nodes()).filter(|&node| node != self.me);
        let mut living = others.filter(|&node| !view.suspects.contains(node));
        if living.all(|node| self.acked.contains(node)) {
            self.active = None;
            self.acked.clear();
            if let Resend::After(_) = view.resend {
                out.cancel_timer(ACKS);
            }
        }
    }

    /// What this part knows, by the names of the paper.
    pub fn variables(&self, out: &mut Variables) {
        out.per_node("last_msg", self.last.iter().map(|last| last.time));
        out.number("active", self.active.unwrap_or(0));
        out.set("acked", self.acked.iter());
        out.per_node("req_queue", self.queue.iter().copied());
    }
}

#[cfg(test)]
mod tests;
