//! A strip of snapshots: an evolving graph instant by instant, with the states of its nodes.

use std::collections::{BTreeMap, BTreeSet};

use catraca_core::{NodeId, Phase};

use crate::layout::MARGIN;
use crate::node_style::NodeStyle;
use crate::picture::{DrawError, Picture};
use crate::svg::{HALO, INK, PALETTE, Point, Svg, text_width};

/// The most nodes that can be told apart on a circle.
const MAX_NODES: u32 = 32;
/// The most instants in one picture.
const MAX_PANELS: usize = 64;
const COLUMNS: usize = 6;
const RADIUS: f64 = 16.0;
/// An edge comes no nearer than this to the middle of a node that is not its own.
const CLEAR: f64 = RADIUS + 4.0;
/// Bends are tried in steps of so many pixels.
const BEND: f64 = 4.0;
const DOT: f64 = 6.5;
/// From one pending request to the next.
const LINE: f64 = 15.0;
/// More answers than this are written as a number.
const MOST_ANSWERS: u32 = 4;
/// More requests than this are counted.
const MOST_PENDING: usize = 4;
const TEXT_SIZE: f64 = 12.0;

/// A node at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripNode {
    /// Idle, waiting or inside.
    pub phase: Phase,
    /// Whether it has the token.
    pub has_token: bool,
    /// The requests that it knows of and takes for unserved, each with the answers that it knows.
    pub pending: Vec<(NodeId, u32)>,
}

/// One instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripPanel {
    /// Which one.
    pub at: u64,
    /// Who are neighbours.
    pub edges: Vec<(NodeId, NodeId)>,
    /// By node.
    pub nodes: Vec<StripNode>,
}

/// Whether a strip has room for so many nodes; known before any panel is made.
pub fn check_strip_size(nodes: u32) -> Result<(), DrawError> {
    match nodes {
        0..=MAX_NODES => Ok(()),
        _ => Err(DrawError::TooManyNodes { nodes, max: MAX_NODES }),
    }
}

