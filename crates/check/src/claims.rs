//! What the applications of an explored group ask for.

use catraca_algorithms::Spec;
use catraca_core::{Claim, NodeId, ResourceId};

/// All claims of a group, so that a world needs only their places.
#[derive(Clone, Debug)]
pub struct Claims {
    /// Those of the requests, then those of whoever is inside at the start.
    list: Vec<Claim>,
    /// How many of them are for requests.
    asked: usize,
    /// Who is inside at the start, and with which claim.
    inside: Vec<(NodeId, u16)>,
    resources: u32,
    /// How many may hold one resource at once.
    capacity: u32,
    requests: u32,
}

impl Claims {
    /// Request k of node i asks for the claim at place i + k of `asked`, going round. If that is
    /// empty, the claims are each resource with the next one: neighbours overlap.
    pub fn new(asked: &[Claim], spec: &Spec, requests: u32) -> Self {
        let resources = spec.resource_count();
        let with_next =
            |resource| Claim::of([resource, (resource + 1) % resources].map(ResourceId));
        let mut list: Vec<Claim> = match asked {
            [] => (0..resources).map(with_next).collect(),
            asked => asked.to_vec(),
        };
        let asked = list.len();
        let mut inside = Vec::new();
        for (node, claim) in spec.start.holders() {
            inside.push((node, list.len() as u16));
            list.push(claim.clone());
        }
        Claims { list, asked, inside, resources, capacity: spec.capacity(), requests }
    }

    /// How many resources there are.
    pub fn resources(&self) -> u32 {
        self.resources
    }

    /// How many may hold one resource at once.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The claim at a place.
    pub fn claim(&self, place: u16) -> &Claim {
        &self.list[usize::from(place)]
    }

    /// The place of the claim with which `node` is inside at the start; 0 if it is not.
    pub(crate) fn at_start(&self, node: NodeId) -> u16 {
        self.inside.iter().find(|(holder, _)| *holder == node).map_or(0, |(_, place)| *place)
    }

    /// The place of the claim of the request after which `node` has `remaining` left to make.
    pub(crate) fn of_request(&self, node: NodeId, remaining: u32) -> u16 {
        let made = (self.requests - remaining - 1) as usize;
        ((node.index() + made) % self.asked) as u16
    }
}
