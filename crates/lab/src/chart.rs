//! The charts of an experiment: which figures over what, and the picture of it.

use catraca_draw::{
    Axis, BarChart, Bars, Chart, Picture, Scale, Series, Threshold, bar_chart, chart_column,
};
use catraca_sim::{Estimate, TICKS_PER_UNIT, Time};
use catraca_trace::kind_number;

use crate::error::{LabError, one_of, wrong};
use crate::experiment::{Experiment, Run};
use crate::fields::Fields;
use crate::figure::{self, Figure};
use crate::formula::Formula;
use crate::results::Results;
use crate::timeline::{Counted, Timeline};
use crate::vary::{Dimension, Selection, find};

/// A chart, before there are figures for it.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartPlan {
    /// The last part of its file's name.
    pub name: String,
    /// What it shows.
    pub title: String,
    selection: Selection,
    /// The words on the vertical axis; else those of the first figure.
    label: Option<String>,
    /// The words on the horizontal axis; else the name of what is varied, or those of the figure.
    x_label: Option<String>,
    y_scale: Scale,
    /// The dimensions that name its lines.
    series: Vec<usize>,
    /// Numbers that the text speaks of.
    thresholds: Vec<Threshold>,
    shows: Shows,
}

#[derive(Clone, Debug, PartialEq)]
enum Shows {
    /// A line for each series and each figure, over another figure or a varied number.
    Lines { x: X, x_scale: Scale, y: Vec<Figure>, formulas: Vec<Formula> },
    /// A bar for each series and each figure, for each value of a dimension that is no number.
    Bars { x: usize, y: Vec<Figure>, stacked: bool },
    /// A line for each run and each thing that is counted, over simulated time.
    OverTime { interval: Time, y: Vec<Counted> },
}

#[derive(Clone, Debug, PartialEq)]
enum X {
    Figure(Figure),
    /// The value in this dimension, a number.
    Dimension(usize),
}

const SCALES: [(&str, Scale); 2] = [("linear", Scale::Linear), ("log", Scale::Logarithmic)];

impl ChartPlan {
    pub(crate) fn read(
        place: &str,
        table: &toml::Table,
        dimensions: &[Dimension],
        runs: &[Run],
    ) -> Result<Self, LabError> {
        let mut fields = Fields::new(place, table);
        let (name, title) = (fields.needed("name")?, fields.needed("title")?);
        if name.is_empty() || !name.chars().all(|one| one.is_ascii_alphanumeric() || one == '-') {
            let what = "becomes part of a file's name; use letters, digits and '-' only";
            return Err(wrong(fields.place("name"), what));
        }
        let selection =
            Selection::read(&fields.place("where"), fields.table("where")?, dimensions)?;
        let y_scale = fields.choice("y_scale", &SCALES)?.unwrap_or(Scale::Linear);
        let (label, x_label) = (fields.text("label")?, fields.text("x_label")?);
        let y = fields.texts("y")?;
        if y.is_empty() {
            return Err(wrong(fields.place("y"), "is missing; name one figure, or several"));
        }
        let series = fields.texts("series")?;
        let is_series_said = fields.value("series").is_some();
        let thresholds = thresholds(&mut fields)?;
        let shows = match fields.number("over_time")? {
            Some(interval) => over_time(&fields, interval, &y, runs)?,
            None => over_figures(&mut fields, &y, dimensions, runs)?,
        };
        let series = if is_series_said {
            let at = |name: &String| find(&fields.place("series"), name, dimensions);
            series.iter().map(at).collect::<Result<_, _>>()?
        } else {
            let is_free = |&at: &usize| !shows.is_over(at) && !selection.fixes(at);
            (0..dimensions.len()).filter(is_free).collect()
        };
        let is_of_bars = matches!(shows, Shows::Bars { .. });
        if is_of_bars && !thresholds.is_empty() {
            let what = "belongs to charts of lines; leave it out of a chart of bars";
            return Err(wrong(fields.place("threshold"), what));
        }
        if is_of_bars && x_label.is_some() {
            let what = "belongs to charts of lines; what bars are of is named at each of them";
            return Err(wrong(fields.place("x_label"), what));
        }
        if matches!(shows, Shows::Bars { stacked: true, .. }) && y_scale == Scale::Logarithmic {
            let what = "a bar on another one has no beginning on a logarithmic axis; leave it out";
            return Err(wrong(fields.place("y_scale"), what));
        }
        fields.finish()?;
        let plan = ChartPlan {
            name,
            title,
            selection,
            label,
            x_label,
            y_scale,
            series,
            thresholds,
            shows,
        };
        Ok(plan)
    }

