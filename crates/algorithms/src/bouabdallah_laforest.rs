//! **Idea.** A request names a set of resources, each of which has a token; requests that have
//! nothing in common are inside at the same time. One control token lists who has, or will have,
//! each resource's token last; it travels as in Naimi-Trehel. The node that gets it asks those listed for
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

mod message;
#[cfg(test)]
mod paper;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use catraca_core::{
    Algorithm, Claim, Effects, Fence, NodeId, Phase, ResourceId, Snapshot, Start, Variables,
};

use crate::mutants::{self, Mutation};
use crate::naimi_trehel::{check_pointers, messages_at_low_load};
use crate::registry::{Channels, Entry, Family, Load, Range, Registered, Theory};
use crate::{ASKS_TWICE, Spec, SpecError};

pub(crate) use message::{Control, Msg};

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

    /// Gives the control token, if it is here, to the next node, if there is one.
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
    /// that is asked for, and be made to wait for the very node that asks.
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
        if self.phase != Phase::Idle {
            return out.anomaly(ASKS_TWICE);
        }
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

    fn variables(&self, out: &mut Variables) {
        let pairs = |pairs: &BTreeMap<ResourceId, NodeId>| {
            let pairs = pairs.iter().map(|(resource, node)| format!("{resource}: {node}"));
            pairs.collect::<Vec<String>>().join(", ")
        };
        let present: Vec<String> = self.present.iter().map(ToString::to_string).collect();
        out.phase(self.phase);
        out.node("Parent", self.last);
        out.node("next", self.next);
        out.text("tokens_present", present.join(", "));
        out.text("claim", self.claim.to_string());
        out.flag("locked", self.locked);
        out.set("awaited", self.awaited.iter().copied());
        out.number("missing", self.missing);
        out.text("(i, Q)", pairs(&self.questions));
        out.flag("control token", self.control.is_some());
        let control = self.control.as_deref();
        out.text("B", control.map_or(String::new(), |control| pairs(&control.last)));
        out.number("fence", self.fence.0);
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
            // The node that used the one resource last has the control token as well.
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
