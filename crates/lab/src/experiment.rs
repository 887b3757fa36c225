//! An experiment: what its file says, and the runs that it describes.

use catraca_draw::check_nodes;
use catraca_sim::{EXPERIMENT, Scenario, ScenarioError, Setup};

use crate::chart::ChartPlan;
use crate::claim::Claim;
use crate::error::{LabError, wrong};
use crate::fields::Fields;
use crate::figure::Figure;
use crate::formula::Formula;
use crate::table::Column;
use crate::vary::{self, Dimension};

/// An experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// The name of its file, without the ending.
    pub name: String,
    /// One line that says what is shown.
    pub title: String,
    /// The paper that it belongs to, such as S0, and the section.
    pub paper: Option<String>,
    /// The section of the paper.
    pub section: Option<String>,
    /// What it answers.
    pub question: String,
    /// What a unit of time means, if it means something.
    pub unit: Option<String>,
    /// What is varied, the outermost first.
    pub dimensions: Vec<Dimension>,
    /// Every run is made with so many seeds, from its own on.
    pub seeds: u32,
    /// The runs: the full cross product of what is varied.
    pub runs: Vec<Run>,
    /// The columns of the table, after those of what is varied.
    pub columns: Vec<Column>,
    /// Whether every run gets a space-time diagram.
    pub diagram: bool,
    /// The charts.
    pub charts: Vec<ChartPlan>,
    /// What a paper claims of the figures.
    pub claims: Vec<Claim>,
}

/// One run of an experiment, before it is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its value in each dimension.
    pub coordinates: Vec<String>,
    /// The run in words; its command reproduces the row.
    pub scenario: Scenario,
    /// The run.
    pub setup: Setup,
    /// The invariant that it breaks, if it is meant to break one.
    pub breaks: Option<String>,
}

impl Experiment {
    /// Reads an experiment from its file. `open` reads the scenario files that it refers to.
    pub fn read(
        name: &str,
        text: &str,
        open: &dyn Fn(&str) -> Result<Scenario, LabError>,
    ) -> Result<Self, LabError> {
        let table = catraca_sim::table(text)?;
        let base = Scenario::from_toml(text)?;
        let Some(table) = table.get(EXPERIMENT) else {
            let what = "is missing: this file describes one run; run it with 'catraca sim'";
            return Err(wrong(format!("[{EXPERIMENT}]"), what));
        };
        let Some(table) = table.as_table() else {
            return Err(wrong(EXPERIMENT, "must be a table"));
        };
        let mut fields = Fields::new(EXPERIMENT, table);
        let title = fields.needed("title")?;
        let (paper, section) = (fields.text("paper")?, fields.text("section")?);
        let question = fields.needed("question")?;
        let unit = fields.text("unit")?;
        let breaks = fields.text("breaks")?;
        let dimensions = match fields.table("vary")? {
            Some(table) => Dimension::read_all(&fields.place("vary"), table)?,
            None => Vec::new(),
        };
        let seeds = seeds(&mut fields)?;
        let runs = runs(&base, breaks.as_deref(), &dimensions, open)?;
        let columns = columns(&mut fields, &runs)?;
        let diagram = fields.truth("diagram")?;
        if diagram {
            for run in &runs {
                check_nodes(run.setup.spec.nodes)
                    .map_err(|error| wrong(fields.place("diagram"), format!("a run {error}")))?;
            }
        }
        let charts = fields.tables("chart")?;
        let place = fields.place("chart");
        let chart = |table| ChartPlan::read(&place, table, &dimensions, &runs);
        let charts = charts.into_iter().map(chart).collect::<Result<Vec<_>, _>>()?;
        if let Some(twice) = twice(charts.iter().map(|chart| chart.name.as_str())) {
            return Err(wrong(place, format!("two charts have the name '{twice}'")));
        }
        let claims = fields.tables("claim")?;
        let place = fields.place("claim");
        let claim = |table| Claim::read(&place, table, &dimensions, &runs);
        let claims = claims.into_iter().map(claim).collect::<Result<Vec<_>, _>>()?;
        if !claims.is_empty() && paper.is_none() {
            return Err(wrong(fields.place("paper"), "is missing; say who claims, such as S0"));
        }
        fields.finish()?;
        let name = name.to_string();
        Ok(Experiment {
            name,
            title,
            paper,
            section,
            question,
            unit,
            dimensions,
            seeds,
            runs,
            columns,
            diagram,
            charts,
            claims,
        })
    }

    /// Names a run of `rows` by the coordinates in which they differ.
    pub(crate) fn label(&self, rows: &[usize], row: usize) -> String {
        let coordinate = |row: usize, at: usize| &self.runs[row].coordinates[at];
        let differs =
            |at: &usize| rows.iter().any(|&other| coordinate(other, *at) != coordinate(row, *at));
        let words =
            (0..self.dimensions.len()).filter(differs).map(|at| coordinate(row, at).as_str());
        words.collect::<Vec<_>>().join(", ")
    }

    /// The command that runs it.
    pub fn command(&self) -> String {
        format!("catraca experiment {}", self.name)
    }

    /// What ± means, in words.
    pub fn about_seeds(&self) -> String {
        match self.seeds {
            1 => "One seed, so no interval says how certain these figures are.".to_string(),
            seeds => format!(
                "Means of {seeds} seeds{}, ± half the width of Student's interval of 95 %. Where there is \
                 none, all seeds agree.",
                self.named_seeds().map(|named| format!(" ({named})")).unwrap_or_default()
            ),
        }
    }

