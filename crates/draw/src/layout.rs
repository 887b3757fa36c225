//! Where things are in a space-time diagram: nodes from top to bottom, time to the right.

use catraca_core::NodeId;
use catraca_topology::Clusters;

use crate::diagram::DiagramOptions;
use crate::history::History;
use crate::picture::DrawError;
use crate::svg::Point;

const MIN_WIDTH: f64 = 800.0;
const MAX_WIDTH: f64 = 6_000.0;
/// What one moment at which something happens adds to the width.
const MOMENT_WIDTH: f64 = 44.0;
/// Room for the names of the nodes.
const NAMES_WIDTH: f64 = 76.0;
/// Room for the names of clusters.
const CLUSTERS_WIDTH: f64 = 24.0;
/// Room before the first event, for what was there before.
const LEAD: f64 = 26.0;
/// Room after the last event, for what goes on.
const TAIL: f64 = 84.0;
pub(crate) const MARGIN: f64 = 20.0;

/// The part of a trace that is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// At how many different times something happens.
    moments: usize,
}

impl Window {
    /// What `options` choose, but no more than there is.
    pub(crate) fn choose(times: &[u64], options: &DiagramOptions) -> Result<Self, DrawError> {
        let first = options.from.unwrap_or(0);
        let last = options.to.unwrap_or(u64::MAX);
        let mut shown: Vec<u64> =
            times.iter().copied().filter(|at| (first..=last).contains(at)).collect();
        if shown.len() > options.max_events {
            let (steps, max) = (shown.len(), options.max_events);
            return Err(DrawError::TooManySteps { steps, max });
        }
        shown.sort_unstable();
        shown.dedup();
        match (shown.first(), shown.last(), times.iter().min(), times.iter().max()) {
            (Some(_), Some(_), Some(&begin), Some(&end)) => {
                let (from, to) = (first.max(begin), last.min(end));
                Ok(Window { from, to, moments: shown.len() })
            }
            _ => Err(DrawError::NoSteps),
        }
    }

    /// Whether any of the time between `from` and `to` is shown. `None` is unbounded.
    pub(crate) fn shows(&self, from: Option<u64>, to: Option<u64>) -> bool {
        from.is_none_or(|from| from <= self.to) && to.is_none_or(|to| to >= self.from)
    }
}

/// The place of every node and time.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) window: Window,
    pub(crate) nodes: u32,
    pub(crate) width: f64,
    /// The upper end of the plot. Known once the heading is drawn.
    pub(crate) top: f64,
    pub(crate) clusters: Option<Clusters>,
    /// By node, how many lines are above its own.
    rows: Vec<u32>,
}

impl Layout {
    pub(crate) fn new(window: Window, nodes: u32) -> Self {
        let plot = LEAD + window.moments as f64 * MOMENT_WIDTH + TAIL;
        let width = (NAMES_WIDTH + plot + 2.0 * MARGIN).clamp(MIN_WIDTH, MAX_WIDTH).round();
        Layout { window, nodes, width, top: 0.0, clusters: None, rows: (0..nodes).collect() }
    }

    /// The same with the nodes of every cluster together.
    pub(crate) fn grouped(mut self, clusters: Clusters) -> Self {
        let mut order: Vec<NodeId> = NodeId::all(self.nodes).collect();
        order.sort_by_key(|&node| clusters.of(node));
        for (row, node) in order.into_iter().enumerate() {
            self.rows[node.index()] = row as u32;
        }
        self.width += CLUSTERS_WIDTH;
        self.clusters = Some(clusters);
        self
    }

    pub(crate) fn left(&self) -> f64 {
        self.names() + NAMES_WIDTH
    }

    /// Where the names of the nodes begin.
    pub(crate) fn names(&self) -> f64 {
        MARGIN + if self.clusters.is_some() { CLUSTERS_WIDTH } else { 0.0 }
    }

    pub(crate) fn right(&self) -> f64 {
        self.width - MARGIN
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.top + self.row_height() * f64::from(self.nodes)
    }

    fn row_height(&self) -> f64 {
        if self.nodes <= 8 { 84.0 } else { 70.0 }
    }