    /// What is to be counted while a run goes on.
    pub(crate) fn timelines(&self) -> Vec<Timeline> {
        match &self.shows {
            Shows::OverTime { interval, y } => {
                y.iter().map(|counted| Timeline::new(*interval, counted.clone())).collect()
            }
            _ => Vec::new(),
        }
    }

    pub(crate) fn draw(&self, experiment: &Experiment, results: &Results) -> Picture {
        match &self.shows {
            Shows::Bars { x, y, stacked } => {
                bar_chart(&self.bars(*x, y, *stacked, experiment, results))
            }
            Shows::Lines { x, x_scale, y, formulas } => {
                let mut series = self.lines(x, y, experiment, results);
                series.extend(self.reference(x, formulas, experiment, results));
                let label = self.x_label.clone().unwrap_or_else(|| x.label(experiment));
                self.chart(Axis { label, scale: *x_scale }, series, experiment)
            }
            Shows::OverTime { y, .. } => {
                let label = format!("time {}", experiment.time_unit());
                let label = self.x_label.clone().unwrap_or(label);
                self.chart(Axis::linear(label), self.counts(y, experiment, results), experiment)
            }
        }
    }

    fn chart(&self, x: Axis, series: Vec<Series>, experiment: &Experiment) -> Picture {
        let y = Axis { label: self.label(experiment), scale: self.y_scale };
        let (title, thresholds) = (self.title.clone(), self.thresholds.clone());
        let note = experiment.note_on_seeds();
        chart_column(&[Chart { title, note, x, y, series, thresholds }])
    }

    /// The words on the axis of what is measured, with its unit.
    fn label(&self, experiment: &Experiment) -> String {
        let usual = || match &self.shows {
            Shows::Lines { y, .. } | Shows::Bars { y, .. } => {
                y.first().map_or(String::new(), |figure| experiment.label_of(figure))
            }
            Shows::OverTime { interval, y } => {
                let what = if let [one] = y.as_slice() { one.label() } else { "messages" };
                match *interval {
                    one if one == Time::units(1) => format!("{what} per {}", experiment.one_unit()),
                    other => format!("{what} per {other} {}", experiment.units()),
                }
            }
        };
        self.label.clone().unwrap_or_else(usual)
    }

    /// The runs that the chart shows, by their place.
    fn rows<'a>(&'a self, experiment: &'a Experiment) -> impl Iterator<Item = usize> + 'a {
        let is_shown = |row: &usize| self.selection.contains(&experiment.runs[*row].coordinates);
        (0..experiment.runs.len()).filter(is_shown)
    }

    /// The name of the line to which a run belongs.
    fn series_name(&self, coordinates: &[String], figure: Option<&str>) -> String {
        let words = self.series.iter().map(|&at| coordinates[at].as_str());
        words.chain(figure).collect::<Vec<_>>().join(", ")
    }

    fn lines(
        &self,
        x: &X,
        y: &[Figure],
        experiment: &Experiment,
        results: &Results,
    ) -> Vec<Series> {
        let mut series: Vec<Series> = Vec::new();
        for row in self.rows(experiment) {
            let (run, measured) = (&experiment.runs[row], &results.rows[row]);
            for figure in y {
                let label = figure.label();
                let shown = (y.len() > 1 || self.series.is_empty()).then_some(label.as_str());
                let line = named(&mut series, self.series_name(&run.coordinates, shown));
                line.colour = shown.and_then(|_| colour(figure.kind()));
                let point = (x.of(run, results, row), measured.estimate(figure, &run.setup));
                if let (Some(x), Some(y)) = point {
                    line.points.push((x, y.mean));
                    line.intervals.push(y.drawn());
                }
            }
        }
        series
    }

    fn reference(
        &self,
        x: &X,
        formulas: &[Formula],
        experiment: &Experiment,
        results: &Results,
    ) -> Vec<Series> {
        let line = |formula: &Formula| {
            let point = |row: usize| {
                let run = &experiment.runs[row];
                Some((x.of(run, results, row)?, formula.of(run.setup.spec.nodes)))
            };
            let mut points: Vec<(f64, f64)> = self.rows(experiment).filter_map(point).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            points.dedup();
            Series { name: formula.name.to_string(), points, is_formula: true, ..Series::default() }
        };
        formulas.iter().map(line).collect()
    }

