//! Space-time diagrams: a line per node, time to the right, an arrow per message.

use catraca_core::{NodeId, Phase};
use catraca_trace::{Header, Origin, Trace};

use crate::arrow::{Arrows, Kinds};
use crate::heading;
use crate::history::{History, Note, Overlap, Stay};
use crate::label::Labels;
use crate::layout::{Layout, MARGIN, Window};
use crate::picture::{DrawError, Picture};
use crate::resource::{self, Resources};
use crate::svg::{FAINT, HALO, INK, Point, Svg, text_width};
use crate::ticks;

/// The largest group that is drawn.
const MAX_NODES: u32 = 64;
const BAR_HEIGHT: f64 = 18.0;
/// The backgrounds of clusters, in turn.
const BANDS: [&str; 2] = ["#eef4fa", "#faf4e8"];
const AXIS_HEIGHT: f64 = 48.0;
pub(crate) const INSIDE: &str = r##"fill="#ffc845" stroke="#8a6100""##;
pub(crate) const WAITING: &str =
    r##"fill="#e9e9e9" stroke="#8c8c8c" stroke-width="1" stroke-dasharray="4 3""##;
pub(crate) const WRONG: &str = "#c8102e";

/// Which part of a trace to draw, and how much is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiagramOptions {
    /// Leave out what happens before this time, in ticks of the trace's clock.
    pub from: Option<u64>,
    /// Leave out what happens after this time, in ticks of the trace's clock.
    pub to: Option<u64>,
    /// Refuse to draw more events than this.
    pub max_events: usize,
}

impl Default for DiagramOptions {
    /// The whole trace, if it has at most 300 events.
    fn default() -> Self {
        DiagramOptions { from: None, to: None, max_events: 300 }
    }
}

/// Whether a group of so many nodes can be drawn legibly. Known before there is a trace of it.
pub fn check_nodes(nodes: u32) -> Result<(), DrawError> {
    match nodes {
        ..=MAX_NODES => Ok(()),
        _ => Err(DrawError::TooManyNodes { nodes, max: MAX_NODES }),
    }
}

/// Draws what happened in a run as papers on distributed algorithms do.
///
/// Node 0 is on top; where there are clusters, the nodes of each are together on a band of their
/// own. A bar on a node's line shows it waiting, then inside, with its fence number,
/// and in the colours of the resources it asks for where there are several.
/// Time in which two nodes are inside that exclude each other has a red band. A message that was
/// lost ends in a cross; one that is still on its way at the end of the trace fades out. Labels of
/// messages are left out where they find no room; browsers show them on hovering.
pub fn space_time(trace: &Trace, options: &DiagramOptions) -> Result<Picture, DrawError> {
    let nodes = trace.header.spec.nodes;
    check_nodes(nodes)?;
    let history = History::of(trace)?;
    let window = Window::choose(&history.times, options)?;
    let mut layout = Layout::new(window, nodes);
    if trace.header.spec.clusters.is_some() {
        layout = layout.grouped(trace.header.spec.build_clusters()?);
    }
    let resources = Resources::new(trace.header.spec.resource_count());
    let kinds = Kinds::of(&history);

    let mut svg = Svg::new();
    layout.top = heading::draw(&mut svg, &trace.header, &history, &layout, &kinds);
    draw_clusters(&mut svg, &layout);
    draw_axis(&mut svg, &trace.header, &layout);
    let plot = (layout.right() - layout.left(), layout.bottom() - layout.top);
    svg.clip("plot", (layout.left(), layout.top), plot);
    draw_lines(&mut svg, &history, &layout);
    svg.group(r#"clip-path="url(#plot)""#, "", |svg| {
        for overlap in &history.overlaps {
            draw_overlap(svg, overlap, &layout);
        }
        for stay in &history.stays {
            draw_stay(svg, stay, &layout, resources);
        }
        let arrows = Arrows { history: &history, layout: &layout, kinds: &kinds };
        arrows.draw(svg);
        let mut labels = Labels::default();
        for note in &history.notes {
            draw_note(svg, note, &layout, &mut labels);
        }
        arrows.label(svg, &mut labels);
    });
    draw_crashes(&mut svg, &history, &layout);
    let height = layout.bottom() + AXIS_HEIGHT + MARGIN / 2.0;
    Ok(svg.finish(layout.width as u32, height.ceil() as u32))
}

