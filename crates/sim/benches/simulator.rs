//! How fast the simulator is: events a second of several runs, and of the event queue alone.
#![allow(clippy::unwrap_used, reason = "a benchmark may fail loudly")]

use catraca_sim::{EventQueue, Hooks, Random, Scenario, Time, run};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn bench_run(criterion: &mut Criterion, name: &str, scenario: &Scenario) {
    let setup = scenario.setup().unwrap();
    let events = run(&setup, Hooks::default()).unwrap().events;
    let mut group = criterion.benchmark_group("run");
    group.throughput(Throughput::Elements(events)).sample_size(10);
    group.bench_function(name, |bench| {
        bench.iter(|| assert_eq!(run(&setup, Hooks::default()).unwrap().events, events));
    });
    group.finish();
}

fn runs(criterion: &mut Criterion) {
    let group =
        |algorithm, nodes| Scenario::new().with("algorithm", algorithm).with("nodes", nodes);
    let high = group("ricart-agrawala", 64).with("run.entries", 10_000);
    bench_run(criterion, "ricart-agrawala, 64 nodes, high load", &high);
    let once = group("raymond", 100_000).with("workload.rounds", 1);
    bench_run(criterion, "raymond, 100,000 nodes, one request each", &once);
}

/// A thousand nodes that ask for two resources each, of few or of many.
fn sets(criterion: &mut Criterion) {
    for resources in [10, 100, 1000, 10_000] {
        let scenario = Scenario::new()
            .with("algorithm", "bouabdallah-laforest")
            .with("nodes", 1000)
            .with("resources", resources)
            .with("workload.claim", 2)
            .with("run.entries", 20_000);
        let name = format!("bouabdallah-laforest, 1,000 nodes, 2 of {resources} resources");
        bench_run(criterion, &name, &scenario);
    }
}

/// The hold model: the next event comes out, and one goes in at a random time after it.
fn hold_model(criterion: &mut Criterion) {
    const EVENTS: u64 = 100_000;
    const SPREAD: u64 = 1_000_000;
    let mut group = criterion.benchmark_group("queue, hold model");
    group.throughput(Throughput::Elements(EVENTS)).sample_size(10);
    for exponent in [10, 14, 18] {
        let mut random = Random::new(1);
        let mut queue = EventQueue::default();
        for event in 0..1u64 << exponent {
            queue.push(Time(random.below(SPREAD)), event);
        }
        let pending = BenchmarkId::from_parameter(format!("2^{exponent} pending"));
        group.bench_function(pending, |bench| {
            bench.iter(|| {
                for _ in 0..EVENTS {
                    let (now, event) = queue.pop().unwrap();
                    queue.push(now + Time(random.below(SPREAD)), event);
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, runs, sets, hold_model);
criterion_main!(benches);
