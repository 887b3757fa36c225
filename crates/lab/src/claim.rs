//! What papers claim of an experiment's figures, and what its runs say of that.

use std::fmt;

use crate::error::{LabError, wrong};
use crate::experiment::{Experiment, Run};
use crate::fields::Fields;
use crate::figure::Figure;
use crate::formula::Formula;
use crate::results::Results;
use crate::table::short;
use crate::vary::{Dimension, Selection};

/// How close is equal, and how close is 'about', as a part of the larger of both.
const EQUAL: f64 = 0.05;
const ABOUT: f64 = 0.1;

/// More runs than this are summed up in the words of a finding.
const FEW: usize = 8;

/// What runs say of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As claimed.
    Holds,
    /// Not as claimed.
    Wrong,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Holds => "holds",
            Verdict::Wrong => "wrong",
        })
    }
}

/// A claim: a condition on a figure, in some of the runs, and what is on record about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Where the paper says it.
    pub section: String,
    /// What it says.
    pub says: String,
    /// Whether no paper claims it: it is a question of our own that one raises, and holds for yes.
    pub is_question: bool,
    /// The verdict on record.
    pub verdict: Verdict,
    /// One sentence about it.
    pub why: String,
    selection: Selection,
    figure: Figure,
    relation: Relation,
    /// One bound; two for 'between'.
    bounds: Vec<Bound>,
    /// The bounds count in this figure of these runs instead of 1.
    of: Option<Selection>,
    within: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Is,
    About,
    AtLeast,
    AtMost,
    Between,
}

const RELATIONS: [(&str, Relation); 5] = [
    ("is", Relation::Is),
    ("about", Relation::About),
    ("at_least", Relation::AtLeast),
    ("at_most", Relation::AtMost),
    ("between", Relation::Between),
];

/// What a figure is compared with.
#[derive(Clone, Debug, PartialEq)]
enum Bound {
    Number(f64),
    Formula(Formula),
    Figure(Figure),
}

/// A claim, measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding<'a> {
    /// The claim.
    pub claim: &'a Claim,
    /// The figures in words.
    pub measured: String,
    /// What they say; nothing, if a figure is missing.
    pub found: Option<Verdict>,
}

impl Finding<'_> {
    /// Whether the runs say what is on record.
    pub fn agrees(&self) -> bool {
        self.found == Some(self.claim.verdict)
    }
}

impl Claim {
    pub(crate) fn read(
        place: &str,
        table: &toml::Table,
        dimensions: &[Dimension],
        runs: &[Run],
    ) -> Result<Self, LabError> {
        let mut fields = Fields::new(place, table);
        let section = fields.needed("section")?;
        let says = fields.needed("says")?;
        let is_question = fields.truth("question")?;
        let figure = fields.needed("figure")?;
        let figure = Figure::parse(&fields.place("figure"), &figure)?;
        let selection =
            Selection::read(&fields.place("where"), fields.table("where")?, dimensions)?;
        let (relation, bounds) = relation(&mut fields)?;
        let of = match fields.table("of")? {
            None => None,
            Some(table) => {
                let of = Selection::read(&fields.place("of"), Some(table), dimensions)?;
                if !of.is_single() {
                    return Err(wrong(fields.place("of"), "must name one value of each dimension"));
                }
                Some(of)
            }
        };
        let within = fields.number("within")?.unwrap_or(match relation {
            Relation::About => ABOUT,
            Relation::Is | Relation::Between => EQUAL,
            Relation::AtLeast | Relation::AtMost => 0.0,
        });
        let verdicts = [("holds", Verdict::Holds), ("wrong", Verdict::Wrong)];
        let verdict = fields.choice("verdict", &verdicts)?;
        let verdict =
            verdict.ok_or_else(|| wrong(fields.place("verdict"), "say holds or wrong"))?;
        let why = fields.needed("why")?;
        // Where runs are compared with others, the figure is one of those too.
        let is_meant = |run: &&Run| of.is_some() || selection.contains(&run.coordinates);
        let setups = runs.iter().filter(is_meant).map(|run| &run.setup);
        figure.check_kind(&fields.place("figure"), setups)?;
        fields.finish()?;
        Ok(Claim {
            section,
            says,
            is_question,
            verdict,
            why,
            selection,
            figure,
            relation,
            bounds,
            of,
            within,
        })
    }

