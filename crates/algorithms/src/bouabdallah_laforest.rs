//! **Idea.** A request names a set of resources, each of which has a token; requests that have
//! nothing in common are inside at the same time. One control token lists who has, or will have,
//! each resource's token last; it travels as in Naimi-Trehel. Whoever gets it asks those listed for
//! the tokens that it wants and writes itself in their place. So all who want one resource wait for
//! each other in the order in which they had the control token, and nobody waits in a circle.
//!
//! **Source.** S0, section 2.1; A. Bouabdallah and C. Laforest, 2000.
//!
//! **Assumes.** Reliable channels in any order; no crashes.
//!
//! **Cost.** 0 to N messages per entry for the control token, O(log N) on average, and 2 or 3 for
//! each node that is asked for tokens. Delay T where the control token is ahead of the entries: it
//! needs 3T from one requester to the next. A step costs no more where there are more resources.
//!
//! **Departs.** The control token carries the fence; a requester takes its number while it has the
//! control token, so the numbers increase for each resource, not over the whole group. A token that
//! was taken stays with its last user and is never free again. A requester enters after the last
//! INQ_ACK1 even where an INQ_ACK2 has overtaken it, so channels need no order. Variables: `last`
//! is S0's Parent, `present` its tokens_present, `questions` its (i, Q); `Control::last` is
//! its list B, and list A is what does not occur in it.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use catraca_core::{
    Algorithm, Claim, Effects, Fence, Message, NodeId, Phase, ResourceId, Snapshot, Start,
};
use serde::{Deserialize, Serialize};

use crate::mutants::{self, Mutation};
use crate::naimi_trehel::{check_pointers, messages_at_low_load};
use crate::registry::{Channels, Entry, Family, Load, Range, Registered, Theory};
use crate::{Spec, SpecError};

/// What the nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Msg {
    /// 'This node wants the control token.' It is passed on unchanged.
    Request(NodeId),
    /// The control token.
    Control(Box<Control>),
    /// 'I want these; you are the last who has or will have them.'
    Inquire(Claim),
    /// 'Of what you asked for, here is what I do not use. The rest follows.'
    InqAck1(Claim),
    /// 'Here is the rest.'
    InqAck2(Claim),
}

impl Message for Msg {
    const KINDS: &'static [&'static str] =
        &["request", "control", "inquire", "inq-ack1", "inq-ack2"];

    fn kind(&self) -> usize {
        match self {
            Msg::Request(_) => 0,
            Msg::Control(_) => 1,
            Msg::Inquire(_) => 2,
            Msg::InqAck1(_) => 3,
            Msg::InqAck2(_) => 4,
        }
    }

    fn carries_token(&self) -> bool {
        matches!(self, Msg::Control(_))
    }
}

/// The control token. There is one, and it is moved from node to node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Control {
    /// Who has, or will have, each resource's token last. The tokens of the resources that do not
    /// occur are free: they travel with the control token.
    pub(crate) last: BTreeMap<ResourceId, NodeId>,
    /// The fence of the last requester.
    pub(crate) fence: Fence,
}

/// A group of nodes that share resources, both numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// How many nodes there are.
    pub nodes: u32,
    /// How many resources there are.
    pub resources: u32,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BouabdallahLaforest {
    pub(crate) me: NodeId,
    pub(crate) phase: Phase,
    /// Who asked for the control token last, as far as this node knows; oneself at a root.
    pub(crate) last: NodeId,
    /// Who gets the control token from this node.
    pub(crate) next: Option<NodeId>,
    pub(crate) control: Option<Box<Control>>,
    /// The resources whose tokens are here, in use or not.
    pub(crate) present: BTreeSet<ResourceId>,
    /// What this node waits for or uses. Empty while it is idle.
    pub(crate) claim: Claim,
    /// Whether the control token has come for `claim`. From then on the tokens of `claim` are
    /// locked: they go to nobody before this node has left.
    pub(crate) locked: bool,
    /// The fence of `claim` once it is locked.
    pub(crate) fence: Fence,
    /// Who has been asked and has not sent INQ_ACK1.
    pub(crate) awaited: BTreeSet<NodeId>,
    /// How many tokens of `claim` are still to come.
    pub(crate) missing: usize,
    /// Who gets which of the locked tokens when this node leaves.
    pub(crate) questions: BTreeMap<ResourceId, NodeId>,
}

