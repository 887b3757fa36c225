//! Line charts.

use crate::axis::{Axis, Extent};
use crate::picture::Picture;
use crate::svg::{FAINT, INK, PALETTE, Point, Svg, text_width};

const PLOT_WIDTH: f64 = 640.0;
const MIN_PLOT_HEIGHT: f64 = 340.0;
const LEFT: f64 = 92.0;
const TOP: f64 = 52.0;
const BELOW: f64 = 70.0;
const LEGEND_GAP: f64 = 24.0;
const LEGEND_LINE: f64 = 22.0;
const SYMBOL: f64 = 38.0;
const TEXT_SIZE: f64 = 13.0;
/// With the colours this makes many more looks than anybody can tell apart; the first sixteen
/// differ in more than one way.
const DASHES: [&str; 3] = ["", "8 4", "2 4"];
const MARKERS: [Marker; 5] =
    [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Cross];

/// A line chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines, in the order of the legend.
    pub series: Vec<Series>,
}

/// A line of a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points, from left to right. Those that have no place are left out: numbers that are not
    /// finite (or beyond 1e300), and numbers of zero or less on a logarithmic axis.
    pub points: Vec<(f64, f64)>,
    /// For each point from where to where its value is uncertain, drawn as an upright bar; or nothing.
    pub intervals: Vec<(f64, f64)>,
    /// Whether it was computed from a formula: such a line has no markers, because nothing was measured.
    pub is_formula: bool,
}

#[derive(Clone, Copy)]
enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
}

/// Draws charts below each other, as wide as each other.
///
/// Series at the same place of their charts look alike; give the charts of one column the same
/// series in the same order.
pub fn chart_column(charts: &[Chart]) -> Picture {
    let names = charts.iter().flat_map(|chart| &chart.series).map(|series| &series.name);
    let longest = names.map(|name| text_width(name, TEXT_SIZE)).fold(0.0, f64::max);
    let width = LEFT + PLOT_WIDTH + LEGEND_GAP + SYMBOL + 8.0 + longest + 20.0;
    let mut svg = Svg::new();
    let mut height = 0.0;
    for chart in charts {
        svg.moved_down(height, |svg| chart.draw(svg));
        height += TOP + chart.plot_height() + BELOW;
    }
    svg.finish(width.ceil() as u32, height.max(1.0).ceil() as u32)
}

impl Chart {
    /// High enough for the legend.
    fn plot_height(&self) -> f64 {
        MIN_PLOT_HEIGHT.max(self.series.len() as f64 * LEGEND_LINE)
    }

    /// The points of a series that have a place.
    fn points(&self, series: &Series) -> Vec<(f64, f64)> {
        let has_place = |&(x, y): &(f64, f64)| self.x.scale.has(x) && self.y.scale.has(y);
        series.points.iter().copied().filter(has_place).collect()
    }

    /// The bars of a series that have a place, each with where it stands.
    fn bars(&self, series: &Series) -> Vec<(f64, f64, f64)> {
        let bar = |(&(x, _), &(least, most)): (&(f64, f64), &(f64, f64))| (x, least, most);
        let has_place = |&(x, least, most): &(f64, f64, f64)| {
            least < most && self.x.scale.has(x) && self.y.scale.has(least) && self.y.scale.has(most)
        };
        series.points.iter().zip(&series.intervals).map(bar).filter(has_place).collect()
    }

