//! Pointer trees: who points to whom at one instant of a run, or at several.

use catraca_core::{NodeId, Phase};
use catraca_topology::Clusters;
use catraca_trace::{Event, Header, Instant, Origin, Trace, instant_at};

use crate::arrow::head;
use crate::diagram::check_nodes;
use crate::forest::Forest;
use crate::heading;
use crate::layout::MARGIN;
use crate::node_style::NodeStyle;
use crate::picture::{DrawError, Picture};
use crate::svg::{INK, Point, Svg, text_width};
use crate::ticks;

/// The most instants that are drawn side by side.
const MAX_INSTANTS: usize = 16;
const RADIUS: f64 = 17.0;
/// From one node to the next in a layer.
const COLUMN: f64 = 50.0;
/// From one layer to the next.
const LAYER: f64 = 74.0;
/// Room around the nodes of a cluster.
const PADDING: f64 = 18.0;
/// Room for arrows from cluster to cluster.
const GAP: f64 = 34.0;
const HEADING_HEIGHT: f64 = 76.0;
/// Room for arrows that go above the boxes.
const ARCS_HEIGHT: f64 = 44.0;
const TEXT_SIZE: f64 = 12.0;

/// Draws whom every node points to after the time `at`, in ticks of the trace's clock.
///
/// The root is on top. A node with the token is dark; the ring of a node shows whether it waits or
/// is inside. Clusters are dashed boxes, and a proxy has a double circle.
pub fn tree(trace: &Trace, at: u64) -> Result<Picture, DrawError> {
    trees(trace, &[at])
}

/// Whether so many instants can be drawn side by side.
pub fn check_instants(given: usize) -> Result<(), DrawError> {
    match given {
        1..=MAX_INSTANTS => Ok(()),
        _ => Err(DrawError::Instants { given, max: MAX_INSTANTS }),
    }
}

/// Draws the trees of several instants side by side, with the captions (a), (b) and so on.
pub fn trees(trace: &Trace, instants: &[u64]) -> Result<Picture, DrawError> {
    let spec = &trace.header.spec;
    check_nodes(spec.nodes)?;
    check_instants(instants.len())?;
    let clusters = spec.clusters.as_ref().map(|_| spec.build_clusters()).transpose()?;
    let end = trace.events.last().map_or(0, Event::at);
    if let Some(&late) = instants.iter().find(|&&at| at > end) {
        let [end, at] = [end, late].map(|at| moment(&trace.header, at));
        return Err(DrawError::AfterEnd { end, at });
    }
    let mut panels = Vec::new();
    for (index, &at) in instants.iter().enumerate() {
        let instant =
            instant_at(trace, at).map_err(|error| DrawError::Replay(error.to_string()))?;
        if instant.pointers.iter().all(Option::is_none) {
            return Err(DrawError::NoTree { algorithm: spec.algorithm.clone() });
        }
        let letter = (instants.len() > 1).then(|| (b'a' + index as u8) as char);
        let caption = caption(&trace.header, at, letter);
        panels.push(Panel::new(instant, clusters.as_ref(), caption));
    }
    Ok(draw_panels(&trace.header, &panels, clusters.is_some()))
}

/// A time as people say it.
fn moment(header: &Header, at: u64) -> String {
    match header.origin {
        Origin::Sim => {
            let unit = header.ticks_per_unit.max(1) as f64;
            format!("at time {}", ticks::number(at as f64 / unit))
        }
        Origin::Check => format!("after step {at}"),
    }
}

fn caption(header: &Header, at: u64, letter: Option<char>) -> String {
    let moment = moment(header, at);
    match letter {
        Some(letter) => format!("({letter}) {moment}"),
        None => moment,
    }
}

