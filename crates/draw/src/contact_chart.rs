//! Contact charts: a line per node, time to the right, who meets whom and when.

use catraca_core::NodeId;
use catraca_topology::evolving::{Contact, EvolvingGraph, Hop, Journey};

use crate::arrow::head;
use crate::layout::MARGIN;
use crate::picture::{DrawError, Picture};
use crate::svg::{FAINT, HALO, INK, PALETTE, Point, Svg, text_width};
use crate::ticks;

/// The most nodes that have a line each.
const MAX_NODES: u32 = 400;
/// Contacts are joined by lines if there are not more than this; otherwise they are counted in bins.
const MOST_JOINED: usize = 300;
/// How wide a bin is.
const BIN: f64 = 4.0;
/// Up to which share of a bin a node is in contact, how dark that is, and what the legend says of it.
const LEVELS: [(f64, f64, &str); 3] = [
    (1.0 / 3.0, 0.3, "in contact for up to a third of the time"),
    (2.0 / 3.0, 0.55, "up to two thirds"),
    (f64::INFINITY, 0.9, "more"),
];
const PLOT: f64 = 980.0;
const TEXT_SIZE: f64 = 12.0;
const CONTACT: &str = "#8c8c8c";

/// What a contact chart shows.
#[derive(Clone, Debug)]
pub struct ContactChart<'a> {
    /// What it shows.
    pub title: String,
    /// The graph.
    pub graph: &'a EvolvingGraph,
    /// The first instant.
    pub from: u64,
    /// The last instant. Laps of a cycle are drawn out up to it.
    pub to: u64,
    /// What stands below the axis: what an instant is.
    pub axis: String,
    /// Journeys in it, with their names.
    pub journeys: Vec<(String, Journey)>,
}

