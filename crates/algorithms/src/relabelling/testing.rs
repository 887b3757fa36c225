//! What tests of relabelling systems share.

use proptest::prelude::*;

use super::Gathered;

/// Commutative, associative and idempotent; and nothing is lost.
pub(super) fn is_a_join<G: Gathered>(a: &G, b: &G, c: &G) -> Result<(), TestCaseError> {
    let join = |one: &G, other: &G| {
        let mut joined = one.clone();
        joined.join(other);
        joined
    };
    prop_assert_eq!(join(a, b), join(b, a));
    prop_assert_eq!(join(&join(a, b), c), join(a, &join(b, c)));
    prop_assert_eq!(&join(a, a), a);
    prop_assert_eq!(join(&join(a, b), a), join(a, b));
    prop_assert_eq!(&join(a, &G::default()), a);
    Ok(())
}