    fn draw(&self, svg: &mut Svg) {
        let points: Vec<Vec<(f64, f64)>> =
            self.series.iter().map(|series| self.points(series)).collect();
        let all = || points.iter().flatten().copied();
        let x = self.x.fit_exactly(all().map(|(x, _)| x));
        let bars = self.series.iter().flat_map(|series| self.bars(series));
        let ends = bars.flat_map(|(_, least, most)| [least, most]);
        let y = self.y.fit_round(all().map(|(_, y)| y).chain(ends));
        let height = self.plot_height();
        let place =
            |(px, py)| (LEFT + PLOT_WIDTH * x.share(px), TOP + height * (1.0 - y.share(py)));

        svg.text((LEFT, 32.0), &self.title, 16.0, r#"class="title" font-weight="bold""#);
        self.draw_axes(svg, &x, &y);
        // The first of the legend is drawn last, on top of those that it coincides with.
        for (index, points) in points.iter().enumerate().rev() {
            let places: Vec<Point> = points.iter().map(|&point| place(point)).collect();
            let style = format!(r#"class="series" fill="none" {}"#, line_style(index));
            svg.polyline(&places, style);
            if self.series[index].is_formula {
                continue;
            }
            for (x, least, most) in self.bars(&self.series[index]) {
                let style = format!(r#"class="interval" stroke="{}""#, colour(index));
                svg.line(place((x, least)), place((x, most)), style);
            }
            for &place in &places {
                draw_marker(svg, index, place);
            }
        }
        if all().next().is_none() {
            let middle = (LEFT + PLOT_WIDTH / 2.0, TOP + height / 2.0);
            svg.text(middle, "no data", TEXT_SIZE, r#"text-anchor="middle""#);
        }
        self.draw_legend(svg);
    }

    fn draw_axes(&self, svg: &mut Svg, x: &Extent, y: &Extent) {
        let (right, bottom) = (LEFT + PLOT_WIDTH, TOP + self.plot_height());
        let faint = format!(r#"stroke="{FAINT}""#);
        for (value, text) in x.ticks(PLOT_WIDTH, |text| text_width(text, TEXT_SIZE) + 14.0) {
            let at = LEFT + PLOT_WIDTH * x.share(value);
            svg.line((at, TOP), (at, bottom + 5.0), &faint);
            let style = r#"class="tick" text-anchor="middle""#;
            svg.text((at, bottom + 21.0), &text, TEXT_SIZE, style);
        }
        for (value, text) in y.ticks(self.plot_height(), |_| TEXT_SIZE * 1.8) {
            let at = bottom - self.plot_height() * y.share(value);
            svg.line((LEFT - 5.0, at), (right, at), &faint);
            let style = r#"class="tick" text-anchor="end""#;
            svg.text((LEFT - 9.0, at + 4.5), &text, TEXT_SIZE, style);
        }
        let frame = format!(r#"fill="none" stroke="{INK}" stroke-width="1""#);
        svg.polyline(&[(LEFT, TOP), (LEFT, bottom), (right, bottom)], frame);
        let middle = ((LEFT + right) / 2.0, (TOP + bottom) / 2.0);
        let style = r#"class="axis" text-anchor="middle""#;
        svg.text((middle.0, bottom + 46.0), &self.x.label, TEXT_SIZE + 1.0, style);
        svg.turned_text((20.0, middle.1), -90.0, &self.y.label, TEXT_SIZE + 1.0, r#"class="axis""#);
    }

    fn draw_legend(&self, svg: &mut Svg) {
        let x = LEFT + PLOT_WIDTH + LEGEND_GAP;
        for (index, series) in self.series.iter().enumerate() {
            let y = TOP + LEGEND_LINE * (index as f64 + 0.5);
            svg.line((x, y), (x + SYMBOL, y), line_style(index));
            if !series.is_formula {
                draw_marker(svg, index, (x + SYMBOL / 2.0, y));
            }
            let style = r#"class="legend""#;
            svg.text((x + SYMBOL + 8.0, y + 4.5), &series.name, TEXT_SIZE, style);
        }
    }
}

pub(crate) fn colour(index: usize) -> &'static str {
    PALETTE[index % PALETTE.len()]
}

fn line_style(index: usize) -> String {
    let dashes = DASHES[(index + 2 * (index / PALETTE.len())) % DASHES.len()];
    format!(r#"stroke="{}" stroke-width="2" stroke-dasharray="{dashes}""#, colour(index))
        .replace(r#" stroke-dasharray="""#, "")
}

fn draw_marker(svg: &mut Svg, index: usize, at: Point) {
    let (x, y) = at;
    let fill = format!(r##"class="marker" fill="{}" stroke="#ffffff""##, colour(index));
    match MARKERS[index % MARKERS.len()] {
        Marker::Circle => svg.circle(at, 4.5, fill),
        Marker::Square => svg.rect((x - 4.0, y - 4.0), (8.0, 8.0), fill),
        Marker::Triangle => {
            svg.polygon(&[(x, y - 5.5), (x + 5.0, y + 4.0), (x - 5.0, y + 4.0)], fill);
        }
        Marker::Diamond => {
            let (r, at) = (5.8, |dx: f64, dy: f64| (x + dx, y + dy));
            svg.polygon(&[at(0.0, -r), at(r, 0.0), at(0.0, r), at(-r, 0.0)], fill);
        }
        Marker::Cross => {
            let stroke = format!(r#"class="marker" stroke="{}" stroke-width="2.4""#, colour(index));
            svg.cross(at, 4.2, stroke);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn sample(series: usize) -> Chart {
        let line = |index: usize| Series {
            name: format!("line <{index}>"),
            points: [4.0, 16.0, 64.0, 1024.0].map(|n| (n, n * (index + 1) as f64)).to_vec(),
            ..Series::default()
        };
        Chart {
            title: "Messages & entries".to_owned(),
            x: Axis::logarithmic("N"),
            y: Axis::logarithmic("messages per entry"),
            series: (0..series).map(line).collect(),
        }
    }

    fn count(picture: &Picture, part: &str) -> usize {
        picture.svg().matches(part).count()
    }

    #[test]
    fn every_series_has_a_line_markers_and_a_name() {
        let picture = chart_column(&[sample(3)]);
        assert_eq!(count(&picture, r#"class="series""#), 3);
        assert_eq!(count(&picture, r#"class="marker""#), 3 * 4 + 3);
        assert_eq!(count(&picture, ">line &lt;1&gt;</text>"), 1);
        assert_eq!(count(&picture, ">Messages &amp; entries</text>"), 1);
        for n in [4, 16, 64, 1024] {
            assert_eq!(count(&picture, &format!(">{n}</text>")), 1, "tick {n}");
        }
    }

    #[test]
    fn what_is_uncertain_has_bars_and_what_is_computed_has_no_markers() {
        let mut chart = sample(2);
        chart.series[0].intervals = vec![(3.0, 5.0), (16.0, 16.0), (-1.0, 90.0), (900.0, 1200.0)];
        chart.series[1].is_formula = true;
        let picture = chart_column(&[chart]);
        // One has no width, and one no place on a logarithmic axis.
        assert_eq!(count(&picture, r#"class="interval""#), 2);
        assert_eq!(count(&picture, r#"class="marker""#), 4 + 1);
        assert_eq!(count(&picture, r#"class="series""#), 2);
    }

    #[test]
    fn sixteen_series_all_look_different() {
        let look = |index: usize| (line_style(index), index % MARKERS.len());
        assert_eq!((0..16).map(look).collect::<BTreeSet<_>>().len(), 16);
    }

    #[test]
    fn points_without_a_place_are_left_out() {
        let mut chart = sample(1);
        chart.series[0].points.extend([(0.0, 5.0), (5.0, 0.0), (-1.0, 1.0), (9.0, f64::NAN)]);
        assert_eq!(chart_column(&[chart.clone()]), chart_column(&[sample(1)]));
        chart.x.scale = crate::Scale::Linear;
        let picture = chart_column(&[chart]);
        assert_eq!(count(&picture, r#"class="marker""#), 4 + 2 + 1, "and one in the legend");
    }

    #[test]
    fn charts_are_stacked_and_as_wide_as_the_longest_name_needs() {
        let (one, two) = (chart_column(&[sample(2)]), chart_column(&[sample(2), sample(2)]));
        assert_eq!(two.width(), one.width());
        assert_eq!(two.height(), 2 * one.height());
        assert_eq!(count(&two, r#"class="title""#), 2);
        assert!(chart_column(&[sample(40)]).height() > one.height(), "the legend has room");
    }

    #[test]
    fn a_chart_without_data_says_so() {
        let picture = chart_column(&[sample(0)]);
        assert_eq!(count(&picture, ">no data</text>"), 1);
        assert_eq!(count(&picture, "NaN"), 0);
    }

    #[test]
    fn a_chart_becomes_a_png_of_its_size() {
        let picture = chart_column(&[sample(2)]);
        let png = picture.png(1.0).unwrap();
        let size = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
        assert_eq!((size(16), size(20)), (picture.width(), picture.height()));
        assert!(png.len() > 8_000, "{} bytes cannot hold this picture", png.len());
    }
}