    fn counts(&self, y: &[Counted], experiment: &Experiment, results: &Results) -> Vec<Series> {
        // The time lines of all charts are in one list.
        let before = experiment.charts.iter().take_while(|chart| *chart != self);
        let skip: usize = before.map(|chart| chart.timelines().len()).sum();
        let mut series = Vec::new();
        for row in self.rows(experiment) {
            let (run, measured) = (&experiment.runs[row], &results.rows[row]);
            for (at, counted) in y.iter().enumerate() {
                let (points, intervals) = measured.counted(skip + at);
                // What an algorithm never sends is no line of its own.
                if points.iter().any(|&(_, count)| count > 0.0) {
                    let shown = (y.len() > 1 || self.series.is_empty()).then_some(counted.label());
                    let name = self.series_name(&run.coordinates, shown);
                    let colour = shown.and_then(|_| colour(counted.kind()));
                    series.push(Series { name, points, intervals, colour, ..Series::default() });
                }
            }
        }
        series
    }

    fn bars(
        &self,
        x: usize,
        y: &[Figure],
        stacked: bool,
        experiment: &Experiment,
        results: &Results,
    ) -> BarChart {
        let mut categories: Vec<String> = Vec::new();
        let mut bars: Vec<Bars> = Vec::new();
        for row in self.rows(experiment) {
            let (run, measured) = (&experiment.runs[row], &results.rows[row]);
            let category = &run.coordinates[x];
            let at = categories.iter().position(|one| one == category).unwrap_or_else(|| {
                categories.push(category.clone());
                categories.len() - 1
            });
            for figure in y {
                let label = figure.label();
                let shown = (y.len() > 1 || self.series.is_empty()).then_some(label.as_str());
                let name = self.series_name(&run.coordinates, shown);
                let place = bars.iter().position(|one| one.name == name).unwrap_or_else(|| {
                    let colour = shown.and_then(|_| colour(figure.kind()));
                    bars.push(Bars { name, colour, ..Bars::default() });
                    bars.len() - 1
                });
                let Bars { values, intervals, .. } = &mut bars[place];
                let length = values.len().max(at + 1);
                values.resize(length, None);
                intervals.resize(length, None);
                let estimate = measured.estimate(figure, &run.setup);
                values[at] = estimate.map(|one| one.mean);
                intervals[at] = estimate.map(|one| one.drawn());
            }
        }
        let sums = match stacked {
            true => categories.iter().map(|one| self.sum(x, one, y, experiment, results)).collect(),
            false => Vec::new(),
        };
        BarChart {
            title: self.title.clone(),
            note: experiment.note_on_seeds(),
            label: self.label(experiment),
            scale: self.y_scale,
            categories,
            bars,
            stacked,
            sums,
        }
    }

    /// From where to where the sum of all bars of a category is uncertain: seeds are summed up one by one,
    /// because what one part has more of another may have less of.
    fn sum(
        &self,
        x: usize,
        category: &str,
        y: &[Figure],
        experiment: &Experiment,
        results: &Results,
    ) -> Option<(f64, f64)> {
        let is_meant = |&row: &usize| experiment.runs[row].coordinates[x] == category;
        let rows = self.rows(experiment).filter(is_meant);
        let setup = |row: usize| &experiment.runs[row].setup;
        let all = rows.flat_map(|row| y.iter().map(move |figure| (row, figure)));
        // What has no value with some seed has no bar.
        let has_bar = |&(row, figure): &(usize, &Figure)| {
            results.rows[row].estimate(figure, setup(row)).is_some()
        };
        let parts: Vec<(usize, &Figure)> = all.filter(has_bar).collect();
        let sum = |seed: usize| {
            let part = |&(row, figure): &(usize, &Figure)| {
                figure.of(setup(row), &results.rows[row].reports[seed])
            };
            parts.iter().map(part).sum::<Option<f64>>()
        };
        let sums = (0..experiment.seeds as usize).map(sum).collect::<Option<Vec<f64>>>()?;
        Some(Estimate::of(&sums)?.drawn())
    }
}

impl Shows {
    /// Whether `dimension` is on the horizontal axis.
    fn is_over(&self, dimension: usize) -> bool {
        match self {
            Shows::Lines { x: X::Dimension(at), .. } | Shows::Bars { x: at, .. } => {
                *at == dimension
            }
            Shows::Lines { x: X::Figure(_), .. } | Shows::OverTime { .. } => false,
        }
    }
}