    /// Where the time `at` is. Times outside the window are outside the plot.
    pub(crate) fn x(&self, at: u64) -> f64 {
        let since = at as f64 - self.window.from as f64;
        self.left() + LEAD + since * self.pixels_per_tick()
    }

    pub(crate) fn pixels_per_tick(&self) -> f64 {
        let ticks = self.window.to.abs_diff(self.window.from).max(1) as f64;
        (self.right() - self.left() - LEAD - TAIL) / ticks
    }

    /// Where the time `at` is, or the edge of the plot that is nearest to it.
    pub(crate) fn x_inside(&self, at: u64) -> f64 {
        self.x(at).clamp(self.left(), self.right())
    }

    /// The line of `node`.
    pub(crate) fn y(&self, node: NodeId) -> f64 {
        self.top + self.row_height() * (f64::from(self.rows[node.index()]) + 0.5)
    }

    /// The upper and the lower end of the lines of `nodes` and all that is between them.
    pub(crate) fn span(&self, nodes: impl Iterator<Item = NodeId>) -> (f64, f64) {
        let half = self.row_height() / 2.0;
        nodes.map(|node| self.y(node)).fold((f64::INFINITY, 0.0), |(top, bottom), y| {
            (top.min(y - half), bottom.max(y + half))
        })
    }

    /// Where `node` is at the time `at`.
    pub(crate) fn place(&self, node: NodeId, at: u64) -> Point {
        (self.x(at), self.y(node))
    }

    /// How far `y` is from the line of the nearest node.
    pub(crate) fn off_line(&self, y: f64) -> f64 {
        let rows = (y - self.top) / self.row_height();
        (rows - rows.floor() - 0.5).abs() * self.row_height()
    }

    /// Where the line of `node` ends: where it crashes, or at the right edge.
    pub(crate) fn end_of(&self, node: NodeId, history: &History<'_>) -> f64 {
        history.crashes.get(&node).map_or(self.right(), |&at| self.x_inside(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(from: Option<u64>, to: Option<u64>) -> Result<Window, DrawError> {
        let options = DiagramOptions { from, to, max_events: 4 };
        Window::choose(&[10, 20, 20, 30, 40], &options)
    }

    #[test]
    fn a_window_is_cut_to_what_there_is() {
        assert_eq!(choose(Some(15), None), Ok(Window { from: 15, to: 40, moments: 3 }));
        assert_eq!(choose(Some(0), Some(20)), Ok(Window { from: 10, to: 20, moments: 2 }));
        assert_eq!(choose(None, None), Err(DrawError::TooManySteps { steps: 5, max: 4 }));
        assert_eq!(choose(Some(41), None), Err(DrawError::NoSteps));
        assert_eq!(choose(Some(30), Some(20)), Err(DrawError::NoSteps));
    }

    #[test]
    fn the_width_grows_with_the_moments_within_limits() {
        let width = |moments| Layout::new(Window { from: 0, to: 1, moments }, 3).width;
        assert_eq!([width(1), width(30), width(900)], [800.0, 1546.0, 6000.0]);
    }

    #[test]
    fn the_lines_of_a_cluster_are_together() {
        let window = Window { from: 0, to: 1, moments: 2 };
        let clusters = Clusters::build(&"2,0|1,3".parse().unwrap(), 4).unwrap();
        let layout = Layout::new(window, 4).grouped(clusters);
        let rows = [0, 2, 1, 3].map(|node| layout.y(NodeId(node)));
        assert!(rows.is_sorted(), "{rows:?}");
        assert_eq!(layout.span([1, 3].map(NodeId).into_iter()), (168.0, 336.0));
    }

    #[test]
    fn times_and_nodes_have_their_places() {
        let window = Window { from: 100, to: 200, moments: 2 };
        let layout = Layout { top: 50.0, ..Layout::new(window, 2) };
        assert_eq!(layout.place(NodeId(0), 100), (122.0, 92.0));
        assert_eq!(layout.place(NodeId(1), 200), (696.0, 176.0));
        assert_eq!(layout.x_inside(0), layout.left());
        assert_eq!(layout.off_line(92.0), 0.0);
        assert_eq!(layout.off_line(134.0), 42.0);
    }
}
