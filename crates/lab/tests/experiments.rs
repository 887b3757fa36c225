//! Every experiment runs, in a small version, and shows what its comment says.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

use std::sync::atomic::AtomicBool;

use catraca_lab::{Experiment, FILES, Results, Run, all, find, page, read_file};
use catraca_sim::{End, Report};

/// Runs are made so small here.
const MOST_NODES: u32 = 100;
const MOST_ENTRIES: u64 = 2_000;

fn small(name: &str) -> Experiment {
    let mut experiment = find(name).unwrap().unwrap();
    experiment.seeds = experiment.seeds.min(2);
    for run in &mut experiment.runs {
        if run.setup.clusters.is_none() && run.setup.spec.nodes > MOST_NODES {
            run.say("nodes", MOST_NODES).unwrap();
        }
        if run.setup.warmup > MOST_ENTRIES {
            run.say("run.warmup", MOST_ENTRIES).unwrap();
        }
        if run.setup.limits.entries.is_some_and(|entries| entries > MOST_ENTRIES) {
            run.say("run.entries", MOST_ENTRIES).unwrap();
        }
    }
    experiment
}

fn measured(experiment: &Experiment, threads: usize) -> Results {
    experiment.measure(threads, &AtomicBool::new(false), |_| {}).unwrap().unwrap()
}

fn report(name: &str) -> Report {
    let mut results = measured(&small(name), 1);
    results.rows.remove(0).reports.remove(0)
}

#[test]
fn every_experiment_runs_breaks_exactly_what_it_should_and_draws_its_pictures() {
    let mut finished = Vec::new();
    for experiment in all().unwrap() {
        let experiment = small(&experiment.name);
        let results = measured(&experiment, 2);
        assert_eq!(experiment.surprises(&results), [""; 0], "{}", experiment.name);
        let table = experiment.table(&results);
        assert_eq!(table.rows.len(), experiment.runs.len());
        for column in 0..table.columns.len() {
            let is_there = table.rows.iter().any(|row| row.figures[column].is_some());
            assert!(is_there, "{}: no run has {}", experiment.name, table.columns[column].name());
        }
        let undecided: Vec<String> = experiment
            .findings(&results)
            .into_iter()
            .filter(|finding| finding.found.is_none())
            .map(|finding| finding.claim.says.clone())
            .collect();
        assert_eq!(undecided, [""; 0], "{}", experiment.name);
        let pictures = experiment.pictures(&results).unwrap();
        let files: Vec<&String> = pictures.iter().map(|drawn| &drawn.file).collect();
        assert_eq!(files, experiment.picture_files().iter().collect::<Vec<_>>());
        for drawn in &pictures {
            assert!(!drawn.picture.svg().contains(">no data<"), "{} is empty", drawn.file);
        }
        finished.push((experiment, results, pictures));
    }
    let html = page(&finished);
    let pictures: usize = finished.iter().map(|(.., pictures)| pictures.len()).sum();
    assert_eq!(html.matches("<svg").count(), pictures);
    let runs: usize = finished.iter().map(|(experiment, ..)| experiment.runs.len()).sum();
    assert_eq!(html.matches("catraca sim --algorithm").count(), runs);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    for name in ["clusters", "s2-table"] {
        let experiment = small(name);
        assert_eq!(measured(&experiment, 1), measured(&experiment, 3), "{name}");
    }
}

#[test]
fn a_chart_over_time_is_of_all_seeds_and_says_how_certain_it_is() {
    let text = "algorithm = 'lamport'\n[workload]\nthink = 'exp:5'\n[run]\ntime = 50\n[experiment]\n\
                title = 't'\nquestion = 'q'\ncolumns = ['entries']\nseeds = 4\n\
                [[experiment.chart]]\nname = 'entries'\ntitle = 'e'\nover_time = 10\ny = 'entries'\n";
    let experiment = read_file("mine.toml".as_ref(), text).unwrap();
    let svg = |experiment: &Experiment| {
        let results = measured(experiment, 2);
        experiment.pictures(&results).unwrap().remove(0).picture.svg().to_string()
    };
    let several = svg(&experiment);
    assert!(several.contains(r#"class="interval""#), "{several}");
    let one = svg(&Experiment { seeds: 1, ..experiment });
    assert!(!one.contains(r#"class="interval""#));
    assert_ne!(one, several);
}

#[test]
fn an_experiment_that_is_stopped_has_no_results() {
    let experiment = small("clusters");
    let stopped = experiment.measure(2, &AtomicBool::new(true), |_| {}).unwrap();
    assert_eq!(stopped, None);
}

#[test]
fn every_experiment_begins_with_what_it_shows_and_the_command_to_run_it() {
    for (name, text) in FILES {
        let comment: Vec<&str> = text.lines().take_while(|line| line.starts_with('#')).collect();
        assert!(comment.first().is_some_and(|line| line.ends_with('.')), "{name}");
        let begins = |command: &str| comment.iter().any(|line| line.starts_with(command));
        assert!(
            begins(&format!("#     catraca experiment {name}"))
                || begins(&format!("#     catraca sim experiments/{name}.toml")),
            "{name}"
        );
    }
}

#[test]
fn the_comments_of_the_experiments_are_true() {
    let million = report("raymond-million");
    assert!(million.messages_per_entry < Some(4.0), "{million:?}");
    let plane = report("maekawa-plane").messages_per_entry.unwrap();
    assert!((9.0..=18.0).contains(&plane), "{plane}");
    let partition = report("partition");
    assert_eq!((partition.entries, partition.waiting), (1, 2));
    let crash = report("coordinator-crash");
    assert_eq!((crash.waiting, crash.end), (4, End::Violation));
    let clusters = report("clusters");
    assert!(clusters.response_mean > Some(40.0), "{clusters:?}");
    let schedule = report("schedule");
    assert_eq!((schedule.messages, schedule.longest_wait), (12, 4.5));
    let late = report("robust-late-detector");
    assert!(late.longest_wait > 40.0 && late.entries > 20, "{late:?}");
    let wrong = report("robust-wrong-detector").violation.unwrap().what;
    assert!(wrong.contains("node 3 was taken for crashed by node 1 at 5.5"), "{wrong}");
}

/// Reference: S4, section 5. What the comments of the files say to which `s4` refers.
#[test]
fn the_experiment_of_s4_has_the_entries_that_its_comments_say() {
    let experiment = find("s4").unwrap().unwrap();
    let results = measured(&experiment, 2);
    let of = |way: &str| {
        let is_meant = |run: &Run| run.coordinates == [way];
        let row = experiment.runs.iter().position(is_meant).unwrap();
        &results.rows[row].reports[0]
    };
    let raymond = of("raymond-k");
    assert_eq!((raymond.entries, raymond.waiting, raymond.time), (94, 1, 75.0));
    assert_eq!(raymond.last_entry, Some(27.51));
    let robust = of("robust-k, news immediate");
    assert_eq!((robust.entries, robust.waiting), (402, 0));
}

/// These run as they are: nothing in them is large.
#[test]
fn the_verdicts_on_the_figures_of_s4_are_those_of_the_runs() {
    for name in ["s4", "s4-dissemination"] {
        let experiment = find(name).unwrap().unwrap();
        let results = measured(&experiment, 2);
        for finding in experiment.findings(&results) {
            assert!(finding.agrees(), "{name}: {}: {}", finding.claim.says, finding.measured);
        }
    }
}
