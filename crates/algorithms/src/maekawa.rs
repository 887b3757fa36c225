//! **Idea.** A node asks only its quorum, and any two quorums have a node in common. A member of a
//! quorum is an arbiter, locked for one request at a time; a node that has locked its whole quorum
//! enters. Against deadlock an arbiter asks for its lock back when a better request (a smaller
//! stamp) comes, and gets it from one that has to wait elsewhere anyway.
//!
//! **Source.** S2, section 8.3.3; M. Maekawa, 1985; B. A. Sanders, 1987, for the second FAILED.
//!
//! **Assumes.** Reliable FIFO channels, so that no INQUIRE overtakes its GRANT; no crashes.
//!
//! **Cost.** 3(K-1) messages per entry with quorums of K nodes; at most 6(K-1) where
//! requests meet: a new one causes a FAILED, or an INQUIRE, a YIELD and a second GRANT. Delay 2T by
//! way of the arbiter, T where the two nodes have no common arbiter but themselves. K is about 2 sqrt N
//! with quorums from a grid (`--quorum grid`, the default, any N) and about sqrt N with those from a
//! projective plane (`--quorum plane`, N = q*q+q+1 with q a power of a prime: 7, 13, 21, 31, 57, ...).
//!
//! **Departs.** S2 names FAILED, INQUIRE and YIELD without a rule for them. Maekawa fails a
//! newcomer that is not the best; the one that was the best of those waiting until then has to be
//! failed too, or it may never yield. What a node sends to itself is handled in the same step and is
//! no message. Fences are ours: a GRANT brings the largest that the arbiter knows, a RELEASE the
//! new one. A fence also moves the clock forward as a time does: it counts entries, so the clocks of
//! nodes that share no arbiter do not drift apart, and nobody is passed for long by a slow clock. GRANT is S2's REPLY and Maekawa's LOCKED, YIELD his RELINQUISH.

use alloc::vec::Vec;

use catraca_core::{
    Algorithm, Bounds, Claim, Effects, Fence, LogicalClock, Message, NodeId, NodeSet, Phase,
    Snapshot, Stamp, Start, Variables,
};
use catraca_topology::Quorums;
use serde::{Deserialize, Serialize};

use crate::mutants::{self, Mutation};
use crate::registry::{Channels, Entry, Family, Load, Range, Registered, Tabled, Theory};
use crate::{ASKS_TWICE, Spec, SpecError, TOO_MANY_WAIT};

/// What requesters and arbiters say to each other. Each names a request by its time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Msg {
    /// 'I want to enter, and asked at this time.'
    Request(u64),
    /// 'I am locked for you, and this is the largest fence I know.'
    Grant { time: u64, fence: Fence },
    /// 'A better request than yours is before you.'
    Failed(u64),
    /// 'A better request than yours waits. Will you give me back?'
    Inquire(u64),
    /// 'I give you back, but still want to enter.'
    Yield(u64),
    /// 'I have left, and this was the fence.'
    Release { time: u64, fence: Fence },
}

impl Message for Msg {
    const KINDS: &'static [&'static str] =
        &["request", "grant", "failed", "inquire", "yield", "release"];

    fn kind(&self) -> usize {
        match self {
            Msg::Request(_) => 0,
            Msg::Grant { .. } => 1,
            Msg::Failed(_) => 2,
            Msg::Inquire(_) => 3,
            Msg::Yield(_) => 4,
            Msg::Release { .. } => 5,
        }
    }

    fn is_possible(&self, bounds: Bounds) -> bool {
        match *self {
            Msg::Request(time) | Msg::Failed(time) | Msg::Inquire(time) | Msg::Yield(time) => {
                bounds.has_time(time)
            }
            // The clock passes the fence, too.
            Msg::Grant { time, fence } | Msg::Release { time, fence } => {
                bounds.has_time(time) && bounds.has_time(fence.0)
            }
        }
    }
}