impl BouabdallahLaforest {
    fn on_ask(&mut self, config: &Sharing, requester: NodeId, out: &mut Effects<Msg>) {
        if requester == self.me || requester.0 >= config.nodes {
            return out.anomaly("a request came from nobody, or came back");
        }
        if self.last == self.me {
            self.next = Some(requester);
            if self.awaited.is_empty() {
                self.pass_control(out);
            }
        } else {
            out.send(self.last, Msg::Request(requester));
        }
        self.last = requester;
    }

    /// Gives the control token, if it is here, to whoever comes next, if there is somebody.
    pub(crate) fn pass_control(&mut self, out: &mut Effects<Msg>) {
        if let Some(next) = self.next
            && let Some(control) = self.control.take()
        {
            self.next = None;
            out.send(next, Msg::Control(control));
        }
    }

    fn on_control(&mut self, config: &Sharing, control: Box<Control>, out: &mut Effects<Msg>) {
        if self.phase != Phase::Waiting || self.locked || self.control.is_some() {
            return out.anomaly("a control token came that nobody waits for");
        }
        self.lock(config, control, out);
    }

    /// Takes the free tokens of the claim out of the control token and asks for the others.
    fn lock(&mut self, config: &Sharing, mut control: Box<Control>, out: &mut Effects<Msg>) {
        let mut holders: BTreeMap<NodeId, Vec<ResourceId>> = BTreeMap::new();
        for &resource in self.claim.resources() {
            match control.last.insert(resource, self.me) {
                None => {
                    self.present.insert(resource);
                }
                // Nobody has asked for it since this node used it.
                Some(holder) if holder == self.me && self.present.contains(&resource) => {}
                Some(holder) => {
                    holders.entry(holder).or_default().push(resource);
                    self.missing += 1;
                }
            }
        }
        control.fence = control.fence.next();
        self.fence = control.fence;
        self.locked = true;
        self.control = Some(control);
        for (holder, resources) in holders {
            if holder == self.me || holder.0 >= config.nodes {
                out.anomaly("the control token names a node that cannot have the token");
            } else {
                self.awaited.insert(holder);
                out.send(holder, Msg::Inquire(Claim::of(resources)));
            }
        }
        self.proceed(out);
    }

    fn on_inquire(&mut self, from: NodeId, wanted: &Claim, out: &mut Effects<Msg>) {
        let mut given = Vec::new();
        for &resource in wanted.resources() {
            if self.locked && self.claim.contains(resource) {
                if self.questions.insert(resource, from).is_some() {
                    out.anomaly("a token was promised to two nodes");
                }
            } else if self.present.remove(&resource) {
                given.push(resource);
            } else {
                out.anomaly("a token was looked for where it is not");
            }
        }
        out.send(from, Msg::InqAck1(Claim::of(given)));
    }

    fn on_ack1(&mut self, from: NodeId, tokens: &Claim, out: &mut Effects<Msg>) {
        if !self.awaited.remove(&from) {
            return out.anomaly("an answer came to no question");
        }
        self.take_tokens(tokens, out);
        self.proceed(out);
    }

    fn on_ack2(&mut self, tokens: &Claim, out: &mut Effects<Msg>) {
        if self.missing == 0 {
            return out.anomaly("a token came that nobody waits for");
        }
        self.take_tokens(tokens, out);
        self.proceed(out);
    }

    fn take_tokens(&mut self, tokens: &Claim, out: &mut Effects<Msg>) {
        for &resource in tokens.resources() {
            if self.missing > 0 && self.claim.contains(resource) && self.present.insert(resource) {
                self.missing -= 1;
            } else {
                out.anomaly("a token came that nobody waits for");
            }
        }
    }

