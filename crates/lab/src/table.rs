//! The figures of an experiment as a table: of numbers, of words, as CSV.

use catraca_sim::{Estimate, Setup};

use crate::figure::Figure;
use crate::formula::Formula;
use crate::results::Measured;

/// A column after those of what is varied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// A figure of the run.
    Figure(Figure),
    /// A formula to compare it with.
    Formula(Formula),
}

impl Column {
    /// As tables call it.
    pub fn head(&self) -> String {
        match self {
            Column::Figure(figure) => figure.head(),
            Column::Formula(formula) => formula.name.to_string(),
        }
    }

    /// As files call it.
    pub fn name(&self) -> String {
        match self {
            Column::Figure(figure) => figure.name(),
            Column::Formula(formula) => formula.name.to_string(),
        }
    }

    /// What it means, where its head does not say it all.
    pub fn legend(&self) -> Option<String> {
        match self {
            Column::Figure(figure) => {
                let (head, label) = (figure.head(), figure.label());
                (head != label).then(|| format!("{head}: {label}"))
            }
            Column::Formula(_) => None,
        }
    }

    pub(crate) fn of(&self, setup: &Setup, measured: &Measured) -> Option<Estimate> {
        match self {
            Column::Figure(figure) => measured.estimate(figure, setup),
            Column::Formula(formula) => Estimate::of(&[formula.of(setup.spec.nodes)]),
        }
    }
}

/// A table of an experiment: what was varied, then the columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The names of what was varied.
    pub varied: Vec<String>,
    /// For each row its first seed, and how many there are from that on.
    pub seeds: Vec<(u64, u32)>,
    /// The columns after them.
    pub columns: Vec<Column>,
    /// One row a run.
    pub rows: Vec<TableRow>,
}

/// One run in a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRow {
    /// Its values of what was varied.
    pub coordinates: Vec<String>,
    /// Its figures over all seeds; nothing where there is none.
    pub figures: Vec<Option<Estimate>>,
}

impl Table {
    /// The heads of all columns.
    pub fn heads(&self) -> Vec<String> {
        self.varied.iter().cloned().chain(self.columns.iter().map(Column::head)).collect()
    }

    /// The rows in words. A column of whole numbers shows no decimals.
    pub fn words(&self) -> Vec<Vec<String>> {
        let is_whole = |column: usize| {
            let mut figures = self.rows.iter().filter_map(|row| row.figures[column]);
            figures.all(|one| {
                one.half_width == 0.0 && one.mean.fract() == 0.0 && one.mean.abs() < 1e15
            })
        };
        let whole: Vec<bool> = (0..self.columns.len()).map(is_whole).collect();
        let words = |row: &TableRow| {
            let figures = row.figures.iter().zip(&whole).map(|(figure, &whole)| match figure {
                None => "-".to_string(),
                Some(figure) if whole => format!("{:.0}", figure.mean + 0.0),
                Some(figure) => figure.to_string(),
            });
            row.coordinates.iter().cloned().chain(figures).collect()
        };
        self.rows.iter().map(words).collect()
    }

    /// Whether a row begins another group: all but the last of what was varied stay the same
    /// within a group.
    pub fn begins_group(&self, row: usize) -> bool {
        let outer = |row: usize| {
            let coordinates = &self.rows[row].coordinates;
            &coordinates[..coordinates.len().saturating_sub(1)]
        };
        row > 0 && outer(row) != outer(row - 1)
    }

    /// As comma-separated values, with full precision: what was varied, the first seed and how many there
    /// are, and for each column its mean; for figures also half the width of Student's interval of 95 %, with
    /// the ending `.ci95`.
    pub fn csv(&self) -> String {
        let names = |column: &Column| match column {
            Column::Figure(_) => vec![column.name(), format!("{}.ci95", column.name())],
            Column::Formula(_) => vec![column.name()],
        };
        let of_seeds = ["first_seed", "seeds"].map(str::to_string);
        let heads = self.varied.iter().cloned().chain(of_seeds);
        let mut text = csv_line(heads.chain(self.columns.iter().flat_map(names)));
        for (row, (first, seeds)) in self.rows.iter().zip(&self.seeds) {
            let cells = |(column, figure): (&Column, &Option<Estimate>)| {
                let plain = |of: fn(&Estimate) -> f64| {
                    figure.as_ref().map_or(String::new(), |one| of(one).to_string())
                };
                match column {
                    Column::Figure(_) => vec![plain(|one| one.mean), plain(|one| one.half_width)],
                    Column::Formula(_) => vec![plain(|one| one.mean)],
                }
            };
            let figures = self.columns.iter().zip(&row.figures).flat_map(cells);
            let seeds = [first.to_string(), seeds.to_string()];
            let words = row.coordinates.iter().cloned().chain(seeds);
            text.push_str(&csv_line(words.chain(figures)));
        }
        text
    }
}

/// A line of comma-separated values; what has commas, quotes or ends of lines in it is quoted.
pub fn csv_line(cells: impl Iterator<Item = String>) -> String {
    let quoted = |cell: String| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    };
    cells.map(quoted).collect::<Vec<_>>().join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_whole_numbers_shows_no_decimals_and_csv_quotes_what_must_be() {
        let figure = |name| Column::Figure(Figure::parse("here", name).unwrap());
        let row = |name: &str, figures: [f64; 2]| TableRow {
            coordinates: vec![name.to_string()],
            figures: figures.map(|figure| Estimate::of(&[figure])).to_vec(),
        };
        let table = Table {
            varied: vec!["way".to_string()],
            seeds: vec![(1, 5), (7, 1)],
            columns: vec![figure("nodes"), figure("delay")],
            rows: vec![row("a, b", [4.0, 1.0]), row("c", [16.0, 0.5])],
        };
        assert_eq!(table.heads(), ["way", "nodes", "delay"]);
        assert_eq!(table.words(), [["a, b", "4", "1.00"], ["c", "16", "0.50"]]);
        let csv = "way,first_seed,seeds,nodes,nodes.ci95,delay,delay.ci95\n\
                   \"a, b\",1,5,4,0,1,0\nc,7,1,16,0,0.5,0\n";
        assert_eq!(table.csv(), csv);
        assert_eq!(table.columns[1].legend().unwrap(), "delay: synchronisation delay in T");
    }
}