/// One node: a requester, and an arbiter for those whose quorum it is in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Maekawa {
    pub(crate) me: NodeId,
    pub(crate) clock: LogicalClock,
    /// The largest fence seen in either role.
    pub(crate) fence: Fence,
    pub(crate) phase: Phase,
    /// The time of the request that is being served. Zero while there is none.
    pub(crate) requested: u64,
    /// Arbiters that are locked for this node.
    pub(crate) granted: NodeSet,
    /// Arbiters that have failed this node, or got their lock back, and have not granted since.
    pub(crate) failed: NodeSet,
    /// Arbiters that want their lock back and get it if this node fails anywhere.
    pub(crate) inquired: NodeSet,
    /// The request that this arbiter is locked for.
    pub(crate) locked: Option<Stamp>,
    /// The other requests made to it, the best one last.
    /// If the best is better than the locked one, then the locked one has been sent an INQUIRE.
    /// All others have been sent FAILED, or have yielded.
    pub(crate) waiting: Vec<Stamp>,
}

impl Maekawa {
    pub(crate) fn my_request(&self) -> Stamp {
        Stamp { time: self.requested, node: self.me }
    }

    fn is_waiting_since(&self, time: u64) -> bool {
        self.phase == Phase::Waiting && self.requested == time
    }

    fn on_grant(&mut self, config: &Quorums, arbiter: NodeId, time: u64, out: &mut Effects<Msg>) {
        if !self.is_waiting_since(time) || !self.granted.insert(arbiter) {
            return out.anomaly("a grant came that nobody waits for");
        }
        self.failed.remove(arbiter);
        if self.granted.len() == config.of(self.me).len() {
            self.phase = Phase::Inside;
            self.inquired.clear(); // The RELEASE will answer them.
            self.fence = self.fence.next();
            out.granted(self.fence);
        }
    }

    fn on_failed(&mut self, config: &Quorums, arbiter: NodeId, time: u64, out: &mut Effects<Msg>) {
        if !self.is_waiting_since(time) || self.granted.contains(arbiter) {
            return out.anomaly("a request failed that does not wait there");
        }
        self.failed.insert(arbiter);
        self.yield_to_inquirers(config, out);
    }

    fn on_inquire(&mut self, config: &Quorums, arbiter: NodeId, time: u64, out: &mut Effects<Msg>) {
        // One who is inside keeps the lock, and one who has left has sent its RELEASE already.
        if !self.is_waiting_since(time) {
            return;
        }
        self.inquired.insert(arbiter);
        if !self.failed.is_empty() {
            self.yield_to_inquirers(config, out);
        }
    }

    fn yield_to_inquirers(&mut self, config: &Quorums, out: &mut Effects<Msg>) {
        for &arbiter in config.of(self.me) {
            if self.inquired.remove(arbiter) {
                self.granted.remove(arbiter);
                // A better request gets the lock now: this is as good as a FAILED.
                self.failed.insert(arbiter);
                self.say(config, arbiter, Msg::Yield(self.requested), out);
            }
        }
    }

    fn on_ask(&mut self, config: &Quorums, theirs: Stamp, out: &mut Effects<Msg>) {
        if self.waiting.len() >= config.nodes() as usize {
            return out.anomaly(TOO_MANY_WAIT);
        }
        self.clock.witness(theirs.time);
        let best = self.waiting.last().copied();
        self.enqueue(theirs);
        let Some(locked) = self.locked else { return self.lock_for_best(config, out) };
        if locked < theirs || best.is_some_and(|best| best < theirs) {
            return self.say(config, theirs.node, Msg::Failed(theirs.time), out);
        }
        let (to, word) = match best {
            // Displaced: it hoped to be next, and the INQUIRE for its sake now serves the new one.
            Some(best) if best < locked => (best.node, Msg::Failed(best.time)),
            _ => (locked.node, Msg::Inquire(locked.time)),
        };
        self.say(config, to, word, out);
    }

