//! Bar charts: figures of things that are no numbers.

use crate::axis::{Axis, Extent, Scale};
use crate::chart::colour;
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

/// A bar chart: bars to the right, a group of them for each category.
#[derive(Clone, Debug, PartialEq)]
pub struct BarChart {
    /// What it shows.
    pub title: String,
    /// What the bars measure.
    pub label: String,
    /// How numbers become lengths. Bars on each other are always linear.
    pub scale: Scale,
    /// The names of the groups, from top to bottom.
    pub categories: Vec<String>,
    /// The bars of every group, in the order of the legend.
    pub bars: Vec<Bars>,
    /// Whether the bars of a group are parts of one.
    pub stacked: bool,
}

/// The bars of one colour.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// The name in the legend.
    pub name: String,
    /// One value a category; nothing, where there is none.
    pub values: Vec<Option<f64>>,
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
    svg.text((left, 32.0), &chart.title, 16.0, r#"class="title" font-weight="bold""#);
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

    /// Long enough for the longest bar; on a logarithmic axis every bar has some length.
    fn extent(&self) -> Extent {
        let categories = 0..self.categories.len();
        let of =
            |category: usize| self.bars.iter().filter_map(move |bars| self.value(bars, category));
        let ends: Vec<f64> = if self.stacked {
            categories.map(|category| of(category).sum()).collect()
        } else {
            categories.flat_map(of).collect()
        };
        let axis = Axis { label: String::new(), scale: self.scale() };
        let room = if axis.scale == Scale::Logarithmic { 0.8 } else { 1.0 };
        axis.fit_round(ends.iter().copied().chain(ends.iter().map(|end| end * room)))
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
        let mut end = 0.0;
        for (index, bars) in self.bars.iter().enumerate() {
            let value = self.value(bars, category);
            let style = format!(r#"class="bar" fill="{}""#, colour(index));
            if self.stacked {
                let (from, to) = (extent.share(end), extent.share(end + value.unwrap_or(0.0)));
                end += value.unwrap_or(0.0);
                let (x, length) = (left + PLOT_WIDTH * from, PLOT_WIDTH * (to - from));
                svg.rect((x, top), (length, STACKED_BAR), style);
                continue;
            }
            let y = top + BAR * index as f64;
            let length = value.map_or(0.0, |value| PLOT_WIDTH * extent.share(value).max(0.0));
            svg.rect((left, y + 1.0), (length, BAR - 2.0), style);
            let text = value.map_or("-".to_string(), written);
            svg.text((left + length + 5.0, y + 11.5), &text, 11.5, r#"class="value""#);
        }
        if self.stacked {
            let at = (left + PLOT_WIDTH * extent.share(end) + 6.0, top + STACKED_BAR / 2.0 + 4.5);
            svg.text(at, &written(end), TEXT_SIZE, r#"class="value""#);
        }
    }

    fn draw_legend(&self, svg: &mut Svg, left: f64) {
        for (index, bars) in self.bars.iter().enumerate() {
            let y = TITLE + LEGEND_LINE * index as f64;
            let style = format!(r#"fill="{}""#, colour(index));
            svg.rect((left, y - 3.0), (SYMBOL, 12.0), style);
            let place = (left + SYMBOL + 8.0, y + 7.5);
            svg.text(place, &bars.name, TEXT_SIZE, r#"class="legend""#);
        }
    }
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
        };
        BarChart {
            title: "Waiting".to_owned(),
            label: "hours".to_owned(),
            scale: Scale::Linear,
            categories: vec!["one".to_owned(), "two".to_owned()],
            bars: vec![bars("held", [Some(3.0), Some(1.0)]), bars("messages", [Some(1.0), None])],
            stacked,
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
    fn a_logarithmic_bar_of_nothing_has_a_dash() {
        let mut chart = sample(false);
        chart.scale = Scale::Logarithmic;
        chart.bars[0].values = vec![Some(1000.0), Some(0.0)];
        let picture = bar_chart(&chart);
        assert_eq!(picture.svg().matches(">-<").count(), 2);
        assert!(widths(&picture)[0] > 2.0 * widths(&picture)[1]);
    }

    #[test]
    fn values_are_written_with_three_digits() {
        let values = [0.0, 1234.6, 12.34, 1.005, 0.0123];
        assert_eq!(values.map(written), ["0", "1235", "12.3", "1", "0.012"]);
    }
}
