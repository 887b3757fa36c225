//! What is varied: lists of values and named variants, and the runs that they make.

use catraca_sim::{KEYS, Scenario, ScenarioError};

use crate::error::{LabError, one_of, wrong};
use crate::fields::texts;

/// The most runs of one experiment.
const MAX_RUNS: usize = 100_000;

/// The place of what is varied in the file.
const VARY: &str = "experiment.vary";

/// One thing that is varied.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    /// Its name: the last word of the key, or the name that the file gives to the variants.
    pub name: String,
    pub(crate) variants: Vec<Variant>,
}

/// One value of a dimension.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Variant {
    /// As tables show it.
    pub(crate) name: String,
    /// The scenario file that it begins with, instead of the experiment's own.
    pub(crate) file: Option<String>,
    /// The invariant that its runs break.
    pub(crate) breaks: Option<String>,
    /// What it says.
    says: Says,
}

#[derive(Clone, Debug, PartialEq)]
enum Says {
    /// One key.
    Key(&'static str, Vec<String>),
    /// Several keys at once.
    Table(toml::Table),
}

impl Dimension {
    /// Reads the table of what is varied, the outermost first.
    pub(crate) fn read_all(place: &str, table: &toml::Table) -> Result<Vec<Self>, LabError> {
        let mut dimensions = Vec::new();
        read_keys(place, "", table, &mut dimensions)?;
        let names: Vec<&str> = dimensions.iter().map(|one: &Self| one.name.as_str()).collect();
        if let Some(twice) = (1..names.len()).find(|&one| names[..one].contains(&names[one])) {
            return Err(wrong(place, format!("'{}' is varied twice", names[twice])));
        }
        Ok(dimensions)
    }

    /// The names of its values, in order.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.variants.iter().map(|variant| variant.name.as_str())
    }
}

fn read_keys(
    place: &str,
    prefix: &str,
    table: &toml::Table,
    dimensions: &mut Vec<Dimension>,
) -> Result<(), LabError> {
    for (name, value) in table {
        let path = format!("{prefix}{name}");
        let place = format!("{place}.{name}");
        let section = format!("{path}.");
        match value {
            toml::Value::Table(inner) if KEYS.iter().any(|key| key.path.starts_with(&section)) => {
                read_keys(&place, &section, inner, dimensions)?;
            }
            toml::Value::Table(_) if !prefix.is_empty() => {
                let what = "must be a list of values; give variants a name that is no section";
                return Err(wrong(place, what));
            }
            toml::Value::Table(variants) => {
                dimensions.push(named_variants(&place, name, variants)?);
            }
            toml::Value::Array(values) => dimensions.push(listed(&place, &path, name, values)?),
            _ => return Err(wrong(place, "must be a list of values, or a table of variants")),
        }
    }
    Ok(())
}

/// A key with a list of values; each is a list itself where the key takes one.
fn listed(
    place: &str,
    path: &str,
    name: &str,
    values: &[toml::Value],
) -> Result<Dimension, LabError> {
    let key = KEYS.iter().find(|key| key.path == path);
    let key = key.ok_or_else(|| ScenarioError::UnknownKey(path.to_string()))?;
    let variant = |value: &toml::Value| {
        let texts = texts(place, value)?;
        let name = texts.join(", ");
        Ok(Variant { name, file: None, breaks: None, says: Says::Key(key.path, texts) })
    };
    let variants = values.iter().map(variant).collect::<Result<Vec<_>, LabError>>()?;
    if variants.is_empty() {
        return Err(wrong(place, "is an empty list; give at least one value"));
    }
    Ok(Dimension { name: name.to_string(), variants })
}