    /// The lock comes back with a YIELD, from one who still waits, or with a RELEASE.
    fn on_unlock(&mut self, config: &Quorums, theirs: Stamp, yields: bool, out: &mut Effects<Msg>) {
        if self.locked != Some(theirs) {
            return out.anomaly("a lock came back from one who does not have it");
        }
        if yields {
            self.enqueue(theirs);
        }
        self.lock_for_best(config, out);
    }

    fn lock_for_best(&mut self, config: &Quorums, out: &mut Effects<Msg>) {
        self.locked = self.waiting.pop();
        if let Some(best) = self.locked {
            self.say(config, best.node, Msg::Grant { time: best.time, fence: self.fence }, out);
        }
    }

    pub(crate) fn enqueue(&mut self, theirs: Stamp) {
        let place = self.waiting.partition_point(|&waiting| waiting > theirs);
        self.waiting.insert(place, theirs);
    }

    /// The other role of this node acts on what the node says to itself before this returns, so
    /// the state has to be complete by then.
    fn say(&mut self, config: &Quorums, to: NodeId, message: Msg, out: &mut Effects<Msg>) {
        if to == self.me {
            self.on_message(config, to, message, out);
        } else {
            out.send(to, message);
        }
    }

    fn say_to_quorum(&mut self, config: &Quorums, message: Msg, out: &mut Effects<Msg>) {
        for &arbiter in config.of(self.me).iter().filter(|&&arbiter| arbiter != self.me) {
            out.send(arbiter, message.clone());
        }
        self.say(config, self.me, message, out);
    }
}

impl Algorithm for Maekawa {
    type Message = Msg;
    type Config = Quorums;

    fn new(me: NodeId, config: &Quorums, start: &Start) -> Self {
        let is_arbiter_of = |holder: &NodeId| config.of(*holder).contains(&me);
        let holder = start.holders().map(|(node, _)| node).find(is_arbiter_of);
        let inside = start.is_inside(me);
        let quorum = if inside { config.of(me) } else { &[] };
        Maekawa {
            me,
            clock: LogicalClock::default(),
            fence: Fence::NONE,
            phase: if inside { Phase::Inside } else { Phase::Idle },
            requested: 0,
            granted: quorum.iter().copied().collect(),
            failed: NodeSet::new(),
            inquired: NodeSet::new(),
            locked: holder.map(|node| Stamp { time: 0, node }),
            waiting: Vec::new(),
        }
    }

    fn on_request(&mut self, config: &Quorums, _claim: Claim, out: &mut Effects<Msg>) {
        if self.phase != Phase::Idle {
            return out.anomaly(ASKS_TWICE);
        }
        self.phase = Phase::Waiting;
        self.requested = self.clock.tick();
        self.say_to_quorum(config, Msg::Request(self.requested), out);
    }

    fn on_release(&mut self, config: &Quorums, out: &mut Effects<Msg>) {
        let release = Msg::Release { time: self.requested, fence: self.fence };
        self.phase = Phase::Idle;
        self.requested = 0;
        self.granted.clear();
        self.say_to_quorum(config, release, out);
    }

    fn on_message(&mut self, config: &Quorums, from: NodeId, message: Msg, out: &mut Effects<Msg>) {
        if let Msg::Grant { fence, .. } | Msg::Release { fence, .. } = message {
            self.fence = self.fence.max(fence);
            // A fence counts entries. Requests as late as the entries known keep the clocks of nodes
            // that never receive each other's requests from drifting apart: nobody is overtaken by a
            // slow clock for long.
            self.clock.witness(fence.0);
        }
        let theirs = |time| Stamp { time, node: from };
        match message {
            Msg::Request(time) => self.on_ask(config, theirs(time), out),
            Msg::Grant { time, .. } => self.on_grant(config, from, time, out),
            Msg::Failed(time) => self.on_failed(config, from, time, out),
            Msg::Inquire(time) => self.on_inquire(config, from, time, out),
            Msg::Yield(time) => self.on_unlock(config, theirs(time), true, out),
            Msg::Release { time, .. } => self.on_unlock(config, theirs(time), false, out),
        }
    }

