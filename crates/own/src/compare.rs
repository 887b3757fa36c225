//! `compare`: the algorithm beside others of the catalogue, in one table.

use std::io::Write;
use std::sync::atomic::AtomicBool;

use catraca_algorithms::registry::ENTRIES;
use catraca_algorithms::{Load, Theory};
use catraca_core::Algorithm;
use catraca_sim::{
    Comparison, Estimate, Hooks, Job, Key, LoadKind, Own, Report, Row, Setup, run_algorithm,
    run_all,
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
        Flag {
            name: "load",
            value: "LOADS",
            help: "low, medium, high or several of them [default: low,medium,high]",
        },
        Flag {
            name: "seeds",
            value: "NUMBER",
            help: "With how many seeds every run is made, from --seed on [default: 1]",
        },
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

const OF_SEEDS: &str = "\
Figures are means over the seeds, longest and bypass the most of all. ±: half the width of Student's
interval of 95 %; where there is none, all seeds agree.";

const OF_ONE_SEED: &str = "\
One seed, so no interval says how certain these figures are; --seeds 5 takes five.";

/// More seeds than this would take too long.
const MOST_SEEDS: u32 = 1000;

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
    let reports = || rows.iter().flat_map(|row| &row.reports);
    let is_broken = reports().any(|report| report.violation.is_some());
    let gave_up = reports().any(|report| report.end.gave_up().is_some());
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
    // One seed unless more are asked for: what is wanted here is an answer within seconds.
    let seeds = said.count::<u32>("seeds")?.unwrap_or(1);
    if seeds > MOST_SEEDS {
        return Err(Failure::Input(format!(
            "--seeds: {seeds} are too many; take up to {MOST_SEEDS}"
        )));
    }
    let mut comparison =
        Comparison { algorithms, common: said.scenario.clone(), seeds, ..Comparison::default() };
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
        let load = |text: &str| {
            let named = LoadKind::NAMED.into_iter().find(|load| load.name() == Some(text));
            let what = format!("--load: there is no load '{text}': say low, medium or high");
            named.ok_or(Failure::Input(what))
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

/// A figure over all seeds of a row, if it has a value with each of them.
pub(crate) fn estimate(row: &Row, figure: impl Fn(&Report) -> Option<f64>) -> Option<Estimate> {
    let values = row.reports.iter().map(figure);
    Estimate::of(&values.collect::<Option<Vec<f64>>>()?)
}

/// The own rows and those of the catalogue: by load, by size, the own one first.
fn measure<A: OwnAlgorithm>(comparison: &Comparison) -> Result<Vec<Row>, Failure> {
    let (own_jobs, jobs) = (comparison.jobs_own(own::<A>())?, comparison.jobs()?);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let never = AtomicBool::new(false);
    let measure_own = || {
        let row = |job: Job| {
            let one = |repeat: u32| {
                let setup = Setup { seed: job.seed(repeat), ..job.setup.clone() };
                drive::<A, _>(None, job.spec().nodes, Measure(&setup))
            };
            let reports = (0..job.seeds).map(one).collect::<Result<Vec<Report>, Failure>>()?;
            Ok(Row { job, reports })
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
    let Some(Row { job, .. }) = rows.first() else { return Ok(()) };
    writeln!(
        out,
        "T = {} (a message), E = {} (inside), {}\n",
        number(job.setup.network.latency.mean()),
        number(job.setup.workload.hold.mean()),
        seeds(job)
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
    let of_seeds = if job.seeds > 1 { OF_SEEDS } else { OF_ONE_SEED };
    writeln!(out, "\n{LEGEND}\n{of_seeds}")?;
    for row in rows {
        let (name, nodes) = (&row.job.spec().algorithm, row.job.spec().nodes);
        let load = row.job.load_name();
        for (repeat, report) in (0..).zip(&row.reports) {
            let run =
                format!("{name} on {nodes} nodes, {load} load, seed {}", row.job.seed(repeat));
            if let Some(violation) = &report.violation {
                writeln!(out, "violation: {run}: {}: {}", violation.invariant, violation.what)?;
            } else if let Some(why) = report.end.gave_up() {
                writeln!(out, "gave up: {run}: {why}")?;
            }
        }
    }
    Ok(())
}

/// With which seeds a row was measured.
pub(crate) fn seeds(job: &Job) -> String {
    match job.seeds {
        1 => format!("seed {}", job.seed(0)),
        count => format!("seeds {} to {}", job.seed(0), job.seed(count - 1)),
    }
}

fn line(row: &Row) -> Vec<String> {
    let spec = row.job.spec();
    let mean = |figure: fn(&Report) -> Option<f64>| estimate(row, figure).map(|one| one.mean);
    let most = |figure: fn(&Report) -> f64| row.reports.iter().map(figure).fold(0.0, f64::max);
    let certain =
        |figure: fn(&Report) -> Option<f64>| estimate(row, figure).map_or("-".into(), shown);
    let theory = |theory: Theory| match theory.messages {
        messages if messages.min == messages.max => number(messages.min),
        messages => format!("{}..{}", number(messages.min), number(messages.max)),
    };
    // At low load the pauses decide it, not the algorithm.
    let throughput = match row.job.load {
        LoadKind::Closed(Load::Low) => None,
        _ => mean(|report| report.throughput_of_bound),
    };
    vec![
        row.job.load_name(),
        spec.nodes.to_string(),
        spec.algorithm.clone(),
        certain(|report| report.messages_per_entry),
        row.job.setup.theory().map_or("-".to_string(), theory),
        number(mean(|report| report.delay)),
        certain(|report| report.response_mean),
        number(mean(|report| report.response_p99)),
        number(most(|report| report.longest_wait)),
        number(throughput),
        mean(|report| report.fairness).map_or("-".to_string(), |jain| format!("{jain:.3}")),
        format!("{:.0}", most(|report| report.most_bypasses.into())),
    ]
}

/// A figure with its interval, if it has one.
fn shown(estimate: Estimate) -> String {
    match estimate.half_width > 0.0 {
        true => format!("{}±{}", number(estimate.mean), number(estimate.half_width)),
        false => number(estimate.mean),
    }
}