/// Draws the numbers below and a faint line above each.
fn draw_axis(svg: &mut Svg, header: &Header, layout: &Layout) {
    let (unit, name, spacing) = match header.origin {
        Origin::Sim => (header.ticks_per_unit.max(1) as f64, "time in units", 80.0),
        Origin::Check => (1.0, "step", 40.0),
    };
    let (from, to) = (layout.window.from as f64 / unit, layout.window.to as f64 / unit);
    let length = (to - from).max(1.0 / unit);
    let pixels = layout.pixels_per_tick();
    let room = length * unit * pixels / spacing;
    let mut values = ticks::linear(from, from + length, room);
    if header.origin == Origin::Check {
        values.retain(|value| value.fract() == 0.0);
    }
    for value in values {
        let x = layout.x(layout.window.from) + (value - from) * unit * pixels;
        let (top, bottom) = (layout.top, layout.bottom());
        svg.line((x, top), (x, bottom + 5.0), format_args!(r#"stroke="{FAINT}""#));
        let style = r#"class="tick" text-anchor="middle""#;
        svg.text((x, bottom + 19.0), &ticks::number(value), 12.0, style);
    }
    let middle = (layout.left() + layout.right()) / 2.0;
    svg.text((middle, layout.bottom() + 38.0), name, 12.0, r#"text-anchor="middle""#);
}

/// Draws a band behind the lines of every cluster, and its name at the left.
fn draw_clusters(svg: &mut Svg, layout: &Layout) {
    let Some(clusters) = &layout.clusters else { return };
    for cluster in 0..clusters.count() {
        let members = NodeId::all(layout.nodes).filter(|&node| clusters.of(node) == cluster);
        let (top, bottom) = layout.span(members);
        let (top, bottom) = (top + 2.0, bottom - 2.0);
        let colour = BANDS[cluster as usize % BANDS.len()];
        let style = format!(r#"class="cluster" fill="{colour}""#);
        svg.rect((MARGIN / 2.0, top), (layout.right() - MARGIN / 2.0, bottom - top), style);
        let at = (MARGIN + 8.0, (top + bottom) / 2.0);
        let style = r##"class="cluster-name" fill="#555555""##;
        svg.turned_text(at, -90.0, &format!("cluster {cluster}"), 11.0, style);
    }
}

fn draw_lines(svg: &mut Svg, history: &History<'_>, layout: &Layout) {
    for node in NodeId::all(layout.nodes) {
        let y = layout.y(node);
        let name = format!("node {node}");
        let left = layout.names();
        svg.text((left, y + 4.5), &name, 13.0, r#"class="name" font-weight="bold""#);
        if layout.clusters.as_ref().is_some_and(|clusters| clusters.proxy(node) == node) {
            svg.text((left, y + 19.0), "proxy", 11.0, r#"class="proxy""#);
        }
        let end = (layout.end_of(node, history), y);
        let style = format!(r#"class="node" stroke="{INK}" stroke-width="1.2""#);
        svg.line((layout.left(), y), end, style);
    }
}

/// The places between which something with these times is drawn.
fn extent(layout: &Layout, from: Option<u64>, to: Option<u64>) -> (f64, f64) {
    let left = from.map_or(layout.left(), |at| layout.x_inside(at));
    let right = to.map_or(layout.right(), |at| layout.x_inside(at));
    // What takes no time is still seen.
    (left, right.max(left + 3.0))
}

fn draw_overlap(svg: &mut Svg, overlap: &Overlap, layout: &Layout) {
    if !layout.window.shows(overlap.from, overlap.to) {
        return;
    }
    let (left, right) = extent(layout, overlap.from, overlap.to);
    let (top, bottom) = layout.span(overlap.nodes.iter().copied());
    let (top, bottom) = (top + 5.0, bottom - 5.0);
    let size = (right - left, bottom - top);
    let style = format!(r#"class="overlap" fill="{WRONG}" fill-opacity="0.22" stroke="{WRONG}""#);
    svg.rect((left, top), size, style);
}

fn draw_stay(svg: &mut Svg, stay: &Stay, layout: &Layout, resources: Resources) {
    if !stay.is_visible() || !layout.window.shows(stay.from, stay.to) {
        return;
    }
    let (left, right) = extent(layout, stay.from, stay.to);
    let y = layout.y(stay.node);
    let (class, look, height) = match stay.phase == Phase::Inside {
        true => ("inside", INSIDE, BAR_HEIGHT),
        false => ("waiting", WAITING, BAR_HEIGHT * 0.55),
    };
    let style = format!(r#"class="{class}" {look}"#);
    let (corner, size) = ((left, y - height / 2.0), (right - left, height));
    let title = match resources {
        Resources::Single => String::new(),
        _ => format!("node {}, {class}: {}", stay.node, resource::list(&stay.claim)),
    };
    let colours = resources.colours(&stay.claim);
    if resources == Resources::Single {
        svg.rect(corner, size, style);
    } else {
        svg.group(r#"class="claim""#, &title, |svg| {
            svg.rect(corner, size, style);
            draw_stripes(svg, &colours, stay.phase, corner, size);
        });
    }
    draw_bar_text(svg, stay, resources, (left, right), y);
}

/// Draws the colours of a claim over its bar, paler while it only waits.
fn draw_stripes(
    svg: &mut Svg,
    colours: &[&str],
    phase: Phase,
    (x, y): Point,
    (width, height): (f64, f64),
) {
    let each = (height - 2.0) / colours.len().max(1) as f64;
    let opacity = if phase == Phase::Inside { 1.0 } else { 0.8 };
    for (index, colour) in colours.iter().enumerate() {
        let corner = (x + 1.0, y + 1.0 + index as f64 * each);
        let style = format!(r#"class="resource" fill="{colour}" fill-opacity="{opacity}""#);
        svg.rect(corner, ((width - 2.0).max(1.0), each), style);
    }
}

/// Writes the fence, and the resources where they have no colours.
fn draw_bar_text(
    svg: &mut Svg,
    stay: &Stay,
    resources: Resources,
    (left, right): (f64, f64),
    y: f64,
) {
    let text = match (stay.fence, resources.numbers(&stay.claim)) {
        (Some(fence), None) => fence.to_string(),
        (Some(fence), Some(numbers)) => format!("{fence}: {numbers}"),
        (None, Some(numbers)) => numbers,
        (None, None) => return,
    };
    let fits = text_width(&text, 12.0) + 4.0 <= right - left;
    let baseline = if fits { y + 4.3 } else { y - BAR_HEIGHT / 2.0 - 3.0 };
    let style = format!(
        r#"class="fence" text-anchor="middle" {} {}"#,
        if stay.fence.is_some() { r#"font-weight="bold""# } else { "" },
        match fits {
            true => "",
            false => HALO,
        }
    );
    svg.text(((left + right) / 2.0, baseline), &text, 12.0, style);
}

fn draw_note(svg: &mut Svg, note: &Note, layout: &Layout, labels: &mut Labels) {
    if !layout.window.shows(Some(note.at), Some(note.at)) {
        return;
    }
    let (x, y) = layout.place(note.node, note.at);
    let colour = if note.is_anomaly { WRONG } else { INK };
    svg.line((x, y - 12.0), (x, y + 12.0), format_args!(r#"stroke="{colour}" stroke-width="1.5""#));
    let width = text_width(&note.text, 11.0);
    // Towards the side where there is room.
    let side = if x + 4.0 + width < layout.right() { 1.0 } else { -1.0 };
    let middle = (x + side * (3.0 + width / 2.0), y + 22.0);
    labels.reserve(middle, (1.0, 0.0), width);
    let anchor = if side > 0.0 { "start" } else { "end" };
    let style = format!(r#"class="note" text-anchor="{anchor}" fill="{colour}" {HALO}"#);
    svg.text((x + side * 3.0, y + 22.0), &note.text, 11.0, style);
}

fn draw_crashes(svg: &mut Svg, history: &History<'_>, layout: &Layout) {
    for (&node, &at) in &history.crashes {
        if layout.window.shows(Some(at), Some(at)) {
            let style = format!(r#"class="crash" stroke="{INK}" stroke-width="3.2""#);
            svg.cross(layout.place(node, at), 7.5, style);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn drawn(trace: &Trace) -> Picture {
        space_time(trace, &DiagramOptions::default()).unwrap()
    }

    fn count(picture: &Picture, part: &str) -> usize {
        picture.svg().matches(part).count()
    }

    #[test]
    fn every_message_wait_and_entry_is_drawn_once() {
        let picture = drawn(&sample::three_nodes());
        assert_eq!(count(&picture, r#"class="message delivered""#), 12);
        assert_eq!(count(&picture, "<polygon"), 12 + 2, "a head each, and two in the legend");
        assert_eq!(count(&picture, r#"class="waiting""#), 3);
        assert_eq!(count(&picture, r#"class="inside""#), 3);
        assert_eq!(count(&picture, r#"class="node""#), 3);
        for fence in [3, 5, 7] {
            assert_eq!(count(&picture, &format!(">{fence}</text>")), 1, "fence {fence}");
        }
        assert_eq!(count(&picture, ">request 1</text>"), 4);
        assert_eq!(count(&picture, ">request 2</text>"), 2);
        assert_eq!(count(&picture, ">reply</text>"), 6 + 1, "and one in the legend");
        assert_eq!(count(&picture, "ricart-agrawala, 3 nodes</text>"), 1);
        assert_eq!(count(&picture, r#"class="violation""#), 0);
        assert_eq!(count(&picture, r#"class="overlap""#), 0);
    }

    #[test]
    fn a_message_goes_from_its_sending_to_its_delivery() {
        let picture = drawn(&sample::holder_and_waiter());
        // Sent by node 1 at 5, delivered to node 0 at 15; the picture is from 5 to 30.
        let line = r##"<line x1="122" y1="200" x2="351.6" y2="116" stroke="#0067a5""##;
        assert_eq!(count(&picture, line), 1, "{}", picture.svg());
        let title = "<title>request 1 from node 1 to node 0, sent at 5, delivered at 15</title>";
        assert_eq!(count(&picture, title), 1);
        // Inside since before the run: from the left edge.
        assert_eq!(count(&picture, r#"<rect x="96" y="107" width="370.4" height="18""#), 1);
    }

    #[test]
    fn a_violation_is_written_in_red_and_its_time_has_a_band() {
        let picture = drawn(&sample::violation());
        let text = "node 2 enters while node 0 is inside &lt;&amp;&gt;</text>";
        assert_eq!(count(&picture, text), 1);
        assert_eq!(
            count(&picture, &format!(r#"class="violation" font-weight="bold" fill="{WRONG}""#)),
            1
        );
        assert_eq!(count(&picture, r#"class="overlap""#), 1);
        assert_eq!(count(&picture, ">more than one inside</text>"), 1);
        assert_eq!(count(&picture, ">step</text>"), 1);
        assert_eq!(count(&picture, r#"class="tick""#), 10, "a number for every step");
    }

    #[test]
    fn clusters_have_bands_and_their_proxies_a_mark() {
        let mut trace = sample::three_nodes();
        trace.header.spec.clusters = Some("2,0|1".parse().unwrap());
        let picture = drawn(&trace);
        assert_eq!(count(&picture, r#"class="cluster""#), 2);
        assert_eq!(count(&picture, ">cluster 1</text>"), 1);
        assert_eq!(count(&picture, ">proxy</text>"), 2);
        trace.header.spec.clusters = Some("2x2".parse().unwrap());
        let error = space_time(&trace, &DiagramOptions::default()).unwrap_err();
        assert!(error.to_string().contains("4 members, but there are 3 nodes"), "{error}");
    }

    #[test]
    fn a_claim_of_several_resources_is_striped() {
        let mut trace = sample::two_claims([0, 1], [2, 3]);
        trace.header.spec.resources = Some(4);
        let picture = drawn(&trace);
        assert_eq!(count(&picture, r#"class="resource""#), 4);
        assert_eq!(count(&picture, ">resource 3</text>"), 1);
        assert_eq!(count(&picture, "<title>node 1, inside: 2 3</title>"), 1);
        assert_eq!(count(&picture, r#"class="overlap""#), 0);
        trace.header.spec.resources = Some(9);
        let picture = drawn(&trace);
        assert_eq!(count(&picture, r#"class="resource""#), 0);
        assert_eq!(count(&picture, ">2: 2 3</text>"), 1, "the fence, then the resources");
    }

    #[test]
    fn crashes_losses_and_messages_on_their_way_are_marked() {
        let picture = drawn(&sample::crash());
        assert_eq!(count(&picture, r#"class="crash""#), 1);
        assert_eq!(count(&picture, r#"class="message lost""#), 2);
        assert_eq!(count(&picture, r#"class="message underway""#), 1);
        assert_eq!(count(&picture, ">suspects 2</text>"), 1);
        // The line of node 2 ends where it crashes, all others at the right edge.
        let end = format!(r#"x2="{}""#, f64::from(picture.width()) - MARGIN);
        let lines = picture.svg().lines().filter(|line| line.contains(r#"class="node""#));
        assert_eq!(lines.map(|line| line.contains(&end)).collect::<Vec<_>>(), [true, true, false]);
    }

    #[test]
    fn a_window_shows_what_reaches_into_it() {
        let window = DiagramOptions { from: Some(2_500), to: Some(5_000), ..Default::default() };
        let picture = space_time(&sample::three_nodes(), &window).unwrap();
        assert_eq!(count(&picture, r#"class="inside""#), 2);
        assert_eq!(count(&picture, r#"class="waiting""#), 1);
        assert_eq!(count(&picture, r#"class="message delivered""#), 2);
        assert_eq!(count(&picture, ">request</text>"), 0, "the legend has only what is shown");
    }

    #[test]
    fn what_cannot_be_drawn_legibly_is_refused() {
        let refused = |trace: &Trace| space_time(trace, &DiagramOptions::default()).unwrap_err();
        let error = refused(&sample::busy_run(14)).to_string();
        assert!(error.starts_with("has 392 steps"), "{error}");
        assert!(error.ends_with("choose a window with --from and --to"), "{error}");
        let mut trace = sample::two_claims([0, 1], [2, 3]);
        trace.header.spec.nodes = 65;
        assert_eq!(refused(&trace), DrawError::TooManyNodes { nodes: 65, max: 64 });
        trace.header.spec.nodes = 1;
        assert_eq!(refused(&trace), DrawError::UnknownNode { event: 2, node: 1, nodes: 1 });
        trace.events.clear();
        assert_eq!(refused(&trace), DrawError::NoSteps);
    }

    #[test]
    fn the_same_trace_gives_the_same_picture_also_as_png() {
        let (one, other) = (drawn(&sample::busy_run(6)), drawn(&sample::busy_run(6)));
        assert_eq!(one, other);
        let png = one.png(0.5).unwrap();
        assert_eq!(png, other.png(0.5).unwrap());
        let size = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
        assert_eq!((size(16), size(20)), (one.width().div_ceil(2), one.height().div_ceil(2)));
        assert!(png.len() > 20_000, "{} bytes cannot hold this picture", png.len());
    }

    #[test]
    fn a_trace_of_a_single_moment_is_drawn() {
        let mut trace = sample::two_claims([0, 1], [2, 3]);
        trace.events.truncate(1);
        let picture = drawn(&trace);
        assert_eq!(count(&picture, r#"class="inside""#), 1);
        assert_eq!(count(&picture, "NaN") + count(&picture, "inf\""), 0);
    }
}
