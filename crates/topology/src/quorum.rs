//! Quorums: sets of nodes, any two of which have a node in common.

use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use catraca_core::NodeId;
use serde::{Deserialize, Serialize};

use crate::field::{Field, prime_power};

/// The ways to build quorums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuorumKind {
    /// One's row and one's column of a square; any number of nodes.
    Grid,
    /// The lines of a finite projective plane; q*q + q + 1 nodes, q a power of a prime.
    Plane,
}

impl FromStr for QuorumKind {
    type Err = QuorumError;

    fn from_str(text: &str) -> Result<Self, QuorumError> {
        match text {
            "grid" => Ok(QuorumKind::Grid),
            "plane" => Ok(QuorumKind::Plane),
            _ => Err(QuorumError::Unreadable(text.into())),
        }
    }
}

impl fmt::Display for QuorumKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            QuorumKind::Grid => "grid",
            QuorumKind::Plane => "plane",
        })
    }
}

/// Why quorums cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuorumError {
    /// Not a known kind.
    #[error("'{0}' is no kind of quorum: say grid or plane")]
    Unreadable(alloc::string::String),
    /// There is no plane with this many points.
    #[error(
        "there is a projective plane of q*q+q+1 nodes with q a power of a prime, as 7, 13, 21 or 31, but none of {nodes}; the nearest is {nearest}, or take the grid"
    )]
    NoPlane {
        /// What was asked for.
        nodes: u32,
        /// The nearest number of nodes that has a plane.
        nearest: u32,
    },
}

/// A quorum for every node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quorums(Vec<Vec<NodeId>>);

impl Quorums {
    /// Nodes in the rows of a square, the last row perhaps shorter; a quorum is a row and a column.
    ///
    /// Two quorums meet where the row of one crosses the column of the other. If that place is
    /// missing because the row is the short one, then the other crossing lies in a full row.
    pub fn grid(nodes: u32) -> Self {
        let side = (1..=nodes).find(|side| side * side >= nodes).unwrap_or(1);
        let quorum = |node: u32| {
            let (row, column) = (node / side, node % side);
            NodeId::all(nodes)
                .filter(|other| other.0 / side == row || other.0 % side == column)
                .collect()
        };
        Quorums((0..nodes).map(quorum).collect())
    }