/// Draws a line per node and a tick, or a line to the other node, for every contact.
pub fn contact_chart(chart: &ContactChart<'_>) -> Result<Picture, DrawError> {
    let nodes = chart.graph.nodes();
    if nodes > MAX_NODES {
        return Err(DrawError::TooManyNodes { nodes, max: MAX_NODES });
    }
    if chart.to < chart.from {
        return Err(DrawError::NoSteps);
    }
    let drawn = chart.graph.until(chart.to);
    let drawn = drawn.map_err(|error| DrawError::Graph(error.to_string()))?;
    let visible: Vec<Contact> =
        drawn.contacts().iter().filter(|contact| contact.to >= chart.from).copied().collect();
    let layout = Layout::new(chart);
    let mut svg = Svg::new();
    svg.text((MARGIN, MARGIN + 12.0), &chart.title, 16.0, r#"class="title" font-weight="bold""#);
    layout.draw_legend(&mut svg, chart, visible.len() <= MOST_JOINED);
    layout.draw_frame(&mut svg, chart);
    if visible.len() <= MOST_JOINED {
        layout.draw_joined(&mut svg, &visible);
    } else {
        layout.draw_bins(&mut svg, &visible);
    }
    for (index, (name, journey)) in chart.journeys.iter().enumerate() {
        svg.group(r#"class="journey""#, name, |svg| layout.draw_journey(svg, index, journey));
    }
    let legend = chart.journeys.iter().map(|(name, _)| text_width(name, TEXT_SIZE) + 60.0);
    let bins = LEVELS.iter().map(|(.., name)| text_width(name, TEXT_SIZE) + 36.0);
    let bins = if visible.len() <= MOST_JOINED { 160.0 } else { bins.sum::<f64>() };
    let width = (layout.right() + MARGIN)
        .max(text_width(&chart.title, 18.0) + 2.0 * MARGIN)
        .max(2.0 * MARGIN + bins + legend.sum::<f64>());
    Ok(svg.finish(width.ceil() as u32, (layout.bottom() + 54.0).ceil() as u32))
}

struct Layout {
    nodes: u32,
    from: u64,
    to: u64,
    left: f64,
    top: f64,
    /// From one line to the next.
    line: f64,
    /// From one instant to the next.
    instant: f64,
}

impl Layout {
    fn new(chart: &ContactChart<'_>) -> Self {
        let nodes = chart.graph.nodes();
        let names = chart.graph.names().iter().map(|name| text_width(name, TEXT_SIZE));
        let left = MARGIN + names.fold(20.0, f64::max) + 12.0;
        let instants = (chart.to - chart.from + 1) as f64;
        let line = match nodes {
            0..=24 => 30.0,
            25..=80 => 16.0,
            _ => 9.0,
        };
        let instant = (PLOT / instants).min(64.0);
        Layout { nodes, from: chart.from, to: chart.to, left, top: MARGIN + 70.0, line, instant }
    }

    /// The middle of an instant.
    fn x(&self, instant: u64) -> f64 {
        self.left + ((instant.max(self.from) - self.from) as f64 + 0.5) * self.instant
    }

    fn y(&self, node: NodeId) -> f64 {
        self.top + (f64::from(node.0) + 0.5) * self.line
    }

    fn right(&self) -> f64 {
        self.left + (self.to - self.from + 1) as f64 * self.instant
    }

    fn bottom(&self) -> f64 {
        self.top + f64::from(self.nodes) * self.line
    }

    fn draw_legend(&self, svg: &mut Svg, chart: &ContactChart<'_>, is_joined: bool) {
        let (mut x, y) = (MARGIN + 8.0, MARGIN + 42.0);
        let write = |svg: &mut Svg, x: f64, name: &str| {
            svg.text((x, y + 4.3), name, TEXT_SIZE, r#"class="legend""#);
            x + text_width(name, TEXT_SIZE) + 24.0
        };
        if is_joined {
            draw_contact(svg, (x, y - 9.0), (x, y + 9.0), 3.0);
            x = write(svg, x + 12.0, "contact");
        } else {
            for (_, opacity, name) in LEVELS {
                let style = format!(r#"fill="{INK}" fill-opacity="{opacity}""#);
                svg.rect((x - 6.0, y - 6.0), (12.0, 12.0), style);
                x = write(svg, x + 12.0, name);
            }
        }
        for (index, (name, _)) in chart.journeys.iter().enumerate() {
            svg.line((x, y), (x + 26.0, y), journey_style(index));
            x = write(svg, x + 34.0, name);
        }
    }

    fn draw_frame(&self, svg: &mut Svg, chart: &ContactChart<'_>) {
        let (from, to) = (self.from as f64, self.to as f64 + 1.0);
        let mut values = ticks::linear(from, to, (self.right() - self.left) / 60.0);
        values.retain(|value| value.fract() == 0.0 && *value < to);
        for value in values {
            let x = self.x(value as u64);
            svg.line((x, self.top), (x, self.bottom() + 5.0), format_args!(r#"stroke="{FAINT}""#));
            let style = r#"class="tick" text-anchor="middle""#;
            svg.text((x, self.bottom() + 19.0), &ticks::number(value), TEXT_SIZE, style);
        }
        let every = if self.line < 12.0 { 5 } else { 1 };
        for (index, name) in chart.graph.names().iter().enumerate() {
            let y = self.y(NodeId(index as u32));
            let line = r##"class="line" stroke="#c4c4c4""##;
            svg.line((self.left, y), (self.right(), y), line);
            if index % every == 0 {
                let style = r#"class="name" text-anchor="end""#;
                let size = TEXT_SIZE.min(self.line);
                svg.text((self.left - 8.0, y + size * 0.36), name, size, style);
            }
        }
        if let Some(cycle) =
            chart.graph.cycle().filter(|cycle| (self.from..=self.to).contains(cycle))
        {
            let x = self.x(cycle) - self.instant / 2.0;
            let style = format!(r#"class="cycle" stroke="{INK}" stroke-dasharray="5 4""#);
            svg.line((x, self.top - 6.0), (x, self.bottom() + 5.0), style);
            let style = format!(r#"class="cycle" {HALO}"#);
            svg.text((x + 3.0, self.top - 4.0), "repeats from here", 10.0, style);
        }
        let middle = (self.left + self.right()) / 2.0;
        let style = r#"text-anchor="middle""#;
        svg.text((middle, self.bottom() + 38.0), &chart.axis, TEXT_SIZE, style);
    }

    /// Contacts that begin at one instant are side by side.
    fn draw_joined(&self, svg: &mut Svg, contacts: &[Contact]) {
        for together in
            contacts.chunk_by(|one, next| one.from.max(self.from) == next.from.max(self.from))
        {
            let step = (self.instant * 0.7 / together.len() as f64).min(7.0);
            for (lane, contact) in together.iter().enumerate() {
                let shift = (lane as f64 - (together.len() - 1) as f64 / 2.0) * step;
                let x = self.x(contact.from) + shift;
                for node in [contact.a, contact.b] {
                    self.draw_stretch(svg, contact, node, x);
                }
                draw_contact(svg, (x, self.y(contact.a)), (x, self.y(contact.b)), 3.0);
            }
        }
    }

    /// While a contact lasts, the lines of both nodes are thick.
    fn draw_stretch(&self, svg: &mut Svg, contact: &Contact, node: NodeId, x: f64) {
        if contact.to > contact.from.max(self.from) {
            let (y, end) = (self.y(node), self.x(contact.to) + self.instant * 0.4);
            let style = format!(r#"class="lasts" fill="{CONTACT}" fill-opacity="0.4""#);
            svg.rect((x, y - 2.0), (end - x, 4.0), style);
        }
    }

    /// Many contacts: of each node, for how much of the time it is in contact, in bins of a few pixels.
    /// However many contacts there are, the picture does not grow beyond its bins.
    fn draw_bins(&self, svg: &mut Svg, contacts: &[Contact]) {
        let height = (self.line * 0.7).min(12.0);
        for (index, stretches) in self.in_contact(contacts).into_iter().enumerate() {
            let mut shares = vec![0.0; ((self.right() - self.left) / BIN).ceil() as usize];
            for (from, to) in stretches {
                self.add_stretch(&mut shares, from, to);
            }
            let levels: Vec<usize> = shares.into_iter().map(level).collect();
            let (top, mut bin) = (self.y(NodeId(index as u32)) - height / 2.0, 0);
            for alike in levels.chunk_by(|one, next| one == next) {
                let x = self.left + bin as f64 * BIN;
                let width = (alike.len() as f64 * BIN).min(self.right() - x);
                if let Some(opacity) = alike[0].checked_sub(1).map(|level| LEVELS[level].1) {
                    let style = format!(r#"class="meets" fill="{INK}" fill-opacity="{opacity}""#);
                    svg.rect((x, top), (width, height), style);
                }
                bin += alike.len();
            }
        }
    }

    /// When each node is in contact with anybody: first and last instants, apart from each other.
    fn in_contact(&self, contacts: &[Contact]) -> Vec<Vec<(u64, u64)>> {
        let mut by_node: Vec<Vec<(u64, u64)>> = vec![Vec::new(); self.nodes as usize];
        for contact in contacts {
            let (from, to) = (contact.from.max(self.from), contact.to.min(self.to));
            for node in [contact.a, contact.b] {
                let stretches = &mut by_node[node.index()];
                match stretches.last_mut() {
                    // Contacts come in the order of their beginnings.
                    Some(last) if from <= last.1 + 1 => last.1 = last.1.max(to),
                    _ => stretches.push((from, to)),
                }
            }
        }
        by_node
    }

    /// Adds to each bin how much of it the instants from `from` to `to` take.
    fn add_stretch(&self, shares: &mut [f64], from: u64, to: u64) {
        let place = |instants: u64| instants as f64 * self.instant / BIN;
        let (begin, end) = (place(from - self.from), place(to - self.from + 1));
        let first = begin as usize;
        for (bin, share) in shares.iter_mut().enumerate().skip(first) {
            let covered = end.min(bin as f64 + 1.0) - begin.max(bin as f64);
            if covered <= 0.0 {
                break;
            }
            *share += covered;
        }
    }

    fn draw_journey(&self, svg: &mut Svg, index: usize, journey: &Journey) {
        let Some(first) = journey.hops.first() else { return };
        let mut points: Vec<Point> = vec![(self.x(self.from.max(first.at)), self.y(first.from))];
        for hop in &journey.hops {
            points.push((self.x(hop.at), self.y(hop.from)));
            points.push((self.x(hop.at), self.y(hop.to)));
        }
        svg.polyline(&points, format_args!(r#"fill="none" {}"#, journey_style(index)));
        for &Hop { from, to, at } in &journey.hops {
            let tip = (self.x(at), self.y(to));
            let fill = format!(r#"fill="{}""#, PALETTE[index % PALETTE.len()]);
            svg.polygon(&head((tip.0, self.y(from)), tip), fill);
        }
    }
}

/// 0 for a bin without a contact, then as in [`LEVELS`], from 1 on.
fn level(share: f64) -> usize {
    match share {
        none if none <= 0.0 => 0,
        some => 1 + LEVELS.iter().position(|(most, ..)| some <= *most).unwrap_or(0),
    }
}

fn draw_contact(svg: &mut Svg, one: Point, other: Point, radius: f64) {
    svg.line(one, other, format_args!(r#"class="contact" stroke="{CONTACT}" stroke-width="1.3""#));
    for at in [one, other] {
        svg.circle(at, radius, format_args!(r#"fill="{INK}""#));
    }
}

fn journey_style(index: usize) -> String {
    let colour = PALETTE[index % PALETTE.len()];
    format!(r#"stroke="{colour}" stroke-width="3.4" stroke-linejoin="round" stroke-opacity="0.85""#)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(graph: &EvolvingGraph, to: u64) -> ContactChart<'_> {
        let (title, axis) = ("Buses".to_owned(), "instant".to_owned());
        ContactChart { title, graph, from: 0, to, axis, journeys: Vec::new() }
    }

    fn count(picture: &Picture, part: &str) -> usize {
        picture.svg().matches(part).count()
    }

    #[test]
    fn every_contact_joins_two_lines_and_laps_are_drawn_out() {
        let contacts = vec![Contact::at(0, 0, 1), Contact::between(1, 2, 1, 2)];
        let graph = EvolvingGraph::numbered(3, contacts, 2, Some(1)).unwrap();
        let picture = contact_chart(&chart(&graph, 6)).unwrap();
        assert_eq!(count(&picture, r#"class="line""#), 3);
        assert_eq!(count(&picture, r#"class="contact""#), 4 + 1, "and in the legend");
        assert_eq!(count(&picture, r#"class="lasts""#), 6);
        assert_eq!(count(&picture, ">repeats from here</text>"), 1);
    }

    #[test]
    fn a_journey_is_drawn_over_the_contacts() {
        let contacts = vec![Contact::at(0, 0, 1), Contact::at(2, 1, 2)];
        let graph = EvolvingGraph::numbered(3, contacts, 2, None).unwrap();
        let hop = |from, to, at| Hop { from: NodeId(from), to: NodeId(to), at };
        let journey = Journey { hops: vec![hop(0, 1, 0), hop(1, 2, 2)] };
        let journeys = vec![("foremost".to_owned(), journey)];
        let picture = contact_chart(&ContactChart { journeys, ..chart(&graph, 2) }).unwrap();
        assert_eq!(count(&picture, r#"class="journey""#), 1);
        assert_eq!(count(&picture, "<polygon"), 2, "an arrow a hop");
    }

    #[test]
    fn many_contacts_are_counted_in_bins() {
        // Node 7 is always in contact, the others every seventh instant.
        let contacts = (0..1_000).map(|at| Contact::at(at, (at % 7) as u32, 7)).collect();
        let graph = EvolvingGraph::numbered(8, contacts, 999, None).unwrap();
        let picture = contact_chart(&chart(&graph, 999)).unwrap();
        assert_eq!(count(&picture, r#"class="contact""#), 0);
        let dark = r##"class="meets" fill="#222222" fill-opacity="0.9""##;
        assert_eq!(count(&picture, dark), 1, "one stretch from the first bin to the last");
        assert!(count(&picture, r##"class="meets" fill="#222222" fill-opacity="0.3""##) > 100);
    }

    #[test]
    fn a_chart_does_not_grow_with_its_contacts() {
        let size = |contacts: u64| {
            let meet = |at: u64| Contact::at(at, (at * 7 % 99) as u32, 99);
            let graph =
                EvolvingGraph::numbered(100, (0..contacts).map(meet).collect(), contacts, None);
            contact_chart(&chart(&graph.unwrap(), contacts)).unwrap().svg().len()
        };
        assert!(size(200_000) < 1_000_000, "{}", size(200_000));
    }

    #[test]
    fn a_bin_is_as_dark_as_the_share_of_time_in_contact() {
        assert_eq!([0.0, 0.1, 0.5, 0.7, 1.0].map(level), [0, 1, 2, 3, 3]);
    }

    #[test]
    fn too_many_nodes_are_refused() {
        let graph = EvolvingGraph::numbered(401, vec![Contact::at(0, 0, 1)], 0, None).unwrap();
        let error = contact_chart(&chart(&graph, 0)).unwrap_err();
        assert_eq!(error, DrawError::TooManyNodes { nodes: 401, max: 400 });
    }
}