fn named_variants(place: &str, name: &str, table: &toml::Table) -> Result<Dimension, LabError> {
    let mut variants = Vec::new();
    for (name, value) in table {
        let place = format!("{place}.{name}");
        let Some(table) = value.as_table() else {
            return Err(wrong(place, "must be a table of keys, as in { nodes = 3 }"));
        };
        let mut says = table.clone();
        let mut text = |key: &str| match says.remove(key) {
            None => Ok(None),
            Some(toml::Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(wrong(format!("{place}.{key}"), "must be a text")),
        };
        let (file, breaks) = (text("file")?, text("breaks")?);
        variants.push(Variant { name: name.clone(), file, breaks, says: Says::Table(says) });
    }
    if variants.is_empty() {
        return Err(wrong(place, "is empty; name at least one variant"));
    }
    Ok(Dimension { name: name.to_string(), variants })
}

/// One of the runs, in words.
pub(crate) struct Described {
    /// Its value in each dimension.
    pub(crate) coordinates: Vec<String>,
    pub(crate) scenario: Scenario,
    pub(crate) breaks: Option<String>,
}

/// The full cross product, the last dimension the fastest. `open` reads another scenario file.
pub(crate) fn cross(
    base: &Scenario,
    breaks: Option<&str>,
    dimensions: &[Dimension],
    open: &dyn Fn(&str) -> Result<Scenario, LabError>,
) -> Result<Vec<Described>, LabError> {
    let first = Described {
        coordinates: Vec::new(),
        scenario: base.clone(),
        breaks: breaks.map(str::to_string),
    };
    let sizes = dimensions.iter().map(|dimension| dimension.variants.len());
    let count = sizes.fold(1usize, usize::saturating_mul);
    if count > MAX_RUNS {
        let what = format!("makes more than {MAX_RUNS} runs; vary less at once");
        return Err(wrong(VARY, what));
    }
    let mut runs = vec![first];
    for dimension in dimensions {
        let mut more = Vec::with_capacity(runs.len() * dimension.variants.len());
        for run in &runs {
            for variant in &dimension.variants {
                more.push(variant.applied_to(run, open)?);
            }
        }
        runs = more;
    }
    Ok(runs)
}

impl Variant {
    fn applied_to(
        &self,
        run: &Described,
        open: &dyn Fn(&str) -> Result<Scenario, LabError>,
    ) -> Result<Described, LabError> {
        let mut scenario = run.scenario.clone();
        if let Some(file) = &self.file {
            scenario.overlay(&open(file)?);
        }
        match &self.says {
            Says::Key(path, values) => scenario.set(path, values.clone())?,
            Says::Table(table) => scenario.say(table)?,
        }
        let coordinates = run.coordinates.iter().chain([&self.name]).cloned().collect();
        let breaks = self.breaks.clone().or_else(|| run.breaks.clone());
        Ok(Described { coordinates, scenario, breaks })
    }
}

/// Some values of some dimensions: which runs are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection(Vec<(usize, Vec<String>)>);

impl Selection {
    pub(crate) fn read(
        place: &str,
        table: Option<&toml::Table>,
        dimensions: &[Dimension],
    ) -> Result<Self, LabError> {
        let mut selected = Vec::new();
        for (name, value) in table.into_iter().flatten() {
            let at = find(place, name, dimensions)?;
            let values = texts(place, value)?;
            for value in &values {
                if !dimensions[at].values().any(|known| known == value) {
                    return Err(one_of(place, name, value, dimensions[at].values()));
                }
            }
            selected.push((at, values));
        }
        Ok(Selection(selected))
    }

    /// Whether a run with these coordinates is meant.
    pub fn contains(&self, coordinates: &[String]) -> bool {
        self.0.iter().all(|(at, values)| values.contains(&coordinates[*at]))
    }

    /// The coordinates with the selected values in place of their own, where one is selected.
    pub(crate) fn moved(&self, coordinates: &[String]) -> Vec<String> {
        let mut moved = coordinates.to_vec();
        for (at, values) in &self.0 {
            if let [value] = values.as_slice() {
                moved[*at] = value.clone();
            }
        }
        moved
    }

    pub(crate) fn is_single(&self) -> bool {
        self.0.iter().all(|(_, values)| values.len() == 1)
    }

    /// Whether it says something about this dimension by leaving one value only.
    pub(crate) fn fixes(&self, dimension: usize) -> bool {
        self.0.iter().any(|(at, values)| *at == dimension && values.len() == 1)
    }
}

/// The dimension with this name.
pub(crate) fn find(place: &str, name: &str, dimensions: &[Dimension]) -> Result<usize, LabError> {
    let found = dimensions.iter().position(|dimension| dimension.name == name);
    found.ok_or_else(|| {
        one_of(place, "dimension", name, dimensions.iter().map(|one| one.name.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dimensions(text: &str) -> Result<Vec<Dimension>, LabError> {
        Dimension::read_all("experiment.vary", &text.parse().unwrap())
    }

    fn nothing(name: &str) -> Result<Scenario, LabError> {
        Err(wrong(name, "is not there"))
    }

    #[test]
    fn more_runs_than_anybody_waits_for_are_refused_before_they_are_made() {
        let seeds: Vec<String> = (0..1000).map(|seed| seed.to_string()).collect();
        let list = seeds.join(", ");
        let text = format!("run.seed = [{list}]\nrun.warmup = [{list}]\nrun.max-bypass = [{list}]");
        let error = cross(&Scenario::new(), None, &dimensions(&text).unwrap(), &nothing);
        let error = error.map(|runs| runs.len()).unwrap_err().to_string();
        assert!(error.starts_with("experiment.vary: makes more than 100000 runs"), "{error}");
    }

    #[test]
    fn the_cross_product_has_the_first_dimension_outermost() {
        let dimensions = dimensions(
            "workload.hold = [1, 'exp:2']\nload.low = { workload = { arrivals = 'serial' } }\n\
             load.high = {}\nnodes = [3]\n",
        )
        .unwrap();
        let names: Vec<&str> = dimensions.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["hold", "load", "nodes"]);
        let base = Scenario::new().with("algorithm", "lamport");
        let runs = cross(&base, None, &dimensions, &nothing).unwrap();
        let commands: Vec<String> = runs.iter().map(|run| run.scenario.command()).collect();
        assert_eq!(runs[1].coordinates, ["1", "high", "3"]);
        assert_eq!(
            commands,
            [
                "catraca sim --algorithm lamport --nodes 3 --arrivals serial --hold 1",
                "catraca sim --algorithm lamport --nodes 3 --hold 1",
                "catraca sim --algorithm lamport --nodes 3 --arrivals serial --hold exp:2",
                "catraca sim --algorithm lamport --nodes 3 --hold exp:2",
            ]
        );
    }

    #[test]
    fn a_variant_may_begin_with_another_file() {
        let dimensions = dimensions("of.a = { file = 'a.toml', nodes = 4, breaks = 'x' }").unwrap();
        let open = |name: &str| {
            assert_eq!(name, "a.toml");
            Ok(Scenario::new().with("algorithm", "raymond").with("nodes", 9))
        };
        let base = Scenario::new().with("run.seed", 3).with("algorithm", "lamport");
        let run = cross(&base, None, &dimensions, &open).unwrap().remove(0);
        assert_eq!(run.scenario.command(), "catraca sim --algorithm raymond --nodes 4 --seed 3");
        assert_eq!(run.breaks.as_deref(), Some("x"));
    }

    #[test]
    fn what_cannot_be_varied_is_refused() {
        let error = |text| dimensions(text).unwrap_err().to_string();
        assert_eq!(error("nodse = [1]"), "there is no key 'nodse'");
        assert_eq!(error("workload.hodl = [1]"), "there is no key 'workload.hodl'");
        assert!(error("nodes = []").contains("give at least one value"));
        assert!(error("nodes = 3").contains("a list of values, or a table of variants"));
        assert!(error("network.fast = {}").contains("a name that is no section"));
        assert!(error("load.low = 3").contains("experiment.vary.load.low: must be a table"));
        assert!(error("hold.a = {}\nworkload.hold = [1]").contains("'hold' is varied twice"));
    }

    #[test]
    fn a_selection_knows_its_dimensions_and_values() {
        let dimensions = dimensions("nodes = [3, 4]\nalgorithm = ['lamport', 'raymond']").unwrap();
        let read = |text: &str| Selection::read("where", Some(&text.parse().unwrap()), &dimensions);
        let selection = read("nodes = 4").unwrap();
        let run = |nodes: &str| [nodes.to_string(), "lamport".to_string()];
        assert!(selection.contains(&run("4")) && !selection.contains(&run("3")));
        assert_eq!(read("algorithm = 'raymond'").unwrap().moved(&run("3")), ["3", "raymond"]);
        assert!(read("node = 4").unwrap_err().to_string().contains("Did you mean 'nodes'?"));
        assert!(read("nodes = 5").unwrap_err().to_string().ends_with("There are: 3, 4"));
    }
}