fn draw_panels(header: &Header, panels: &[Panel<'_>], has_clusters: bool) -> Picture {
    let mut svg = Svg::new();
    let title = format!("{}: who points to whom", heading::title(header));
    svg.text((MARGIN, MARGIN + 12.0), &title, 16.0, r#"class="title" font-weight="bold""#);
    let legend_width = draw_legend(&mut svg, panels, has_clusters);
    let arcs = if has_clusters { ARCS_HEIGHT } else { 0.0 };
    let top = MARGIN + HEADING_HEIGHT + arcs;
    let height = panels.iter().map(|panel| panel.height).fold(0.0, f64::max);
    let mut left = MARGIN;
    for panel in panels {
        svg.group(r#"class="tree""#, "", |svg| panel.draw(svg, (left, top), height));
        left += panel.width + 2.0 * MARGIN;
    }
    let title_width = text_width(&title, 16.0 * 1.12) + 2.0 * MARGIN;
    let width = (left - MARGIN).max(title_width).max(legend_width + MARGIN);
    svg.finish(width.ceil() as u32, (top + height + 58.0).ceil() as u32)
}

/// Draws only the symbols that are in the picture, and returns where they end.
fn draw_legend(svg: &mut Svg, panels: &[Panel<'_>], has_clusters: bool) -> f64 {
    let any = |wanted: &dyn Fn(&Instant) -> bool| panels.iter().any(|panel| wanted(&panel.instant));
    let phase = |phase| any(&|instant: &Instant| instant.phases.contains(&phase));
    let plain = NodeStyle::of(Phase::Idle);
    let symbols = [
        (
            any(&|instant| !instant.tokens.is_empty()),
            NodeStyle { has_token: true, ..plain },
            "has the token",
        ),
        (phase(Phase::Waiting), NodeStyle { phase: Phase::Waiting, ..plain }, "waiting"),
        (phase(Phase::Inside), NodeStyle { phase: Phase::Inside, ..plain }, "inside"),
        (has_clusters, NodeStyle { is_proxy: true, ..plain }, "proxy"),
        (
            any(&|instant| !instant.crashed.is_empty()),
            NodeStyle { is_crashed: true, ..plain },
            "crashed",
        ),
    ];
    let y = MARGIN + 42.0;
    let mut x = MARGIN + 10.0;
    for (_, look, name) in symbols.into_iter().filter(|(present, ..)| *present) {
        look.draw(svg, (x, y), 8.0);
        svg.text((x + 18.0, y + 4.3), name, TEXT_SIZE, r#"class="legend""#);
        x += 18.0 + text_width(name, TEXT_SIZE) + 28.0;
    }
    x
}

/// The tree of one instant.
struct Panel<'a> {
    instant: Instant,
    clusters: Option<&'a Clusters>,
    caption: String,
    /// By node, its middle, from the upper left corner of the panel.
    places: Vec<Point>,
    /// The left edge and the width of each cluster.
    boxes: Vec<(f64, f64)>,
    width: f64,
    height: f64,
}

impl<'a> Panel<'a> {
    fn new(instant: Instant, clusters: Option<&'a Clusters>, caption: String) -> Self {
        let nodes = instant.pointers.len() as u32;
        let members = |cluster| {
            let is_in = |&node: &NodeId| clusters.is_none_or(|all| all.of(node) == cluster);
            NodeId::all(nodes).filter(is_in).collect::<Vec<NodeId>>()
        };
        let mut places = vec![(0.0, 0.0); nodes as usize];
        let (mut left, mut layers, mut boxes) = (0.0, 0, Vec::new());
        for cluster in 0..clusters.map_or(1, Clusters::count) {
            let members = members(cluster);
            let forest = Forest::of(&members, &instant.pointers);
            // Room for the name of the cluster, however small it is.
            let columns = if clusters.is_some() { forest.columns.max(1.4) } else { forest.columns };
            let indent = left + PADDING + (columns - forest.columns) * COLUMN / 2.0;
            for &node in &members {
                if let Some((column, layer)) = forest.place_of(node) {
                    let x = indent + (column + 0.5) * COLUMN;
                    let y = PADDING + RADIUS + 5.0 + f64::from(layer) * LAYER;
                    places[node.index()] = (x, y);
                }
            }
            let width = columns * COLUMN + 2.0 * PADDING;
            boxes.push((left, width));
            left += width + GAP;
            layers = layers.max(forest.layers);
        }
        let name = if clusters.is_some() { 20.0 } else { 0.0 };
        let height = 2.0 * (PADDING + RADIUS + 5.0) + f64::from(layers.max(1) - 1) * LAYER + name;
        let caption_width = text_width(&caption, 14.0).max(150.0);
        let (drawn, width) = (left - GAP, (left - GAP).max(caption_width));
        let shift = (width - drawn) / 2.0;
        places.iter_mut().for_each(|place| place.0 += shift);
        boxes.iter_mut().for_each(|(left, _)| *left += shift);
        Panel { instant, clusters, caption, places, boxes, width, height }
    }

    /// Draws the panel with its upper left corner at `corner` and its caption below `height`.
    fn draw(&self, svg: &mut Svg, corner: Point, height: f64) {
        if self.clusters.is_some() {
            self.draw_boxes(svg, corner);
        }
        for node in NodeId::all(self.places.len() as u32) {
            if let Some(to) = self.instant.pointers[node.index()].filter(|&to| to != node) {
                self.draw_pointer(svg, corner, node, to);
            }
        }
        for node in NodeId::all(self.places.len() as u32) {
            self.draw_node(svg, self.place(corner, node), node);
        }
        let (x, y) = (corner.0 + self.width / 2.0, corner.1 + height + 24.0);
        svg.text((x, y), &self.caption, 14.0, r#"class="caption" text-anchor="middle""#);
        if self.instant.has_token && self.instant.tokens.is_empty() {
            let style = r#"class="travels" text-anchor="middle""#;
            svg.text((x, y + 18.0), "the token is on its way", TEXT_SIZE, style);
        }
    }

    fn draw_boxes(&self, svg: &mut Svg, (x, y): Point) {
        for (cluster, &(left, width)) in self.boxes.iter().enumerate() {
            let style = r##"class="cluster" fill="#f7f9fb" stroke="#8c8c8c" stroke-dasharray="6 4" rx="10""##;
            svg.rect((x + left, y), (width, self.height), style);
            let at = (x + left + width / 2.0, y + self.height - 9.0);
            let style = r##"class="cluster-name" text-anchor="middle" fill="#555555""##;
            svg.text(at, &format!("cluster {cluster}"), TEXT_SIZE, style);
        }
    }

    fn draw_node(&self, svg: &mut Svg, at: Point, node: NodeId) {
        let look = NodeStyle {
            has_token: self.instant.tokens.contains(&node),
            phase: self.instant.phases[node.index()],
            is_proxy: self.clusters.is_some_and(|clusters| clusters.proxy(node) == node),
            is_crashed: self.instant.crashed.contains(&node),
        };
        look.draw(svg, at, RADIUS);
        let colour = if look.has_token { "#ffffff" } else { INK };
        let style =
            format!(r#"class="number" text-anchor="middle" font-weight="bold" fill="{colour}""#);
        svg.text((at.0, at.1 + 4.8), &node.to_string(), 13.0, style);
    }

    /// Within a tree the arrow is straight. From cluster to cluster and back down a circle it bends,
    /// so that it does not run through other nodes.
    fn draw_pointer(&self, svg: &mut Svg, corner: Point, node: NodeId, to: NodeId) {
        let (from, aim) = (self.place(corner, node), self.place(corner, to));
        let (dx, dy) = (aim.0 - from.0, aim.1 - from.1);
        let length = dx.hypot(dy).max(0.1);
        let middle = ((from.0 + aim.0) / 2.0, (from.1 + aim.1) / 2.0);
        let is_outside = self.clusters.is_some_and(|clusters| !clusters.are_together(node, to));
        let bend = if is_outside {
            let height = (length * 0.22).clamp(30.0, 2.0 * (ARCS_HEIGHT + PADDING));
            (middle.0, middle.1 - height)
        } else if self.is_faced(node, to) || dy >= 0.0 {
            (middle.0 - dy / length * 16.0, middle.1 + dx / length * 16.0)
        } else {
            middle
        };
        let begin = towards(from, bend, self.rim(node));
        let end = towards(aim, bend, self.rim(to) + 2.0);
        let class = if is_outside { "pointer outside" } else { "pointer" };
        let style = format!(r#"class="{class}" fill="none" stroke="{INK}" stroke-width="1.4""#);
        svg.curve(begin, bend, end, style);
        svg.polygon(&head(bend, end), format_args!(r#"fill="{INK}""#));
    }

    /// Whether both point to each other.
    fn is_faced(&self, node: NodeId, to: NodeId) -> bool {
        self.instant.pointers[to.index()] == Some(node)
    }

    /// How far from its middle a node ends.
    fn rim(&self, node: NodeId) -> f64 {
        let is_proxy = self.clusters.is_some_and(|clusters| clusters.proxy(node) == node);
        RADIUS + if is_proxy { 5.0 } else { 1.5 }
    }

    fn place(&self, (x, y): Point, node: NodeId) -> Point {
        let place = self.places[node.index()];
        (x + place.0, y + place.1)
    }
}

/// The point that is `distance` from `from` in the direction of `to`.
fn towards(from: Point, to: Point, distance: f64) -> Point {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(0.1);
    (from.0 + dx / length * distance, from.1 + dy / length * distance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn count(picture: &Picture, part: &str) -> usize {
        picture.svg().matches(part).count()
    }

    #[test]
    fn every_node_but_the_root_has_an_arrow() {
        let picture = tree(&sample::raymond(), 0).unwrap();
        assert_eq!(count(&picture, r#"class="number""#), 7);
        assert_eq!(count(&picture, r#"class="pointer""#), 6);
        assert_eq!(count(&picture, r#"class="node idle token""#), 1 + 1, "and in the legend");
        assert_eq!(count(&picture, ">raymond, 7 nodes: who points to whom</text>"), 1);
        assert_eq!(count(&picture, ">at time 0</text>"), 1);
    }

    #[test]
    fn several_instants_stand_side_by_side() {
        let picture = trees(&sample::raymond(), &[500, 2_500, 5_000]).unwrap();
        assert_eq!(count(&picture, r#"class="tree""#), 3);
        for caption in ["(a) at time 0.5", "(b) at time 2.5", "(c) at time 5"] {
            assert_eq!(count(&picture, &format!(">{caption}</text>")), 1, "{caption}");
        }
        // While the token travels the pointers of both ends face each other.
        assert_eq!(count(&picture, ">the token is on its way</text>"), 1);
        assert_eq!(count(&picture, r#"class="pointer""#), 6 + 7 + 6);
        assert_eq!(count(&picture, r#"class="node inside token""#), 1);
        assert_eq!(count(&picture, "NaN"), 0);
    }

    #[test]
    fn clusters_are_boxes_and_only_pointers_between_them_are_outside() {
        let spec = catraca_algorithms::Spec::new("bertier", 6);
        let header = Header::new(Origin::Sim, spec, 1_000);
        let clusters = Clusters::build(&"0,1,2|5,3,4".parse().unwrap(), 6).unwrap();
        let mut phases = vec![Phase::Idle; 6];
        (phases[0], phases[3]) = (Phase::Inside, Phase::Waiting);
        let instant = Instant {
            pointers: [0, 0, 0, 5, 5, 0].map(|to| Some(NodeId(to))).to_vec(),
            has_token: true,
            tokens: vec![NodeId(0)],
            phases,
            crashed: vec![],
        };
        let panel = Panel::new(instant, Some(&clusters), caption(&header, 0, None));
        let picture = draw_panels(&header, &[panel], true);
        assert_eq!(count(&picture, r#"class="cluster""#), 2);
        assert_eq!(count(&picture, r#"class="proxy""#), 2 + 1, "and in the legend");
        assert_eq!(count(&picture, r#"class="pointer outside""#), 1);
        assert_eq!(count(&picture, r#"class="pointer""#), 4);
    }

    #[test]
    fn what_has_no_tree_is_refused() {
        let refused = |trace: &Trace, at: &[u64]| trees(trace, at).unwrap_err();
        let error = refused(&sample::three_nodes(), &[0]).to_string();
        let text = "has no tree: its nodes do not point to each other";
        assert!(error.contains(text) && error.contains("ricart-agrawala"), "{error}");
        let none = DrawError::Instants { given: 0, max: MAX_INSTANTS };
        assert_eq!(refused(&sample::raymond(), &[]), none);
        let mut large = sample::raymond();
        large.header.spec.nodes = 65;
        assert_eq!(refused(&large, &[0]), DrawError::TooManyNodes { nodes: 65, max: 64 });
    }
}