    /// Once all have answered the control token may go; once all tokens are here the node enters.
    ///
    /// While an INQUIRE travels its receiver could otherwise get the control token, lock the token
    /// that is asked for, and be told to wait for the very node that asks.
    fn proceed(&mut self, out: &mut Effects<Msg>) {
        if !self.awaited.is_empty() {
            return;
        }
        self.pass_control(out);
        if self.missing == 0 {
            self.phase = Phase::Inside;
            out.granted(self.fence);
        }
    }
}

impl Algorithm for BouabdallahLaforest {
    type Message = Msg;
    type Config = Sharing;

    const TOKEN: bool = true;

    fn new(me: NodeId, _config: &Sharing, start: &Start) -> Self {
        let claim = start.claim_of(me).cloned().unwrap_or(Claim::of([]));
        let taken = |(node, claim): (NodeId, &Claim)| {
            claim.resources().iter().map(|&resource| (resource, node)).collect::<Vec<_>>()
        };
        let control =
            || Control { last: start.holders().flat_map(taken).collect(), fence: Fence::NONE };
        BouabdallahLaforest {
            me,
            phase: start.phase_of(me),
            last: start.token(),
            next: None,
            control: (start.token() == me).then(|| Box::new(control())),
            present: claim.resources().iter().copied().collect(),
            claim,
            locked: start.is_inside(me),
            fence: Fence::NONE,
            awaited: BTreeSet::new(),
            missing: 0,
            questions: BTreeMap::new(),
        }
    }

    fn on_request(&mut self, config: &Sharing, claim: Claim, out: &mut Effects<Msg>) {
        if claim.resources().last().is_some_and(|resource| resource.0 >= config.resources) {
            return out.anomaly("a resource was asked for that does not exist");
        }
        self.phase = Phase::Waiting;
        self.claim = claim;
        if let Some(control) = self.control.take() {
            return self.lock(config, control, out);
        }
        out.send(self.last, Msg::Request(self.me));
        self.last = self.me;
    }

    fn on_release(&mut self, _config: &Sharing, out: &mut Effects<Msg>) {
        self.phase = Phase::Idle;
        self.claim = Claim::of([]);
        self.locked = false;
        self.fence = Fence::NONE;
        let mut askers: BTreeMap<NodeId, Vec<ResourceId>> = BTreeMap::new();
        while let Some((resource, asker)) = self.questions.pop_first() {
            self.present.remove(&resource);
            askers.entry(asker).or_default().push(resource);
        }
        for (asker, resources) in askers {
            out.send(asker, Msg::InqAck2(Claim::of(resources)));
        }
    }

    fn on_message(&mut self, config: &Sharing, from: NodeId, message: Msg, out: &mut Effects<Msg>) {
        match message {
            Msg::Request(requester) => self.on_ask(config, requester, out),
            Msg::Control(control) => self.on_control(config, control, out),
            Msg::Inquire(wanted) => self.on_inquire(from, &wanted, out),
            Msg::InqAck1(tokens) => self.on_ack1(from, &tokens, out),
            Msg::InqAck2(tokens) => self.on_ack2(&tokens, out),
        }
    }

    fn points_to(&self) -> Option<NodeId> {
        Some(self.last)
    }

    fn holds_token(&self) -> bool {
        self.control.is_some()
    }

