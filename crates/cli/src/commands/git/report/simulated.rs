//! The same figures of the simulated teams of S0.

use std::collections::BTreeMap;

use catraca_core::{Input, NodeId, ResourceId};
use catraca_lab::find;
use catraca_sim::{Hooks, Setup, run};
use catraca_topology::Clusters;
use catraca_trace::{Event, Outcome, Step};

use crate::failure::Failure;
use crate::{interrupt, progress};

/// The run that is compared with: files are locked one by one, by the algorithm that knows teams.
const EXPERIMENT: &str = "s0-teams";
const COORDINATES: [&str; 2] = ["real", "per file: bertier"];
/// What was simulated, in words.
pub(super) const WHAT: &str = "three teams of six on three continents, 100 files, changes of 3 hours on \
     average; run 'catraca experiment s0-teams' for all of it";
/// Who had a file before is looked at for so many changes: to look at all of them takes longer.
const LOOKED_AT: u64 = 20_000;
/// A unit of time of the experiment is a minute.
const MILLIS: f64 = 60_000.0;

/// Times are in milliseconds.
pub(super) struct Simulated {
    pub(super) people: Option<f64>,
    pub(super) network: Option<f64>,
    pub(super) percentile: Option<f64>,
    pub(super) hold: Option<f64>,
    pub(super) between: Option<f64>,
    /// Of all times that somebody got a file, those when somebody of the same team had had it before.
    pub(super) within: Option<f64>,
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
        let setup = experiment.runs.first().map(|run| run.setup.clone()).ok_or_else(missing)?;
        let results = experiment
            .measure(1, &interrupt::flag(), |_| {})
            .map_err(|error| Failure::of_scenario(error, None, |_| false))?;
        let within = within(&setup)?;
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
            hold: millis(Some(setup.workload.hold.mean())),
            between: report.messages_between_per_entry,
            within,
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

/// How often a file stays within a team, in a shorter run of the same.
fn within(setup: &Setup) -> Result<Option<f64>, Failure> {
    let Some(clusters) = setup.clusters.clone() else { return Ok(None) };
    let mut setup = setup.clone();
    setup.limits.entries = Some(LOOKED_AT);
    let mut teams =
        Teams { clusters, wanted: BTreeMap::new(), last: BTreeMap::new(), after: 0, within: 0 };
    let mut observer = |event: &Event| teams.event(event);
    let stop = interrupt::flag();
    let hooks = Hooks { observer: Some(&mut observer), stop: Some(&stop) };
    run(&setup, hooks).map_err(|error| Failure::input(error.to_string()))?;
    Ok((teams.after > 0).then(|| teams.within as f64 / teams.after as f64))
}

/// Which team had which file last.
struct Teams {
    clusters: Clusters,
    /// The files that somebody has asked for.
    wanted: BTreeMap<NodeId, Vec<ResourceId>>,
    last: BTreeMap<ResourceId, u32>,
    /// How often somebody had had the file before, and how often somebody of the same team.
    after: u64,
    within: u64,
}

impl Teams {
    fn event(&mut self, event: &Event) {
        let Event::Step(Step { node, input, outcomes, .. }) = event else { return };
        if let Input::Request(claim) = input {
            self.wanted.insert(*node, claim.resources().to_vec());
        }
        if !outcomes.iter().any(|outcome| matches!(outcome, Outcome::Granted(_))) {
            return;
        }
        let team = self.clusters.of(*node);
        for file in self.wanted.remove(node).into_iter().flatten() {
            if let Some(before) = self.last.insert(file, team) {
                self.after += 1;
                self.within += u64::from(before == team);
            }
        }
    }
}
