//! `compare`: the algorithm beside others of the catalogue, in one table.

use std::io::Write;
use std::sync::atomic::AtomicBool;

use catraca_algorithms::registry::ENTRIES;
use catraca_algorithms::{Load, Theory};
use catraca_core::Algorithm;
use catraca_sim::{
    Comparison, Hooks, Job, Key, LoadKind, Own, Report, Row, Setup, run_algorithm, run_all,
};

use crate::failure::Failure;
use crate::files::PictureFile;
use crate::flags::{Command, Flag, Said};
use crate::table::{self, number};
use crate::{Driver, OwnAlgorithm, chart, drive, help, own};

/// One of each family, none of which takes long.
const BESIDE: &str = "ricart-agrawala,maekawa,suzuki-kasami,raymond,naimi-trehel";

pub(crate) const COMPARE: Command = Command {
    name: "compare",
    about: "Runs it beside algorithms of the catalogue and prints one table",
    operand: None,
    takes: |key: &Key| Own::takes(key) && SAID_OF_ALL.contains(&key.path),
    flags: &[
        Flag {
            name: "algorithms",
            value: "NAMES",
            help: "With which, with commas, 'all' or 'none' [default: one of each family]",
        },
        Flag { name: "nodes", value: "N,...", help: "How many nodes [default: 4,16,64]" },
        Flag { name: "load", value: "LOADS", help: "low, high or both [default: low,high]" },
        Flag {
            name: "plot",
            value: "FILE",
            help: "Draws messages per entry and response over N, .svg, .png or .pdf",
        },
    ],
};

/// What can be said of all runs at once.
const SAID_OF_ALL: [&str; 9] = [
    "clusters",
    "workload.rate",
    "workload.hold",
    "workload.locality",
    "network.delay",
    "network.lan",
    "network.wan",
    "run.seed",
    "run.entries",
];

const LEGEND: &str = "\
msgs: messages per entry; theory: the formula evaluated, where there is one. delay: from a release to
the next entry, in T. resp, p99, longest: from request to entry. thrput: entries in the time T+E of a
message and a stay. Jain: fairness over nodes, 1 is best. bypass: the most later requests that overtook one.";

pub(crate) fn run<A: OwnAlgorithm>(words: &[String], out: &mut dyn Write) -> Result<(), Failure> {
    let said = COMPARE.parse(words)?;
    if said.wants_help {
        return Ok(help::command(&COMPARE, out)?);
    }
    let plot = said.own("plot").map(PictureFile::at).transpose()?;
    let rows = measure::<A>(&comparison(&said)?)?;
    print(&rows, out)?;
    if let Some(plot) = plot {
        plot.write(&chart::plot(&rows))?;
        plot.tell(out)?;
    }
    let is_broken = rows.iter().any(|row| report(row).violation.is_some());
    let gave_up = rows.iter().any(|row| report(row).end.gave_up().is_some());
    match (is_broken, gave_up) {
        (true, _) => Err(Failure::Violation),
        (false, true) => Err(Failure::GaveUp),
        (false, false) => Ok(()),
    }
}

fn comparison(said: &Said) -> Result<Comparison, Failure> {
    let algorithms = match said.own("algorithms") {
        Some("none") => Vec::new(),
        Some("all") => ENTRIES.iter().map(|entry| entry.name.to_string()).collect(),
        Some(_) => said.list("algorithms").into_iter().map(str::to_string).collect(),
        None => BESIDE.split(',').map(str::to_string).collect(),
    };
    // One seed: what is wanted here is an answer within seconds.
    let mut comparison =
        Comparison { algorithms, common: said.scenario.clone(), seeds: 1, ..Comparison::default() };
    if said.own("nodes").is_some() {
        let size = |text: &str| match text.parse::<u32>() {
            Ok(nodes) if nodes > 0 => Ok(nodes),
            _ => Err(Failure::Input(format!("--nodes: '{text}' is no number of nodes: say 4,16"))),
        };
        comparison.nodes = said.list("nodes").into_iter().map(size).collect::<Result<_, _>>()?;
    }
    if comparison.common.says("workload.rate") {
        comparison.loads = vec![LoadKind::Open];
    } else if said.own("load").is_some() {
        let load = |text: &str| match text {
            "low" => Ok(LoadKind::Closed(Load::Low)),
            "high" => Ok(LoadKind::Closed(Load::High)),
            _ => Err(Failure::Input(format!("--load: there is no load '{text}': say low or high"))),
        };
        comparison.loads = said.list("load").into_iter().map(load).collect::<Result<_, _>>()?;
    }
    Ok(comparison)
}

