//! Line charts.

use crate::axis::{Axis, Extent};
use crate::lines::{Lines, Look};
use crate::picture::Picture;
use crate::svg::{FAINT, HALO, INK, Point, Svg, text_width};

const PLOT_WIDTH: f64 = 640.0;
const MIN_PLOT_HEIGHT: f64 = 340.0;
const LEFT: f64 = 92.0;
const TOP: f64 = 52.0;
const BELOW: f64 = 70.0;
const LEGEND_GAP: f64 = 24.0;
const LEGEND_LINE: f64 = 22.0;
const SYMBOL: f64 = 38.0;
const TEXT_SIZE: f64 = 13.0;
const SMALL: f64 = 11.5;
/// What is written below the legend where lines coincide.
const STRIPED: &str = "striped: the same values";
/// And where values of zero or less are on no logarithmic axis.
const LEFT_OUT: &str = "not shown: values of 0";

/// A line chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What its figures rest on, in small letters below the title; or nothing.
    pub note: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines, in the order of the legend.
    pub series: Vec<Series>,
    /// Numbers to compare them with.
    pub thresholds: Vec<Threshold>,
}

/// A line of a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points, from left to right. Those that have no place are left out: numbers that are not
    /// finite (or beyond 1e300), and numbers of zero or less on a logarithmic axis.
    pub points: Vec<(f64, f64)>,
    /// For each point from where to where its value is uncertain, drawn as an upright bar; or nothing. One
    /// that begins at zero or less begins at the lower edge of a logarithmic axis.
    pub intervals: Vec<(f64, f64)>,
    /// Whether it was computed from a formula: such a line has no markers, because nothing was measured.
    pub is_formula: bool,
    /// The number of its colour, as of a kind of message; else it has the colour of its place.
    pub colour: Option<usize>,
}

/// A number that a text speaks of, as a line across the chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// Where it is.
    pub value: f64,
    /// Whether it is a number of the horizontal axis; its line is upright then.
    pub is_of_x: bool,
    /// What it is.
    pub label: String,
}

