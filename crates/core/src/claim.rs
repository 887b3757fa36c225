//! What a request asks for: a set of resources.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// A resource of one lock instance, numbered from 0. Most algorithms guard a single one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResourceId(pub u32);

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A set of resources, asked for and granted as a whole. Ascending, without repetition.
///
/// A claim of up to four resources costs no allocation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "Vec<ResourceId>", into = "Vec<ResourceId>")]
pub struct Claim(SmallVec<[ResourceId; 4]>);

impl From<Vec<ResourceId>> for Claim {
    fn from(resources: Vec<ResourceId>) -> Self {
        Claim::of(resources)
    }
}

impl From<Claim> for Vec<ResourceId> {
    fn from(claim: Claim) -> Self {
        claim.0.into_vec()
    }
}

/// Written as the resources with commas between them.
impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, resource) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{resource}")?;
        }
        Ok(())
    }
}

impl Claim {
    /// The only claim there is where one resource is guarded.
    pub fn single() -> Self {
        Claim(SmallVec::from_slice(&[ResourceId(0)]))
    }

    /// A claim for all of `resources`, in any order. Repeated ones count once.
    pub fn of(resources: impl IntoIterator<Item = ResourceId>) -> Self {
        let mut claim: SmallVec<[ResourceId; 4]> = resources.into_iter().collect();
        claim.sort_unstable();
        claim.dedup();
        Claim(claim)
    }

    /// The resources, ascending.
    pub fn resources(&self) -> &[ResourceId] {
        &self.0
    }

    /// Whether some resource is in both.
    pub fn overlaps(&self, other: &Claim) -> bool {
        self.0.iter().any(|&resource| other.contains(resource))
    }

    /// Whether `resource` is asked for.
    pub fn contains(&self, resource: ResourceId) -> bool {
        self.0.binary_search(&resource).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_a_set() {
        let claim = Claim::of([ResourceId(3), ResourceId(1), ResourceId(3)]);
        assert_eq!(claim.resources(), [ResourceId(1), ResourceId(3)]);
        assert!(claim.contains(ResourceId(3)) && !claim.contains(ResourceId(2)));
    }
}
