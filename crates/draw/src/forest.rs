//! Where the nodes of pointer trees are: roots on top, everybody below the node it points to.

use catraca_core::NodeId;

/// Nodes and those they point to, as trees side by side.
#[derive(Debug)]
pub(crate) struct Forest {
    /// By node: its column, counted in widths of a node, and its layer. `None` if it is elsewhere.
    places: Vec<Option<(f64, u32)>>,
    /// How many nodes fit side by side.
    pub(crate) columns: f64,
    pub(crate) layers: u32,
}

impl Forest {
    /// The trees of `members`. A node that points to itself, to nobody or to a node elsewhere is a root;
    /// so is the first node of a circle.
    pub(crate) fn of(members: &[NodeId], pointers: &[Option<NodeId>]) -> Self {
        let mut forest = Forest { places: vec![None; pointers.len()], columns: 0.0, layers: 0 };
        let above =
            |node: NodeId| pointers[node.index()].filter(|&to| to != node && members.contains(&to));
        let mut below: Vec<Vec<NodeId>> = vec![Vec::new(); pointers.len()];
        for &node in members {
            if let Some(to) = above(node) {
                below[to.index()].push(node);
            }
        }
        for &node in members.iter().filter(|&&node| above(node).is_none()) {
            forest.place(node, 0, &below);
        }
        // What is left hangs from circles.
        for &node in members {
            if forest.places[node.index()].is_none() && is_in_circle(node, above, members.len()) {
                forest.place(node, 0, &below);
            }
        }
        forest
    }

    /// Places a node above the middle of those that point to it, and returns its column.
    fn place(&mut self, node: NodeId, layer: u32, below: &[Vec<NodeId>]) -> f64 {
        // Marks the node first: in a circle it comes up again below itself.
        self.places[node.index()] = Some((0.0, layer));
        self.layers = self.layers.max(layer + 1);
        let mut columns = Vec::new();
        for &child in &below[node.index()] {
            if self.places[child.index()].is_none() {
                columns.push(self.place(child, layer + 1, below));
            }
        }
        let column = match (columns.first(), columns.last()) {
            (Some(first), Some(last)) => (first + last) / 2.0,
            _ => {
                self.columns += 1.0;
                self.columns - 1.0
            }
        };
        self.places[node.index()] = Some((column, layer));
        column
    }

    /// The column and the layer of a node of this forest.
    pub(crate) fn place_of(&self, node: NodeId) -> Option<(f64, u32)> {
        self.places[node.index()]
    }
}

fn is_in_circle(node: NodeId, above: impl Fn(NodeId) -> Option<NodeId>, nodes: usize) -> bool {
    let mut at = node;
    for _ in 0..nodes {
        match above(at) {
            Some(to) if to == node => return true,
            Some(to) => at = to,
            None => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(pointers: &[u32]) -> Vec<(f64, u32)> {
        let pointers: Vec<_> = pointers.iter().map(|&to| Some(NodeId(to))).collect();
        let all: Vec<NodeId> = NodeId::all(pointers.len() as u32).collect();
        let forest = Forest::of(&all, &pointers);
        all.iter().filter_map(|&node| forest.place_of(node)).collect()
    }

    #[test]
    fn a_node_is_above_the_middle_of_those_that_point_to_it() {
        assert_eq!(places(&[0, 0, 0, 2]), [(0.5, 0), (0.0, 1), (1.0, 1), (1.0, 2)]);
        assert_eq!(places(&[0, 1, 1]), [(0.0, 0), (1.0, 0), (1.0, 1)], "two roots");
    }

    #[test]
    fn two_nodes_that_face_each_other_are_drawn_once() {
        assert_eq!(places(&[1, 0, 1]), [(0.0, 0), (0.0, 1), (0.0, 2)]);
        assert_eq!(places(&[1, 2, 1]), [(0.0, 1), (0.5, 0), (1.0, 1)], "0 is not in the circle");
    }

    #[test]
    fn whoever_points_elsewhere_is_a_root() {
        let pointers = [0, 0, 0].map(|to| Some(NodeId(to)));
        let forest = Forest::of(&[NodeId(1), NodeId(2)], &pointers);
        assert_eq!(forest.place_of(NodeId(0)), None);
        assert_eq!((forest.place_of(NodeId(2)), forest.layers), (Some((1.0, 0)), 1));
    }
}