    fn invariant(group: &Snapshot<'_, Self>) -> Result<(), &'static str> {
        for node in group.nodes {
            let lock = Some(node.my_request());
            if node.granted.iter().any(|arbiter| group.nodes[arbiter.index()].locked != lock) {
                return Err("a node counts on an arbiter that is not locked for it");
            }
        }
        Ok(())
    }

    fn variables(&self, out: &mut Variables) {
        out.phase(self.phase);
        out.number("clock", self.clock.now());
        out.number("requested", self.requested);
        out.set("granted", self.granted.iter());
        out.set("failed", self.failed.iter());
        out.set("inquired", self.inquired.iter());
        out.stamps("locked", self.locked);
        // Kept with the best one last; shown as the paper's queue, the best one first.
        out.stamps("waiting", self.waiting.iter().rev().copied());
        out.number("fence", self.fence.0);
    }
}

impl Registered for Maekawa {
    const ENTRY: Entry = Entry {
        name: "maekawa",
        title: "Maekawa, 1985",
        family: Family::Quorum,
        channels: Channels::Fifo,
        messages: "3(K-1) to 6(K-1), K the quorum",
        delay: "2T",
        fence: "1 + the largest known to the quorum",
        source: "S2 8.3.3",
        max_nodes: 16_384,
        parameters: &["quorum"],
        claims: Some(Tabled {
            messages: |nodes, load| libm::sqrt(nodes) * if load == Load::Low { 5.0 } else { 3.0 },
            delay: |_| Range::exactly(2.0),
        }),
        file: include_str!("maekawa.rs"),
    };

    fn config(spec: &Spec) -> Result<Quorums, SpecError> {
        spec.build_quorums()
    }

    fn theory(config: &Quorums, load: Load) -> Theory {
        let least = 3.0 * (config.mean_size() - 1.0);
        let most = if load == Load::Low { least } else { 2.0 * least };
        Theory { messages: Range::between(least, most), delay: Range::between(1.0, 2.0) }
    }

    fn mutations() -> &'static [&'static dyn Mutation<Self>] {
        mutants::maekawa::ALL
    }
}

#[cfg(test)]
mod tests {
    use catraca_core::{Effect, Input};

    use super::*;
    use crate::testing::{from, request, send, step};

    fn square() -> Quorums {
        Quorums::grid(4)
    }

    fn node(id: u32) -> Maekawa {
        Maekawa::new(NodeId(id), &square(), &Start::idle())
    }

    fn grant(time: u64, fence: u64) -> Msg {
        Msg::Grant { time, fence: Fence(fence) }
    }

    fn release(time: u64, fence: u64) -> Msg {
        Msg::Release { time, fence: Fence(fence) }
    }

    /// 'A site sends REQUEST to all sites of its quorum.' Reference: S2 8.3.3.
    #[test]
    fn paper_a_requester_asks_its_quorum_and_enters_with_the_last_grant() {
        let mut n0 = node(0);
        let asked = step(&mut n0, &square(), request());
        assert_eq!(asked, [send(1, Msg::Request(1)), send(2, Msg::Request(1))]);
        assert_eq!(step(&mut n0, &square(), from(1, grant(1, 6))), []);
        assert_eq!(step(&mut n0, &square(), from(2, grant(1, 4))), [Effect::Granted(Fence(7))]);
    }

    /// 'After the CS the site sends RELEASE to free its quorum.' Reference: S2 8.3.3.
    #[test]
    fn paper_a_leaving_node_frees_its_quorum_and_itself() {
        let mut n0 = Maekawa::new(NodeId(0), &square(), &Start::inside(NodeId(0)));
        assert_eq!(step(&mut n0, &square(), from(2, Msg::Request(1))), [send(2, Msg::Failed(1))]);
        let left = step(&mut n0, &square(), Input::Release);
        assert_eq!(left, [send(1, release(0, 0)), send(2, release(0, 0)), send(2, grant(1, 0))]);
    }

