//! The nodes of an instance, by the names of their members.

use catraca_core::{NodeId, Value, Variable};
use catraca_group::{Layout, Picture, ShownNode, Stand};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

/// A node of an instance: one requester of a member, in the eyes of the algorithm.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LockNode)]
pub(super) struct Node {
    /// Its member, and which of its nodes it is if there are several: `b/2`.
    node: String,
    /// Its number in the algorithm, from 0 at the home on.
    number: u32,
    /// What it is doing: `idle`, `waiting` or `inside`.
    state: &'static str,
    /// Whether the token is there; nothing of an algorithm without one.
    token: Option<bool>,
    /// Whom it would turn to for the token, itself if to nobody; nothing where nodes do not point to each other.
    points_to: Option<String>,
    /// What it knows, by the names of the paper.
    variables: Vec<Named>,
    /// Whether some of that was too long to be told.
    cut: bool,
}

/// A variable of a node.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LockVariable)]
struct Named {
    /// Its name in the paper.
    name: String,
    /// What its value is: `flag`, `number`, `node`, `nodes` (without an order), `queue` (in their order),
    /// `requests` (with `time` and `node`), `per-node` (with `node` and `number`) or `text`.
    kind: &'static str,
    /// What it is now. Nodes are called by their members, but in texts by their numbers.
    value: serde_json::Value,
}

/// How the nodes of an instance are called.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) picture: &'a Picture,
    pub(super) layout: &'a Layout,
}

impl Names<'_> {
    /// The name of a node: its member, and which of its nodes it is if there are several.
    pub(super) fn of(&self, node: NodeId) -> String {
        let Some((member, seat)) = self.layout.place(node) else { return format!("?{node}") };
        let member = &self.picture.members[member];
        match self.layout.seats() {
            1 => member.clone(),
            _ => format!("{member}/{}", seat + 1),
        }
    }

    pub(super) fn node(&self, shown: &ShownNode) -> Node {
        Node {
            node: self.of(shown.node),
            number: shown.node.0,
            state: match shown.stand {
                Stand::Idle => "idle",
                Stand::Asking => "waiting",
                Stand::Inside => "inside",
            },
            token: shown.token,
            points_to: shown.points_to.map(|node| self.of(node)),
            variables: shown.variables.iter().map(|it| self.variable(it)).collect(),
            cut: shown.is_cut,
        }
    }

    fn variable(&self, variable: &Variable) -> Named {
        let all = |nodes: &[NodeId]| nodes.iter().map(|&node| self.of(node)).collect::<Vec<_>>();
        let (kind, value) = match &variable.value {
            Value::Flag(is_so) => ("flag", json!(is_so)),
            Value::Number(number) => ("number", json!(number)),
            Value::Node(node) => ("node", json!(node.map(|node| self.of(node)))),
            Value::Set(nodes) => ("nodes", json!(all(nodes))),
            Value::Queue(nodes) => ("queue", json!(all(nodes))),
            Value::Stamps(stamps) => {
                let stamp = |stamp: &catraca_core::Stamp| json!({"time": stamp.time, "node": self.of(stamp.node)});
                ("requests", stamps.iter().map(stamp).collect())
            }
            Value::PerNode(numbers) => {
                let number = |(node, number): (u32, &i64)| json!({"node": self.of(NodeId(node)), "number": number});
                ("per-node", (0..).zip(numbers).map(number).collect())
            }
            Value::Text(text) => ("text", json!(text)),
        };
        Named { name: variable.name.to_string(), kind, value }
    }
}
