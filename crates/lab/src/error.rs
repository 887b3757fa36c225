//! What is wrong with an experiment.

use catraca_sim::ScenarioError;

/// How alike two names must be, from 0 to 1, for one to be suggested for the other.
const ALIKE: f64 = 0.7;

/// Why a file describes no experiment. One line that says where and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabError {
    /// Something about the runs.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Something about the experiment.
    #[error("{place}: {what}")]
    Wrong {
        /// The key.
        place: String,
        /// What is wrong with it, and what would be right.
        what: String,
    },
}

pub(crate) fn wrong(place: impl ToString, what: impl ToString) -> LabError {
    LabError::Wrong { place: place.to_string(), what: what.to_string() }
}

/// There is no such thing; what may have been meant, and what there is.
pub(crate) fn one_of<'a>(
    place: &str,
    what: &str,
    name: &str,
    valid: impl IntoIterator<Item = &'a str>,
) -> LabError {
    let valid: Vec<&str> = valid.into_iter().collect();
    let nearest = valid
        .iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .filter(|(likeness, _)| *likeness >= ALIKE);
    let guess = nearest.map_or(String::new(), |(_, nearest)| format!(" Did you mean '{nearest}'?"));
    let there_are = match valid.is_empty() {
        true => "There are none".to_string(),
        false => format!("There are: {}", valid.join(", ")),
    };
    wrong(place, format!("there is no {what} '{name}'.{guess} {there_are}"))
}