    /// The pointers are as in Naimi-Trehel, and every resource has one token: with the control
    /// token, at a node or in an answer.
    fn invariant(group: &Snapshot<'_, Self>) -> Result<(), &'static str> {
        let (mut requests, mut controls) = (0, Vec::new());
        let mut tokens: Vec<ResourceId> = Vec::new();
        for envelope in group.in_flight {
            match &envelope.message {
                Msg::Request(_) => requests += 1,
                Msg::Control(control) => controls.push(control),
                Msg::Inquire(_) => {}
                Msg::InqAck1(given) | Msg::InqAck2(given) => tokens.extend(given.resources()),
            }
        }
        for node in group.nodes {
            controls.extend(&node.control);
            tokens.extend(&node.present);
        }
        tokens.sort_unstable();
        match controls[..] {
            [control] if control.last.keys().eq(&tokens) => {}
            [_] => return Err("a resource has not exactly one token"),
            _ => return Err("there is not exactly one control token"),
        }
        check_pointers(group.nodes, |node| node.last, requests)
    }
}

impl Registered for BouabdallahLaforest {
    const ENTRY: Entry = Entry {
        name: "bouabdallah-laforest",
        title: "Bouabdallah and Laforest, 2000",
        family: Family::Token,
        channels: Channels::Any,
        messages: "O(log N), and 2 or 3 per node asked",
        delay: "T to 3T",
        fence: "counter in the control token",
        source: "S0 2.1",
        max_nodes: 4096,
        parameters: &["resources"],
        claims: None,
        file: include_str!("bouabdallah_laforest.rs"),
    };

    fn config(spec: &Spec) -> Result<Sharing, SpecError> {
        Ok(Sharing { nodes: spec.nodes, resources: spec.resource_count() })
    }

    fn theory(config: &Sharing, load: Load) -> Theory {
        let nodes = f64::from(config.nodes);
        let control = messages_at_low_load(config.nodes);
        let asked = f64::from(config.resources.min(config.nodes - 1));
        let messages = match load {
            _ if config.nodes == 1 => Range::exactly(0.0),
            // Whoever used the one resource last has the control token as well.
            Load::Low if config.resources == 1 => {
                Range::exactly(control + 2.0 * (nodes - 1.0) / nodes)
            }
            Load::Low => Range::between(control, control + 2.0 * asked),
            Load::High => Range::between(0.0, nodes + 3.0 * asked),
        };
        // INQUIRE, INQ_ACK1 and the control token before the next requester can ask for tokens.
        Theory { messages, delay: Range::between(1.0, 3.0) }
    }

    fn mutations() -> &'static [&'static dyn Mutation<Self>] {
        mutants::bouabdallah_laforest::ALL
    }
}

#[cfg(test)]
mod tests {
    use catraca_core::{Effect, Envelope, Input};

    use super::*;
    use crate::testing::{from, send, step};

    const GROUP: Sharing = Sharing { nodes: 4, resources: 6 };

    fn node(id: u32, start: &Start) -> BouabdallahLaforest {
        BouabdallahLaforest::new(NodeId(id), &GROUP, start)
    }

    fn claim(resources: &[u32]) -> Claim {
        Claim::of(resources.iter().copied().map(ResourceId))
    }

    fn want(resources: &[u32]) -> Input<Msg> {
        Input::Request(claim(resources))
    }

    fn ask(requester: u32) -> Msg {
        Msg::Request(NodeId(requester))
    }

    /// The control token after `fence` requests; each pair is a resource and who has it last.
    fn control(last: &[(u32, u32)], fence: u64) -> Msg {
        let last = last.iter().map(|&(resource, node)| (ResourceId(resource), NodeId(node)));
        Msg::Control(Box::new(Control { last: last.collect(), fence: Fence(fence) }))
    }

    fn inquire(resources: &[u32]) -> Msg {
        Msg::Inquire(claim(resources))
    }

    fn ack1(resources: &[u32]) -> Msg {
        Msg::InqAck1(claim(resources))
    }

    fn ack2(resources: &[u32]) -> Msg {
        Msg::InqAck2(claim(resources))
    }

    /// Node 1 has asked for resources 0 to 3, and 0 was free, 1 and 2 with node 0, 3 with node 2.
    fn asking() -> BouabdallahLaforest {
        let mut n1 = node(1, &Start::idle());
        assert_eq!(step(&mut n1, &GROUP, want(&[0, 1, 2, 3])), [send(0, ask(1))]);
        let table = [(1, 0), (2, 0), (3, 2), (5, 3)];
        let asked = step(&mut n1, &GROUP, from(0, control(&table, 6)));
        assert_eq!(asked, [send(0, inquire(&[1, 2])), send(2, inquire(&[3]))]);
        n1
    }

