//! Random runs of members: nothing breaks, and in the end everybody is served.

use catraca_algorithms::registry::ENTRIES;
use catraca_sim::End;
use catraca_sim::members::{Report, random_scenario};

use crate::figures;

/// Runs of each algorithm.
const RUNS: u64 = 40;

/// The figures of every run. Whatever breaks is shown with the command that repeats it.
fn swarm() -> Vec<Report> {
    let mut reports = Vec::new();
    for (number, entry) in (0..).zip(ENTRIES) {
        for seed in 0..RUNS {
            let scenario = random_scenario(entry, 1000 * number + seed);
            let command = scenario.command();
            let setup = scenario.members().unwrap().unwrap();
            let report = figures(&setup);
            assert_eq!(report.violation, None, "{command}");
            assert_eq!(report.end, End::Quiet, "{command}");
            let crashes = scenario.values("faults.events").iter().any(|it| it.starts_with("crash"));
            if !crashes {
                let served = report.entries >= u64::from(setup.clients * setup.at_once);
                assert!(served && report.waiting == 0, "not everybody is served: {command}");
            }
            reports.push(report);
        }
    }
    reports
}

#[test]
fn random_runs_break_nothing_and_serve_everybody_and_reach_every_path() {
    let reports = swarm();
    let refused = |code: &str| {
        reports.iter().any(|report| report.refused.iter().any(|(known, _)| known == code))
    };
    for code in ["taken", "not-ready", "member-silent"] {
        assert!(refused(code), "nobody was refused: {code}");
    }
    let some = |count: fn(&Report) -> u64| reports.iter().any(|report| count(report) > 0);
    assert!(some(|report| report.timed_out) && some(|report| report.cancelled));
    assert!(some(|report| report.vanished) && some(|report| report.lost));
    assert!(some(|report| report.handovers) && some(|report| report.within));
    assert!(reports.iter().any(|report| report.is_stuck), "no crash has stopped a group");
}
