//! What nodes ask for, where there is more than one resource.

use catraca_core::{Algorithm, Claim, NodeId};

use super::Simulation;
use crate::claims::ClaimSource;
use crate::concurrency::Concurrency;
use crate::setup::Setup;
use crate::time::Time;
use crate::waits::Waits;

/// Kept only for runs on several resources: a run on one has nothing to choose.
pub(super) struct Sets {
    /// What each node has asked for last; nothing before the first time.
    claims: Vec<Claim>,
    source: ClaimSource,
    pub(super) concurrency: Concurrency,
    pub(super) waits: Waits,
}

impl Sets {
    pub(super) fn new(setup: &Setup) -> Option<Self> {
        let spec = &setup.spec;
        let resources = spec.resource_count();
        let claim = |node| spec.start.claim_of(node).cloned().unwrap_or(Claim::of([]));
        (resources > 1).then(|| Sets {
            claims: NodeId::all(spec.nodes).map(claim).collect(),
            source: ClaimSource::new(setup.workload.claims, resources),
            concurrency: Concurrency::new(resources),
            waits: Waits::new(resources),
        })
    }

    pub(super) fn ask(&mut self, now: Time, node: NodeId, claim: &Claim) {
        self.concurrency.ask(now, node, claim);
        self.waits.ask(now, node, claim);
    }

    pub(super) fn enter(&mut self, now: Time, node: NodeId, claim: &Claim) {
        self.concurrency.enter(now, node, claim);
        self.waits.enter(now, node, claim);
    }

    pub(super) fn leave(&mut self, now: Time, claim: &Claim) {
        self.concurrency.leave(now, claim);
        self.waits.leave(now, claim);
    }

    /// `node` gives up waiting.
    pub(super) fn give_up(&mut self, now: Time, node: NodeId) {
        self.concurrency.forget(now, node);
        self.waits.give_up(now, node, &self.claims[node.index()]);
    }

    /// Forgets what was counted.
    pub(super) fn reset(&mut self, now: Time) {
        self.concurrency.reset(now);
        self.waits.reset();
    }
}

impl<A: Algorithm> Simulation<'_, A> {
    /// What `node`, which waits or is inside, has asked for.
    pub(super) fn claim_of(&self, node: NodeId) -> Claim {
        match &self.sets {
            Some(sets) => sets.claims[node.index()].clone(),
            None => Claim::single(),
        }
    }

    /// What `node` asks for now: what the schedule lists, or else a draw.
    pub(super) fn choose_claim(&mut self, node: NodeId, listed: Option<Claim>) -> Claim {
        let Some(sets) = &mut self.sets else { return Claim::single() };
        let claim = listed.unwrap_or_else(|| sets.source.draw(&mut self.random));
        sets.claims[node.index()] = claim.clone();
        claim
    }
}
