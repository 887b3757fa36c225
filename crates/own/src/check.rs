//! `check`: every interleaving of a small group, and the shortest way to what is broken.

use std::io::Write;
use std::num::NonZero;
use std::path::Path;
use std::thread;

use catraca_algorithms::Spec;
use catraca_check::{Network, Options, Report, Verdict, Violation, check_group};
use catraca_core::Algorithm;
use catraca_draw::{DiagramOptions, space_time};
use catraca_sim::{Key, Order, Own};

use crate::failure::Failure;
use crate::files::{self, PictureFile};
use crate::flags::{Command, Flag, Said};
use crate::{Driver, OwnAlgorithm, drive, help, own, table};

pub(crate) const CHECK: Command = Command {
    name: "check",
    about: "Explores every order of events in a small group, and tells what breaks",
    operand: None,
    takes: |key: &Key| Own::takes(key) && SAID_OF_GROUP.contains(&key.path),
    flags: &[
        Flag { name: "nodes", value: "N", help: "How many nodes [default: 2, then 3]" },
        Flag { name: "requests", value: "N", help: "How often each of them asks [default: 2]" },
        Flag { name: "crashes", value: "N", help: "How many may crash [default: 0]" },
        Flag {
            name: "states",
            value: "N",
            help: "Gives up after so many states [default: 20000000]",
        },
    ],
};

const SAID_OF_GROUP: [&str; 5] =
    ["mutant", "start", "network.order", "output.diagram", "output.trace"];

/// Of so many states a few gigabytes are kept; then it is time to take a smaller group.
const MOST_STATES: u64 = 20_000_000;

pub(crate) fn run<A: OwnAlgorithm>(words: &[String], out: &mut dyn Write) -> Result<(), Failure> {
    let said = CHECK.parse(words)?;
    if said.wants_help {
        return Ok(help::command(&CHECK, out)?);
    }
    let picture = said.scenario.value("output.diagram").map(PictureFile::at).transpose()?;
    let trace = said.scenario.value("output.trace").map(Path::new);
    trace.map_or(Ok(()), files::check_folder)?;
    let sizes = said.count::<u32>("nodes")?.map_or(vec![2, 3], |nodes| vec![nodes]);
    let mut rows = Vec::new();
    let mut found: Option<Box<Violation>> = None;
    let mut gave_up = None;
    for nodes in sizes {
        let group = said.scenario.clone().with("nodes", nodes);
        let group = ["network.order", "output.diagram", "output.trace"]
            .iter()
            .fold(group, |group, key| group.without(key));
        let spec = group.setup_own(own::<A>())?.spec;
        let options = options::<A>(&said, &spec)?;
        let explore = Explore { spec: &spec, options: &options };
        let report = drive::<A, _>(group.value("mutant"), nodes, explore)?;
        rows.push(line(&spec, &options, &report));
        match report.verdict {
            Verdict::Holds => continue,
            Verdict::Violated(violation) => found = Some(violation),
            other => gave_up = Some(why(&other)),
        }
        break;
    }
    let head = ["algorithm", "N", "requests", "network", "states", "depth", "seconds", "verdict"];
    table::print(&head, &["algorithm", "network", "verdict"], &rows, out)?;
    if let Some(violation) = found {
        tell(&violation, picture, trace, out)?;
        return Err(Failure::Violation);
    }
    match gave_up {
        None => Ok(()),
        Some(why) => {
            writeln!(out, "\ngave up: {why}")?;
            Err(Failure::GaveUp)
        }
    }
}

/// Explores one group.
struct Explore<'a> {
    spec: &'a Spec,
    options: &'a Options,
}

impl Driver for Explore<'_> {
    type Output = Report;

    fn drive<B: Algorithm>(self, config: B::Config) -> Report {
        check_group::<B>(config, self.spec, self.options, &mut |_| {})
    }
}

fn options<A: OwnAlgorithm>(said: &Said, spec: &Spec) -> Result<Options, Failure> {
    let crashes = match said.own("crashes") {
        None | Some("0") => 0,
        Some(_) => said.count::<u32>("crashes")?.unwrap_or(0),
    };
    if crashes >= spec.nodes {
        let what = format!("--crashes: {crashes} of {} nodes would leave nobody", spec.nodes);
        return Err(Failure::Input(what));
    }
    let network = match said.scenario.order()? {
        None => A::CHANNELS.into(),
        Some(Order::Fifo) => Network::Fifo,
        Some(Order::Any) => Network::Any,
    };
    Ok(Options {
        requests: said.count::<u32>("requests")?.unwrap_or(2),
        crashes,
        claims: Vec::new(),
        network,
        threads: thread::available_parallelism().map_or(1, NonZero::get),
        memory_limit: None,
        state_limit: Some(said.count::<u64>("states")?.unwrap_or(MOST_STATES)),
        stop: None,
    })
}

fn line(spec: &Spec, options: &Options, report: &Report) -> Vec<String> {
    let verdict = match &report.verdict {
        Verdict::Holds => "holds".to_string(),
        Verdict::Violated(violation) => format!("VIOLATED: {}", violation.property),
        _ => "no verdict".to_string(),
    };
    let mutant = spec.mutant.as_ref().map(|name| format!("-{name}")).unwrap_or_default();
    vec![
        format!("{}{mutant}", spec.algorithm),
        spec.nodes.to_string(),
        options.requests.to_string(),
        options.network.to_string(),
        report.states.to_string(),
        report.depth.to_string(),
        format!("{:.2}", report.elapsed.as_secs_f64()),
        verdict,
    ]
}

fn why(verdict: &Verdict) -> String {
    match verdict {
        Verdict::TooManyStates { limit } => format!(
            "more than {limit} states; every property holds in those seen so far. Take fewer nodes or \
             requests, or raise --states. If there is no end of them, something counts on in the states \
             of the nodes or in messages although nobody enters: leave it out of both."
        ),
        Verdict::TooLarge { what, most } => format!("too many {what}; take up to {most}"),
        Verdict::OutOfMemory { .. } | Verdict::Interrupted => "it was stopped".to_string(),
        Verdict::Holds | Verdict::Violated(_) => String::new(),
    }
}

/// The shortest way to what is broken, in words, as a file and as a picture.
fn tell(
    violation: &Violation,
    picture: Option<PictureFile>,
    trace: Option<&Path>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    writeln!(out, "\nit breaks '{}': {}", violation.property, violation.what)?;
    writeln!(out, "The shortest way there:")?;
    for event in &violation.trace.events {
        writeln!(out, "{:>4}  {event}", event.at())?;
    }
    if let Some(cycle) = &violation.cycle {
        writeln!(out, "Steps {} to {} repeat for ever.", cycle.start(), cycle.end())?;
    }
    if let Some(path) = trace {
        let mut content = Vec::new();
        violation.trace.write(&mut content)?;
        files::write(path, &content)?;
    }
    if let Some(picture) = picture {
        picture.write(&space_time(&violation.trace, &DiagramOptions::default())?)?;
        picture.tell(out)?;
    }
    Ok(())
}
