//! What algorithms say to a driver that does not keep its promises.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

use catraca_algorithms::registry::ENTRIES;
use catraca_algorithms::{Spec, Visitor};
use catraca_core::{Algorithm, Claim, Effect, Effects, Input, NodeId, Start};

/// Asks at node 1, which waits or is inside already.
struct AskAgain<'a>(&'a Spec);

impl Visitor for AskAgain<'_> {
    type Output = ();

    fn visit<A: Algorithm>(self, config: A::Config) {
        let name = &self.0.algorithm;
        let mut node = A::new(NodeId(1), &config, &self.0.start);
        let mut ask = || {
            let mut out = Effects::new();
            node.step(&config, Input::Request(Claim::single()), &mut out);
            (out.drain().collect::<Vec<_>>(), node.clone())
        };
        let before = if self.0.start.is_inside(NodeId(1)) {
            A::new(NodeId(1), &config, &self.0.start)
        } else {
            let (effects, waiting) = ask();
            assert!(!effects.is_empty(), "{name} sends something");
            waiting
        };
        let (effects, after) = ask();
        assert!(matches!(effects[..], [Effect::Anomaly(_)]), "{name}: {effects:?}");
        assert!(after == before, "{name} has changed");
    }
}

#[test]
fn a_request_at_a_node_that_waits_or_is_inside_is_an_anomaly_and_changes_nothing() {
    let ordered = ENTRIES.iter().map(|entry| format!("ordered:{}", entry.name));
    let names = ENTRIES.iter().map(|entry| entry.name.to_string()).chain(ordered);
    for name in names {
        for start in [Start::idle(), Start::inside(NodeId(1))] {
            let spec = Spec::new(&name, 3).starting(start);
            spec.visit(AskAgain(&spec)).unwrap();
        }
    }
}
