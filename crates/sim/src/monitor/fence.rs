//! The fences of each resource grow from entry to entry, so that a holder that is out of date can
//! be refused.

use catraca_core::{Claim, Fence, property};

use super::Broken;

/// Remembers the largest fence of each resource so far.
#[derive(Debug)]
pub(crate) struct FenceOrder {
    last: Vec<Fence>,
}

impl FenceOrder {
    pub(crate) fn new(resources: u32) -> Self {
        FenceOrder { last: vec![Fence::NONE; resources as usize] }
    }

    pub(crate) fn grant(&mut self, claim: &Claim, fence: Fence) -> Result<(), Broken> {
        for resource in claim.resources() {
            let last = &mut self.last[resource.0 as usize];
            if fence <= *last {
                let what = format!("fence {fence} comes after fence {last}");
                return Err(Broken { invariant: property::FENCES_INCREASE, what });
            }
            *last = fence;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use catraca_core::ResourceId;

    use super::*;

    #[test]
    fn a_fence_that_does_not_grow_is_noticed() {
        let (mut order, claim) = (FenceOrder::new(1), Claim::single());
        assert_eq!(order.grant(&claim, Fence(3)), Ok(()));
        assert!(order.grant(&claim, Fence(3)).is_err());
        assert_eq!(order.grant(&claim, Fence(4)), Ok(()));
    }

    #[test]
    fn fences_grow_for_each_resource_by_itself() {
        let mut order = FenceOrder::new(2);
        let (first, second) = (Claim::of([ResourceId(0)]), Claim::of([ResourceId(1)]));
        assert_eq!(order.grant(&first, Fence(7)), Ok(()));
        assert_eq!(order.grant(&second, Fence(3)), Ok(()));
        let both = Claim::of([ResourceId(0), ResourceId(1)]);
        assert!(order.grant(&both, Fence(5)).is_err());
    }
}
