//! The same scenario in the simulator and over TCP: the same entries in the same order, and the same
//! messages of each kind.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use catraca_core::Input;
use catraca_node::{Guard, Node};
use catraca_sim::{Hooks, Scenario, run};
use catraca_trace::{Event, Outcome};
use support::{configs, group_of, listeners};

const LIMIT: Duration = Duration::from_secs(30);

/// What an application does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Request(usize),
    Release(usize),
}

/// What a run shows from outside.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    entries: Vec<usize>,
    messages: BTreeMap<String, u64>,
}

/// Members have so many seats in a namespace that knows sets; the simulator's nodes are seats.
const SET_SEATS: usize = catraca_node::MOST_SETS as usize;

/// Three rounds in which each of three nodes asks once, while the one before it is inside, in another
/// order each. Requests are so far apart that every message has arrived before the next one.
fn scenario(algorithm: &str, nodes: usize, seats: usize) -> Scenario {
    let rounds = [[1, 0, 2], [2, 1, 0], [0, 1, 2]];
    let schedule = rounds.iter().enumerate().flat_map(|(round, order)| {
        let at = move |place: usize| 1000 * round + 100 * place;
        let asks = order.iter().enumerate();
        asks.map(move |(place, node)| format!("{} at {}", node * seats, at(place)))
    });
    let schedule = schedule.collect();
    let mut scenario = Scenario::new()
        .with("algorithm", algorithm)
        .with("nodes", nodes * seats)
        .with("workload.arrivals", "schedule")
        .with("workload.hold", 249);
    scenario.set("workload.schedule", schedule).unwrap();
    scenario
}

/// What the simulator sees, and what its applications did, in order.
fn simulated(scenario: &Scenario, seats: usize) -> (Seen, Vec<Act>) {
    let (mut acts, mut entries) = (Vec::new(), Vec::new());
    let mut messages: BTreeMap<String, u64> = BTreeMap::new();
    let mut observer = |event: &Event| {
        let Event::Step(step) = event else { return };
        let member = step.node.index() / seats;
        match step.input {
            Input::Request(_) => acts.push(Act::Request(member)),
            Input::Release => acts.push(Act::Release(member)),
            _ => {}
        }
        for outcome in &step.outcomes {
            match outcome {
                Outcome::Send { message, .. } => {
                    *messages.entry(message.kind.clone()).or_default() += 1;
                }
                Outcome::Granted(_) => entries.push(member),
                _ => {}
            }
        }
    };
    let hooks = Hooks { observer: Some(&mut observer), stop: None };
    let report = run(&scenario.setup().unwrap(), hooks).unwrap();
    assert_eq!(report.violation, None);
    (Seen { entries, messages }, acts)
}

/// Waits until every message that was sent has arrived.
async fn settle(nodes: &[Node]) {
    let quiet = async {
        loop {
            let counts: Vec<_> = nodes.iter().map(Node::status).collect();
            let sent: u64 = counts.iter().map(|status| status.messages).sum();
            let arrived: u64 = counts.iter().map(|status| status.arrived).sum();
            if sent == arrived {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(LIMIT, quiet).await.expect("messages arrive");
}

type Waiting<'a> = std::pin::Pin<Box<dyn Future<Output = Guard> + 'a>>;

/// Does the same over TCP: one act at a time, each after all messages of the last have arrived.
async fn over_tcp(nodes: &[Node], name: &str, acts: &[Act]) -> Seen {
    let mut waiting: Vec<Option<Waiting<'_>>> = nodes.iter().map(|_| None).collect();
    let mut inside: Vec<Option<Guard>> = nodes.iter().map(|_| None).collect();
    let mut entries = Vec::new();
    for &act in acts {
        match act {
            Act::Request(node) => {
                let request = nodes[node].lock(name).into_future();
                waiting[node] = Some(Box::pin(async move { request.await.unwrap() }));
            }
            Act::Release(node) => drop(inside[node].take().expect("it is inside")),
        }
        // Twice: whoever is let in while the messages arrive is noticed after them.
        for _ in 0..2 {
            for (node, slot) in waiting.iter_mut().enumerate() {
                let Some(future) = slot else { continue };
                let poll = std::future::poll_fn(|context| {
                    std::task::Poll::Ready(future.as_mut().poll(context))
                });
                if let std::task::Poll::Ready(guard) = poll.await {
                    entries.push(node);
                    inside[node] = Some(guard);
                    *slot = None;
                }
            }
            settle(nodes).await;
        }
    }
    let mut messages: BTreeMap<String, u64> = BTreeMap::new();
    for node in nodes {
        for (kind, count) in node.status().namespaces.into_iter().flat_map(|it| it.messages) {
            *messages.entry(kind).or_default() += count;
        }
    }
    messages.retain(|_, count| *count > 0);
    Seen { entries, messages }
}

#[tokio::test]
async fn every_algorithm_does_over_tcp_what_it_does_in_the_simulator() {
    for entry in catraca_algorithms::registry::ENTRIES {
        for count in [3, 5] {
            let seats = if entry.parameters.contains(&"resources") { SET_SEATS } else { 1 };
            let (expected, acts) = simulated(&scenario(entry.name, count, seats), seats);
            let (listeners, addresses) = listeners(count).await;
            let mut configs = configs(&addresses, entry.name);
            for config in &mut configs {
                config.turns.handovers = 0;
            }
            // The simulator's token starts at node 0: so must that of the lock, or of all names
            // together, which is found by their pattern.
            let at_first = |name: &String| {
                for config in &mut configs {
                    config.namespaces[0].pattern = format!("*{name}*");
                }
                configs[0].home_of(name).as_deref() == Ok("a")
            };
            let name = (0..).map(|number| format!("lock/{number}")).find(at_first).unwrap();
            let nodes = group_of(configs, listeners).await;
            let seen = over_tcp(&nodes, &name, &acts).await;
            assert_eq!(seen, expected, "{} with {count} nodes", entry.name);
        }
    }
}