    /// 'Needs more to resolve deadlocks (FAILED, INQUIRE and YIELD).' Reference: S2 8.3.3.
    #[test]
    fn paper_a_requester_yields_once_it_has_failed_whichever_comes_first() {
        let mut n0 = node(0);
        step(&mut n0, &square(), request());
        step(&mut n0, &square(), from(1, grant(1, 0)));
        assert_eq!(step(&mut n0, &square(), from(1, Msg::Inquire(1))), []);
        assert_eq!(step(&mut n0, &square(), from(2, Msg::Failed(1))), [send(1, Msg::Yield(1))]);
        step(&mut n0, &square(), from(1, grant(1, 0)));
        assert_eq!(step(&mut n0, &square(), from(1, Msg::Inquire(1))), [send(1, Msg::Yield(1))]);
    }

    /// 'A site of the quorum answers REPLY if it is available, or waits for the release.' 'Needs more
    /// to resolve deadlocks (FAILED, INQUIRE and YIELD).' Reference: S2 8.3.3.
    #[test]
    fn paper_an_arbiter_asks_for_its_lock_back_once_and_fails_all_but_the_best() {
        let nine = Quorums::grid(9);
        let mut n1 = Maekawa::new(NodeId(1), &nine, &Start::idle());
        assert_eq!(step(&mut n1, &nine, from(7, Msg::Request(5))), [send(7, grant(5, 0))]);
        assert_eq!(step(&mut n1, &nine, from(4, Msg::Request(5))), [send(7, Msg::Inquire(5))]);
        assert_eq!(step(&mut n1, &nine, from(2, Msg::Request(5))), [send(4, Msg::Failed(5))]);
        assert_eq!(step(&mut n1, &nine, from(0, Msg::Request(6))), [send(0, Msg::Failed(6))]);
        assert_eq!(step(&mut n1, &nine, from(7, Msg::Yield(5))), [send(2, grant(5, 0))]);
        assert_eq!(step(&mut n1, &nine, from(2, release(5, 3))), [send(4, grant(5, 3))]);
    }

    #[test]
    fn a_node_that_has_failed_elsewhere_gives_its_own_lock_back_in_the_same_step() {
        let mut n3 = node(3);
        step(&mut n3, &square(), request());
        step(&mut n3, &square(), from(2, Msg::Failed(1)));
        assert_eq!(step(&mut n3, &square(), from(1, Msg::Request(1))), [send(1, grant(1, 0))]);
        assert_eq!(n3.waiting, [n3.my_request()]);
    }

    #[test]
    fn a_node_inside_or_past_its_release_takes_no_notice_of_an_inquire() {
        let mut n0 = Maekawa::new(NodeId(0), &square(), &Start::inside(NodeId(0)));
        assert_eq!(step(&mut n0, &square(), from(1, Msg::Inquire(0))), []);
        step(&mut n0, &square(), Input::Release);
        step(&mut n0, &square(), request());
        assert_eq!(step(&mut n0, &square(), from(1, Msg::Inquire(0))), []);
        assert!(n0.inquired.is_empty());
    }

    #[test]
    fn a_group_of_one_enters_at_once_and_again() {
        let alone = Quorums::grid(1);
        let mut node = Maekawa::new(NodeId(0), &alone, &Start::idle());
        assert_eq!(step(&mut node, &alone, request()), [Effect::Granted(Fence(1))]);
        assert_eq!(step(&mut node, &alone, Input::Release), []);
        assert_eq!(step(&mut node, &alone, request()), [Effect::Granted(Fence(2))]);
    }

    #[test]
    fn words_about_a_lock_that_does_not_exist_are_anomalies() {
        for stray in [grant(1, 0), Msg::Failed(1), Msg::Yield(1), release(1, 0)] {
            let effects = step(&mut node(0), &square(), from(1, stray));
            assert!(matches!(effects[..], [Effect::Anomaly(_)]));
        }
    }
}
