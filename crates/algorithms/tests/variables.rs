//! Every algorithm shows what its nodes know.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use catraca_algorithms::registry::ENTRIES;
use catraca_algorithms::{Spec, Visitor};
use catraca_core::{Algorithm, Claim, Effects, Input, NodeId, Variables};

/// The variables of node 1 before and after it asks.
struct Ask<'a>(&'a Spec);

impl Visitor for Ask<'_> {
    type Output = (Variables, Variables);

    fn visit<A: Algorithm>(self, config: A::Config) -> Self::Output {
        let mut node = A::new(NodeId(1), &config, &self.0.start);
        let of = |node: &A| {
            let mut variables = Variables::new();
            node.variables(&mut variables);
            variables
        };
        let before = of(&node);
        node.step(&config, Input::Request(Claim::single()), &mut Effects::new());
        (before, of(&node))
    }
}

fn names(variables: &Variables) -> Vec<&str> {
    variables.as_slice().iter().map(|variable| &*variable.name).collect()
}

#[test]
fn every_algorithm_names_its_variables_and_a_request_changes_them() {
    for entry in ENTRIES {
        let spec = Spec::new(entry.name, 3);
        let (before, after) = spec.visit(Ask(&spec)).unwrap();
        assert!(!before.as_slice().is_empty(), "{}", entry.name);
        assert_eq!(names(&before), names(&after), "{}", entry.name);
        assert_ne!(before, after, "{}", entry.name);
    }
}

#[test]
fn mutants_and_locks_taken_in_order_show_those_of_their_algorithm() {
    let (_, raymond) = Spec::new("raymond", 3).visit(Ask(&Spec::new("raymond", 3))).unwrap();
    let mutant = catraca_algorithms::registry::mutants("raymond")[0].name;
    let spec = Spec::new("raymond", 3).broken(mutant);
    assert_eq!(names(&spec.visit(Ask(&spec)).unwrap().0), names(&raymond));
    let spec = Spec::new("ordered:raymond", 3);
    let (_, ordered) = spec.visit(Ask(&spec)).unwrap();
    assert_eq!(names(&ordered)[..3], ["claim", "held", "0.HOLDER"]);
}

#[test]
fn robust_k_shows_its_three_parts() {
    let spec = Spec::new("robust-k", 4);
    let (_, after) = spec.visit(Ask(&spec)).unwrap();
    let names = names(&after);
    for name in ["perm_count", "sta.last_msg", "hi-adsd.suspects"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
}