    /// Lets the runs decide.
    pub(crate) fn finding(&self, experiment: &Experiment, results: &Results) -> Finding<'_> {
        let rows: Vec<usize> = (0..experiment.runs.len())
            .filter(|&row| self.selection.contains(&experiment.runs[row].coordinates))
            .collect();
        let compared: Vec<Option<Compared>> =
            rows.iter().map(|&row| self.compare(experiment, results, row)).collect();
        let found = match compared.iter().all(Option::is_some) && !rows.is_empty() {
            false => None,
            true if compared.iter().flatten().all(|one| one.agrees) => Some(Verdict::Holds),
            true => Some(Verdict::Wrong),
        };
        let measured = if rows.len() > FEW {
            summary(&compared)
        } else {
            let words = rows.iter().zip(&compared).map(|(&row, compared)| {
                let label = experiment.label(&rows, row);
                let figures = compared.as_ref().map_or("-".to_string(), Compared::words);
                if label.is_empty() { figures } else { format!("{label}: {figures}") }
            });
            words.collect::<Vec<_>>().join("; ")
        };
        Finding { claim: self, measured, found }
    }

    fn compare(&self, experiment: &Experiment, results: &Results, row: usize) -> Option<Compared> {
        let figure = |figure: &Figure, row: usize| {
            figure.of(&experiment.runs[row].setup, &results.rows[row].report)
        };
        let measured = figure(&self.figure, row)?;
        let unit = match &self.of {
            None => 1.0,
            Some(of) => {
                let there = of.moved(&experiment.runs[row].coordinates);
                let other = experiment.runs.iter().position(|run| run.coordinates == there)?;
                figure(&self.figure, other)?
            }
        };
        let bound = |bound: &Bound| {
            Some(match bound {
                Bound::Number(number) => number * unit,
                Bound::Formula(formula) => formula.of(experiment.runs[row].setup.spec.nodes) * unit,
                Bound::Figure(other) => figure(other, row)? * unit,
            })
        };
        let bounds = self.bounds.iter().map(bound).collect::<Option<Vec<f64>>>()?;
        let claimed = self.relation.words(&bounds);
        Some(Compared {
            measured,
            claimed,
            agrees: self.relation.holds(measured, &bounds, self.within),
        })
    }
}

/// A figure of one run beside what is claimed of it.
struct Compared {
    measured: f64,
    claimed: String,
    agrees: bool,
}

impl Compared {
    fn words(&self) -> String {
        format!("{} ({})", short(self.measured), self.claimed)
    }
}

fn summary(compared: &[Option<Compared>]) -> String {
    let figures = || compared.iter().flatten().map(|one| one.measured);
    let least = figures().fold(f64::INFINITY, f64::min);
    let most = figures().fold(f64::NEG_INFINITY, f64::max);
    let agree = compared.iter().flatten().filter(|one| one.agrees).count();
    format!("{} to {}, as claimed in {agree} of {} runs", short(least), short(most), compared.len())
}

fn relation(fields: &mut Fields<'_>) -> Result<(Relation, Vec<Bound>), LabError> {
    let mut found = None;
    for (word, relation) in RELATIONS {
        let Some(value) = fields.value(word) else { continue };
        if found.is_some() {
            return Err(wrong(fields.place(word), "one condition is enough; leave the other out"));
        }
        let place = fields.place(word);
        let bounds: Vec<Bound> = match value {
            toml::Value::Array(items) => {
                items.iter().map(|item| Bound::read(&place, item)).collect::<Result<_, _>>()?
            }
            one => vec![Bound::read(&place, one)?],
        };
        let wanted = if relation == Relation::Between { 2 } else { 1 };
        if bounds.len() != wanted {
            return Err(wrong(place, "takes one value, or two in a list for 'between'"));
        }
        found = Some((relation, bounds));
    }
    let words = RELATIONS.map(|(word, _)| word).join(", ");
    found.ok_or_else(|| wrong(fields.place("is"), format!("is missing; say one of {words}")))
}

impl Bound {
    /// A number, a formula, or another figure of the same run.
    fn read(place: &str, value: &toml::Value) -> Result<Self, LabError> {
        match value {
            toml::Value::Integer(number) => Ok(Bound::Number(*number as f64)),
            toml::Value::Float(number) => Ok(Bound::Number(*number)),
            toml::Value::String(text) => match Figure::parse(place, text) {
                Ok(figure) => Ok(Bound::Figure(figure)),
                Err(_) => Formula::parse(place, text).map(Bound::Formula),
            },
            _ => Err(wrong(place, "must be a number, a formula or a figure")),
        }
    }
}

impl Relation {
    fn holds(self, measured: f64, bounds: &[f64], within: f64) -> bool {
        let close =
            |bound: f64| (measured - bound).abs() <= within * bound.abs().max(measured.abs());
        match (self, bounds) {
            (Relation::Is | Relation::About, [bound]) => close(*bound),
            (Relation::AtLeast, [bound]) => measured >= *bound || close(*bound),
            (Relation::AtMost, [bound]) => measured <= *bound || close(*bound),
            (Relation::Between, [least, most]) => {
                (*least..=*most).contains(&measured) || close(*least) || close(*most)
            }
            _ => false,
        }
    }

    fn words(self, bounds: &[f64]) -> String {
        let bounds = bounds.iter().map(|&bound| short(bound)).collect::<Vec<_>>().join("..");
        match self {
            Relation::Is | Relation::Between => bounds,
            Relation::About => format!("about {bounds}"),
            Relation::AtLeast => format!("at least {bounds}"),
            Relation::AtMost => format!("at most {bounds}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_hold_within_their_tolerance() {
        assert!(
            Relation::Is.holds(97.0, &[100.0], 0.05) && !Relation::Is.holds(94.0, &[100.0], 0.05)
        );
        assert!(
            Relation::AtMost.holds(1.0, &[1.0], 0.0) && !Relation::AtMost.holds(1.01, &[1.0], 0.0)
        );
        assert!(
            Relation::AtLeast.holds(2.0, &[1.0], 0.0) && !Relation::AtLeast.holds(0.9, &[1.0], 0.0)
        );
        assert!(Relation::Between.holds(1.5, &[1.0, 2.0], 0.0));
        assert!(!Relation::Between.holds(2.5, &[1.0, 2.0], 0.1));
    }
}
