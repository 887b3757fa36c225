//! The experiments that the library carries, so that they can be run from anywhere.

use std::path::Path;

use catraca_sim::{EXPERIMENT, Scenario, read_text};

use crate::error::{LabError, wrong};
use crate::experiment::Experiment;

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        /// Every file of the folder `experiments`: its name without the ending, and its text.
        pub const FILES: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../experiments/", $name, ".toml")))),+
        ];
    };
}

files![
    "clusters",
    "coordinator-crash",
    "maekawa-plane",
    "partition",
    "raymond-million",
    "robust-late-detector",
    "robust-wrong-detector",
    "s0-clusters",
    "s0-path-reversal",
    "s0-teams",
    "s2-table",
    "s4-cycle",
    "s4-detector",
    "s4-dissemination",
    "s4-raymond",
    "s4-robust",
    "s4-scale",
    "s4",
    "schedule",
];

/// The names of the experiments, in order. Files that others refer to are not among them.
pub fn names() -> Vec<&'static str> {
    let is_experiment =
        |text: &str| catraca_sim::table(text).is_ok_and(|table| table.contains_key(EXPERIMENT));
    FILES.iter().filter(|(_, text)| is_experiment(text)).map(|(name, _)| *name).collect()
}

/// The experiment with this name.
pub fn find(name: &str) -> Option<Result<Experiment, LabError>> {
    let (name, text) = FILES.iter().find(|(known, _)| *known == name)?;
    Some(Experiment::read(name, text, &|file| {
        let found = FILES.iter().find(|(known, _)| file.strip_suffix(".toml") == Some(known));
        match found {
            Some((_, text)) => Ok(Scenario::from_toml(text)?),
            None => Err(wrong(file, "there is no such file among the experiments")),
        }
    }))
}

/// All experiments, in the order of their names.
pub fn all() -> Result<Vec<Experiment>, LabError> {
    names().into_iter().filter_map(find).collect()
}

/// Reads an experiment of the user's. The files that it refers to are beside it.
pub fn read_file(path: &Path, text: &str) -> Result<Experiment, LabError> {
    let name = path.file_stem().map_or("experiment".into(), |stem| stem.to_string_lossy());
    let folder = path.parent().unwrap_or(Path::new(""));
    Experiment::read(&name, text, &|file| {
        let place = folder.join(file);
        let text = read_text(&place).map_err(|error| {
            let what = format!(
                "the scenario file '{}' cannot be read: {error}; name one that is beside this file",
                place.display()
            );
            wrong("file", what)
        })?;
        Scenario::from_toml(&text).map_err(|error| wrong(place.display(), error))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_carried() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        let carried: Vec<String> = FILES.iter().map(|(name, _)| format!("{name}.toml")).collect();
        assert_eq!(carried, names);
    }
}
