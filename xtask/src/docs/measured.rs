//! What runs of the simulator show of an algorithm: a table of figures, and a picture.

use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use catraca_core::NodeId;
use catraca_draw::{DiagramOptions, StripNode, StripPanel, space_time, strip};
use catraca_lab::read_file;
use catraca_sim::evolving::{self, NodeView, Setup, Snapshot, Workload, run_observed};
use catraca_sim::{Hooks, Scenario, TICKS_PER_UNIT, run};
use catraca_topology::evolving::generate::broken_ring;
use catraca_trace::{Event, Header, Origin, Trace};

/// The experiment that is made with each algorithm. At low load the algorithms are asked by one node at a
/// time, at high load by everybody, as `catraca compare` does.
const EXPERIMENT: &str = r#"
[run]
entries = 1000
[experiment]
title = "Messages and delay"
question = "What does an entry cost?"
columns = ["messages_per_entry", "theory_least", "theory_most", "delay", "response_mean"]
seeds = 5
[experiment.vary.load]
low = { workload = { arrivals = "serial", pause = 10 } }
high = {}
[experiment.vary.N]
4 = { nodes = 4, run = { warmup = 16 } }
16 = { nodes = 16, run = { warmup = 64 } }
64 = { nodes = 64, run = { warmup = 256 } }
"#;

/// The figures of an algorithm, as a table in Markdown.
pub(super) fn table(algorithm: &str) -> Result<String> {
    let text = format!("algorithm = \"{algorithm}\"\n{EXPERIMENT}");
    let experiment = read_file("catalogue.toml".as_ref(), &text)?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let results = experiment
        .measure(threads, &AtomicBool::new(false), |_| {})?
        .context("nobody stops it, so it ends")?;
    let mut lines = vec![
        "| load | N | messages per entry | theory | delay in T | mean response in T |".to_string(),
        "|---|---|---|---|---|---|".to_string(),
    ];
    for row in experiment.table(&results).words() {
        let [load, nodes, messages, least, most, delay, response] = row.as_slice() else {
            anyhow::bail!("a row of the experiment has {} cells", row.len());
        };
        let theory = if least == most { least.clone() } else { format!("{least} to {most}") };
        lines.push(format!("| {load} | {nodes} | {messages} | {theory} | {delay} | {response} |"));
    }
    Ok(lines.join("\n"))
}

/// What is said of the run that the picture of an algorithm shows, besides its name.
fn pictured(algorithm: &str) -> Vec<(&'static str, &'static str)> {
    let mut said =
        vec![("nodes", "4"), ("workload.rounds", "1"), ("network.delay", "uniform:0.5..1.5")];
    match algorithm {
        "bertier" => said[0] = ("clusters", "2x2"),
        "bouabdallah-laforest" => said.extend([("resources", "3"), ("workload.claim", "1..2")]),
        "raymond-k" | "robust-k" => said.push(("k", "2")),
        _ => {}
    }
    said
}

/// A run of an algorithm as a picture, with the command that draws it.
pub(super) fn picture(algorithm: &str) -> Result<(String, String)> {
    let mut scenario = Scenario::new().with("algorithm", algorithm);
    for (key, value) in pictured(algorithm) {
        scenario = scenario.with(key, value);
    }
    let setup = scenario.setup()?;
    let mut events = Vec::new();
    let mut observer = |event: &Event| events.push(event.clone());
    run(&setup, Hooks { observer: Some(&mut observer), stop: None })?;
    let header = Header::new(Origin::Sim, setup.spec.clone(), TICKS_PER_UNIT);
    let picture = space_time(&Trace { header, events }, &DiagramOptions::default())?;
    let command = format!("{} --diagram {algorithm}.svg", scenario.command());
    Ok((picture.svg().to_string(), command))
}

/// How often everybody asks in the runs on evolving graphs that are measured.
pub(super) const ROUNDS: u32 = 20;

/// The figures of an algorithm for evolving graphs, as a table in Markdown.
pub(super) fn evolving_table(algorithm: &str) -> Result<String> {
    let mut lines = vec![
        "| who asks | N | bytes per entry | largest label, bytes | mean response, instants |"
            .to_string(),
        "|---|---|---|---|---|".to_string(),
    ];
    for (who, is_everybody) in [("node 1", false), ("everybody", true)] {
        for nodes in [4, 8, 16] {
            let graph = broken_ring(nodes)?;
            let asks = NodeId::all(nodes).filter(|node| is_everybody || node.0 == 1);
            let requests = asks.map(|node| (0, node)).collect();
            let workload = Workload { requests, rounds: Some(ROUNDS), hold: 1, pause: 0 };
            let setup = Setup::new(&graph, workload);
            let hooks = evolving::Hooks { observer: None, stop: None };
            let report = run_observed(algorithm, &setup, hooks)?;
            let bytes = report.bytes_per_entry().context("somebody enters")?;
            let (label, wait) =
                (report.largest_label, report.wait_mean.context("somebody enters")?);
            lines.push(format!("| {who} | {nodes} | {bytes:.0} | {label} | {wait:.2} |"));
        }
    }
    Ok(lines.join("\n"))
}

/// A run on an evolving graph as a picture, with the commands that draw it.
pub(super) fn strip_of(algorithm: &str) -> Result<(String, [String; 2])> {
    /// How many nodes the ring has, and who of them asks.
    const NODES: u32 = 4;
    const REQUESTERS: [u32; 2] = [1, 3];
    let graph = broken_ring(NODES)?;
    let workload = Workload::once(REQUESTERS.map(NodeId).to_vec(), 0);
    let setup = Setup::new(&graph, workload);
    let mut panels = Vec::new();
    let mut observer = |snapshot: Snapshot| panels.push(panel(snapshot));
    run_observed(algorithm, &setup, evolving::Hooks { observer: Some(&mut observer), stop: None })?;
    let picture = strip(&format!("{algorithm} on ring.txt"), graph.names(), &panels)?;
    let commands = [
        format!("catraca graph generate ring --nodes {NODES} --output ring.txt"),
        format!(
            "catraca graph run ring.txt --algorithm {algorithm} --requesters 1,3 --strip {algorithm}.svg"
        ),
    ];
    Ok((picture.svg().to_string(), commands))
}

fn panel(snapshot: Snapshot) -> StripPanel {
    let node = |node: &NodeView| StripNode {
        phase: node.phase,
        has_token: node.has_token,
        pending: node.pending.iter().map(|one| (one.requester, one.answers)).collect(),
    };
    StripPanel {
        at: snapshot.at,
        nodes: snapshot.nodes.iter().map(node).collect(),
        edges: snapshot.edges,
    }
}
