//! What a node knows, by the names of its paper: for whoever shows states to people.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{NodeId, Phase, Stamp};

/// The value of a variable, so that a picture can tell a pointer from a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// Whether something is so.
    Flag(bool),
    /// A count, a time or a fence.
    Number(i64),
    /// A node that is pointed to, or nobody.
    Node(Option<NodeId>),
    /// Nodes without an order, ascending.
    Set(Vec<NodeId>),
    /// Nodes in their order.
    Queue(Vec<NodeId>),
    /// Requests in their order.
    Stamps(Vec<Stamp>),
    /// A number for each node, by id.
    PerNode(Vec<i64>),
    /// Anything else, in words.
    Text(String),
}

/// A variable of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    /// Its name in the paper; where a node has parts, with the part before it, as in `sta.last_msg`.
    pub name: Cow<'static, str>,
    /// What it is now.
    pub value: Value,
}

/// The variables of a node. Always the same names in the same order, so that two states can be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Variables(Vec<Variable>);

impl Variables {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// All of them, in the order in which they were named.
    pub fn as_slice(&self) -> &[Variable] {
        &self.0
    }

    /// The same, to be kept.
    pub fn into_vec(self) -> Vec<Variable> {
        self.0
    }

    /// Names a variable.
    pub fn push(&mut self, name: impl Into<Cow<'static, str>>, value: Value) {
        self.0.push(Variable { name: name.into(), value });
    }

    /// Whether something is so.
    pub fn flag(&mut self, name: &'static str, is_so: bool) {
        self.push(name, Value::Flag(is_so));
    }

    /// A count, a time or a fence.
    pub fn number(&mut self, name: &'static str, number: impl TryInto<i64>) {
        // Counters that have come so far do not occur; if one did, this would be said of it.
        self.push(name, Value::Number(number.try_into().unwrap_or(i64::MAX)));
    }

    /// A node that is pointed to, or nobody.
    pub fn node(&mut self, name: &'static str, node: impl Into<Option<NodeId>>) {
        self.push(name, Value::Node(node.into()));
    }

    /// Nodes without an order.
    pub fn set(&mut self, name: &'static str, nodes: impl IntoIterator<Item = NodeId>) {
        let mut nodes: Vec<NodeId> = nodes.into_iter().collect();
        nodes.sort_unstable();
        self.push(name, Value::Set(nodes));
    }

    /// Nodes in their order.
    pub fn queue(&mut self, name: &'static str, nodes: impl IntoIterator<Item = NodeId>) {
        self.push(name, Value::Queue(nodes.into_iter().collect()));
    }

    /// Requests in their order.
    pub fn stamps(&mut self, name: &'static str, stamps: impl IntoIterator<Item = Stamp>) {
        self.push(name, Value::Stamps(stamps.into_iter().collect()));
    }

    /// A number for each node, by id.
    pub fn per_node<N: TryInto<i64>>(
        &mut self,
        name: &'static str,
        numbers: impl IntoIterator<Item = N>,
    ) {
        let number = |number: N| number.try_into().unwrap_or(i64::MAX);
        self.push(name, Value::PerNode(numbers.into_iter().map(number).collect()));
    }

    /// Anything else, in words.
    pub fn text(&mut self, name: &'static str, text: impl Into<String>) {
        self.push(name, Value::Text(text.into()));
    }

    /// Where the application stands.
    pub fn phase(&mut self, phase: Phase) {
        let text = match phase {
            Phase::Idle => "idle",
            Phase::Waiting => "waiting",
            Phase::Inside => "inside",
        };
        self.text("phase", text);
    }

    /// The variables that `name` puts in belong to the part of a node with this name.
    pub fn part(&mut self, part: &str, name: impl FnOnce(&mut Self)) {
        let first = self.0.len();
        name(self);
        for variable in &mut self.0[first..] {
            variable.name = Cow::Owned(alloc::format!("{part}.{}", variable.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_sorted_and_variables_of_a_part_carry_its_name() {
        let mut variables = Variables::new();
        variables.set("present", [NodeId(2), NodeId(0)]);
        variables.part("sta", |part| part.node("active", None));
        let [set, part] = variables.as_slice() else { unreachable!() };
        assert_eq!(set.value, Value::Set([NodeId(0), NodeId(2)].into()));
        assert_eq!((&*part.name, &part.value), ("sta.active", &Value::Node(None)));
    }

    #[test]
    fn a_number_that_does_not_fit_is_the_largest() {
        let mut variables = Variables::new();
        variables.number("fence", u64::MAX);
        assert_eq!(variables.as_slice()[0].value, Value::Number(i64::MAX));
    }
}
