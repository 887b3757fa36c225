//! Bar charts: figures of things that are no numbers. On a logarithmic axis, where a bar would have no
//! beginning and its length would say nothing, they are points.

use crate::axis::{Axis, Extent, Scale};
use crate::lines::Look;
use crate::picture::Picture;
use crate::svg::{FAINT, INK, Svg, text_width};
use crate::ticks;

const PLOT_WIDTH: f64 = 600.0;
const TITLE: f64 = 52.0;
const LEGEND_LINE: f64 = 20.0;
const SYMBOL: f64 = 16.0;
const BAR: f64 = 15.0;
const STACKED_BAR: f64 = 24.0;
const GAP: f64 = 14.0;
const BELOW: f64 = 62.0;
const TEXT_SIZE: f64 = 13.0;
const SMALL: f64 = 11.5;

/// A bar chart: bars to the right, a group of them for each category.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BarChart {
    /// What it shows.
    pub title: String,
    /// What its figures rest on, in small letters below the title; or nothing.
    pub note: String,
    /// What the bars measure.
    pub label: String,
    /// How numbers become lengths. Bars on each other are always linear; on a logarithmic axis there are
    /// points instead of bars.
    pub scale: Scale,
    /// The names of the groups, from top to bottom.
    pub categories: Vec<String>,
    /// The bars of every group, in the order of the legend.
    pub bars: Vec<Bars>,
    /// Whether the bars of a group are parts of one.
    pub stacked: bool,
    /// For each group of parts from where to where their sum is uncertain, drawn as a thin line; or nothing.
    pub sums: Vec<Option<(f64, f64)>>,
}

/// The bars of one colour.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// The name in the legend.
    pub name: String,
    /// One value a category; nothing, where there is none.
    pub values: Vec<Option<f64>>,
    /// For each category from where to where its value is uncertain, drawn as a thin line; or nothing.
    pub intervals: Vec<Option<(f64, f64)>>,
    /// The number of its colour, as of a kind of message; else it has the colour of its place.
    pub colour: Option<usize>,
}