/// One run of a comparison.
struct Measure<'a>(&'a Setup);

impl Driver for Measure<'_> {
    type Output = Report;

    fn drive<B: Algorithm>(self, config: B::Config) -> Report {
        run_algorithm::<B>(self.0, config, Hooks::default())
    }
}

/// What the one seed of a row has shown.
pub(crate) fn report(row: &Row) -> &Report {
    &row.reports[0]
}

/// The own rows and those of the catalogue: by load, by size, the own one first.
fn measure<A: OwnAlgorithm>(comparison: &Comparison) -> Result<Vec<Row>, Failure> {
    let (own_jobs, jobs) = (comparison.jobs_own(own::<A>())?, comparison.jobs()?);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let never = AtomicBool::new(false);
    let measure_own = || {
        let row = |job: Job| {
            let report = drive::<A, _>(None, job.spec().nodes, Measure(&job.setup))?;
            Ok(Row { job, reports: vec![report] })
        };
        own_jobs.into_iter().map(row).collect::<Result<Vec<Row>, Failure>>()
    };
    let (own_rows, others) = std::thread::scope(|scope| {
        let others = scope.spawn(|| run_all(jobs, threads, &never, |_| {}));
        let own_rows = measure_own();
        let others = others.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (own_rows, others)
    });
    let mut others = others?;
    let mut rows = Vec::new();
    for own_row in own_rows? {
        let is_beside = |row: &mut Row| {
            row.job.load == own_row.job.load && row.job.spec().nodes == own_row.job.spec().nodes
        };
        let beside: Vec<Row> = others.extract_if(.., is_beside).collect();
        rows.push(own_row);
        rows.extend(beside);
    }
    Ok(rows)
}

fn print(rows: &[Row], out: &mut dyn Write) -> Result<(), Failure> {
    let Some(Row { job: Job { setup, .. }, .. }) = rows.first() else { return Ok(()) };
    writeln!(
        out,
        "T = {} (a message), E = {} (inside), seed {}\n",
        number(setup.network.latency.mean()),
        number(setup.workload.hold.mean()),
        setup.seed
    )?;
    let head = [
        "load",
        "N",
        "algorithm",
        "msgs",
        "theory",
        "delay",
        "resp",
        "p99",
        "longest",
        "thrput",
        "Jain",
        "bypass",
    ];
    let mut lines: Vec<Vec<String>> = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        // The own row begins a group.
        if place > 0 && row.job.spec().algorithm == rows[0].job.spec().algorithm {
            lines.push(Vec::new());
        }
        lines.push(line(row));
    }
    table::print(&head, &["load", "algorithm"], &lines, out)?;
    writeln!(out, "\n{LEGEND}")?;
    for row in rows {
        let (name, nodes) = (&row.job.spec().algorithm, row.job.spec().nodes);
        if let Some(violation) = &report(row).violation {
            let what = format!("{}: {}", violation.invariant, violation.what);
            writeln!(
                out,
                "violation: {name} on {nodes} nodes, {} load: {what}",
                row.job.load_name()
            )?;
        } else if let Some(why) = report(row).end.gave_up() {
            writeln!(out, "gave up: {name} on {nodes} nodes, {} load: {why}", row.job.load_name())?;
        }
    }
    Ok(())
}

fn line(row: &Row) -> Vec<String> {
    let (spec, report) = (row.job.spec(), report(row));
    let theory = |theory: Theory| match theory.messages {
        messages if messages.min == messages.max => number(messages.min),
        messages => format!("{}..{}", number(messages.min), number(messages.max)),
    };
    // At low load the pauses decide it, not the algorithm.
    let throughput = match row.job.load {
        LoadKind::Closed(Load::Low) => None,
        _ => report.throughput_of_bound,
    };
    vec![
        row.job.load_name(),
        spec.nodes.to_string(),
        spec.algorithm.clone(),
        number(report.messages_per_entry),
        row.job.setup.theory().map_or("-".to_string(), theory),
        number(report.delay),
        number(report.response_mean),
        number(report.response_p99),
        number(report.longest_wait),
        number(throughput),
        report.fairness.map_or("-".to_string(), |jain| format!("{jain:.3}")),
        report.most_bypasses.to_string(),
    ]
}
