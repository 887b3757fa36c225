//! The names of what has to hold in every run, as monitors, checker and mutants call it.

/// At most as many are inside as may be: one, for a lock.
pub const MUTUAL_EXCLUSION: &str = "mutual exclusion";
/// Nobody is left waiting when nothing more can happen, or while the same steps repeat for ever.
pub const NOBODY_WAITS_FOR_EVER: &str = "nobody waits for ever";
/// Every grant has a larger fence than the one before.
pub const FENCES_INCREASE: &str = "fences increase";
/// No two grants have the same fence. What holds instead where several may be inside at once.
pub const FENCES_UNIQUE: &str = "fences are unique";
/// There is exactly one token, at a node or in a message. Only where there is one at all.
pub const ONE_TOKEN: &str = "one token";
/// Nothing happened that cannot happen in a correct run.
pub const NO_ANOMALY: &str = "no anomaly";
/// The algorithm's own invariant holds.
pub const INVARIANT: &str = "invariant";
/// No request is overtaken more often than allowed.
pub const BOUNDED_BYPASS: &str = "bounded bypass";
/// A client's requests for the same locks are granted in the order of asking.
pub const ORDER_OF_ASKING: &str = "order of asking";
/// A member that was granted a lock serves those of its clients who waited then, up to a bound.
pub const BOUNDED_HANDOVER: &str = "bounded hand-over";
