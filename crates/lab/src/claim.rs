//! What papers claim of an experiment's figures, and what its runs say of that.

use std::fmt;

use catraca_sim::{Estimate, short};

use crate::error::{LabError, wrong};
use crate::experiment::{Experiment, Run};
use crate::fields::Fields;
use crate::figure::Figure;
use crate::formula::Formula;
use crate::results::Results;
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
    /// The runs differ too much from seed to seed to tell.
    Open,
}

/// As files say it.
const VERDICTS: [(&str, Verdict); 3] =
    [("holds", Verdict::Holds), ("wrong", Verdict::Wrong), ("open", Verdict::Open)];

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Holds => "holds",
            Verdict::Wrong => "wrong",
            Verdict::Open => "open",
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
    /// With how many seeds. One has no interval, so what it says is not certain.
    pub seeds: u32,
}

impl Finding<'_> {
    /// Whether the runs say what is on record.
    pub fn agrees(&self) -> bool {
        self.found == Some(self.claim.verdict)
    }

    /// Whether they say the opposite for certain. Too few seeds, which leave it open, contradict nothing, and
    /// neither does one alone.
    pub fn contradicts(&self) -> bool {
        self.seeds > 1 && self.says_the_opposite()
    }

    fn says_the_opposite(&self) -> bool {
        matches!(
            (self.found, self.claim.verdict),
            (Some(Verdict::Holds), Verdict::Wrong) | (Some(Verdict::Wrong), Verdict::Holds)
        )
    }

    /// What the runs say, in a word or a few.
    pub fn verdict(&self) -> String {
        match self.found {
            None => "undecided".to_string(),
            Some(found) if self.seeds == 1 => format!("{found} with one seed"),
            Some(found) => found.to_string(),
        }
    }

    /// What is to be said of the record, if the runs do not say the same.
    pub fn beside_record(&self) -> Option<String> {
        let record = self.claim.verdict;
        match self.found {
            _ if self.agrees() => None,
            _ if self.says_the_opposite() && self.seeds == 1 => {
                Some(format!("one seed is not certain; on record is '{record}': take more"))
            }
            _ if self.contradicts() => Some(format!("ON RECORD IS '{record}': look into it")),
            Some(Verdict::Open) | None => {
                Some(format!("open with these seeds; on record is '{record}'"))
            }
            Some(_) => Some(format!("decided by these seeds; on record is '{record}'")),
        }
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
        let verdict = fields.choice("verdict", &VERDICTS)?;
        let verdict =
            verdict.ok_or_else(|| wrong(fields.place("verdict"), "say holds, wrong or open"))?;
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
            true => Some(verdict(compared.iter().flatten().map(|one| one.agrees))),
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
        Finding { claim: self, measured, found, seeds: experiment.seeds }
    }

    /// Compares with each seed, and lets all of them decide together.
    fn compare(&self, experiment: &Experiment, results: &Results, row: usize) -> Option<Compared> {
        let seeds = 0..results.rows[row].reports.len();
        let each = seeds.map(|seed| self.compare_one(experiment, results, row, seed));
        let each = each.collect::<Option<Vec<One>>>()?;
        let mean =
            |of: &dyn Fn(&One) -> f64| Estimate::of(&each.iter().map(of).collect::<Vec<_>>());
        let bounds = (0..self.bounds.len()).map(|at| Some(mean(&|one| one.bounds[at])?.mean));
        Some(Compared {
            measured: mean(&|one| one.measured)?,
            claimed: self.relation.words(&bounds.collect::<Option<Vec<f64>>>()?),
            agrees: mean(&|one| one.room)?.is_positive(),
        })
    }

    /// With one seed, which is the same for the runs that are compared with each other.
    fn compare_one(
        &self,
        experiment: &Experiment,
        results: &Results,
        row: usize,
        seed: usize,
    ) -> Option<One> {
        let figure = |figure: &Figure, row: usize| {
            figure.of(&experiment.runs[row].setup, &results.rows[row].reports[seed])
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
        let room = self.relation.room(measured, &bounds, self.within);
        Some(One { measured, bounds, room })
    }
}

/// A run holds what is claimed if all agree, and refutes it if one does not for certain.
fn verdict(mut agrees: impl Iterator<Item = Option<bool>> + Clone) -> Verdict {
    if agrees.clone().all(|one| one == Some(true)) {
        return Verdict::Holds;
    }
    if agrees.any(|one| one == Some(false)) { Verdict::Wrong } else { Verdict::Open }
}

/// A figure of one run with one seed beside what is claimed of it.
struct One {
    measured: f64,
    bounds: Vec<f64>,
    /// How far it is from being wrong; less than 0 where it is.
    room: f64,
}

/// A figure of one run, over all seeds, beside what is claimed of it.
struct Compared {
    measured: Estimate,
    claimed: String,
    /// Whether it is as claimed; nothing where the seeds do not decide it.
    agrees: Option<bool>,
}

impl Compared {
    fn words(&self) -> String {
        format!("{} ({})", self.measured, self.claimed)
    }
}

fn summary(compared: &[Option<Compared>]) -> String {
    let figures = || compared.iter().flatten().map(|one| one.measured.mean);
    let least = figures().fold(f64::INFINITY, f64::min);
    let most = figures().fold(f64::NEG_INFINITY, f64::max);
    let agree = compared.iter().flatten().filter(|one| one.agrees == Some(true)).count();
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
    /// How far a figure is from the border of what is claimed: 0 or more where it is as claimed.
    fn room(self, measured: f64, bounds: &[f64], within: f64) -> f64 {
        let close =
            |bound: f64| within * bound.abs().max(measured.abs()) - (measured - bound).abs();
        match (self, bounds) {
            (Relation::Is | Relation::About, [bound]) => close(*bound),
            (Relation::AtLeast, [bound]) => (measured - bound).max(close(*bound)),
            (Relation::AtMost, [bound]) => (bound - measured).max(close(*bound)),
            (Relation::Between, [least, most]) => {
                let inside = (measured - least).min(most - measured);
                inside.max(close(*least)).max(close(*most))
            }
            _ => f64::NEG_INFINITY,
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
        let holds = |relation: Relation, measured, bounds: &[f64], within| {
            relation.room(measured, bounds, within) >= 0.0
        };
        assert!(holds(Relation::Is, 97.0, &[100.0], 0.05));
        assert!(!holds(Relation::Is, 94.0, &[100.0], 0.05));
        assert!(holds(Relation::Is, 3.0, &[3.0], 0.0));
        assert!(holds(Relation::AtMost, 1.0, &[1.0], 0.0));
        assert!(!holds(Relation::AtMost, 1.01, &[1.0], 0.0));
        assert!(holds(Relation::AtLeast, 2.0, &[1.0], 0.0));
        assert!(!holds(Relation::AtLeast, 0.9, &[1.0], 0.0));
        assert!(holds(Relation::Between, 1.5, &[1.0, 2.0], 0.0));
        assert!(!holds(Relation::Between, 2.5, &[1.0, 2.0], 0.1));
    }

    #[test]
    fn a_verdict_needs_all_runs_to_hold_and_one_to_be_wrong() {
        let of = |agrees: &[Option<bool>]| verdict(agrees.iter().copied());
        assert_eq!(of(&[Some(true), Some(true)]), Verdict::Holds);
        assert_eq!(of(&[Some(true), None, Some(false)]), Verdict::Wrong);
        assert_eq!(of(&[Some(true), None]), Verdict::Open);
    }
}