    /// 'Parent, the node that has (or will have) the control token and therefore the node to which
    /// to send the request.' Reference: S0 2.1.
    #[test]
    fn paper_a_request_for_the_control_token_goes_to_the_parent_and_turns_the_pointers_round() {
        let mut n1 = node(1, &Start::idle());
        assert_eq!(step(&mut n1, &GROUP, from(3, ask(3))), [send(0, ask(3))]);
        assert_eq!(n1.last, NodeId(3));
        assert_eq!(step(&mut n1, &GROUP, want(&[4])), [send(3, ask(1))]);
        assert_eq!(n1.last, NodeId(1));
        assert_eq!(step(&mut n1, &GROUP, from(2, ask(2))), []);
        assert_eq!((n1.last, n1.next), (NodeId(2), Some(NodeId(2))));
    }

    /// 'In the first case the node has all the tokens that it needs. It locks them, sends the
    /// control token to its next and enters the critical section.' Reference: S0 2.1.
    #[test]
    fn paper_with_all_tokens_the_control_token_goes_on_and_the_node_enters() {
        let mut n1 = node(1, &Start::idle());
        step(&mut n1, &GROUP, want(&[0, 2]));
        step(&mut n1, &GROUP, from(2, ask(2)));
        let entered = step(&mut n1, &GROUP, from(0, control(&[(1, 0)], 6)));
        let passed = control(&[(0, 1), (1, 0), (2, 1)], 7);
        assert_eq!(entered, [send(2, passed), Effect::Granted(Fence(7))]);
        assert_eq!(n1.present, BTreeSet::from([ResourceId(0), ResourceId(2)]));
    }

    /// 'Otherwise it sends INQUIRE to the nodes that have the tokens that it needs, by list B,
    /// updates the list and waits for INQ_ACK1 from these nodes.' Reference: S0 2.1.
    #[test]
    fn paper_each_holder_of_missing_tokens_is_asked_once_and_the_control_token_waits() {
        let mut n1 = asking();
        assert_eq!(step(&mut n1, &GROUP, from(3, ask(3))), []);
        assert_eq!(step(&mut n1, &GROUP, from(2, ack1(&[3]))), []);
        let entered = step(&mut n1, &GROUP, from(0, ack1(&[1, 2])));
        let passed = control(&[(0, 1), (1, 1), (2, 1), (3, 1), (5, 3)], 7);
        assert_eq!(entered, [send(3, passed), Effect::Granted(Fence(7))]);
    }

    /// 'If it has all the tokens now it enters; otherwise it waits for INQ_ACK2 until it has
    /// received all of them.' Reference: S0 2.1.
    #[test]
    fn paper_after_the_last_ack1_the_control_token_goes_and_the_node_waits_for_ack2() {
        let mut n1 = asking();
        step(&mut n1, &GROUP, from(3, ask(3)));
        step(&mut n1, &GROUP, from(2, ack1(&[])));
        let passed = step(&mut n1, &GROUP, from(0, ack1(&[2])));
        let table = [(0, 1), (1, 1), (2, 1), (3, 1), (5, 3)];
        assert_eq!(passed, [send(3, control(&table, 7))]);
        assert_eq!(step(&mut n1, &GROUP, from(2, ack2(&[3]))), []);
        let entered = step(&mut n1, &GROUP, from(0, ack2(&[1])));
        assert_eq!(entered, [Effect::Granted(Fence(7))]);
    }

