//! Random waypoints: everybody walks to a place, then to another.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::super::{Contact, EvolvingGraph, GraphError, MAX_CONTACTS, MAX_INSTANT};
use super::{Draw, MAX_STEPS, check_size};

/// A square in which everybody walks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waypoints {
    /// How many nodes there are.
    pub nodes: u32,
    /// How many instants there are.
    pub instants: u64,
    /// The side of the square.
    pub side: f64,
    /// How far apart two may be to be neighbours, above 0.
    pub range: f64,
    /// How far a node moves in an instant.
    pub speed: f64,
}

struct Walker {
    at: (f64, f64),
    goal: (f64, f64),
}

impl Walker {
    /// One instant's walk. A node that arrives starts for another place at the next instant.
    fn walk(&mut self, waypoints: &Waypoints, draw: &mut impl Draw) {
        let (dx, dy) = (self.goal.0 - self.at.0, self.goal.1 - self.at.1);
        let distance = libm::sqrt(dx * dx + dy * dy);
        if distance <= waypoints.speed {
            self.at = self.goal;
            self.goal = place(waypoints.side, draw);
        } else {
            let part = waypoints.speed / distance;
            self.at = (self.at.0 + dx * part, self.at.1 + dy * part);
        }
    }
}

fn place(side: f64, draw: &mut impl Draw) -> (f64, f64) {
    (draw.fraction() * side, draw.fraction() * side)
}

/// Draws places and walks; two are neighbours while they are within range.
pub fn random_waypoint(
    waypoints: Waypoints,
    draw: &mut impl Draw,
) -> Result<EvolvingGraph, GraphError> {
    check_size(waypoints.nodes.into(), 0)?;
    if waypoints.instants > MAX_INSTANT {
        return Err(GraphError::TooLong);
    }
    if waypoints.instants.saturating_mul(waypoints.nodes.into()) > MAX_STEPS {
        return Err(GraphError::TooManySteps);
    }
    let side = waypoints.side;
    let mut walkers: Vec<Walker> = (0..waypoints.nodes)
        .map(|_| Walker { at: place(side, draw), goal: place(side, draw) })
        .collect();
    let mut contacts = Vec::new();
    // Who is near whom, and since when.
    let mut near: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for instant in 0..waypoints.instants {
        let pairs = pairs_within(&walkers, &waypoints)?;
        near.retain(|pair, from| {
            let stays = pairs.binary_search(pair).is_ok();
            if !stays {
                contacts.push(Contact::between(*from, instant - 1, pair.0, pair.1));
            }
            stays
        });
        for pair in pairs {
            near.entry(pair).or_insert(instant);
        }
        if contacts.len() + near.len() > MAX_CONTACTS {
            return Err(GraphError::TooManyContacts);
        }
        for walker in &mut walkers {
            walker.walk(&waypoints, draw);
        }
    }
    let last = waypoints.instants.max(1) - 1;
    contacts.extend(near.iter().map(|(pair, from)| Contact::between(*from, last, pair.0, pair.1)));
    EvolvingGraph::numbered(waypoints.nodes, contacts, last, None)
}

/// The pairs within range, in order. The square is cut into cells not narrower than the range, so that
/// only neighbouring cells are compared.
fn pairs_within(walkers: &[Walker], waypoints: &Waypoints) -> Result<Vec<(u32, u32)>, GraphError> {
    let across = libm::floor(waypoints.side / waypoints.range).clamp(1.0, 1_000.0) as usize;
    let cell =
        |coordinate: f64| ((coordinate / waypoints.side * across as f64) as usize).min(across - 1);
    let mut cells: Vec<Vec<u32>> = vec![Vec::new(); across * across];
    for (node, walker) in walkers.iter().enumerate() {
        cells[cell(walker.at.1) * across + cell(walker.at.0)].push(node as u32);
    }
    let mut pairs = Vec::new();
    for (node, walker) in walkers.iter().enumerate() {
        let (x, y) = (cell(walker.at.0), cell(walker.at.1));
        for row in y.saturating_sub(1)..=(y + 1).min(across - 1) {
            for column in x.saturating_sub(1)..=(x + 1).min(across - 1) {
                let others = cells[row * across + column].iter();
                for &other in others.filter(|&&other| other as usize > node) {
                    let (dx, dy) = {
                        let there = walkers[other as usize].at;
                        (there.0 - walker.at.0, there.1 - walker.at.1)
                    };
                    if dx * dx + dy * dy <= waypoints.range * waypoints.range {
                        pairs.push((node as u32, other));
                    }
                }
            }
        }
        if pairs.len() > MAX_CONTACTS {
            return Err(GraphError::TooManyContacts);
        }
    }
    pairs.sort_unstable();
    Ok(pairs)
}