impl X {
    fn label(&self, experiment: &Experiment) -> String {
        match self {
            X::Figure(figure) => experiment.label_of(figure),
            X::Dimension(at) => match experiment.dimensions[*at].name.as_str() {
                "N" | "nodes" => "N (nodes)".to_string(),
                other => other.to_string(),
            },
        }
    }

    fn of(&self, run: &Run, results: &Results, row: usize) -> Option<f64> {
        match self {
            X::Figure(figure) => Some(results.rows[row].estimate(figure, &run.setup)?.mean),
            X::Dimension(at) => run.coordinates[*at].parse().ok(),
        }
    }
}

/// The number of the colour of a kind of message; nothing of what is no single kind.
fn colour(kind: Option<&str>) -> Option<usize> {
    kind_number(kind?)
}

/// Reads `[[experiment.chart.threshold]]`: a number of one of the axes, and what it is.
fn thresholds(fields: &mut Fields<'_>) -> Result<Vec<Threshold>, LabError> {
    let place = fields.place("threshold");
    let read = |table| {
        let mut fields = Fields::new(&place, table);
        let label = fields.text("label")?.unwrap_or_default();
        let (x, y) = (fields.number("x")?, fields.number("y")?);
        fields.finish()?;
        match (x, y) {
            (Some(value), None) => Ok(Threshold { value, is_of_x: true, label }),
            (None, Some(value)) => Ok(Threshold { value, is_of_x: false, label }),
            _ => Err(wrong(&place, "says a number of one axis: x = 25 or y = 0.5")),
        }
    };
    fields.tables("threshold")?.into_iter().map(read).collect()
}

/// The line with this name, a new one if there is none.
fn named(series: &mut Vec<Series>, name: String) -> &mut Series {
    let at = series.iter().position(|one| one.name == name).unwrap_or_else(|| {
        series.push(Series { name, ..Series::default() });
        series.len() - 1
    });
    &mut series[at]
}

fn over_time(
    fields: &Fields<'_>,
    interval: f64,
    y: &[String],
    runs: &[Run],
) -> Result<Shows, LabError> {
    let ticks = (interval * TICKS_PER_UNIT as f64).round();
    if !(1.0..1e18).contains(&ticks) {
        let what = "must be the length of an interval: more than 0 units of time";
        return Err(wrong(fields.place("over_time"), what));
    }
    let place = fields.place("y");
    let mut counted = Vec::new();
    for text in y {
        let one = Counted::parse(text).ok_or_else(|| {
            one_of(&place, "thing that is counted over time", text, Counted::NAMES)
        })?;
        if let Counted::Kind(kind) = &one {
            figure::check_kinds(&place, kind, runs.iter().map(|run| &run.setup))?;
        }
        counted.push(one);
    }
    Ok(Shows::OverTime { interval: Time(ticks as u64), y: counted })
}

fn over_figures(
    fields: &mut Fields<'_>,
    y: &[String],
    dimensions: &[Dimension],
    runs: &[Run],
) -> Result<Shows, LabError> {
    let place = fields.place("y");
    let y: Vec<Figure> =
        y.iter().map(|text| Figure::parse(&place, text)).collect::<Result<_, _>>()?;
    for figure in &y {
        figure.check_kind(&place, runs.iter().map(|run| &run.setup))?;
    }
    let place = fields.place("x");
    let Some(x) = fields.text("x")? else {
        let what = "is missing; name what is varied or a figure, or say over_time = 1";
        return Err(wrong(place, what));
    };
    let x = match dimensions.iter().position(|dimension| dimension.name == x) {
        Some(at) => X::Dimension(at),
        None => match Figure::parse(&place, &x) {
            Ok(figure) => X::Figure(figure),
            Err(_) => {
                let names = dimensions.iter().map(|dimension| dimension.name.as_str());
                let figures = figure::FIGURES.iter().map(|figure| figure.name);
                return Err(one_of(&place, "dimension or figure", &x, names.chain(figures)));
            }
        },
    };
    if let X::Dimension(at) = x
        && !dimensions[at].values().all(|value| value.parse::<f64>().is_ok())
    {
        let stacked = fields.truth("stacked")?;
        return Ok(Shows::Bars { x: at, y, stacked });
    }
    let x_scale = fields.choice("x_scale", &SCALES)?.unwrap_or(Scale::Linear);
    let place = fields.place("formulas");
    let formulas = fields.texts("formulas")?;
    let formulas = formulas.iter().map(|text| Formula::parse(&place, text));
    Ok(Shows::Lines { x, x_scale, y, formulas: formulas.collect::<Result<_, _>>()? })
}