    /// 'It answers with INQ_ACK1 and the tokens asked for that are available. The others are stored
    /// in (i, Q); when s leaves they are sent in an INQ_ACK2.' Reference: S0 2.1.
    #[test]
    fn paper_tokens_in_use_follow_when_the_node_leaves_in_one_message_per_asking_node() {
        let mut n0 = node(0, &Start::idle());
        step(&mut n0, &GROUP, want(&[4, 5]));
        step(&mut n0, &GROUP, Input::Release);
        let entered = step(&mut n0, &GROUP, want(&[0, 1, 2]));
        assert_eq!(entered, [Effect::Granted(Fence(2))]);
        assert_eq!(step(&mut n0, &GROUP, from(1, inquire(&[0, 2, 4]))), [send(1, ack1(&[4]))]);
        assert_eq!(step(&mut n0, &GROUP, from(3, inquire(&[1]))), [send(3, ack1(&[]))]);
        let left = step(&mut n0, &GROUP, Input::Release);
        assert_eq!(left, [send(1, ack2(&[0, 2])), send(3, ack2(&[1]))]);
        assert_eq!(n0.present, BTreeSet::from([ResourceId(5)]));
    }

    #[test]
    fn a_token_that_is_still_to_come_is_promised_to_whoever_asks() {
        let mut n1 = asking();
        step(&mut n1, &GROUP, from(2, ack1(&[])));
        step(&mut n1, &GROUP, from(0, ack1(&[1, 2])));
        assert_eq!(step(&mut n1, &GROUP, from(3, inquire(&[3]))), [send(3, ack1(&[]))]);
        let entered = step(&mut n1, &GROUP, from(2, ack2(&[3])));
        assert_eq!(entered, [Effect::Granted(Fence(7))]);
        assert_eq!(step(&mut n1, &GROUP, Input::Release), [send(3, ack2(&[3]))]);
    }

    #[test]
    fn before_its_turn_a_waiting_node_gives_the_very_token_that_it_wants() {
        let start = Start::token_at(NodeId(0)).and_inside(NodeId(1), claim(&[2]));
        let mut n1 = node(1, &start);
        step(&mut n1, &GROUP, Input::Release);
        step(&mut n1, &GROUP, want(&[2]));
        assert_eq!(step(&mut n1, &GROUP, from(0, inquire(&[2]))), [send(0, ack1(&[2]))]);
        let asked = step(&mut n1, &GROUP, from(0, control(&[(2, 0)], 1)));
        assert_eq!(asked, [send(0, inquire(&[2]))]);
    }

    #[test]
    fn an_ack2_that_overtakes_the_ack1_does_not_let_the_node_in_yet() {
        let mut n1 = asking();
        assert_eq!(step(&mut n1, &GROUP, from(0, ack1(&[1, 2]))), []);
        assert_eq!(step(&mut n1, &GROUP, from(2, ack2(&[3]))), []);
        let entered = step(&mut n1, &GROUP, from(2, ack1(&[])));
        assert_eq!(entered, [Effect::Granted(Fence(7))]);
        assert!(n1.holds_token(), "nobody has asked for the control token");
    }

    #[test]
    fn a_node_inside_sends_the_control_token_at_once_to_whoever_asks() {
        let mut n0 = node(0, &Start::idle());
        assert_eq!(step(&mut n0, &GROUP, want(&[1])), [Effect::Granted(Fence(1))]);
        let sent = step(&mut n0, &GROUP, from(2, ask(2)));
        assert_eq!(sent, [send(2, control(&[(1, 0)], 1))]);
        assert_eq!((n0.last, n0.next), (NodeId(2), None));
    }

    #[test]
    fn the_last_user_enters_again_without_a_message() {
        let mut n0 = node(0, &Start::idle());
        assert_eq!(step(&mut n0, &GROUP, want(&[1, 3])), [Effect::Granted(Fence(1))]);
        assert_eq!(step(&mut n0, &GROUP, Input::Release), []);
        assert_eq!(step(&mut n0, &GROUP, want(&[0, 3])), [Effect::Granted(Fence(2))]);
    }

    #[test]
    fn a_group_may_start_with_several_inside() {
        let start = Start::token_at(NodeId(2))
            .and_inside(NodeId(0), claim(&[0, 1]))
            .and_inside(NodeId(3), claim(&[4]));
        let mut n2 = node(2, &start);
        let asked = step(&mut n2, &GROUP, want(&[1, 2, 4]));
        assert_eq!(asked, [send(0, inquire(&[1])), send(3, inquire(&[4]))]);
        let mut n0 = node(0, &start);
        assert_eq!(step(&mut n0, &GROUP, from(2, inquire(&[1]))), [send(2, ack1(&[]))]);
        assert_eq!(step(&mut n0, &GROUP, Input::Release), [send(2, ack2(&[1]))]);
        assert!(!n0.holds_token() && n2.holds_token());
    }