    /// The lines of the projective plane with `nodes` points, line i through point i.
    ///
    /// The lines are the translates of a perfect difference set (Singer 1938): every difference
    /// modulo N occurs once, so any two translates meet in exactly one point.
    pub fn plane(nodes: u32) -> Result<Self, QuorumError> {
        let order = orders().take_while(|&q| points(q) <= nodes).last();
        let field = order.filter(|&q| points(q) == nodes).and_then(|q| Some((q, Field::new(q)?)));
        let Some((order, field)) = field else {
            return Err(QuorumError::NoPlane { nodes, nearest: nearest_plane(nodes) });
        };
        let line = difference_set(order, &field);
        let translate = |by: u32| {
            let mut quorum: Vec<NodeId> =
                line.iter().map(|point| NodeId((point + by) % nodes)).collect();
            quorum.sort_unstable();
            quorum
        };
        Ok(Quorums((0..nodes).map(translate).collect()))
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> u32 {
        self.0.len() as u32
    }

    /// The quorum of `node`, ascending, with `node` itself in it.
    pub fn of(&self, node: NodeId) -> &[NodeId] {
        &self.0[node.index()]
    }

    /// The mean size of a quorum.
    pub fn mean_size(&self) -> f64 {
        let total: usize = self.0.iter().map(Vec::len).sum();
        total as f64 / self.0.len() as f64
    }
}

/// The number of points of the plane of order `q`.
const fn points(q: u32) -> u32 {
    q * q + q + 1
}

/// The orders of the planes that are built. Whether there are planes of other orders is not known,
/// except that there is none of order 6 or 10. The largest has 16 million points.
fn orders() -> impl Iterator<Item = u32> {
    (2..4_000u32).filter(|&q| prime_power(q).is_some())
}

fn nearest_plane(nodes: u32) -> u32 {
    let mut below = points(2);
    for above in orders().map(points) {
        if above >= nodes {
            return if above - nodes <= nodes.abs_diff(below) { above } else { below };
        }
        below = above;
    }
    below
}

/// A perfect difference set modulo q*q+q+1 that contains 0.
///
/// Points of the plane are the elements of GF(q^3) up to a factor in GF(q). If x generates them all,
/// point k is x^k, and those with no x^2 part form a line.
fn difference_set(q: u32, field: &Field) -> Vec<u32> {
    let coefficients =
        (1..q).flat_map(|c| (0..q).flat_map(move |b| (0..q).map(move |a| [c, b, a])));
    for cubic in coefficients {
        if let Some(line) = line_of_powers(q, field, cubic) {
            return line;
        }
    }
    unreachable!("a primitive cubic exists over every finite field")
}

/// The powers k of x with no x^2 part, if x runs through all points before it comes back to the
/// first; here x^3 = a x^2 + b x + c.
fn line_of_powers(q: u32, field: &Field, [c, b, a]: [u32; 3]) -> Option<Vec<u32>> {
    let (mut low, mut middle, mut high) = (1, 0, 0);
    let mut line = Vec::new();
    for power in 0..points(q) {
        if power > 0 && middle == 0 && high == 0 {
            return None;
        }
        if high == 0 {
            line.push(power);
        }
        (low, middle, high) = (
            field.multiply(high, c),
            field.add(low, field.multiply(high, b)),
            field.add(middle, field.multiply(high, a)),
        );
    }
    (middle == 0 && high == 0).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_every_two_intersect(quorums: &Quorums) {
        for a in NodeId::all(quorums.nodes()) {
            assert!(quorums.of(a).contains(&a), "{a} is in its own quorum");
            for b in NodeId::all(quorums.nodes()) {
                let common = quorums.of(a).iter().any(|node| quorums.of(b).contains(node));
                assert!(common, "{a} and {b} of {}", quorums.nodes());
            }
        }
    }

    #[test]
    fn any_two_quorums_of_a_grid_intersect() {
        for nodes in 1..=70 {
            assert_every_two_intersect(&Quorums::grid(nodes));
        }
    }

    /// 'All sets have the same size' and 'a site takes part in at most k sets.' Reference: S2 8.3.3.
    #[test]
    fn a_plane_has_lines_of_q_plus_one_points_and_any_two_meet_once() {
        let planes =
            [(7, 3), (13, 4), (21, 5), (31, 6), (57, 8), (73, 9), (91, 10), (133, 12), (183, 14)];
        for (nodes, size) in planes.into_iter().chain([(273, 17)]) {
            let plane = Quorums::plane(nodes).unwrap();
            for a in NodeId::all(nodes) {
                assert!(plane.of(a).contains(&a), "{a} is in its own quorum");
                for b in NodeId::all(nodes).filter(|&b| b != a) {
                    let common = plane.of(a).iter().filter(|node| plane.of(b).contains(node));
                    assert_eq!(common.count(), 1, "{a} and {b} of {nodes}");
                }
                assert_eq!(plane.of(a).len(), size);
                let member_of = NodeId::all(nodes).filter(|&b| plane.of(b).contains(&a)).count();
                assert_eq!(member_of, size);
            }
        }
        assert_eq!(Quorums::plane(993).unwrap().mean_size(), 32.0);
    }

    #[test]
    fn numbers_without_a_plane_are_refused_with_the_nearest_that_has_one() {
        let nearest = |nodes| Quorums::plane(nodes).unwrap_err();
        assert_eq!(nearest(1), QuorumError::NoPlane { nodes: 1, nearest: 7 });
        assert_eq!(nearest(12), QuorumError::NoPlane { nodes: 12, nearest: 13 });
        assert_eq!(nearest(20), QuorumError::NoPlane { nodes: 20, nearest: 21 });
        assert_eq!(nearest(43), QuorumError::NoPlane { nodes: 43, nearest: 31 });
        let far = 4_294_967_295;
        assert_eq!(nearest(far), QuorumError::NoPlane { nodes: far, nearest: 15_916_111 });
    }
}
