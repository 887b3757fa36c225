//! What there is to see of one lock: at each member what its algorithm knows, who holds and who waits.
//!
//! Each member tells how it stood when it was asked. Nobody stops the group for it, so two members may tell of
//! different moments: a token may be seen at two of them, or on its way and at none.

use alloc::string::String;
use alloc::vec::Vec;

use catraca_core::{NodeId, Value, Variable};
use serde::{Deserialize, Serialize};

use crate::listing::Page;
use crate::lock::Stand;
use crate::recent::PastGrant;
use crate::view::{Epoch, Seating, View};

/// So many nodes of an instance are shown of each member.
pub(crate) const MOST_NODES: usize = 8;
/// So many holders and waiters are told of each member.
pub(crate) const MOST_LINES: u32 = 50;
/// So many grants are told of each member and instance.
pub(crate) const MOST_GRANTS: usize = 64;
/// A variable with more parts than this is cut.
const MOST_PARTS: usize = 64;
/// A text of more bytes than this is cut.
const LONGEST_TEXT: usize = 512;

/// What one member knows of the locks of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anatomy {
    /// One for each number of permits; none if the member has not heard of the lock.
    pub instances: Vec<Instance>,
    /// Who holds and who waits there, as far as that fits.
    pub page: Page,
}

/// An instance of an algorithm, as one member sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// The name of the lock, or the pattern of a namespace whose names are taken in sets.
    pub name: String,
    /// How many may be inside.
    pub permits: u32,
    /// How many clients of the member are inside.
    pub held: u32,
    /// How many of them wait.
    pub waiting: u32,
    /// The nodes of the member, those first that have something to do.
    pub nodes: Vec<ShownNode>,
    /// How many more nodes the member has.
    pub more_nodes: u32,
    /// The last grants at the member, the newest last.
    pub grants: Vec<PastGrant>,
}

/// A node of an instance: one requester of a member, in the eyes of the algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownNode {
    /// Its number. Nodes are numbered from the home of the lock on.
    pub node: NodeId,
    /// What it is doing.
    pub stand: Stand,
    /// Whether the token is there; nothing of an algorithm without one.
    pub token: Option<bool>,
    /// Whom it would turn to for the token, where nodes point to each other.
    pub points_to: Option<NodeId>,
    /// What it knows, by the names of the paper.
    pub variables: Vec<Variable>,
    /// Whether some of that was too long.
    pub is_cut: bool,
}

/// What the whole group has told of the locks of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The name.
    pub name: String,
    /// The view in which they were asked.
    pub epoch: Epoch,
    /// The members of that view, by their places.
    pub members: Vec<String>,
    /// How the nodes of each instance are laid out over the members; at least one.
    pub layouts: Vec<Layout>,
    /// What each member has told, by its place.
    pub told: Vec<(usize, Anatomy)>,
    /// The places of those that did not answer.
    pub silent: Vec<usize>,
}

/// Who reaches whom, as the members of a view have told it, each of its own moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    /// The view in which they were asked.
    pub epoch: Epoch,
    /// The members of that view, by their places.
    pub members: Vec<String>,
    /// Whom each member reaches, by its place: of every member, by its place.
    pub told: Vec<(usize, Vec<bool>)>,
    /// The places of those that did not answer.
    pub silent: Vec<usize>,
}

/// How the nodes of an instance are laid out over the members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The name of the lock, or the pattern of a namespace whose names are taken in sets.
    pub name: String,
    /// How many may be inside.
    pub permits: u32,
    /// The name of the algorithm.
    pub algorithm: String,
    /// The nodes that each node asks, by their numbers, of an algorithm with quorums.
    pub quorums: Option<Vec<Vec<NodeId>>>,
    seating: Seating,
}

impl Layout {
    /// That of the instance called `name` with so many permits.
    pub fn of(view: &View, name: &str, permits: u32) -> Self {
        let namespace = view.namespace(name);
        let seating = view.seating(namespace, permits, view.home(name));
        let quorums = view.spec(namespace, permits, seating).quorums();
        let of_all = |quorums: catraca_topology::Quorums| {
            NodeId::all(quorums.nodes()).map(|node| quorums.of(node).to_vec()).collect()
        };
        Layout {
            name: name.into(),
            permits,
            algorithm: view.algorithm(namespace, permits).into(),
            quorums: quorums.map(of_all),
            seating,
        }
    }

    /// The place of the member where the instance begins.
    pub fn home(&self) -> usize {
        usize::from(self.seating.home)
    }

    /// How many nodes each member has.
    pub fn seats(&self) -> u32 {
        self.seating.seats
    }

    /// The place of the member that a node belongs to, and which of its nodes it is.
    pub fn place(&self, node: NodeId) -> Option<(usize, usize)> {
        self.seating.place(node)
    }

    /// The number of a node of a member.
    pub fn node(&self, member: usize, seat: usize) -> NodeId {
        self.seating.node(member, seat)
    }
}

/// The same, with texts and lists of a bounded length; and whether something was left out.
pub(crate) fn bounded(mut variables: Vec<Variable>) -> (Vec<Variable>, bool) {
    let mut is_cut = variables.len() > MOST_PARTS;
    variables.truncate(MOST_PARTS);
    for variable in &mut variables {
        is_cut |= match &mut variable.value {
            Value::Flag(_) | Value::Number(_) | Value::Node(_) => false,
            Value::Set(nodes) | Value::Queue(nodes) => cut(nodes),
            Value::Stamps(stamps) => cut(stamps),
            Value::PerNode(numbers) => cut(numbers),
            Value::Text(text) => cut_text(text),
        };
    }
    (variables, is_cut)
}

fn cut<T>(parts: &mut Vec<T>) -> bool {
    let is_long = parts.len() > MOST_PARTS;
    parts.truncate(MOST_PARTS);
    is_long
}

fn cut_text(text: &mut String) -> bool {
    let is_long = text.len() > LONGEST_TEXT;
    if is_long {
        let end = (0..=LONGEST_TEXT).rev().find(|&end| text.is_char_boundary(end));
        text.truncate(end.unwrap_or(0));
    }
    is_long
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::view::tests::view;

    #[test]
    fn what_is_too_long_is_cut_and_that_is_said() {
        let variable = |value| Variable { name: "x".into(), value };
        let long = vec![
            variable(Value::PerNode(vec![1; MOST_PARTS + 1])),
            variable(Value::Text("é".repeat(LONGEST_TEXT))),
        ];
        let (cut, is_cut) = bounded(long);
        assert!(is_cut);
        assert_eq!(cut[0].value, Value::PerNode(vec![1; MOST_PARTS]));
        let Value::Text(text) = &cut[1].value else { unreachable!() };
        assert_eq!(text.len(), LONGEST_TEXT);
        let short = vec![variable(Value::Number(3))];
        assert_eq!(bounded(short.clone()), (short, false));
    }

    #[test]
    fn a_layout_knows_members_by_the_numbers_of_their_nodes() {
        let view = view(3, 1, "maekawa");
        let layout = Layout::of(&view, "x", 1);
        assert_eq!(layout.place(NodeId(0)), Some((layout.home(), 0)));
        for member in 0..3 {
            assert_eq!(layout.place(layout.node(member, 0)), Some((member, 0)));
        }
        let quorums = layout.quorums.unwrap();
        assert_eq!(quorums.len(), 3);
        assert!(quorums.iter().enumerate().all(|(me, it)| it.contains(&NodeId(me as u32))));
        let semaphore = Layout::of(&view, "x", 2);
        assert_eq!((semaphore.algorithm.as_str(), semaphore.quorums), ("raymond-k", None));
    }
}
