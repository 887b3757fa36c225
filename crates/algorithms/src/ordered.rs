//! Single locks taken in ascending order: sets of resources with any algorithm that guards one.
//!
//! Each resource has an instance of the algorithm of its own. A request takes them one after the
//! other in ascending order, so no circle of waiting can close: no deadlock. It is the textbook's
//! remedy, and what the algorithms made for sets are compared with. Named `ordered:NAME`.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use catraca_core::{
    Algorithm, Bounds, Claim, Effect, Effects, Fence, Input, Message, NodeId, ResourceId, Start,
    Variables,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::ASKS_TWICE;

/// Of how many instances people are shown the variables.
const SHOWN: usize = 8;

/// A message of one instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(bound = "M: Serialize + DeserializeOwned")]
pub struct Msg<M> {
    /// Whose instance.
    resource: ResourceId,
    /// The largest fence of an entry with this resource that the sender knows of. It reaches every
    /// later holder, because the message that lets that holder in comes after the release.
    fence: Fence,
    /// What the instance says.
    message: M,
}

impl<M: Message> Message for Msg<M> {
    const KINDS: &'static [&'static str] = M::KINDS;

    fn kind(&self) -> usize {
        self.message.kind()
    }

    fn is_possible(&self, bounds: Bounds) -> bool {
        let Msg { resource, fence, message } = self;
        bounds.has_resource(*resource)
            && bounds.has_fence(*fence)
            && message.is_possible(bounds.of_one_resource())
    }
}

/// The configuration of the instances, and how many there are.
#[derive(Debug)]
pub struct Config<C> {
    /// What the nodes of one instance share.
    pub instance: C,
    /// How many resources there are.
    pub resources: u32,
}

/// One node: a node of every instance.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ordered<A> {
    instances: Vec<Instance<A>>,
    claim: Claim,
    /// How many resources of the claim are held, from the first on.
    held: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Instance<A> {
    node: A,
    /// The largest fence of an entry with this resource that this node knows of.
    fence: Fence,
}

impl<A: Algorithm> Ordered<A> {
    /// Gives `input` to the instance of `resource`; returns whether it let this node in.
    fn step(
        &mut self,
        config: &Config<A::Config>,
        resource: ResourceId,
        input: Input<A::Message>,
        out: &mut Effects<Msg<A::Message>>,
    ) -> bool {
        let mut effects = Effects::new();
        let Instance { node, fence } = &mut self.instances[resource.0 as usize];
        node.step(&config.instance, input, &mut effects);
        let mut granted = false;
        for effect in effects.drain() {
            match effect {
                Effect::Send { to, message } => {
                    out.send(to, Msg { resource, fence: *fence, message });
                }
                Effect::Granted(_) => granted = true,
                Effect::Anomaly(what) => out.anomaly(what),
                // Timers are identified by their tags, which the instances share.
                Effect::SetTimer { .. } | Effect::CancelTimer(_) => {
                    out.anomaly("an instance that needs timers cannot be taken in order");
                }
            }
        }
        granted
    }

    /// Takes the next resources of the claim, as far as they come at once.
    fn go_on(&mut self, config: &Config<A::Config>, out: &mut Effects<Msg<A::Message>>) {
        while let Some(&resource) = self.claim.resources().get(self.held) {
            if !self.step(config, resource, Input::Request(Claim::single()), out) {
                return;
            }
            self.held += 1;
        }
        self.enter(out);
    }

    fn enter(&mut self, out: &mut Effects<Msg<A::Message>>) {
        let claimed = self.claim.resources().iter().map(|resource| resource.0 as usize);
        let last = claimed.clone().map(|index| self.instances[index].fence).max();
        let fence = last.unwrap_or(Fence::NONE).next();
        for index in claimed {
            self.instances[index].fence = fence;
        }
        out.granted(fence);
    }
}

impl<A: Algorithm> Algorithm for Ordered<A> {
    type Message = Msg<A::Message>;
    type Config = Config<A::Config>;

    fn new(me: NodeId, config: &Self::Config, start: &Start) -> Self {
        let instance = |resource| {
            let holds = |(_, claim): &(NodeId, &Claim)| claim.contains(resource);
            let begin = match start.holders().find(holds) {
                Some((holder, _)) => Start::inside(holder),
                None => Start::token_at(start.token()),
            };
            Instance { node: A::new(me, &config.instance, &begin), fence: Fence::NONE }
        };
        let claim = start.claim_of(me).cloned().unwrap_or_else(|| Claim::of([]));
        Ordered {
            instances: (0..config.resources).map(ResourceId).map(instance).collect(),
            held: claim.resources().len(),
            claim,
        }
    }

    fn on_request(
        &mut self,
        config: &Self::Config,
        claim: Claim,
        out: &mut Effects<Self::Message>,
    ) {
        if !self.claim.resources().is_empty() {
            return out.anomaly(ASKS_TWICE);
        }
        let exists = |resource: &ResourceId| resource.0 < config.resources;
        if !claim.resources().iter().all(exists) {
            return out.anomaly("a claim on a resource that does not exist");
        }
        self.claim = claim;
        self.held = 0;
        self.go_on(config, out);
    }

    fn on_release(&mut self, config: &Self::Config, out: &mut Effects<Self::Message>) {
        let claim = core::mem::replace(&mut self.claim, Claim::of([]));
        self.held = 0;
        for &resource in claim.resources() {
            self.step(config, resource, Input::Release, out);
        }
    }

    fn on_message(
        &mut self,
        config: &Self::Config,
        from: NodeId,
        Msg { resource, fence, message }: Self::Message,
        out: &mut Effects<Self::Message>,
    ) {
        let Some(instance) = self.instances.get_mut(resource.0 as usize) else {
            return out.anomaly("a message about a resource that does not exist");
        };
        instance.fence = instance.fence.max(fence);
        if self.step(config, resource, Input::Message { from, message }, out) {
            self.held += 1;
            self.go_on(config, out);
        }
    }

    fn variables(&self, out: &mut Variables) {
        out.text("claim", self.claim.to_string());
        out.number("held", self.held);
        // Of a million instances nobody looks at more than the first few.
        for (resource, instance) in self.instances.iter().enumerate().take(SHOWN) {
            out.part(&format!("{resource}"), |out| instance.node.variables(out));
        }
    }
}
