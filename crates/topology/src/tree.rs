//! Rooted trees: the static shape that Raymond's token moves on.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use catraca_core::NodeId;
use serde::{Deserialize, Serialize};

/// The ways to describe a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TreeShape {
    /// Balanced: node i has the children 2i+1 and 2i+2.
    Binary,
    /// Node 0 is everybody's neighbour.
    Star,
    /// Node i is the neighbour of i-1 and i+1.
    Chain,
    /// The parent of each node, by id; `None` for the root.
    Parents(Vec<Option<u32>>),
}

impl FromStr for TreeShape {
    type Err = TreeError;

    fn from_str(text: &str) -> Result<Self, TreeError> {
        match text {
            "binary" => Ok(TreeShape::Binary),
            "star" => Ok(TreeShape::Star),
            "chain" => Ok(TreeShape::Chain),
            _ => {
                let parents = text.split(',').map(|parent| match parent.trim() {
                    "-" => Ok(None),
                    id => id.parse().map(Some).map_err(|_| TreeError::Unreadable(text.into())),
                });
                Ok(TreeShape::Parents(parents.collect::<Result<_, _>>()?))
            }
        }
    }
}

impl fmt::Display for TreeShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TreeShape::Binary => f.write_str("binary"),
            TreeShape::Star => f.write_str("star"),
            TreeShape::Chain => f.write_str("chain"),
            TreeShape::Parents(parents) => {
                for (node, parent) in parents.iter().enumerate() {
                    f.write_str(if node == 0 { "" } else { "," })?;
                    match parent {
                        Some(parent) => write!(f, "{parent}")?,
                        None => f.write_str("-")?,
                    }
                }
                Ok(())
            }
        }
    }
}

/// Why a description is not a tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// Neither a known shape nor a list of parents.
    #[error(
        "'{0}' is no tree: say binary, star, chain, or the parent of each node in order with - for the root, as in '-,0,0,1'"
    )]
    Unreadable(alloc::string::String),
    /// A list of parents of the wrong length.
    #[error("the tree lists {given} parents for {nodes} nodes; list one for each")]
    Length {
        /// How many are listed.
        given: usize,
        /// How many are needed.
        nodes: u32,
    },
    /// A parent that is not a node.
    #[error("the tree gives node {node} the parent {parent}, but the nodes are 0 to {last}")]
    UnknownParent {
        /// The child.
        node: u32,
        /// What was given as its parent.
        parent: u32,
        /// The last node.
        last: u32,
    },
    /// No root, or more than one.
    #[error("the tree has {0} roots; mark exactly one node with - as its parent")]
    Roots(usize),
    /// Following parents from a node never reaches the root.
    #[error("the tree has a cycle: following parents from node {0} never reaches the root")]
    Cycle(u32),
}

/// A rooted tree over the nodes of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The parent of each node; the root is its own.
    parents: Vec<NodeId>,
    root: NodeId,
}

impl Tree {
    /// Builds the tree of `nodes` nodes that `shape` describes.
    pub fn build(shape: &TreeShape, nodes: u32) -> Result<Self, TreeError> {
        let parent: fn(u32) -> u32 = match shape {
            TreeShape::Binary => |id| id.saturating_sub(1) / 2,
            TreeShape::Chain => |id| id.saturating_sub(1),
            TreeShape::Star => |_| 0,
            TreeShape::Parents(parents) => return Self::from_parents(parents, nodes),
        };
        Ok(Tree { parents: (0..nodes).map(|id| NodeId(parent(id))).collect(), root: NodeId(0) })
    }

    fn from_parents(given: &[Option<u32>], nodes: u32) -> Result<Self, TreeError> {
        if given.len() != nodes as usize {
            return Err(TreeError::Length { given: given.len(), nodes });
        }
        let last = nodes.saturating_sub(1);
        let mut roots = Vec::new();
        let mut parents = Vec::with_capacity(given.len());
        for (node, parent) in (0..nodes).zip(given) {
            match *parent {
                None => roots.push(node),
                Some(parent) if parent > last => {
                    return Err(TreeError::UnknownParent { node, parent, last });
                }
                Some(_) => {}
            }
            parents.push(NodeId(parent.unwrap_or(node)));
        }
        let [root] = roots[..] else { return Err(TreeError::Roots(roots.len())) };
        let tree = Tree { parents, root: NodeId(root) };
        tree.reject_cycles()?;
        Ok(tree)
    }

    fn reject_cycles(&self) -> Result<(), TreeError> {
        let mut reaches_root = vec![false; self.parents.len()];
        reaches_root[self.root.index()] = true;
        let mut path = Vec::new();
        for start in 0..self.parents.len() {
            let mut node = start;
            while !reaches_root[node] {
                if path.len() > self.parents.len() {
                    return Err(TreeError::Cycle(start as u32));
                }
                path.push(node);
                node = self.parents[node].index();
            }
            for node in path.drain(..) {
                reaches_root[node] = true;
            }
        }
        Ok(())
    }

    /// How many nodes the tree has.
    pub fn nodes(&self) -> u32 {
        self.parents.len() as u32
    }

