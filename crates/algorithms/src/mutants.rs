//! Deliberately broken algorithms, to show that checker and simulator catch what they should.
//!
//! A mutation replaces one or two handlers of a correct algorithm and leaves the rest alone: no
//! algorithm asks whether it is broken. What a node does by itself, without a message, is not mutated.

pub(crate) mod bertier;
pub(crate) mod bouabdallah_laforest;
pub(crate) mod carvalho_roucairol;
pub(crate) mod coordinator;
pub(crate) mod lamport;
pub(crate) mod maekawa;
pub(crate) mod naimi_trehel;
pub(crate) mod raymond;
pub(crate) mod raymond_k;
pub(crate) mod ricart_agrawala;
pub(crate) mod robust_k;
pub(crate) mod singhal;
pub(crate) mod suzuki_kasami;

use core::fmt;

use catraca_core::{
    Algorithm, Claim, Effects, NodeId, NodeSet, Snapshot, Start, TimerTag, Variables,
};

use crate::Spec;

/// What catches a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caught {
    /// The exhaustive checker, on the channels that the algorithm needs. This is the smallest group
    /// in which it does.
    Checked {
        /// How many nodes it takes.
        nodes: u32,
        /// How many requests each of them makes.
        requests: u32,
        /// The property that it finds broken, one of [`catraca_core::property`].
        property: &'static str,
    },
    /// A run of the simulator. What takes many requests in a row, such as starvation, does not show
    /// in a group small enough to be explored.
    Simulated {
        /// What the scenario says beyond algorithm and mutant: keys and their values. The correct
        /// algorithm breaks nothing in it.
        scenario: &'static [(&'static str, &'static str)],
        /// The property that a monitor finds broken, one of [`catraca_core::property`].
        property: &'static str,
    },
}

impl Caught {
    /// What is found broken.
    pub fn property(self) -> &'static str {
        match self {
            Caught::Checked { property, .. } | Caught::Simulated { property, .. } => property,
        }
    }
}

/// A mutant as the catalogue lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name on the command line.
    pub name: &'static str,
    /// What is broken, in one sentence.
    pub breaks: &'static str,
    /// What catches it.
    pub caught: Caught,
}

/// What the group in which a mutant is caught needs besides nodes and requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// How many may be inside at once, where that can be chosen.
    pub k: Option<u32>,
    /// How many nodes may crash.
    pub crashes: u32,
}

impl Setting {
    /// `spec` in this setting.
    pub fn of(self, spec: Spec) -> Spec {
        Spec { k: self.k, ..spec }
    }
}

impl fmt::Display for Setting {
    /// As flags of the command line, each after a space.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(k) = self.k {
            write!(f, " --k {k}")?;
        }
        match self.crashes {
            0 => Ok(()),
            crashes => write!(f, " --crashes {crashes}"),
        }
    }
}

/// One way to break the algorithm `A`. Every method defaults to the correct behaviour.
pub trait Mutation<A: Algorithm>: Send + Sync {
    /// What the catalogue says of it.
    fn listed(&self) -> Listed;

    /// What it takes to catch it, besides nodes and requests.
    fn setting(&self) -> Setting {
        Setting::default()
    }

    /// Creates a node.
    fn create(&self, me: NodeId, config: &A::Config, start: &Start) -> A {
        A::new(me, config, start)
    }

    /// Handles a request.
    fn on_request(
        &self,
        node: &mut A,
        config: &A::Config,
        claim: Claim,
        out: &mut Effects<A::Message>,
    ) {
        node.on_request(config, claim, out);
    }

    /// Handles a release.
    fn on_release(&self, node: &mut A, config: &A::Config, out: &mut Effects<A::Message>) {
        node.on_release(config, out);
    }

    /// Handles a message.
    fn on_message(
        &self,
        node: &mut A,
        config: &A::Config,
        from: NodeId,
        message: A::Message,
        out: &mut Effects<A::Message>,
    ) {
        node.on_message(config, from, message, out);
    }

    /// Handles a timer.
    fn on_timer(
        &self,
        node: &mut A,
        config: &A::Config,
        tag: TimerTag,
        out: &mut Effects<A::Message>,
    ) {
        node.on_timer(config, tag, out);
    }

    /// Handles a suspicion.
    fn on_suspect(
        &self,
        node: &mut A,
        config: &A::Config,
        suspect: NodeId,
        out: &mut Effects<A::Message>,
    ) {
        node.on_suspect(config, suspect, out);
    }
}

/// A configuration together with the way in which its nodes are broken.
pub struct MutantConfig<A: Algorithm> {
    /// The configuration of the correct algorithm.
    pub config: A::Config,
    /// What is different.
    pub mutation: &'static dyn Mutation<A>,
}

/// A node of `A`, broken as its configuration says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mutant<A>(A);

impl<A: Algorithm> Algorithm for Mutant<A> {
    type Message = A::Message;
    type Config = MutantConfig<A>;

    const TOKEN: bool = A::TOKEN;
    const RESTLESS: bool = A::RESTLESS;

    fn new(me: NodeId, broken: &Self::Config, start: &Start) -> Self {
        Mutant(broken.mutation.create(me, &broken.config, start))
    }

    fn on_start(&mut self, broken: &Self::Config, out: &mut Effects<A::Message>) {
        self.0.on_start(&broken.config, out);
    }

    fn on_request(&mut self, broken: &Self::Config, claim: Claim, out: &mut Effects<A::Message>) {
        broken.mutation.on_request(&mut self.0, &broken.config, claim, out);
    }

    fn on_release(&mut self, broken: &Self::Config, out: &mut Effects<A::Message>) {
        broken.mutation.on_release(&mut self.0, &broken.config, out);
    }

    fn on_message(
        &mut self,
        broken: &Self::Config,
        from: NodeId,
        message: A::Message,
        out: &mut Effects<A::Message>,
    ) {
        broken.mutation.on_message(&mut self.0, &broken.config, from, message, out);
    }

    fn on_timer(&mut self, broken: &Self::Config, tag: TimerTag, out: &mut Effects<A::Message>) {
        broken.mutation.on_timer(&mut self.0, &broken.config, tag, out);
    }

    fn on_suspect(&mut self, broken: &Self::Config, node: NodeId, out: &mut Effects<A::Message>) {
        broken.mutation.on_suspect(&mut self.0, &broken.config, node, out);
    }

    fn on_trust(&mut self, broken: &Self::Config, node: NodeId, out: &mut Effects<A::Message>) {
        self.0.on_trust(&broken.config, node, out);
    }

    fn is_upkeep(tag: TimerTag) -> bool {
        A::is_upkeep(tag)
    }

    fn holds_token(&self) -> bool {
        self.0.holds_token()
    }

    fn suspects(&self) -> Option<&NodeSet> {
        self.0.suspects()
    }

    fn points_to(&self) -> Option<NodeId> {
        self.0.points_to()
    }

    fn variables(&self, out: &mut Variables) {
        self.0.variables(out);
    }

    // The algorithm's own invariant is left out: a mutant has to be caught by what it does to the
    // application, not by the shape of its state.
    fn invariant(_group: &Snapshot<'_, Self>) -> Result<(), &'static str> {
        Ok(())
    }
}
