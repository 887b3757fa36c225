//! Nobody is left waiting when nothing more can happen.
//!
//! Reference: S2, section 8.1 (absence of deadlock and starvation).

use catraca_core::{NodeId, property};

use super::Broken;

/// How many waiting nodes a report names.
const NAMED: usize = 8;

/// Called when the events have run out.
pub(crate) fn nobody_waits(mut waiting: impl Iterator<Item = NodeId>) -> Result<(), Broken> {
    let mut named: Vec<String> =
        waiting.by_ref().take(NAMED).map(|node| node.to_string()).collect();
    if named.is_empty() {
        return Ok(());
    }
    let more = waiting.count();
    if more > 0 {
        named.push(format!("and {more} more"));
    }
    let what = format!("nothing more can happen, but these nodes wait: {}", named.join(", "));
    Err(Broken { invariant: property::NOBODY_WAITS_FOR_EVER, what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_nodes_are_named_up_to_a_limit() {
        assert_eq!(nobody_waits([].into_iter()), Ok(()));
        let broken = nobody_waits(NodeId::all(10)).unwrap_err();
        assert!(broken.what.ends_with("0, 1, 2, 3, 4, 5, 6, 7, and 2 more"), "{}", broken.what);
    }
}
