//! The same figures of the simulated teams of S0.

use catraca_lab::find;

use crate::failure::Failure;
use crate::{interrupt, progress};

/// The run that is compared with: files are locked one by one, by the algorithm that knows teams.
const EXPERIMENT: &str = "s0-teams";
const COORDINATES: [&str; 2] = ["real", "per file: bertier"];
/// What was simulated, in words.
pub(super) const WHAT: &str = "three teams of six on three continents, 100 files, changes of 3 hours on \
     average; run 'catraca experiment s0-teams' for all of it";
/// A unit of time of the experiment is a minute.
const MILLIS: f64 = 60_000.0;

/// Times are in milliseconds.
pub(super) struct Simulated {
    pub(super) people: Option<f64>,
    pub(super) network: Option<f64>,
    pub(super) percentile: Option<f64>,
    pub(super) hold: Option<f64>,
    pub(super) between: Option<f64>,
}

impl Simulated {
    pub(super) fn run() -> Result<Self, Failure> {
        let missing =
            || Failure::System(anyhow::Error::msg("the experiment s0-teams is not there"));
        let mut experiment = find(EXPERIMENT).ok_or_else(missing)?.map_err(Failure::input)?;
        experiment.runs.retain(|run| run.coordinates == COORDINATES);
        experiment.seeds = 1;
        let bar = progress::line();
        bar.set_message("simulates the teams of s0-teams");
        let results = experiment
            .measure(1, &interrupt::flag(), |_| {})
            .map_err(|error| Failure::of_scenario(error, None, |_| false))?;
        bar.finish_and_clear();
        let results = results.ok_or(Failure::Interrupted)?;
        let row = results.rows.first().ok_or_else(missing)?;
        let report = row.reports.first().ok_or_else(missing)?;
        let millis = |minutes: Option<f64>| minutes.map(|minutes| minutes * MILLIS);
        let people = report.wait_in_use.zip(report.wait_in_line).map(|(used, line)| used + line);
        Ok(Simulated {
            people: millis(people),
            network: millis(report.wait_rest),
            percentile: millis(report.response_p99),
            // What the experiment's own file says of how long a change takes.
            hold: Some(180.0 * MILLIS),
            between: report.messages_between_per_entry,
        })
    }

    pub(super) fn wait(&self) -> Option<f64> {
        self.people.zip(self.network).map(|(people, network)| people + network)
    }

    pub(super) fn people_share(&self) -> Option<f64> {
        let wait = self.wait().filter(|wait| *wait > 0.0)?;
        self.people.map(|people| people / wait)
    }
}