    /// The same in one line, for pictures.
    pub(crate) fn note_on_seeds(&self) -> String {
        match (self.seeds, self.named_seeds()) {
            (1, Some(seed)) => format!("seed {seed}, no interval"),
            (1, None) => "one seed, no interval".to_string(),
            (_, Some(seeds)) => format!("means of seeds {seeds}; bars: Student's interval of 95 %"),
            (seeds, None) => format!("means of {seeds} seeds; bars: Student's interval of 95 %"),
        }
    }

    /// Which seeds they are, unless they differ from run to run.
    fn named_seeds(&self) -> Option<String> {
        let run = self.runs.first()?;
        let (first, last) = (run.seed(0), run.seed(self.seeds - 1));
        let is_of_all = self.runs.iter().all(|run| run.seed(0) == first);
        is_of_all
            .then(|| if first == last { first.to_string() } else { format!("{first} to {last}") })
    }

    /// What a figure is, with its unit if it is a time.
    pub(crate) fn label_of(&self, figure: &Figure) -> String {
        let label = figure.label().replace("unit of time", &self.one_unit());
        match figure.is_time() {
            true => format!("{label} {}", self.time_unit()),
            false => label,
        }
    }

    /// The unit of time, in brackets.
    pub(crate) fn time_unit(&self) -> String {
        format!("({})", self.units())
    }

    /// One unit of time.
    pub(crate) fn one_unit(&self) -> String {
        self.named_unit().unwrap_or("unit of time").to_string()
    }

    /// Several units of time.
    pub(crate) fn units(&self) -> String {
        self.named_unit().map_or("units of time".to_string(), |unit| format!("{unit}s"))
    }

    /// What the file calls the unit, if that is one word.
    fn named_unit(&self) -> Option<&str> {
        let unit = self.unit.as_deref()?;
        let word = unit.strip_prefix("a ").or_else(|| unit.strip_prefix("an "))?;
        (!word.contains(' ')).then_some(word)
    }

    /// The command of this very experiment, which has so many seeds.
    pub fn command_with_seeds(&self) -> String {
        format!("{} --seeds {}", self.command(), self.seeds)
    }
}

impl Run {
    /// One of its seeds, counted from 0.
    pub fn seed(&self, repeat: u32) -> u64 {
        self.setup.seed.wrapping_add(repeat.into())
    }

    /// In words, with one of its seeds; its command repeats that run.
    pub fn described(&self, repeat: u32) -> Scenario {
        match repeat {
            0 => self.scenario.clone(),
            _ => self.scenario.clone().with("run.seed", self.seed(repeat)),
        }
    }

    /// The same run with another seed: the first is its own.
    pub(crate) fn repeated(&self, repeat: u32) -> Result<Setup, ScenarioError> {
        self.scenario.clone().with("run.seed", self.seed(repeat)).setup()
    }

    /// Says something else about the run.
    pub fn say(&mut self, path: &str, value: impl ToString) -> Result<(), LabError> {
        self.scenario.set(path, vec![value.to_string()])?;
        self.setup = self.scenario.setup()?;
        Ok(())
    }
}

fn runs(
    base: &Scenario,
    breaks: Option<&str>,
    dimensions: &[Dimension],
    open: &dyn Fn(&str) -> Result<Scenario, LabError>,
) -> Result<Vec<Run>, LabError> {
    let described = vary::cross(base, breaks, dimensions, open)?;
    let run = |run: vary::Described| {
        let setup = run.scenario.setup()?;
        let vary::Described { coordinates, scenario, breaks } = run;
        Ok(Run { coordinates, scenario, setup, breaks })
    };
    described.into_iter().map(run).collect()
}

/// How many seeds an experiment has that does not say it.
const SEEDS: u32 = 5;
/// The most seeds of an experiment.
pub const MOST_SEEDS: u32 = 1000;

fn seeds(fields: &mut Fields<'_>) -> Result<u32, LabError> {
    let Some(number) = fields.number("seeds")? else { return Ok(SEEDS) };
    match number {
        1.0.. if number <= MOST_SEEDS.into() && number.fract() == 0.0 => Ok(number as u32),
        _ => Err(wrong(fields.place("seeds"), format!("must be a number from 1 to {MOST_SEEDS}"))),
    }
}

fn columns(fields: &mut Fields<'_>, runs: &[Run]) -> Result<Vec<Column>, LabError> {
    let mut columns = Vec::new();
    let place = fields.place("columns");
    for text in fields.texts("columns")? {
        let figure = Figure::parse(&place, &text)?;
        figure.check_kind(&place, runs.iter().map(|run| &run.setup))?;
        columns.push(Column::Figure(figure));
    }
    let place = fields.place("formulas");
    for text in fields.texts("formulas")? {
        columns.push(Column::Formula(Formula::parse(&place, &text)?));
    }
    if columns.is_empty() {
        return Err(wrong(fields.place("columns"), "is missing; name the figures of the table"));
    }
    Ok(columns)
}

fn twice<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let names: Vec<&str> = names.collect();
    (1..names.len()).find(|&one| names[..one].contains(&names[one])).map(|one| names[one])
}
