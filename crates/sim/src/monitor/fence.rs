//! Fences grow from entry to entry, so that a holder that is out of date can be refused.

use catraca_core::{Fence, property};

use super::Broken;

/// Remembers the largest fence so far.
#[derive(Debug)]
pub(crate) struct FenceOrder {
    last: Fence,
}

impl FenceOrder {
    pub(crate) fn new() -> Self {
        FenceOrder { last: Fence::NONE }
    }

    pub(crate) fn grant(&mut self, fence: Fence) -> Result<(), Broken> {
        if fence <= self.last {
            let what = format!("fence {fence} comes after fence {}", self.last);
            return Err(Broken { invariant: property::FENCES_INCREASE, what });
        }
        self.last = fence;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_that_does_not_grow_is_noticed() {
        let mut order = FenceOrder::new();
        assert_eq!(order.grant(Fence(3)), Ok(()));
        assert!(order.grant(Fence(3)).is_err());
        assert_eq!(order.grant(Fence(4)), Ok(()));
    }
}
