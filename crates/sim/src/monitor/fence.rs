//! The fences of each resource grow from entry to entry, so that a holder that is out of date can
//! be refused. Where several may be inside at once they are unique instead.

use catraca_core::{Claim, Fence, property};
use rustc_hash::FxHashSet;

use super::Broken;

/// Remembers the fences so far.
#[derive(Debug)]
pub(crate) enum Fences {
    /// One holder at a time: the largest fence of each resource.
    Growing(Vec<Fence>),
    /// Several holders of the one resource: all of them.
    Unique(FxHashSet<Fence>),
}

impl Fences {
    /// For `resources` that admit `capacity` holders each.
    pub(crate) fn new(resources: u32, capacity: u32) -> Self {
        match capacity {
            1 => Fences::Growing(vec![Fence::NONE; resources as usize]),
            _ => Fences::Unique(FxHashSet::default()),
        }
    }

    pub(crate) fn grant(&mut self, claim: &Claim, fence: Fence) -> Result<(), Broken> {
        match self {
            Fences::Growing(last) => {
                for resource in claim.resources() {
                    let last = &mut last[resource.0 as usize];
                    if fence <= *last {
                        let what = format!("fence {fence} comes after fence {last}");
                        return Err(Broken { invariant: property::FENCES_INCREASE, what });
                    }
                    *last = fence;
                }
            }
            Fences::Unique(all) => {
                if !all.insert(fence) {
                    let what = format!("fence {fence} comes for the second time");
                    return Err(Broken { invariant: property::FENCES_UNIQUE, what });
                }
            }
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
        let (mut fences, claim) = (Fences::new(1, 1), Claim::single());
        assert_eq!(fences.grant(&claim, Fence(3)), Ok(()));
        assert!(fences.grant(&claim, Fence(3)).is_err());
        assert_eq!(fences.grant(&claim, Fence(4)), Ok(()));
    }

    #[test]
    fn fences_grow_for_each_resource_by_itself() {
        let mut fences = Fences::new(2, 1);
        let (first, second) = (Claim::of([ResourceId(0)]), Claim::of([ResourceId(1)]));
        assert_eq!(fences.grant(&first, Fence(7)), Ok(()));
        assert_eq!(fences.grant(&second, Fence(3)), Ok(()));
        let both = Claim::of([ResourceId(0), ResourceId(1)]);
        assert!(fences.grant(&both, Fence(5)).is_err());
    }

    #[test]
    fn with_several_holders_any_order_will_do_but_no_number_comes_twice() {
        let (mut fences, claim) = (Fences::new(1, 2), Claim::single());
        assert_eq!(fences.grant(&claim, Fence(7)), Ok(()));
        assert_eq!(fences.grant(&claim, Fence(3)), Ok(()));
        let broken = fences.grant(&claim, Fence(7)).unwrap_err();
        assert_eq!(broken.invariant, property::FENCES_UNIQUE);
    }
}
