//! Which node of an instance points to which: the trees of pointers, who has granted to whom, who owes a reply.

use catraca_core::{NodeId, Value};
use catraca_group::ShownNode;
use serde::Serialize;
use utoipa::ToSchema;

use super::nodes::Names;

/// Of more than these nobody could make anything.
const MOST_ARROWS: usize = 500;

/// An arrow from one node of an instance to another.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = LockArrow)]
pub(super) struct Arrow {
    from: String,
    to: String,
    /// Why: `pointer` (to whom it would turn for the token), `next` (who gets the token from it), `granted` (an
    /// arbiter to whose request it is locked), `queued` (an arbiter whose request waits there), `deferred` (to whom
    /// it owes a reply), `serves` (whom the coordinator has let in).
    kind: &'static str,
    /// The same in a sentence.
    words: String,
}

/// All arrows of these nodes, those of one kind together.
pub(super) fn arrows<'a>(
    names: &Names<'_>,
    nodes: impl Iterator<Item = &'a ShownNode>,
) -> Vec<Arrow> {
    let mut found: Vec<(&'static str, NodeId, NodeId)> = Vec::new();
    for node in nodes {
        let from = node.node;
        if let Some(to) = node.points_to.filter(|to| *to != from) {
            found.push(("pointer", from, to));
        }
        for variable in &node.variables {
            found.extend(
                of_variable(&variable.name, &variable.value).map(|(kind, to)| (kind, from, to)),
            );
        }
    }
    found.sort_unstable();
    found.dedup();
    found.truncate(MOST_ARROWS);
    let arrow = |(kind, from, to)| {
        let (from, to) = (names.of(from), names.of(to));
        let words = words(kind, &from, &to);
        Arrow { from, to, kind, words }
    };
    found.into_iter().map(arrow).collect()
}

/// What the value of a variable means between nodes. Where several algorithms have a variable of one name, it means
/// the same in all of them.
fn of_variable<'a>(
    name: &str,
    value: &'a Value,
) -> Box<dyn Iterator<Item = (&'static str, NodeId)> + 'a> {
    match (name, value) {
        ("next", Value::Node(Some(node))) => Box::new(std::iter::once(("next", *node))),
        ("holder", Value::Node(Some(node))) => Box::new(std::iter::once(("serves", *node))),
        // Of an arbiter: the request that it is locked for.
        ("locked", Value::Stamps(stamps)) => {
            Box::new(stamps.iter().map(|stamp| ("granted", stamp.node)))
        }
        ("waiting", Value::Stamps(stamps)) => {
            Box::new(stamps.iter().map(|stamp| ("queued", stamp.node)))
        }
        ("Reply_Deferred", Value::Set(nodes)) => {
            Box::new(nodes.iter().map(|&node| ("deferred", node)))
        }
        ("defer_count", Value::PerNode(counts)) => {
            let owed = (0..).zip(counts).filter(|(_, count)| **count > 0);
            Box::new(owed.map(|(node, _)| ("deferred", NodeId(node))))
        }
        _ => Box::new(std::iter::empty()),
    }
}

fn words(kind: &str, from: &str, to: &str) -> String {
    match kind {
        "pointer" => format!("{from} would ask {to} for the token"),
        "next" => format!("{from} passes the token on to {to} when it leaves"),
        "serves" => format!("{from} has let {to} in"),
        "granted" => format!("{from} has granted to {to}"),
        "queued" => format!("{to} waits until {from} is free"),
        _ => format!("{from} answers {to} when it leaves"),
    }
}
