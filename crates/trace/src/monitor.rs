//! What no run may show: too many holders of a resource, or fences that do not grow.
//!
//! A run is watched from outside, by its requests, grants and releases alone. A node holds all
//! resources of its claim from the grant to the release; capacity and fences are those of each
//! resource by itself.

use std::collections::BTreeSet;

use catraca_algorithms::Spec;
use catraca_core::{Claim, Fence, Input, NodeId};

use crate::record::{Outcome, Step};

/// Watches a run as it is replayed.
pub(crate) struct Monitor {
    /// What each node has asked for last.
    claims: Vec<Claim>,
    resources: Vec<Resource>,
    capacity: usize,
    /// Every fence so far, where several may be inside at once.
    fences: BTreeSet<Fence>,
}

#[derive(Clone)]
struct Resource {
    holders: Vec<NodeId>,
    last: Fence,
}

impl Monitor {
    pub(crate) fn new(spec: &Spec) -> Self {
        let free = Resource { holders: Vec::new(), last: Fence::NONE };
        let mut monitor = Monitor {
            claims: vec![Claim::single(); spec.nodes as usize],
            resources: vec![free; spec.resource_count() as usize],
            capacity: spec.capacity() as usize,
            fences: BTreeSet::new(),
        };
        for (node, claim) in spec.start.holders() {
            monitor.claims[node.index()] = claim.clone();
            for resource in claim.resources() {
                monitor.resources[resource.0 as usize].holders.push(node);
            }
        }
        monitor
    }

    /// A node has left, or has crashed.
    pub(crate) fn leave(&mut self, node: NodeId) {
        let claim = self.claims.get(node.index()).map_or(&[][..], Claim::resources);
        for id in claim {
            self.resources[id.0 as usize].holders.retain(|&holder| holder != node);
        }
    }

    /// Takes note of a step; returns what is wrong about it.
    pub(crate) fn step(&mut self, step: &Step) -> Vec<String> {
        match &step.input {
            Input::Release => self.leave(step.node),
            Input::Request(claim) => self.claims[step.node.index()] = claim.clone(),
            _ => {}
        }
        let mut wrong = Vec::new();
        for outcome in &step.outcomes {
            match outcome {
                Outcome::Granted(fence) => {
                    wrong.extend(self.enter(step.node));
                    wrong.extend(self.grant(step.node, *fence));
                }
                Outcome::Anomaly(what) => wrong.push(format!("node {}: {what}", step.node)),
                Outcome::Send { .. } | Outcome::SetTimer { .. } | Outcome::CancelTimer(_) => {}
            }
        }
        wrong
    }

    /// Returns the first resource of the claim that has too many holders.
    fn enter(&mut self, node: NodeId) -> Option<String> {
        let is_one_of_many = self.resources.len() > 1;
        let mut wrong = None;
        for &id in self.claims[node.index()].resources() {
            let holders = &mut self.resources[id.0 as usize].holders;
            if holders.len() >= self.capacity && wrong.is_none() {
                let others: Vec<String> = holders.iter().map(NodeId::to_string).collect();
                let others = others.join(", ");
                wrong = Some(match is_one_of_many {
                    true => {
                        format!("node {node} enters with resource {id} while node {others} has it")
                    }
                    false => format!("node {node} enters while node {others} is inside"),
                });
            }
            holders.push(node);
        }
        wrong
    }

    /// Of several holders at once no two have the same fence; otherwise fences grow.
    fn grant(&mut self, node: NodeId, fence: Fence) -> Option<String> {
        if self.capacity > 1 {
            let is_new = self.fences.insert(fence);
            return (!is_new).then(|| format!("fence {fence} comes for the second time"));
        }
        let mut wrong = None;
        for id in self.claims[node.index()].resources() {
            let last = &mut self.resources[id.0 as usize].last;
            if fence <= *last {
                wrong = wrong.or_else(|| Some(format!("fence {fence} comes after fence {last}")));
            }
            *last = (*last).max(fence);
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
    use catraca_core::ResourceId;

    use super::*;

    fn asks(node: u32, resources: &[u32], fence: u64) -> Step {
        let claim = Claim::of(resources.iter().copied().map(ResourceId));
        Step {
            at: 0,
            node: NodeId(node),
            input: Input::Request(claim),
            delivers: None,
            outcomes: vec![Outcome::Granted(Fence(fence))],
        }
    }

    fn leaves(node: u32) -> Step {
        Step { input: Input::Release, outcomes: vec![], ..asks(node, &[0], 0) }
    }

    fn monitor(resources: u32) -> Monitor {
        let mut spec = Spec::new("bouabdallah-laforest", 3);
        spec.resources = Some(resources);
        Monitor::new(&spec)
    }

    #[test]
    fn holders_of_different_resources_are_inside_together_and_those_of_one_are_not() {
        let mut monitor = monitor(3);
        assert_eq!(monitor.step(&asks(0, &[0, 1], 1)), [""; 0]);
        assert_eq!(monitor.step(&asks(1, &[2], 1)), [""; 0]);
        let wrong = monitor.step(&asks(2, &[1, 2], 2));
        assert_eq!(wrong, ["node 2 enters with resource 1 while node 0 has it"]);
    }

    #[test]
    fn fences_grow_for_each_resource_by_itself() {
        let mut monitor = monitor(2);
        assert_eq!(monitor.step(&asks(0, &[0], 7)), [""; 0]);
        monitor.step(&leaves(0));
        assert_eq!(monitor.step(&asks(1, &[1], 3)), [""; 0]);
        monitor.step(&leaves(1));
        assert_eq!(monitor.step(&asks(2, &[0, 1], 5)), ["fence 5 comes after fence 7"]);
    }

    #[test]
    fn the_one_resource_has_one_holder_and_a_crash_frees_it() {
        let mut monitor = monitor(1);
        assert_eq!(monitor.step(&asks(0, &[0], 1)), [""; 0]);
        let wrong = monitor.step(&asks(1, &[0], 2));
        assert_eq!(wrong, ["node 1 enters while node 0 is inside"]);
        monitor.leave(NodeId(0));
        monitor.leave(NodeId(1));
        assert_eq!(monitor.step(&asks(2, &[0], 3)), [""; 0]);
    }
}