    /// The root.
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// The parent of `node`; the root is its own.
    pub fn parent(&self, node: NodeId) -> NodeId {
        self.parents[node.index()]
    }

    /// Whether two nodes are neighbours.
    pub fn are_neighbours(&self, a: NodeId, b: NodeId) -> bool {
        a != b && (self.parent(a) == b || self.parent(b) == a)
    }

    /// The same tree with another root: the edges on the path to it turn round.
    pub fn rooted_at(mut self, root: NodeId) -> Self {
        let (mut child, mut node) = (root, root);
        while node != self.root {
            let parent = self.parents[node.index()];
            self.parents[node.index()] = child;
            (child, node) = (node, parent);
        }
        self.parents[node.index()] = child;
        self.root = root;
        self
    }

    /// The mean distance between two nodes drawn uniformly and independently of each other.
    pub fn mean_distance(&self) -> f64 {
        // Every edge separates some s nodes from the other N - s, and lies on the path of each of
        // those s (N - s) pairs.
        let nodes = f64::from(self.nodes());
        let crossing = |below: u32| f64::from(below) * (nodes - f64::from(below));
        let edges = NodeId::all(self.nodes()).zip(self.subtree_sizes());
        let pairs: f64 =
            edges.filter(|&(node, _)| node != self.root).map(|(_, below)| crossing(below)).sum();
        2.0 * pairs / (nodes * nodes)
    }

    fn subtree_sizes(&self) -> Vec<u32> {
        let mut unvisited_children = vec![0u32; self.parents.len()];
        for node in NodeId::all(self.nodes()).filter(|&node| node != self.root) {
            unvisited_children[self.parent(node).index()] += 1;
        }
        let mut sizes = vec![1u32; self.parents.len()];
        let mut ready: Vec<NodeId> = NodeId::all(self.nodes())
            .filter(|node| unvisited_children[node.index()] == 0)
            .collect();
        while let Some(node) = ready.pop() {
            if node == self.root {
                break;
            }
            let parent = self.parent(node);
            sizes[parent.index()] += sizes[node.index()];
            unvisited_children[parent.index()] -= 1;
            if unvisited_children[parent.index()] == 0 {
                ready.push(parent);
            }
        }
        sizes
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    fn parents(tree: &Tree) -> Vec<u32> {
        NodeId::all(tree.nodes()).map(|node| tree.parent(node).0).collect()
    }

    fn given(text: &str, nodes: u32) -> Result<Tree, TreeError> {
        Tree::build(&text.parse()?, nodes)
    }

    #[test]
    fn the_named_shapes() {
        assert_eq!(parents(&given("binary", 7).unwrap()), [0, 0, 0, 1, 1, 2, 2]);
        assert_eq!(parents(&given("star", 4).unwrap()), [0, 0, 0, 0]);
        assert_eq!(parents(&given("chain", 4).unwrap()), [0, 0, 1, 2]);
        assert_eq!(parents(&given("3,0,0,-", 4).unwrap()), [3, 0, 0, 3]);
    }

    #[test]
    fn a_description_reads_back_as_it_is_written() {
        for text in ["binary", "star", "chain", "-,0,0,1"] {
            assert_eq!(text.parse::<TreeShape>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        assert!(matches!(given("bush", 3), Err(TreeError::Unreadable(_))));
        assert_eq!(given("-,0", 3), Err(TreeError::Length { given: 2, nodes: 3 }));
        assert_eq!(given("-,-,0", 3), Err(TreeError::Roots(2)));
        assert_eq!(given("1,2,0", 3), Err(TreeError::Roots(0)));
        assert_eq!(given("-,2,1", 3), Err(TreeError::Cycle(1)));
        assert_eq!(
            given("-,0,9", 3),
            Err(TreeError::UnknownParent { node: 2, parent: 9, last: 2 })
        );
    }

    #[test]
    fn another_root_turns_the_path_round_and_nothing_else() {
        let tree = given("binary", 7).unwrap().rooted_at(NodeId(4));
        assert_eq!(parents(&tree), [1, 4, 0, 1, 4, 2, 2]);
        assert_eq!(tree.root(), NodeId(4));
    }

    #[test]
    fn mean_distances_of_small_trees() {
        // Of the nine ordered pairs of a chain of three: three at 0, four at 1, two at 2.
        assert_eq!(given("chain", 3).unwrap().mean_distance(), 8.0 / 9.0);
        assert_eq!(given("binary", 1).unwrap().mean_distance(), 0.0);
    }

    proptest! {
        #[test]
        fn the_mean_distance_does_not_depend_on_the_root(nodes in 1u32..60, root in 0u32..60) {
            let tree = given("binary", nodes).unwrap();
            let moved = tree.clone().rooted_at(NodeId(root % nodes));
            prop_assert!((tree.mean_distance() - moved.mean_distance()).abs() < 1e-9);
            for node in NodeId::all(nodes).filter(|&node| node != moved.root()) {
                prop_assert!(tree.are_neighbours(node, moved.parent(node)));
            }
        }
    }
}
