//! Nobody is left waiting when nothing more can happen.
//!
//! Requests that come from outside, whatever the nodes do, let no waiting node in; nor do the tests of a
//! failure detector that cannot bring a suspicion any more. A deadlock is one also while they go on.
//!
//! Reference: S2, section 8.1 (absence of deadlock and starvation).

use catraca_core::{NodeId, property};

use super::Broken;

/// How many waiting nodes a report names.
const NAMED: usize = 8;

/// What is broken when these nodes wait: nobody is inside, and no message, timer or suspicion that
/// could let one of them in will come.
pub(crate) fn deadlock(mut waiting: impl Iterator<Item = NodeId>) -> Broken {
    let mut named: Vec<String> =
        waiting.by_ref().take(NAMED).map(|node| node.to_string()).collect();
    let more = waiting.count();
    if more > 0 {
        named.push(format!("and {more} more"));
    }
    let what = format!("nothing more can happen, but these nodes wait: {}", named.join(", "));
    Broken { invariant: property::NOBODY_WAITS_FOR_EVER, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_nodes_are_named_up_to_a_limit() {
        assert!(deadlock(NodeId::all(2)).what.ends_with("these nodes wait: 0, 1"));
        let broken = deadlock(NodeId::all(10));
        assert!(broken.what.ends_with("0, 1, 2, 3, 4, 5, 6, 7, and 2 more"), "{}", broken.what);
    }
}