    #[test]
    fn a_group_of_one_enters_at_once() {
        let alone = Sharing { nodes: 1, resources: 2 };
        let mut node = BouabdallahLaforest::new(NodeId(0), &alone, &Start::idle());
        assert_eq!(step(&mut node, &alone, want(&[0, 1])), [Effect::Granted(Fence(1))]);
    }

    #[test]
    fn what_cannot_come_to_an_idle_node_is_an_anomaly_and_changes_nothing() {
        let messages =
            [ask(1), ask(4), ask(u32::MAX), control(&[], 0), ack1(&[0]), ack2(&[0]), ack2(&[])];
        for message in messages {
            let mut n1 = node(1, &Start::idle());
            let effects = step(&mut n1, &GROUP, from(0, message));
            assert!(matches!(effects[..], [Effect::Anomaly(_)]));
            assert_eq!(n1, node(1, &Start::idle()));
        }
        let effects = step(&mut node(1, &Start::idle()), &GROUP, want(&[0, 6]));
        assert!(matches!(effects[..], [Effect::Anomaly(_)]));
    }

    #[test]
    fn a_question_for_what_is_not_here_is_an_anomaly_and_still_answered() {
        let mut n1 = node(1, &Start::idle());
        let effects = step(&mut n1, &GROUP, from(0, inquire(&[0, u32::MAX])));
        assert!(matches!(effects[..2], [Effect::Anomaly(_), Effect::Anomaly(_)]));
        assert_eq!(effects[2..], [send(0, ack1(&[]))]);
    }

    #[test]
    fn a_control_token_that_names_nobody_or_the_wrong_one_lets_nobody_in() {
        for wrong in [1, 4, u32::MAX] {
            let mut n1 = node(1, &Start::idle());
            step(&mut n1, &GROUP, want(&[0, 1]));
            let effects = step(&mut n1, &GROUP, from(0, control(&[(0, wrong)], 0)));
            assert!(matches!(effects[..], [Effect::Anomaly(_)]));
        }
    }

    #[test]
    fn tokens_that_were_not_asked_for_are_not_taken() {
        let mut n1 = asking();
        let effects = step(&mut n1, &GROUP, from(0, ack1(&[0, 1, 5])));
        assert!(matches!(effects[..], [Effect::Anomaly(_), Effect::Anomaly(_)]));
        assert_eq!(n1.present, BTreeSet::from([ResourceId(0), ResourceId(1)]));
        assert_eq!(n1.missing, 2);
    }

    #[test]
    fn the_invariant_wants_every_token_once() {
        let start = Start::token_at(NodeId(2)).and_inside(NodeId(0), claim(&[0, 1]));
        let mut nodes: Vec<BouabdallahLaforest> =
            NodeId::all(4).map(|id| node(id.0, &start)).collect();
        let check = |nodes: &[BouabdallahLaforest], in_flight: &[Envelope<Msg>]| {
            BouabdallahLaforest::invariant(&Snapshot { config: &GROUP, nodes, in_flight })
        };
        assert_eq!(check(&nodes, &[]), Ok(()));
        nodes[0].present.remove(&ResourceId(1));
        assert!(check(&nodes, &[]).is_err(), "token 1 is lost");
        let given = Envelope { from: NodeId(0), to: NodeId(3), message: ack2(&[1]) };
        assert_eq!(check(&nodes, core::slice::from_ref(&given)), Ok(()));
        nodes[3].present.insert(ResourceId(1));
        assert!(check(&nodes, &[given]).is_err(), "token 1 is there twice");
        nodes[2].control = None;
        assert!(check(&nodes, &[]).is_err(), "the control token is lost");
    }
}