/// Draws charts below each other, as wide as each other.
///
/// Series at the same place of their charts look alike; give the charts of one column the same
/// series in the same order.
pub fn chart_column(charts: &[Chart]) -> Picture {
    let names = charts.iter().flat_map(|chart| &chart.series).map(|series| &series.name);
    let longest = names.map(|name| text_width(name, TEXT_SIZE)).fold(0.0, f64::max);
    let remark = text_width(STRIPED, SMALL).max(text_width(LEFT_OUT, SMALL));
    let longest = longest.max(remark - SYMBOL);
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
        MIN_PLOT_HEIGHT.max((self.series.len() + 2) as f64 * LEGEND_LINE)
    }

    /// The points of a series that have a place.
    fn points(&self, series: &Series) -> Vec<(f64, f64)> {
        let has_place = |&(x, y): &(f64, f64)| self.x.scale.has(x) && self.y.scale.has(y);
        series.points.iter().copied().filter(has_place).collect()
    }

    /// The bars of a series, each with where it stands. The lower end is missing where it has no place.
    fn bars(&self, series: &Series) -> Vec<(f64, Option<f64>, f64)> {
        let (x_scale, y_scale) = (self.x.scale, self.y.scale);
        let pairs = series.points.iter().zip(&series.intervals);
        let is_shown = |&(&(x, value), &(least, most)): &(&(f64, f64), &(f64, f64))| {
            least < most && x_scale.has(x) && y_scale.has(value) && y_scale.has(most)
        };
        let bar = |(&(x, _), &(least, most)): (&(f64, f64), &(f64, f64))| {
            (x, Some(least).filter(|&least| y_scale.has(least)), most)
        };
        pairs.filter(is_shown).map(bar).collect()
    }

    /// Whether a value of zero or less is left out.
    fn leaves_out(&self) -> bool {
        let is_left_out = |&(x, y): &(f64, f64)| {
            self.x.scale.has(x) && y.is_finite() && y <= 0.0 && !self.y.scale.has(y)
        };
        self.series.iter().flat_map(|series| &series.points).any(is_left_out)
    }

    fn draw(&self, svg: &mut Svg) {
        let points: Vec<Vec<(f64, f64)>> =
            self.series.iter().map(|series| self.points(series)).collect();
        let all = || points.iter().flatten().copied();
        let x = self.x.fit_exactly(all().map(|(x, _)| x).chain(self.marked(true)));
        let bars = self.series.iter().flat_map(|series| self.bars(series));
        let ends = bars.flat_map(|(_, least, most)| [least, Some(most)]).flatten();
        let y = self.y.fit_round(all().map(|(_, y)| y).chain(ends).chain(self.marked(false)));
        let height = self.plot_height();
        let place =
            |(px, py)| (LEFT + PLOT_WIDTH * x.share(px), TOP + height * (1.0 - y.share(py)));

        svg.text((LEFT, 28.0), &self.title, 16.0, r#"class="title" font-weight="bold""#);
        if !self.note.is_empty() {
            svg.text((LEFT, 44.0), &self.note, SMALL, r#"class="note""#);
        }
        self.draw_axes(svg, &x, &y);
        let somewhere = (x.begin(), y.begin());
        self.draw_thresholds(svg, place, somewhere);
        let looks = (0..).zip(&self.series).map(|(place, series)| series.look(place));
        let places = points.iter().map(|points| points.iter().map(|&point| place(point)).collect());
        let lines = Lines::new(looks.zip(places).collect());
        // The first of the legend is drawn last, on top of those that it crosses.
        for (index, series) in self.series.iter().enumerate().rev() {
            svg.group(r#"class="series""#, &series.name, |svg| {
                self.draw_series(svg, index, &points[index], &lines, place);
            });
        }
        self.label_thresholds(svg, place, somewhere);
        if all().next().is_none() {
            let middle = (LEFT + PLOT_WIDTH / 2.0, TOP + height / 2.0);
            svg.text(middle, "no data", TEXT_SIZE, r#"text-anchor="middle""#);
        }
        self.draw_legend(svg, lines.coincide());
    }

    fn draw_series(
        &self,
        svg: &mut Svg,
        index: usize,
        points: &[(f64, f64)],
        lines: &Lines,
        place: impl Fn((f64, f64)) -> Point,
    ) {
        let series = &self.series[index];
        let look = series.look(index);
        lines.draw(svg, index);
        if !look.has_markers {
            return;
        }
        let bars = self.bars(series);
        let bottom = TOP + self.plot_height();
        for (at, &(x, _)) in points.iter().enumerate() {
            let marker = lines.marker(index, at);
            for &(_, least, most) in bars.iter().filter(|bar| bar.0 == x) {
                let style = format!(r#"class="interval" stroke="{}""#, look.colour);
                let end = |value: f64| (marker.0, place((x, value)).1);
                svg.line(least.map_or((marker.0, bottom), end), end(most), style);
            }
            look.draw_marker(svg, marker);
        }
    }

    /// The thresholds that have a place, of one axis.
    fn marked(&self, is_of_x: bool) -> impl Iterator<Item = f64> {
        let axis = if is_of_x { &self.x } else { &self.y };
        let of_axis = self.thresholds.iter().filter(move |one| one.is_of_x == is_of_x);
        of_axis.map(|one| one.value).filter(move |&value| axis.scale.has(value))
    }

    fn draw_thresholds(&self, svg: &mut Svg, place: impl Fn((f64, f64)) -> Point, other: Point) {
        let (right, bottom) = (LEFT + PLOT_WIDTH, TOP + self.plot_height());
        let line = format!(r#"class="threshold" stroke="{INK}" stroke-dasharray="7 4""#);
        for (one, (x, y)) in self.placed_thresholds(place, other) {
            match one.is_of_x {
                true => svg.line((x, TOP), (x, bottom), &line),
                false => svg.line((LEFT, y), (right, y), &line),
            }
        }
    }

    /// What the thresholds are, on top of all lines.
    fn label_thresholds(&self, svg: &mut Svg, place: impl Fn((f64, f64)) -> Point, other: Point) {
        let right = LEFT + PLOT_WIDTH;
        for (one, (x, y)) in self.placed_thresholds(place, other) {
            // Towards the side where there is room.
            let is_left = one.is_of_x && x + text_width(&one.label, SMALL) + 6.0 > right;
            let (at, anchor) = match (one.is_of_x, is_left) {
                (true, true) => ((x - 5.0, TOP + 12.0), "end"),
                (true, false) => ((x + 5.0, TOP + 12.0), "start"),
                (false, _) => ((right - 5.0, y - 5.0), "end"),
            };
            let style = format!(r#"class="threshold-label" {HALO} text-anchor="{anchor}""#);
            svg.text(at, &one.label, SMALL, style);
        }
    }

    /// The thresholds that have a place, and where they are. `other` is any point of the chart.
    fn placed_thresholds(
        &self,
        place: impl Fn((f64, f64)) -> Point,
        other: Point,
    ) -> Vec<(&Threshold, Point)> {
        let axis = |one: &Threshold| if one.is_of_x { &self.x } else { &self.y };
        let shown = self.thresholds.iter().filter(|one| axis(one).scale.has(one.value));
        let at = |one: &Threshold| match one.is_of_x {
            true => place((one.value, other.1)),
            false => place((other.0, one.value)),
        };
        shown.map(|one| (one, at(one))).collect()
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

    fn draw_legend(&self, svg: &mut Svg, has_stripes: bool) {
        let x = LEFT + PLOT_WIDTH + LEGEND_GAP;
        let line = |index: usize| TOP + LEGEND_LINE * (index as f64 + 0.5);
        for (index, series) in self.series.iter().enumerate() {
            let (y, look) = (line(index), series.look(index));
            svg.line((x, y), (x + SYMBOL, y), look.style());
            if look.has_markers {
                look.draw_marker(svg, (x + SYMBOL / 2.0, y));
            }
            let style = r#"class="legend""#;
            svg.text((x + SYMBOL + 8.0, y + 4.5), &series.name, TEXT_SIZE, style);
        }
        let remarks =
            [(has_stripes, STRIPED, "striped"), (self.leaves_out(), LEFT_OUT, "left-out")];
        let remarks = remarks.into_iter().filter(|(is_true, ..)| *is_true);
        for (place, (_, text, class)) in remarks.enumerate() {
            let y = line(self.series.len() + place) + 4.5;
            svg.text((x, y), text, SMALL, format_args!(r#"class="{class}""#));
        }
    }
}

impl Series {
    fn look(&self, place: usize) -> Look {
        Look::new(place, self.colour, !self.is_formula)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(series: usize) -> Chart {
        let line = |index: usize| Series {
            name: format!("line <{index}>"),
            points: [4.0, 16.0, 64.0, 1024.0].map(|n| (n, n * (index + 1) as f64)).to_vec(),
            ..Series::default()
        };
        Chart {
            title: "Messages & entries".to_owned(),
            note: "seeds 1 to 5".to_owned(),
            x: Axis::logarithmic("N"),
            y: Axis::logarithmic("messages per entry"),
            series: (0..series).map(line).collect(),
            ..Chart::default()
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
        assert_eq!(count(&picture, ">seeds 1 to 5</text>"), 1);
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
        // One has no width, and one goes on below what a logarithmic axis has.
        assert_eq!(count(&picture, r#"class="interval""#), 3);
        let bottom = TOP + MIN_PLOT_HEIGHT;
        let lines = picture.svg().lines().filter(|line| line.contains(r#"class="interval""#));
        assert_eq!(lines.filter(|line| line.contains(&format!("y1=\"{bottom}\""))).count(), 1);
        assert_eq!(count(&picture, r#"class="marker""#), 4 + 1);
        assert_eq!(count(&picture, r#"class="series""#), 2);
    }

    #[test]
    fn lines_that_coincide_are_striped_and_the_legend_says_so() {
        let apart = chart_column(&[sample(2)]);
        assert_eq!(count(&apart, STRIPED) + count(&apart, "stroke-dashoffset"), 0);
        let mut chart = sample(2);
        chart.series[1].points = chart.series[0].points.clone();
        let same = chart_column(&[chart]);
        assert_eq!((count(&same, STRIPED), count(&same, "stroke-dashoffset")), (1, 2));
    }

    #[test]
    fn thresholds_have_a_line_a_name_and_room() {
        let mut chart = sample(1);
        let threshold = |value, is_of_x| Threshold { value, is_of_x, label: format!("at {value}") };
        chart.thresholds =
            vec![threshold(1e6, false), threshold(100.0, true), threshold(0.0, true)];
        let picture = chart_column(&[chart]);
        assert_eq!(count(&picture, r#"class="threshold""#), 2, "zero has no place");
        assert_eq!(count(&picture, ">at 1000000</text>") + count(&picture, ">at 100</text>"), 2);
        assert_eq!(count(&picture, ">1000000</text>"), 1, "the axis reaches to it");
    }

    #[test]
    fn a_series_may_have_the_colour_of_its_kind_of_message() {
        let mut chart = sample(1);
        chart.series[0].colour = Some(3);
        assert!(chart_column(&[chart]).svg().contains(crate::svg::PALETTE[3]));
    }

    #[test]
    fn points_without_a_place_are_left_out() {
        let mut chart = sample(1);
        chart.series[0].points.extend([(0.0, 5.0), (5.0, 0.0), (-1.0, 1.0), (9.0, f64::NAN)]);
        let picture = chart_column(&[chart.clone()]);
        assert_eq!(count(&picture, r#"class="marker""#), 4 + 1, "and one in the legend");
        assert_eq!(count(&picture, LEFT_OUT), 1, "which is said of zeros");
        chart.x.scale = crate::Scale::Linear;
        let picture = chart_column(&[chart]);
        assert_eq!(count(&picture, r#"class="marker""#), 4 + 2 + 1);
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