/// Draws the instants side by side, as S1's Figures 2 and 3 do.
///
/// The colour of a node shows its state. Beside it is a dot for every request that it knows of, in
/// the colour of the requester, followed by a ring for every answer.
pub fn strip(title: &str, names: &[String], panels: &[StripPanel]) -> Result<Picture, DrawError> {
    check_strip_size(names.len() as u32)?;
    if panels.is_empty() || panels.len() > MAX_PANELS {
        return Err(DrawError::Instants { given: panels.len(), max: MAX_PANELS });
    }
    let shape = Shape::new(names, panels);
    let mut svg = Svg::new();
    svg.text((MARGIN, MARGIN + 12.0), title, 16.0, r#"class="title" font-weight="bold""#);
    let legend = draw_legend(&mut svg, names, panels);
    let top = MARGIN + 74.0;
    for (index, panel) in panels.iter().enumerate() {
        let (row, column) = (index / COLUMNS, index % COLUMNS);
        let corner = (MARGIN + column as f64 * shape.width, top + row as f64 * shape.height);
        svg.group(r#"class="snapshot""#, "", |svg| shape.draw(svg, corner, panel));
    }
    let columns = panels.len().min(COLUMNS) as f64;
    let rows = panels.len().div_ceil(COLUMNS) as f64;
    let title_width = text_width(title, 16.0 * 1.12) + 2.0 * MARGIN;
    let width = (2.0 * MARGIN + columns * shape.width).max(title_width).max(legend + MARGIN);
    Ok(svg.finish(width.ceil() as u32, (top + rows * shape.height + 8.0).ceil() as u32))
}

/// Draws only the symbols that are in the picture, and returns where they end.
fn draw_legend(svg: &mut Svg, names: &[String], panels: &[StripPanel]) -> f64 {
    let nodes = || panels.iter().flat_map(|panel| &panel.nodes);
    let phase = |phase| nodes().any(|node| node.phase == phase);
    let looks = [
        (true, NodeStyle::of(Phase::Idle), "idle"),
        (phase(Phase::Waiting), NodeStyle::of(Phase::Waiting), "requesting"),
        (phase(Phase::Inside), NodeStyle::of(Phase::Inside), "inside"),
        (
            nodes().any(|node| node.has_token),
            NodeStyle { has_token: true, ..NodeStyle::of(Phase::Idle) },
            "has the token",
        ),
    ];
    let y = MARGIN + 42.0;
    let mut x = MARGIN + 10.0;
    let write = |svg: &mut Svg, x: f64, name: &str| {
        svg.text((x, y + 4.3), name, TEXT_SIZE, r#"class="legend""#);
        x + text_width(name, TEXT_SIZE) + 24.0
    };
    for (_, look, name) in looks.into_iter().filter(|(present, ..)| *present) {
        look.draw(svg, (x, y), 8.0);
        x = write(svg, x + 18.0, name) + 4.0;
    }
    if let Some(&(requester, _)) = nodes().flat_map(|node| &node.pending).next() {
        draw_dot(svg, (x, y), requester, names);
        x = write(svg, x + 12.0, "a request that the node knows of");
        draw_ring(svg, (x - 4.0, y), requester);
        x = write(svg, x + 6.0, "an answer to it that it knows of");
    }
    x
}

/// What all panels have in common.
struct Shape<'a> {
    names: &'a [String],
    /// Of the circle on which the nodes are.
    radius: f64,
    /// The middle of the circle, from the corner of a panel.
    middle: Point,
    width: f64,
    height: f64,
    /// For edges that would pass behind a node, which then seems to be on the way: where they bend,
    /// from the corner of a panel.
    bends: BTreeMap<(NodeId, NodeId), Point>,
}

impl<'a> Shape<'a> {
    fn new(names: &'a [String], panels: &[StripPanel]) -> Self {
        let nodes = names.len() as f64;
        let radius = (nodes * (2.0 * RADIUS + 12.0) / std::f64::consts::TAU).max(46.0);
        let lines = |node: &StripNode| node.pending.len().min(MOST_PENDING + 1);
        let most = panels.iter().flat_map(|panel| &panel.nodes).map(lines).max().unwrap_or(0);
        let room = RADIUS + 8.0 + most as f64 * LINE;
        let side = if most > 0 { 46.0 } else { 10.0 };
        let middle = (radius + RADIUS + side, radius + room);
        let (width, height) = (2.0 * middle.0, 2.0 * middle.1 + 34.0);
        let mut shape = Shape { names, radius, middle, width, height, bends: BTreeMap::new() };
        let edges = panels.iter().flat_map(|panel| &panel.edges);
        let edges: BTreeSet<_> = edges.map(|&(a, b)| (a.min(b), a.max(b))).collect();
        for (a, b) in edges {
            if let Some(bend) = shape.bend(a.index(), b.index()) {
                shape.bends.insert((a, b), bend);
            }
        }
        shape
    }

    /// Where the edge between two nodes bends so that it passes behind no other; nothing if it is
    /// straight. The nodes are on a circle, so there is room towards its middle.
    fn bend(&self, a: usize, b: usize) -> Option<Point> {
        let place = |node| self.place((0.0, 0.0), node);
        let (from, to) = (place(a), place(b));
        let halfway = ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0);
        let inwards = (self.middle.0 - halfway.0, self.middle.1 - halfway.1);
        let room = inwards.0.hypot(inwards.1);
        let others = || (0..self.names.len()).filter(|&node| node != a && node != b);
        let is_clear =
            |bend: Point| others().all(|node| distance(place(node), (from, bend, to)) >= CLEAR);
        if is_clear(halfway) || room < BEND {
            return None;
        }
        // As little as is enough. A curve goes half as far as the point that it bends to.
        let steps = (2.0 * room / BEND) as u32;
        let mut bends = (1..=steps).map(|step| {
            let share = f64::from(step) * BEND / room;
            (halfway.0 + share * inwards.0, halfway.1 + share * inwards.1)
        });
        bends.find(|&bend| is_clear(bend))
    }

    /// Node 0 is on top, the others follow clockwise.
    fn place(&self, (x, y): Point, node: usize) -> Point {
        let turn = std::f64::consts::TAU * node as f64 / self.names.len() as f64;
        let radius = if self.names.len() == 1 { 0.0 } else { self.radius };
        (x + self.middle.0 + radius * turn.sin(), y + self.middle.1 - radius * turn.cos())
    }

    fn draw(&self, svg: &mut Svg, corner: Point, panel: &StripPanel) {
        for &(a, b) in &panel.edges {
            let (from, to) = (self.place(corner, a.index()), self.place(corner, b.index()));
            let style = format!(r#"class="edge" fill="none" stroke="{INK}" stroke-width="2""#);
            match self.bends.get(&(a.min(b), a.max(b))) {
                Some(&(x, y)) => svg.curve(from, (corner.0 + x, corner.1 + y), to, style),
                None => svg.line(from, to, style),
            }
        }
        for (index, node) in panel.nodes.iter().enumerate() {
            let at = self.place(corner, index);
            self.draw_node(svg, at, index, node);
            self.draw_pending(svg, at, at.1 > corner.1 + self.middle.1 + 1.0, node);
        }
        let below = (corner.0 + self.middle.0, corner.1 + self.height - 12.0);
        let style = r#"class="caption" text-anchor="middle""#;
        svg.text(below, &format!("instant {}", panel.at), 14.0, style);
    }

    fn draw_node(&self, svg: &mut Svg, at: Point, index: usize, node: &StripNode) {
        let look = NodeStyle { has_token: node.has_token, ..NodeStyle::of(node.phase) };
        look.draw(svg, at, RADIUS);
        let colour = if node.has_token { "#ffffff" } else { INK };
        let name = short(&self.names[index], 5);
        let size = if name.chars().count() > 3 { 9.0 } else { 13.0 };
        let style =
            format!(r#"class="number" text-anchor="middle" font-weight="bold" fill="{colour}""#);
        svg.text((at.0, at.1 + size * 0.37), &name, size, style);
    }

    /// One line a request, below the nodes of the lower half and above the others.
    fn draw_pending(&self, svg: &mut Svg, (x, y): Point, is_below: bool, node: &StripNode) {
        let shown = node.pending.len().min(MOST_PENDING);
        let hidden = node.pending.len() - shown;
        let lines = shown + usize::from(hidden > 0);
        let first = match is_below {
            true => y + RADIUS + 12.0,
            false => y - RADIUS - 12.0 - (lines.max(1) - 1) as f64 * LINE,
        };
        for (line, &(requester, answers)) in node.pending[..shown].iter().enumerate() {
            let y = first + line as f64 * LINE;
            let rings = if answers > MOST_ANSWERS { 2 } else { answers };
            let x = x - f64::from(rings) * 5.0;
            draw_dot(svg, (x, y), requester, self.names);
            if answers > MOST_ANSWERS {
                draw_ring(svg, (x + 13.0, y), requester);
                let style = format!(r#"class="count" {HALO}"#);
                svg.text((x + 19.0, y + 3.8), &answers.to_string(), 10.0, style);
            } else {
                for ring in 0..answers {
                    draw_ring(svg, (x + 13.0 + 9.0 * f64::from(ring), y), requester);
                }
            }
        }
        if hidden > 0 {
            let at = (x, first + shown as f64 * LINE + 3.8);
            let style = format!(r#"class="hidden" text-anchor="middle" {HALO}"#);
            svg.text(at, &format!("and {hidden} more"), 10.0, style);
        }
    }
}

/// How near a curve comes to a point, looked at in a few dozen places.
fn distance(at: Point, (from, bend, to): (Point, Point, Point)) -> f64 {
    const PLACES: u32 = 48;
    let away = |place: u32| {
        let t = f64::from(place) / f64::from(PLACES);
        let along = |from: f64, bend: f64, to: f64| {
            (1.0 - t) * (1.0 - t) * from + 2.0 * t * (1.0 - t) * bend + t * t * to
        };
        (along(from.0, bend.0, to.0) - at.0).hypot(along(from.1, bend.1, to.1) - at.1)
    };
    (0..=PLACES).map(away).fold(f64::INFINITY, f64::min)
}

/// A request, in the colour of its owner.
fn draw_dot(svg: &mut Svg, at: Point, requester: NodeId, names: &[String]) {
    let style = format!(r##"class="request" fill="{}" stroke="#ffffff""##, colour(requester));
    svg.circle(at, DOT, style);
    let name = short(&names[requester.index()], 2);
    let size = if name.chars().count() > 1 { 7.0 } else { 9.0 };
    let style = r##"text-anchor="middle" fill="#ffffff" font-weight="bold""##;
    svg.text((at.0, at.1 + size * 0.37), &name, size, style);
}

fn draw_ring(svg: &mut Svg, at: Point, requester: NodeId) {
    let colour = colour(requester);
    let style = format!(r##"class="answer" fill="#ffffff" stroke="{colour}" stroke-width="1.8""##);
    svg.circle(at, 3.2, style);
}

fn colour(node: NodeId) -> &'static str {
    PALETTE[node.index() % PALETTE.len()]
}

/// As much of a name as there is room for.
fn short(name: &str, letters: usize) -> String {
    name.chars().take(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(at: u64, edges: &[(u32, u32)], phases: &[Phase]) -> StripPanel {
        let node = |&phase: &Phase| StripNode {
            phase,
            has_token: phase == Phase::Inside,
            pending: vec![(NodeId(0), 1), (NodeId(2), 9)],
        };
        StripPanel {
            at,
            edges: edges.iter().map(|&(a, b)| (NodeId(a), NodeId(b))).collect(),
            nodes: phases.iter().map(node).collect(),
        }
    }

    fn names(count: u32) -> Vec<String> {
        (0..count).map(|node| format!("v{node}")).collect()
    }

    #[test]
    fn every_instant_has_its_edges_states_and_requests() {
        let panels = [
            panel(3, &[(0, 1), (1, 2)], &[Phase::Waiting, Phase::Idle, Phase::Waiting]),
            panel(4, &[], &[Phase::Inside, Phase::Idle, Phase::Waiting]),
        ];
        let picture = strip("A < B", &names(3), &panels).unwrap();
        let count = |part: &str| picture.svg().matches(part).count();
        assert_eq!(count(r#"class="snapshot""#), 2);
        assert_eq!(count(r#"class="edge""#), 2);
        assert_eq!(count(r#"class="node waiting""#), 3 + 1, "and in the legend");
        assert_eq!(count(r#"class="node inside token""#), 1);
        assert_eq!(count(r#"class="request""#), 12 + 1);
        assert_eq!(count(r#"class="answer""#), 12 + 1, "nine answers are a ring and a number");
        assert_eq!(count(">9</text>"), 6);
        assert_eq!(count(">instant 4</text>"), 1);
        assert_eq!(count("A &lt; B"), 1);
    }

    #[test]
    fn an_edge_that_would_pass_behind_a_node_bends_around_it() {
        let idle = StripNode { phase: Phase::Idle, has_token: false, pending: Vec::new() };
        for nodes in [3, 8, 20, 32] {
            let every = |a: u32| (a + 1..nodes).map(move |b| (NodeId(a), NodeId(b)));
            let edges: Vec<_> = (0..nodes).flat_map(every).collect();
            let panel = StripPanel { at: 0, edges, nodes: vec![idle.clone(); nodes as usize] };
            let (names, panels) = (names(nodes), [panel]);
            let shape = Shape::new(&names, &panels);
            for &(a, b) in &panels[0].edges {
                let (a, b) = (a.index(), b.index());
                let place = |node| shape.place((0.0, 0.0), node);
                let (from, to) = (place(a), place(b));
                let straight = ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0);
                let bend = shape.bend(a, b).unwrap_or(straight);
                for other in (0..nodes as usize).filter(|&other| other != a && other != b) {
                    let near = distance(place(other), (from, bend, to));
                    assert!(near >= CLEAR, "{a}-{b} is {near} from {other} of {nodes}");
                }
            }
        }
        // Of 20 nodes, 19 and 1 are on both sides of 0.
        let one = StripPanel {
            at: 0,
            edges: [(1, 19), (0, 10)].map(|(a, b)| (NodeId(a), NodeId(b))).to_vec(),
            nodes: vec![idle; 20],
        };
        let picture = strip("t", &names(20), &[one]).unwrap();
        let edge = |shape: &str| {
            let edges = picture.svg().lines().filter(|line| line.contains(r#"class="edge""#));
            edges.filter(|line| line.starts_with(shape)).count()
        };
        assert_eq!((edge("<path"), edge("<line")), (1, 1));
    }

    #[test]
    fn more_than_can_be_told_apart_is_refused() {
        let one = panel(0, &[], &[Phase::Idle; 33]);
        let many = strip("t", &names(33), &[one]).unwrap_err();
        assert_eq!(many, DrawError::TooManyNodes { nodes: 33, max: 32 });
        let none = strip("t", &names(3), &[]).unwrap_err();
        assert_eq!(none, DrawError::Instants { given: 0, max: 64 });
    }
}
