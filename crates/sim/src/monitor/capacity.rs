//! At most so many holders of each resource: the one invariant of all mutual exclusion.
//!
//! With one resource of capacity 1 this is the mutex, with capacity k the semaphore, with several
//! resources the locks on sets. Reference: S2, section 8 (the critical section is entered by one
//! process at a time).

use catraca_core::{Claim, NodeId, property};

use super::Broken;

/// Counts the holders of each resource.
#[derive(Debug)]
pub(crate) struct Capacity {
    capacity: Vec<u32>,
    /// Who is inside, per resource. As short as the capacity, in a correct run.
    holders: Vec<Vec<NodeId>>,
}

impl Capacity {
    /// Resource r admits `capacity[r]` holders.
    pub(crate) fn new(capacity: Vec<u32>) -> Self {
        let holders = vec![Vec::new(); capacity.len()];
        Capacity { capacity, holders }
    }

    pub(crate) fn enter(&mut self, node: NodeId, claim: &Claim) -> Result<(), Broken> {
        let is_one_of_many = self.capacity.len() > 1;
        for &resource in claim.resources() {
            let index = resource.0 as usize;
            let holders = &mut self.holders[index];
            holders.push(node);
            if holders.len() > self.capacity[index] as usize {
                let others: Vec<String> =
                    holders.iter().filter(|&&other| other != node).map(NodeId::to_string).collect();
                let others = others.join(", ");
                let what = if is_one_of_many {
                    format!(
                        "node {node} enters with resource {resource} while node {others} has it"
                    )
                } else {
                    format!("node {node} enters while node {others} is inside")
                };
                return Err(Broken { invariant: property::MUTUAL_EXCLUSION, what });
            }
        }
        Ok(())
    }

    pub(crate) fn leave(&mut self, node: NodeId, claim: &Claim) {
        for resource in claim.resources() {
            self.holders[resource.0 as usize].retain(|&holder| holder != node);
        }
    }
}

#[cfg(test)]
mod tests {
    use catraca_core::ResourceId;

    use super::*;

    #[test]
    fn one_holder_too_many_is_noticed_and_a_free_place_is_not() {
        let mut capacity = Capacity::new(vec![2]);
        let claim = Claim::single();
        assert_eq!(capacity.enter(NodeId(0), &claim), Ok(()));
        assert_eq!(capacity.enter(NodeId(1), &claim), Ok(()));
        capacity.leave(NodeId(0), &claim);
        assert_eq!(capacity.enter(NodeId(2), &claim), Ok(()));
        let broken = capacity.enter(NodeId(3), &claim).unwrap_err();
        assert_eq!(broken.what, "node 3 enters while node 1, 2 is inside");
    }

    #[test]
    fn holders_of_different_resources_do_not_exclude_each_other() {
        let mut capacity = Capacity::new(vec![1, 1]);
        assert_eq!(capacity.enter(NodeId(0), &Claim::of([ResourceId(0)])), Ok(()));
        assert_eq!(capacity.enter(NodeId(1), &Claim::of([ResourceId(1)])), Ok(()));
        capacity.leave(NodeId(0), &Claim::of([ResourceId(0)]));
        let both = Claim::of([ResourceId(0), ResourceId(1)]);
        let broken = capacity.enter(NodeId(2), &both).unwrap_err();
        assert_eq!(broken.what, "node 2 enters with resource 1 while node 1 has it");
    }
}