/// Draws a bar chart. A value without a place on the axis has a dash in place of its bar.
pub fn bar_chart(chart: &BarChart) -> Picture {
    let widest = chart.categories.iter().map(|name| text_width(name, TEXT_SIZE));
    let left = widest.fold(60.0, f64::max) + 24.0;
    let top = TITLE + chart.bars.len() as f64 * LEGEND_LINE + 12.0;
    let height = chart.group_height() * chart.categories.len().max(1) as f64;
    let longest = chart.bars.iter().map(|bars| text_width(&bars.name, TEXT_SIZE));
    let legend = longest.fold(0.0, f64::max) + SYMBOL + 8.0 + left;
    let width = (left + PLOT_WIDTH + 90.0).max(legend + 20.0);
    let width = width.max(left + text_width(&chart.title, 16.0) * 1.1 + 20.0);
    let mut svg = Svg::new();
    svg.text((left, 28.0), &chart.title, 16.0, r#"class="title" font-weight="bold""#);
    if !chart.note.is_empty() {
        svg.text((left, 44.0), &chart.note, SMALL, r#"class="note""#);
    }
    chart.draw_legend(&mut svg, left);
    let extent = chart.extent();
    chart.draw_axis(&mut svg, &extent, (left, top), height);
    for (index, name) in chart.categories.iter().enumerate() {
        let y = top + chart.group_height() * index as f64;
        let middle = y + chart.group_height() / 2.0 + 4.5;
        svg.text((left - 12.0, middle), name, TEXT_SIZE, r#"class="category" text-anchor="end""#);
        chart.draw_group(&mut svg, &extent, index, (left, y + GAP / 2.0));
    }
    svg.finish(width.ceil() as u32, (top + height + BELOW).ceil() as u32)
}

impl BarChart {
    fn group_height(&self) -> f64 {
        let bars = if self.stacked { STACKED_BAR } else { BAR * self.bars.len().max(1) as f64 };
        bars + GAP
    }

    fn scale(&self) -> Scale {
        if self.stacked { Scale::Linear } else { self.scale }
    }

    fn value(&self, bars: &Bars, category: usize) -> Option<f64> {
        let value = bars.values.get(category).copied().flatten()?;
        self.scale().has(value).then_some(value)
    }

    /// From where to where a value is uncertain, if that has any length. The lower end is missing where it has
    /// no place on the axis.
    fn interval(&self, bars: &Bars, category: usize) -> Option<(Option<f64>, f64)> {
        self.placed(bars.intervals.get(category).copied().flatten()?)
    }

    /// The same of the sum of a group.
    fn sum_interval(&self, category: usize) -> Option<(Option<f64>, f64)> {
        self.placed(self.sums.get(category).copied().flatten()?)
    }

    fn placed(&self, (least, most): (f64, f64)) -> Option<(Option<f64>, f64)> {
        // A bar begins at zero, and what it measures is not less.
        let least = if self.scale() == Scale::Linear { least.max(0.0) } else { least };
        let end = Some(least).filter(|&least| self.scale().has(least));
        (self.scale().has(most) && least < most).then_some((end, most))
    }

    fn look(&self, index: usize) -> Look {
        Look::new(index, self.bars[index].colour, true)
    }

    fn has_points(&self) -> bool {
        self.scale() == Scale::Logarithmic
    }

    /// Long enough for the longest bar and for every interval.
    fn extent(&self) -> Extent {
        let categories = 0..self.categories.len();
        let of =
            |category: usize| self.bars.iter().filter_map(move |bars| self.value(bars, category));
        let ends: Vec<f64> = if self.stacked {
            let most = |category| self.sum_interval(category).map(|(_, most)| most);
            let sum = |category| [Some(of(category).sum()), most(category)];
            categories.flat_map(sum).flatten().collect()
        } else {
            let intervals = categories.clone().flat_map(|category| {
                self.bars.iter().filter_map(move |bars| self.interval(bars, category))
            });
            let values = categories.flat_map(of);
            let intervals = intervals.flat_map(|(least, most)| [least, Some(most)]).flatten();
            values.chain(intervals).collect()
        };
        Axis { label: String::new(), scale: self.scale() }.fit_round(ends.into_iter())
    }

    fn draw_axis(&self, svg: &mut Svg, extent: &Extent, (left, top): (f64, f64), height: f64) {
        let bottom = top + height;
        for (value, text) in extent.ticks(PLOT_WIDTH, |text| text_width(text, TEXT_SIZE) + 14.0) {
            let at = left + PLOT_WIDTH * extent.share(value);
            svg.line((at, top), (at, bottom + 5.0), format_args!(r#"stroke="{FAINT}""#));
            let style = r#"class="tick" text-anchor="middle""#;
            svg.text((at, bottom + 21.0), &text, TEXT_SIZE, style);
        }
        let frame = format!(r#"fill="none" stroke="{INK}" stroke-width="1""#);
        svg.polyline(&[(left, top), (left, bottom), (left + PLOT_WIDTH, bottom)], frame);
        let middle = (left + PLOT_WIDTH / 2.0, bottom + 46.0);
        svg.text(middle, &self.label, TEXT_SIZE + 1.0, r#"class="axis" text-anchor="middle""#);
    }

    fn draw_group(&self, svg: &mut Svg, extent: &Extent, category: usize, (left, top): (f64, f64)) {
        if self.stacked {
            return self.draw_stack(svg, extent, category, (left, top));
        }
        for (index, bars) in self.bars.iter().enumerate() {
            let value = self.value(bars, category);
            let y = top + BAR * (index as f64 + 0.5);
            let x = |value: f64| left + PLOT_WIDTH * extent.share(value);
            let end = value.map_or(left, |value| x(value).max(left));
            if self.has_points() {
                let guide = format!(r#"class="guide" stroke="{FAINT}""#);
                svg.line((left, y), (left + PLOT_WIDTH, y), guide);
                if value.is_some() {
                    self.look(index).draw_marker(svg, (end, y));
                }
            } else {
                let style = format!(r#"class="bar" fill="{}""#, self.look(index).colour);
                svg.rect((left, y - BAR / 2.0 + 1.0), (end - left, BAR - 2.0), style);
            }
            let interval = self.interval(bars, category).filter(|_| value.is_some());
            let after = interval.map_or(end, |(least, most)| {
                draw_interval(svg, (left, least.map(x)), x(most), y);
                x(most).max(end)
            });
            let text = value.map_or("-".to_string(), written);
            let gap = if self.has_points() { 9.0 } else { 5.0 };
            svg.text((after + gap, y + 4.0), &text, 11.5, r#"class="value""#);
        }
    }

    fn draw_stack(&self, svg: &mut Svg, extent: &Extent, category: usize, (left, top): (f64, f64)) {
        let mut end = 0.0;
        for (index, bars) in self.bars.iter().enumerate() {
            let value = self.value(bars, category).unwrap_or(0.0);
            let (from, to) = (extent.share(end), extent.share(end + value));
            end += value;
            let (x, length) = (left + PLOT_WIDTH * from, PLOT_WIDTH * (to - from));
            let style = format!(r#"class="bar" fill="{}""#, self.look(index).colour);
            svg.rect((x, top), (length, STACKED_BAR), style);
        }
        let x = |value: f64| left + PLOT_WIDTH * extent.share(value);
        let middle = top + STACKED_BAR / 2.0;
        let after = self.sum_interval(category).map_or(x(end), |(least, most)| {
            draw_interval(svg, (left, least.map(x)), x(most), middle);
            x(most).max(x(end))
        });
        svg.text((after + 6.0, middle + 4.5), &written(end), TEXT_SIZE, r#"class="value""#);
    }

    fn draw_legend(&self, svg: &mut Svg, left: f64) {
        for (index, bars) in self.bars.iter().enumerate() {
            let y = TITLE + LEGEND_LINE * index as f64;
            let look = self.look(index);
            if self.has_points() {
                look.draw_marker(svg, (left + SYMBOL / 2.0, y + 3.0));
            } else {
                let style = format!(r#"fill="{}""#, look.colour);
                svg.rect((left, y - 3.0), (SYMBOL, 12.0), style);
            }
            let place = (left + SYMBOL + 8.0, y + 7.5);
            svg.text(place, &bars.name, TEXT_SIZE, r#"class="legend""#);
        }
    }
}

/// A thin line with short ends, from the edge of the axis where it has no lower end.
fn draw_interval(svg: &mut Svg, (edge, least): (f64, Option<f64>), most: f64, y: f64) {
    let style = format!(r#"class="interval" stroke="{INK}" stroke-width="1.2""#);
    svg.group(style, "", |svg| {
        svg.line((least.unwrap_or(edge), y), (most, y), "");
        for x in least.into_iter().chain([most]) {
            svg.line((x, y - 3.0), (x, y + 3.0), "");
        }
    });
}

/// Three digits are enough beside a bar.
fn written(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 || size == 0.0 => 2,
        size => (-size.log10()).ceil() as usize + 1,
    };
    ticks::number(format!("{value:.digits$}").parse().unwrap_or(value)) // It is a number.
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(stacked: bool) -> BarChart {
        let bars = |name: &str, values: [Option<f64>; 2]| Bars {
            name: name.to_owned(),
            values: values.to_vec(),
            ..Bars::default()
        };
        BarChart {
            title: "Waiting".to_owned(),
            note: "seeds 1 to 5".to_owned(),
            label: "hours".to_owned(),
            scale: Scale::Linear,
            categories: vec!["one".to_owned(), "two".to_owned()],
            bars: vec![bars("held", [Some(3.0), Some(1.0)]), bars("messages", [Some(1.0), None])],
            stacked,
            sums: Vec::new(),
        }
    }

    fn widths(picture: &Picture) -> Vec<f64> {
        let bars = picture.svg().lines().filter(|line| line.contains(r#"class="bar""#));
        let width = |line: &str| line.split(r#"width=""#).nth(1)?.split('"').next()?.parse().ok();
        bars.filter_map(width).collect()
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let picture = bar_chart(&sample(false));
        let widths = widths(&picture);
        assert_eq!(widths.len(), 4);
        assert_eq!((widths[0], widths[1], widths[3]), (3.0 * widths[1], widths[2], 0.0));
        for text in [">one<", ">two<", ">held<", ">messages<", ">hours<", ">-<"] {
            assert_eq!(picture.svg().matches(text).count(), 1, "{text}");
        }
    }

    #[test]
    fn stacked_bars_begin_where_the_last_one_ends_and_show_their_sum() {
        let picture = bar_chart(&sample(true));
        assert!(picture.svg().contains(">4</text>"), "the sum");
        let widths = widths(&picture);
        assert_eq!(widths[0], 3.0 * widths[1]);
        assert!(picture.height() < bar_chart(&sample(false)).height());
    }

    #[test]
    fn on_a_logarithmic_axis_there_are_points_and_no_bars() {
        let mut chart = sample(false);
        chart.scale = Scale::Logarithmic;
        chart.bars[0].values = vec![Some(1000.0), Some(0.0)];
        let picture = bar_chart(&chart);
        let count = |part: &str| picture.svg().matches(part).count();
        assert_eq!(count(r#"class="bar""#), 0);
        assert_eq!(count(r#"class="marker""#), 2 + 2, "and two in the legend");
        assert_eq!(count(">-<"), 2, "zero has no place, and one has no value");
    }

    #[test]
    fn what_is_uncertain_has_a_line_with_ends() {
        let mut chart = sample(false);
        chart.bars[0].intervals = vec![Some((2.5, 3.5)), Some((1.0, 1.0))];
        chart.bars[1].intervals = vec![None, Some((1.0, 2.0))];
        let picture = bar_chart(&chart);
        // One has no width, and one no value.
        assert_eq!(picture.svg().matches(r#"class="interval""#).count(), 1);
    }

    #[test]
    fn the_sum_of_a_stack_has_its_interval_and_room_for_it() {
        let mut chart = sample(true);
        let without = bar_chart(&chart);
        assert_eq!(without.svg().matches(r#"class="interval""#).count(), 0);
        chart.sums = vec![Some((3.5, 40.0)), Some((1.0, 1.0))];
        let with = bar_chart(&chart);
        assert_eq!(with.svg().matches(r#"class="interval""#).count(), 1);
        assert!(widths(&with)[0] < widths(&without)[0] / 5.0, "the axis reaches to its end");
    }

    #[test]
    fn an_interval_that_goes_down_to_zero_begins_at_the_edge_of_a_logarithmic_axis() {
        let mut chart = sample(false);
        chart.scale = Scale::Logarithmic;
        chart.bars[0].intervals = vec![Some((0.0, 9.0)), Some((0.5, 2.0))];
        let picture = bar_chart(&chart);
        assert_eq!(picture.svg().matches(r#"class="interval""#).count(), 2);
        assert!(!picture.svg().contains("NaN") && !picture.svg().contains("inf"));
    }

    #[test]
    fn values_are_written_with_three_digits() {
        let values = [0.0, 1234.6, 12.34, 1.005, 0.0123];
        assert_eq!(values.map(written), ["0", "1235", "12.3", "1", "0.012"]);
    }
}
